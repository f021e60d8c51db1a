"""Real captures with something wrong done to them: the join changes where it was done, and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hlo_mapping.dump.index import DumpIndex, index_dump
from hlo_mapping.matching.join import join
from hlo_mapping.matching.result import Annotations, LaunchJoin
from hlo_mapping.matching.tokens import launch_streams
from nsys_report.capture import open_capture
from nsys_report.executions.host import host_functions_before
from tests.conftest import FIXTURES

NEIGHBOURHOOD = 12
"""Launches around a disturbance that may change: alike kernels in a row are fewer."""


@dataclass(frozen=True)
class Case:
    """A capture without ranges, and its undisturbed join."""

    activities: pa.Table
    host: np.ndarray
    dump: DumpIndex
    found: LaunchJoin
    names: np.ndarray
    kernels: np.ndarray
    """Rows of joined kernels."""


@cache
def case(name: str) -> Case:
    capture = open_capture(FIXTURES / name / "capture.sqlite", ranges="none")
    dump = index_dump(FIXTURES / name / "xla_dump")
    host = host_functions_before(capture.activities, capture.runtime)
    found = blind(capture.activities, host, dump)
    is_kernel = np.array(capture.activities["activity"].to_pylist()) == "kernel"
    return Case(capture.activities, host, dump, found, instructions(found), np.flatnonzero(is_kernel & (found.instruction >= 0)))


def blind(activities: pa.Table, host: np.ndarray, dump: DumpIndex) -> LaunchJoin:
    return join(activities, dump, Annotations.none(len(activities)), host)


def instructions(found: LaunchJoin) -> np.ndarray:
    """The instruction of each row, "" where there is none."""
    return np.array([*(name for _, name in found.instructions), ""], object)[found.instruction]


def launch_order(one: Case, execution: int) -> np.ndarray:
    """The launches of an execution in the order in which they are matched."""
    rows = np.concatenate([stream.rows for stream in launch_streams(one.activities)[1]])
    return rows[one.found.execution[rows] == execution]


def check(one: Case, activities: pa.Table, host: np.ndarray, origin: np.ndarray, touched: int) -> None:
    """`origin` is the row that each row was, -1 for rows made up; `touched` the row that something was done to."""
    found = blind(activities, host, one.dump)
    assert len(found.execution) == len(activities)
    known = origin >= 0
    execution = int(one.found.execution[touched])
    elsewhere = known & (one.found.execution[origin] != execution)
    # other executions: the same rows together, the same instructions, as sure as before
    pairs = np.unique(np.stack([one.found.execution[origin[elsewhere]], found.execution[elsewhere]]), axis=1)
    assert len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == pairs.shape[1]
    assert (instructions(found)[elsewhere] == one.names[origin[elsewhere]]).all()
    assert np.array_equal(found.confidence[elsewhere], one.found.confidence[origin[elsewhere]], equal_nan=True)
    # the same execution: only what is near
    order = launch_order(one, execution)
    place = {int(row): n for n, row in enumerate(order)}
    here = np.flatnonzero(known & (one.found.execution[origin] == execution))
    far = here[[abs(place.get(int(row), place[touched]) - place[touched]) > NEIGHBOURHOOD for row in origin[here]]]
    assert (instructions(found)[far] == one.names[origin[far]]).all()
    assert np.array_equal(found.confidence[far], one.found.confidence[origin[far]], equal_nan=True)


@pytest.mark.parametrize("name", ["decode", "decode_nocb", "threads", "cublas_nocb", "decode_scan_nocb", "moe"])
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_kernel_dropped_doubled_or_swapped_changes_its_neighborhood_alone(name: str, data: st.DataObject) -> None:
    one = case(name)
    row = int(one.kernels[data.draw(st.integers(0, len(one.kernels) - 1))])
    rows = np.arange(len(one.activities))
    match data.draw(st.sampled_from(["drop", "double", "swap"])):
        case "drop":
            origin = np.delete(rows, row)
            check(one, one.activities.take(origin), one.host[origin], origin, row)
        case "double":
            taken = np.insert(rows, row, row)
            check(one, one.activities.take(taken), one.host[taken], np.insert(rows, row, -1), row)
        case _:
            order = launch_order(one, int(one.found.execution[row]))
            at = int(np.flatnonzero(order == row)[0])
            other = int(order[at + 1 if at + 1 < len(order) else at - 1])
            check(one, swapped(one.activities, row, other), one.host, rows, row)


def swapped(activities: pa.Table, a: int, b: int) -> pa.Table:
    """Two launches with what they launched exchanged."""
    taken = np.arange(len(activities))
    taken[a], taken[b] = b, a
    for name in ("activity", "name", "grid", "block", "bytes", "copy_kind"):
        at = activities.column_names.index(name)
        activities = activities.set_column(at, activities.schema.field(name), activities[name].take(pa.array(taken)))
    return activities


@pytest.mark.parametrize("name", ["decode", "decode_nocb", "serve", "cublas_nocb", "while_decode_nocb"])
def test_a_block_of_lost_records_leaves_the_rest_as_it_was(name: str) -> None:
    one = case(name)
    count = len(one.activities)
    kept = np.r_[0 : count // 3, count // 2 : count]
    found = blind(one.activities.take(kept), one.host[kept], one.dump)
    joined = found.instruction >= 0
    kernels = np.isin(kept, one.kernels)
    assert (instructions(found)[kernels & joined] == one.names[kept[kernels & joined]]).mean() > 0.99
    assert joined[kernels].mean() > 0.9
    sure = kernels & (found.confidence >= 0.99)
    assert (instructions(found)[sure] == one.names[kept[sure]]).all()
    # what the loss cut off says so
    assert not all(e.is_complete for e in found.executions)


@pytest.mark.parametrize("share", [0.01, 0.1])
@pytest.mark.parametrize("name", ["decode", "decode_nocb", "serve", "cublas_nocb"])
def test_records_lost_at_random_are_not_made_up_for(name: str, share: float) -> None:
    one = case(name)
    kept = np.flatnonzero(np.random.default_rng(3).random(len(one.activities)) >= share)
    found = blind(one.activities.take(kept), one.host[kept], one.dump)
    kernels = np.isin(kept, one.kernels)
    right = instructions(found) == one.names[kept]
    assert right[kernels].mean() > 0.99
    sure = kernels & (found.confidence >= 0.99)
    assert right[sure].mean() >= 0.999


def test_without_the_hosts_signs_and_without_recorded_calls() -> None:
    for name in ("decode", "decode_nocb", "decode_scan_nocb", "cublas_nocb"):
        one = case(name)
        bare = one.activities
        for column in ("launch_thread", "launch_start_ns", "launch_end_ns", "launch_api"):
            at = bare.column_names.index(column)
            bare = bare.set_column(at, bare.schema.field(column), pa.nulls(len(bare), bare.schema.field(column).type))
        found = blind(bare, np.zeros(len(bare), np.int64), one.dump)
        assert (instructions(found)[one.kernels] == one.names[one.kernels]).all(), name


@pytest.mark.parametrize("name", ["decode", "decode_nocb", "threads"])
def test_an_execution_that_lost_a_kernel_is_not_complete(name: str) -> None:
    one = case(name)
    row = int(one.kernels[len(one.kernels) // 2])
    kept = np.delete(np.arange(len(one.activities)), row)
    found = blind(one.activities.take(kept), one.host[kept], one.dump)
    touched = {int(e) for e in found.execution[one.found.execution[kept] == one.found.execution[row]]}
    assert [n for n, e in enumerate(found.executions) if not e.is_complete] == sorted(touched)
