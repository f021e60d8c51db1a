"""Executions as measured on paper: kernel time by sum, busy time by union, the host gap by what ran before on the device."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hlo_mapping.matching.result import JoinedExecution
from nsys_report.executions.table import executions_table
from tests.nsys_report.launch_samples import activities


def found(number: int | None = 1, module: str = "jit_f", tied: tuple[tuple[str, int], ...] = (), method: str = "nvtx") -> JoinedExecution:
    return JoinedExecution(module, number, None, method, 1.0, None, True, 7, tied)


def table(rows: pa.Table, execution: list[int], *executions: JoinedExecution) -> tuple[dict[str, list[object]], list[int]]:
    made, number = executions_table(rows, np.array(execution), executions)
    return made.to_pydict(), number.tolist()


def test_sum_union_and_span() -> None:
    # two kernels that overlap by 5 on other streams, and a copy after a pause of 10
    rows = activities(
        {"start_ns": 100, "end_ns": 120},
        {"start_ns": 115, "end_ns": 130, "stream_id": 2},
        {"start_ns": 140, "end_ns": 144, "activity": "memcpy", "bytes": 8, "copy_kind": "DtoD"},
    )
    made, _ = table(rows, [0, 0, 0], found())
    assert made["kernel_count"] == [2]
    assert made["kernel_time_ns"] == [35]
    assert made["busy_time_ns"] == [34]
    assert (made["start_ns"], made["end_ns"]) == ([100], [144])


def test_a_kernel_inside_another_adds_nothing_to_busy_time() -> None:
    rows = activities({"start_ns": 0, "end_ns": 100}, {"start_ns": 10, "end_ns": 20}, {"start_ns": 90, "end_ns": 110})
    assert table(rows, [0, 0, 0], found())[0]["busy_time_ns"] == [110]


def test_the_host_gap_ends_at_the_last_end_of_whatever_ran_before() -> None:
    rows = activities(
        {"start_ns": 0, "end_ns": 50},
        {"start_ns": 10, "end_ns": 20, "activity": "memcpy", "bytes": 8, "copy_kind": "HtoD"},
        {"start_ns": 70, "end_ns": 80},
        {"start_ns": 75, "end_ns": 90},
    )
    made, number = table(rows, [0, -1, 1, 2], found(), found(), found())
    # the first has nothing before it, the second starts 20 after the longest before it, the third begins inside the second
    assert made["host_gap_ns"] == [None, 20, 0]
    assert number == [0, -1, 1, 2]


def test_devices_and_processes_have_gaps_of_their_own() -> None:
    rows = activities({"start_ns": 0, "end_ns": 50}, {"start_ns": 60, "device_id": 1}, {"start_ns": 70, "process_id": 2}, {"start_ns": 80})
    assert table(rows, [0, 1, 2, 3], *[found()] * 4)[0]["host_gap_ns"] == [None, None, None, 30]


def test_a_graph_recorded_whole_hides_how_many_kernels_it_had() -> None:
    rows = activities({"start_ns": 0, "end_ns": 40, "activity": "graph"}, {"start_ns": 50, "end_ns": 60})
    made, _ = table(rows, [0, 1], found(), found())
    assert (made["kernel_count"], made["kernel_time_ns"], made["busy_time_ns"]) == ([None, 1], [None, 10], [40, 10])


def test_numbers_go_by_start_whatever_the_order_of_discovery() -> None:
    rows = activities({"start_ns": 0}, {"start_ns": 10}, {"start_ns": 20})
    made, number = table(rows, [2, 0, 1], found(module="b"), found(module="c"), found(module="a"))
    assert made["hlo_module"] == ["a", "b", "c"]
    assert number == [0, 1, 2]


def test_a_tie_leaves_the_number_unknown_and_is_named() -> None:
    rows = activities({"start_ns": 0}, {"start_ns": 10})
    made, _ = table(rows, [0, 1], found(5, tied=(("jit_f", 3), ("jit_g", 4)), method="sequence"), found(6))
    assert made["program_id"] == [None, 6]
    assert made["tied_modules"] == ["jit_f#3, jit_g#4", None]


def test_executions_without_activity_are_left_out() -> None:
    made, number = table(activities({"start_ns": 0}), [-1], found())
    assert made["execution_id"] == []
    assert number == [-1]
