"""The step budget and the host gap: parts on paper, and sums that are exact whatever overlaps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_mapping.program_kind import Kind, ProgramKind
from nsys_report.analysis import find_ceilings
from nsys_report.analysis.arrays.view import View, make_view
from nsys_report.analysis.budget.parts import Budget, budget
from nsys_report.analysis.budget.table import budget_tables
from nsys_report.analysis.idle.causes import CAUSES
from nsys_report.analysis.idle.host_gap import gap_parts, host_gaps
from nsys_report.analysis.idle.idle_times import idle_times
from nsys_report.analysis.roofline.ceilings import Ceilings, override
from nsys_report.analysis.roofline.classes import class_times
from nsys_report.analysis.roofline.compute import compute_types, fact_dots, nanoseconds_per_flop
from nsys_report.analysis.roofline.costs import alike, costs_of
from nsys_report.analysis.roofline.storage import weight_types
from nsys_report.analysis.structure.tokens import tokens_per_execution
from nsys_report.analysis.times.attribution import busy_times, own_time, windows
from nsys_report.joined import Joined
from tests.nsys_report.joined_samples import copy, fact, joined, kernel

CEILINGS = override(find_ceilings("none"), {"measured": 2.0, "nominal": 4.0, "bf16": 0.01})  # 2 bytes and 10 flops a nanosecond
NO_KV = {"kv_read_bytes": 0, "kv_write_bytes": 0}
FACTS = [
    fact("dot.1", kernel_class="weights", class_detail="projection", bytes_accessed=1200, weight_bytes=1000, flops=2000,
         dot_type="bf16,bf16->f32", **NO_KV),
    fact("gather.2", kernel_class="kv_gather", class_detail="pages", bytes_accessed=400, weight_bytes=0, kv_read_bytes=200,
         kv_write_bytes=0),
    fact("write.3", kernel_class="kv_write", class_detail="append", bytes_accessed=20, weight_bytes=0, kv_read_bytes=0, kv_write_bytes=10),
    fact("call.4", kernel_class="other", class_detail="library"),
    fact("big.5", kernel_class="weights", class_detail="head", bytes_accessed=200, weight_bytes=200, flops=3000,
         dot_type="bf16,bf16->f32", **NO_KV),
]  # fmt: skip


def made(value: Joined, ceilings: Ceilings = CEILINGS) -> tuple[View, Budget]:
    view = make_view(value)
    per_flop = nanoseconds_per_flop(compute_types(value, fact_dots(value)), ceilings)
    costs = costs_of(view)
    kinds = (costs, alike(view, costs), class_times(view, costs))
    return view, budget(view, *kinds, idle_times(view), busy_times(view), ceilings, per_flop)


def parts(found: Budget, execution: int = 0) -> dict[str, int]:
    """The parts of an execution by name; exact sums are checked on the way."""
    assert found.ns.sum(axis=1).tolist() == found.wall.tolist()
    return {f"{p.category}: {p.part}": int(n) for p, n in zip(found.parts, found.ns[execution], strict=True) if n}


def call(start: int, end: int, name: str, thread: int = 11) -> dict[str, Any]:
    return {"start_ns": start, "end_ns": end, "thread": thread, "global_pid": 1, "name": name, "correlation_id": 0}


def launched(start: int, end: int, api: str = "cuLaunchKernelEx") -> dict[str, Any]:
    return {"launch_start_ns": start, "launch_end_ns": end, "launch_api": api, "launch_thread": 11}


def two_steps() -> Joined:
    """A step of 4,000 ns: graph launch, weights 900, a pause of 100, gather 300, write 20, library 80; then a result copy, host work."""
    rows = []
    for execution, at in enumerate((0, 4000)):
        graph = launched(at - 500, at - 100, "cuGraphLaunch")
        rows += [
            kernel(at, at + 900, execution, 0, **graph),
            kernel(at + 1000, at + 1300, execution, 1, **graph),
            kernel(at + 1300, at + 1320, execution, 2, **graph),
            kernel(at + 1320, at + 1400, execution, 3, **graph),
            copy(at + 1700, at + 1800, "DtoH", 64, None, **launched(at + 1600, at + 1650, "cuMemcpyDtoHAsync")),
        ]
    return joined(rows, FACTS, runtime=[call(2000, 2200, "cuGraphExecKernelNodeSetParams"), call(2500, 2700, "cuMemAlloc")])


def test_a_step_on_paper() -> None:
    _, found = made(two_steps())
    assert parts(found) == {
        "floor: weights": 500,  # 1000 bytes at 2 a nanosecond
        "floor: kv_cache": 105,  # 200 read and 10 written
        "traffic: weights: projection": 100,
        "traffic: kv_gather: pages": 100,
        "traffic: kv_write: append": 5,
        "below_roof: weights": 300,
        "below_roof: kv_gather": 100,
        "below_roof: kv_write": 10,
        "kernels: other": 80,
        "idle: between_activities": 100,
        "copies: to_host": 100,
        "host: before_fetch": 200,  # from the device's end to the copy's call
        "copies: waiting_for_result": 50,  # from the call's return to the copy
        "copies: copies_out": 50,
        "launch: graph_updates": 200,
        "host: allocation": 200,
        "launch: graph_launch": 400,
        "launch: first_kernel_latency": 100,
        "host: host_work": 1300,
    }
    assert found.wall.tolist() == [4000, 1400]


def test_the_last_execution_ends_with_itself() -> None:
    _, found = made(two_steps())
    assert sum(parts(found, 1).values()) == 1400
    assert "host: host_work" not in parts(found, 1)


def test_arithmetic_beyond_the_bytes_time() -> None:
    """3,000 flops take 300 ns where the 200 bytes take 100."""
    _, found = made(joined([kernel(0, 500, 0, 4)], FACTS))
    assert parts(found) == {"floor: weights": 100, "floor: arithmetic": 200, "below_roof: weights": 200}


def test_a_class_above_the_roof_has_no_more_floor_than_time() -> None:
    _, found = made(joined([kernel(0, 400, 0, 0)], FACTS))
    assert parts(found) == {"floor: weights": 400}


def test_without_a_ceiling_kernels_are_not_split() -> None:
    _, found = made(joined([kernel(0, 900, 0, 0)], FACTS), find_ceilings("none"))
    assert parts(found) == {"kernels: weights": 900}
    assert found.ceiling is None


def test_the_nominal_ceiling_serves_where_none_was_measured() -> None:
    _, found = made(joined([kernel(0, 900, 0, 0)], FACTS), override(find_ceilings("none"), {"nominal": 4.0}))
    assert parts(found)["floor: weights"] == 250
    assert found.ceiling is not None and found.ceiling.origin == "given"


def test_other_executions_kernels_are_their_own_part() -> None:
    other = {"hlo_module": "jit_other", "program_id": 2}
    rows = [kernel(0, 100, 0, 3), kernel(50, 300, 1, 3), kernel(1000, 1100, 2, 3)]
    _, found = made(joined(rows, FACTS, {1: other}))
    assert parts(found, 0) == {"kernels: other": 100, "other_executions: kernels": 200, "host: unexplained": 700}
    assert parts(found, 1) == {"kernels: other": 250}


def test_overlapping_kernels_of_one_execution_count_once() -> None:
    rows = [kernel(0, 100, 0, 3), kernel(20, 60, 0, 3, stream_id=8), kernel(50, 150, 0, 3, stream_id=8)]
    view, found = made(joined(rows, FACTS))
    assert own_time(view, windows(view)).tolist() == [100, 0, 50]
    assert parts(found) == {"kernels: other": 150}


def test_a_loop_condition_read_back() -> None:
    rows = [
        kernel(0, 100, 0, 3, **launched(-50, -20)),
        copy(150, 152, "DtoH", 1, 0, **launched(90, 120, "cuMemcpyDtoHAsync")),
        kernel(400, 500, 0, 3, **launched(300, 340)),
    ]
    _, found = made(joined(rows, FACTS))
    assert parts(found) == {
        "kernels: other": 200,
        "copies: to_host": 2,
        "idle: loop_readback": 50 + 148,
        "launch: launch_call": 40,
        "launch: launch_latency": 60,
    }


def graph_step(at: int, gap: int) -> list[dict[str, Any]]:
    """A graph of three kernels, of which the second sets the condition of a node: what it leads to takes `gap` and is not recorded."""
    graph = {"correlation_id": 7, **launched(at - 10_000, at - 500, "cuGraphLaunch")}
    return [
        kernel(at, at + 1_000, 0, 3, **graph),
        kernel(at + 1_000, at + 2_000, 0, 3, name="set_case_condition", **graph),
        kernel(at + 2_000 + gap, at + 3_000 + gap, 0, 3, **graph),
    ]


def test_work_that_was_not_recorded_is_no_pause() -> None:
    """Gaps of 11, 20 and 311 µs after a condition is set: the node takes 11, twice that is still its own, and 300 are its body's."""
    rows = [row for n, gap in enumerate((11_000, 20_000, 311_000)) for row in graph_step(1_000_000 * n, gap)]
    found = parts(made(joined(rows, FACTS))[1])
    assert (found["idle: conditional_nodes"], found["not_recorded: not_recorded"]) == (11_000 + 20_000 + 11_000, 300_000)


def test_a_body_that_always_runs_is_not_taken_for_the_node() -> None:
    rows = [row for n in range(3) for row in graph_step(1_000_000 * n, 340_000)]
    found = parts(made(joined(rows, FACTS))[1])
    assert (found["idle: conditional_nodes"], found["not_recorded: not_recorded"]) == (3 * 40_000, 3 * 300_000)


def test_a_body_that_is_recorded_hides_nothing() -> None:
    rows = [row for n, gap in enumerate((11_000, 311_000)) for row in graph_step(1_000_000 * n, gap)]
    rows[-1]["correlation_id"] = None  # as kernels of a body are recorded
    assert "not_recorded: not_recorded" not in parts(made(joined(rows, FACTS))[1])


def test_the_tracing_of_nodes_is_no_launch() -> None:
    """Two nodes of a graph add 2 µs to its launch of 10: a fifth of what the device waits for within it."""
    rows = [
        kernel(0, 1_000, 0, 3, **launched(-50, -20)),
        kernel(11_000, 12_000, 0, 3, graph_node_id=1, **launched(1_000, 11_000, "cuGraphLaunch")),
        kernel(12_000, 13_000, 0, 3, graph_node_id=2, **launched(1_000, 11_000, "cuGraphLaunch")),
    ]
    found = parts(made(joined(rows, FACTS))[1])
    assert (found["profiler: node_tracing"], found["launch: graph_launch"]) == (2_000, 8_000)


def test_a_launch_that_comes_too_late_is_no_pause_of_the_device() -> None:
    rows = [
        kernel(0, 100, 0, 3, **launched(-50, -20)),
        kernel(300, 400, 0, 3, **launched(150, 250)),
        kernel(410, 420, 0, 3, **launched(260, 270)),
    ]
    _, found = made(joined(rows, FACTS))
    assert parts(found) == {
        "kernels: other": 210,
        "host: xla_dispatch": 50,  # between two launches of one execution the host is inside XLA
        "launch: launch_call": 100,
        "launch: launch_latency": 50,
        "idle: between_activities": 10,
    }


def test_time_between_copies_in_one_direction_is_staging() -> None:
    send = launched(300, 310, "cuMemcpyHtoDAsync")
    rows = [kernel(0, 100, 0, 3), copy(200, 250, "HtoD", 64, None, **launched(100, 110)), copy(310, 320, "HtoD", 64, None, **send)]
    _, found = made(joined([*rows, kernel(320, 330, 1, 3)], FACTS))
    assert parts(found)["copies: between_copies"] == 50


def test_compile_and_profiler_come_before_host_work() -> None:
    rows = [kernel(0, 100, 0, 3), kernel(1000, 1100, 1, 3, **launched(900, 950))]
    nvtx = [{"start_ns": 200, "end_ns": 500, "thread": 99, "text": "XlaCompile:#module=jit_step#"}]
    _, found = made(joined(rows, FACTS, nvtx=nvtx, runtime=[call(400, 600, "cuModuleLoadData"), call(150, 160, "cuEventRecord")]))
    assert parts(found) == {
        "kernels: other": 100,
        "compile: compile": 400,
        "host: host_work": 400,
        "launch: launch_call": 50,
        "launch: first_kernel_latency": 50,
    }


def test_pageable_copies_are_named() -> None:
    rows = [kernel(0, 100, 0, 3), copy(400, 500, "HtoD", 64, None, source_memory="pageable", **launched(200, 350, "cuMemcpyHtoDAsync"))]
    rows.append(kernel(500, 600, 1, 3))
    _, found = made(joined(rows, FACTS))
    assert parts(found)["copies: pageable_copy"] == 150


def test_threads_of_other_devices_explain_nothing() -> None:
    rows = [kernel(0, 100, 0, 3, **launched(-10, -5)), kernel(1000, 1100, 1, 3, **launched(900, 950))]
    rows.append(kernel(300, 400, 2, 3, device_id=1, **launched(200, 250)) | {"launch_thread": 12})
    other_device = {2: {"device_id": 1, "program_id": 5}}
    _, found = made(joined(rows, FACTS, other_device, runtime=[call(150, 700, "cuMemAlloc", thread=12)]))
    assert parts(found)["host: host_work"] == 800


def test_host_gap_parts_add_up() -> None:
    view = make_view(two_steps())
    table = gap_parts(view, idle_times(view))
    first, second = table.to_pylist()
    assert first["host_gap_ns"] is None and first["host_work_ns"] is None
    assert second["host_gap_ns"] == 2200 == sum(second[f"{c.key}_ns"] for c in CAUSES)
    assert (second["graph_updates_ns"], second["graph_launch_ns"], second["first_kernel_latency_ns"]) == (200, 400, 100)
    rows = {r["cause"]: r for r in host_gaps(view, table).to_pylist()}
    assert rows["host_work"]["share"] == 1300 / 2200
    assert sum(r["mean_ns"] for r in rows.values()) == 2200


def test_tables_and_tokens() -> None:
    view, found = made(two_steps())
    costs = costs_of(view)
    tokens = tokens_per_execution(view, costs, alike(view, costs), weight_types(view.joined))
    assert tokens == [2.0]  # 2000 flops over 2 x 500 bf16 weights
    table, steps = budget_tables(view, found, tokens, [None])
    (step,) = steps.to_pylist()
    assert (step["steps"], step["typical_ns"], step["floor_ns"], step["tokens_per_s"]) == (1, 4000, 605, 5e5)
    rows = table.to_pylist()
    assert sum(r["typical_ns"] for r in rows) == sum(r["total_ns"] for r in rows) == 4000
    host = next(r for r in rows if r["part"] == "host_work")
    assert host["share"] == 1300 / 4000
    assert round(host["tokens_per_s_gain"]) == round(2e9 / 2700 - 5e5)


@pytest.mark.parametrize(("kind", "made_tokens"), [("decoding", 2.0), ("training", None), ("other", None)])
def test_only_programs_that_serve_make_tokens(kind: Kind, made_tokens: float | None) -> None:
    joined_steps = two_steps()
    number = next(n for n in joined_steps.executions["program_id"].to_pylist() if n is not None)
    view = make_view(replace(joined_steps, kinds={number: ProgramKind(kind, 0.9)}))
    costs = costs_of(view)
    assert tokens_per_execution(view, costs, alike(view, costs), weight_types(view.joined)) == [made_tokens]


_ROWS = st.lists(
    st.tuples(
        st.integers(0, 400),  # start
        st.integers(0, 60),  # duration
        st.integers(-1, 5),  # execution
        st.integers(0, len(FACTS) - 1),
        st.sampled_from(["kernel", "HtoD", "DtoH", "DtoD"]),
        st.one_of(st.none(), st.tuples(st.integers(-50, 400), st.integers(0, 50))),
        st.sampled_from([1, 64]),
    ),
    max_size=25,
)
_CALLS = st.lists(
    st.tuples(
        st.integers(-50, 450), st.integers(0, 80), st.sampled_from(["cuMemAlloc", "cuGraphLaunch", "cuStreamSynchronize", "cuModuleLoad"])
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(_ROWS, _CALLS, st.lists(st.integers(0, 1), min_size=6, max_size=6))
def test_every_budget_adds_up_whatever_overlaps(rows: list[Any], calls: list[Any], programs: list[int]) -> None:
    activities = []
    for start, duration, execution, number, kind, api, size in rows:
        launch = launched(api[0], api[0] + api[1]) if api else {}
        belongs = execution if execution >= 0 else None
        if kind == "kernel":
            activities.append(kernel(start, start + duration, belongs, number, **launch))
        else:
            activities.append(copy(start, start + duration, kind, size, belongs, **launch))
    names = {e: {"hlo_module": f"jit_{p}", "program_id": p} for e, p in enumerate(programs)}
    value = joined(activities, FACTS, names, runtime=[call(s, s + d, name) for s, d, name in calls])
    view, found = made(value)
    assert found.ns.sum(axis=1).tolist() == found.wall.tolist()
    assert np.all(found.ns >= 0)
    table = gap_parts(view, idle_times(view))
    for row in table.to_pylist():
        if row["host_gap_ns"] is not None:
            assert sum(row[f"{c.key}_ns"] for c in CAUSES) == row["host_gap_ns"]
            assert row["unexplained_ns"] >= 0


def test_a_copy_that_the_program_makes_is_launched_like_its_kernels() -> None:
    """Within an execution the call of a copy on the device is a launch; between two executions it is the issue of a copy."""
    call = launched(150, 250, "cuMemcpyDtoDAsync_v2")
    rows = [kernel(0, 100, 0, 3, **launched(-50, -20)), copy(300, 400, "DtoD", 64, 0, **call), kernel(400, 410, 0, 3, **launched(260, 270))]
    assert parts(made(joined(rows, FACTS))[1])["launch: launch_call"] == 100
    apart = [rows[0], rows[1] | {"execution_id": None}, rows[2] | {"execution_id": 1}]
    assert parts(made(joined(apart, FACTS))[1])["copies: copies_on_device"] == 100
