"""Kinds of activities, executions alike, and codes without gaps."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsys_report.analysis.arrays.groups import coded_floats, dense_codes, dense_tuples
from nsys_report.analysis.arrays.quantiles import grouped_quantiles
from nsys_report.analysis.arrays.view import make_view
from nsys_report.analysis.roofline.costs import alike, costs_of
from nsys_report.executions.runs import RowRuns
from nsys_report.joined import Joined
from tests.nsys_report.joined_samples import copy, fact, joined, kernel

FACTS = [
    fact("dot.1", kernel_class="weights", class_detail="product", bytes_accessed=1000, weight_bytes=900, flops=50),
    fact("call.2", kernel_class="other", class_detail="custom call"),
]


def launched_in_parts() -> Joined:
    """Three executions of two kernels for dot.1, of which the first bears its cost, and one for call.2; the last has one kernel more."""
    rows = []
    for e, start in enumerate((0, 100, 200)):
        rows += [kernel(start, start + 10, e, 0), kernel(start + 10, start + 15, e, 0), kernel(start + 20, start + 50, e, 1)]
    rows += [kernel(260, 270, 2, 1), copy(300, 310, "DtoH", 8, None)]
    made = joined(rows, FACTS)
    costs = ("kernel_class", "class_detail", "bytes_accessed", "weight_bytes", "kv_read_bytes", "kv_write_bytes", "flops")
    bears = pa.array([True, False, True] * 3 + [True, True])
    return replace(made, activities=made.activities.drop_columns(list(costs)).append_column("bears_cost", bears))


def test_the_cost_stands_on_the_kernel_that_bears_it() -> None:
    made = launched_in_parts()
    costs = costs_of(make_view(made))
    kinds = costs.kind[:3]
    assert [costs.values["bytes_accessed"][k] for k in kinds] == [1000, 0, 0]
    assert [bool(costs.bytes_known[k]) for k in kinds] == [True, True, False]
    assert [costs.classes.words[costs.classes.codes[k]] for k in kinds] == ["weights", "weights", "other"]
    assert len(set(costs.kind.tolist())) == 4, "a copy to the host is a kind of its own"
    written = made.complete()
    assert written["bytes_accessed"].to_pylist()[:3] == [1000, 0, None]
    assert written["flops"].to_pylist()[:3] == [50, 0, None]


def test_costs_written_beside_activities_give_the_same_kinds() -> None:
    made = launched_in_parts()
    costs = costs_of(make_view(replace(made, activities=made.complete())))
    assert [costs.values["bytes_accessed"][k] for k in costs.kind[:3]] == [1000, 0, 0]


def test_executions_of_the_same_work_are_alike() -> None:
    view = make_view(launched_in_parts())
    costs = costs_of(view)
    same = alike(view, costs)
    first, second, third = same.pattern.tolist()
    assert first == second != third
    assert same.totals(costs.values["weight_bytes"]).tolist() == [900, 900, 900]
    kernels = same.sums(np.zeros(len(costs), np.int64), 1)[same.pattern, 0]
    assert kernels.tolist() == [3, 3, 4]


@pytest.mark.parametrize("largest", [9, 1 << 40])
def test_codes_are_renumbered_in_order_of_appearance(largest: int) -> None:
    number, keys = dense_codes(np.array([largest, 4, largest, 0, 4]), largest + 1)
    assert number.tolist() == [0, 1, 0, 2, 1]
    assert keys.tolist() == [largest, 4, 0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 4)), min_size=1, max_size=30))
def test_tuples_come_apart_again(rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows).T
    number, keys = dense_tuples([(columns[0], 4), (columns[1], 2), (columns[2], 5)])
    assert [tuple(int(key[n]) for key in keys) for n in number] == rows
    assert len(keys[0]) == len(set(rows))


def test_floats_of_few_values() -> None:
    values, code = coded_floats(pa.chunked_array([[0.5, None, 1.0], [0.5]]))
    assert (values.tolist(), code.tolist()) == ([0.5, 1.0], [0, -1, 1, 0])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-(10**6), 2**40)), min_size=1, max_size=30), st.booleans())
def test_quantiles_within_groups_are_numpys(rows: list[tuple[int, int]], small: bool) -> None:
    group = np.array([g for g, _ in rows])
    values = np.array([v % 1000 if small else v for _, v in rows])
    found = grouped_quantiles(group, values, 4, (0.1, 0.5))
    for g in range(4):
        if (group == g).any():
            assert found[:, g] == pytest.approx(np.quantile(values[group == g], (0.1, 0.5)))
        else:
            assert np.isnan(found[:, g]).all()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=20))
def test_runs_of_neighbors_alike(rows: list[tuple[int, int]]) -> None:
    columns = [np.array([r[i] for r in rows], np.int64) for i in (0, 1)]
    runs = RowRuns.of(*columns)
    assert runs.expand(columns[0][runs.first]).tolist() == columns[0].tolist()
    assert runs.expand(columns[1][runs.first]).tolist() == columns[1].tolist()
    firsts = [rows[i] for i in runs.first]
    assert all(a != b for a, b in pairwise(firsts)), "runs are as long as they can be"
