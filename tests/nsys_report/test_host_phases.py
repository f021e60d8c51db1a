"""One typical step as the host goes through it, on paper."""

from __future__ import annotations

from typing import Any

from nsys_report.analysis.arrays.view import make_view
from nsys_report.analysis.idle.host_phases import host_phases
from tests.nsys_report.joined_samples import copy, fact, joined, kernel

HELPER = {"hlo_module": "jit_stage", "program_id": 2}


def launched(start: int, end: int, api: str = "cuLaunchKernelEx") -> dict[str, Any]:
    return {"launch_start_ns": start, "launch_end_ns": end, "launch_api": api, "launch_thread": 11}


def step(at: int, execution: int) -> list[dict[str, Any]]:
    """Kernels for 1,000 ns; the result fetched from 1,300 to 1,500; an argument at 2,000, a helper at 2,200; the next call at 3,900."""
    return [
        kernel(at, at + 1000, execution, 0, **launched(at - 100, at - 50)),
        copy(at + 1400, at + 1500, "DtoH", 64, None, **launched(at + 1300, at + 1350, "cuMemcpyDtoHAsync")),
        copy(at + 2060, at + 2080, "HtoD", 4, None, **launched(at + 2000, at + 2050, "cuMemcpyHtoDAsync")),
        copy(at + 2260, at + 2280, "DtoD", 4, execution + 10, **launched(at + 2200, at + 2250, "cuMemcpyDtoDAsync")),
    ]


def phases(rows: list[dict[str, Any]], nvtx: list[dict[str, Any]] | None = None) -> list[tuple[str, int, int]]:
    helpers = {n + 10: HELPER for n in range(3)}
    found = host_phases(make_view(joined(rows, [fact("k")], executions=helpers, nvtx=nvtx or []))).to_pylist()
    return [(r["phase"], r["start_ns"], r["duration_ns"]) for r in found if r["hlo_module"] == "jit_step"]


def test_phases_follow_one_another_and_add_up() -> None:
    found = phases([row for n in range(3) for row in step(4000 * n, n)])
    assert found == [
        ("before_fetch", 0, 300),
        ("fetch", 300, 200),
        ("after_result", 500, 500),
        ("upload", 1000, 50),
        ("between_arguments", 1050, 150),
        ("program", 1200, 50),
        ("before_call", 1250, 1650),
        ("launch", 2900, 100),
    ]
    assert sum(duration for _, _, duration in found) == 3000


def test_the_time_within_xla_is_its_own() -> None:
    taken = [
        {"start_ns": 4000 * n - 400, "end_ns": 4000 * n, "thread": 11, "text": "XlaModule:#hlo_module=jit_step,program_id=1#"}
        for n in range(3)
    ]
    found = phases([row for n in range(3) for row in step(4000 * n, n)], taken)
    assert found[-3:] == [("before_call", 1250, 1350), ("dispatch", 2600, 300), ("launch", 2900, 100)]


def test_calls_with_nothing_between() -> None:
    rows = [kernel(4000 * n, 4000 * n + 1000, n, 0, **launched(4000 * n - 100, 4000 * n - 50)) for n in range(3)]
    assert phases(rows) == [("between_calls", 0, 2900), ("launch", 2900, 100)]


def test_a_program_that_runs_once_has_no_phases() -> None:
    assert phases(step(0, 0)) == []


def test_a_call_that_is_ahead_leaves_nothing_to_the_host() -> None:
    """The next launch was made while the device still worked: all that is left is the device's own."""
    rows = [kernel(4000 * n, 4000 * n + 3900, n, 0, **launched(4000 * n - 3000, 4000 * n - 2950)) for n in range(3)]
    assert phases(rows) == [("launch", 0, 100)]
