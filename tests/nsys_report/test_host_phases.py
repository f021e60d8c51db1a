"""One typical step as the host goes through it, on paper."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
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


def test_ranges_that_people_opened_name_the_phases_they_cover() -> None:
    """In each step `read` holds the time with the result, `load` and in it `decode` what comes before the call; `run` holds it all."""
    opened = []
    for n in range(3):
        at = 4000 * n
        opened += [(at + 1500, at + 2000, "read"), (at + 2250, at + 3900, "load"), (at + 2300, at + 3800, "decode")]
    opened.append((-1000, 30_000, "run"))
    ranges = [{"start_ns": a, "end_ns": b, "thread": 11, "text": text} for a, b, text in opened]
    ranges.append({"start_ns": 2250, "end_ns": 3900, "thread": 12, "text": "another thread's"})
    made = joined(
        [row for n in range(3) for row in step(4000 * n, n)], [fact("k")], executions={n + 10: HELPER for n in range(3)}, nvtx=ranges
    )
    found = [r for r in host_phases(make_view(made)).to_pylist() if r["hlo_module"] == "jit_step"]
    named = {r["phase"]: r["user_range"] for r in found}
    assert (named["after_result"], named["before_call"]) == ("read", "decode")
    assert named["fetch"] is None and named["launch"] is None


def test_threads_are_called_by_their_names() -> None:
    made = joined([row for n in range(3) for row in step(4000 * n, n)], [fact("k")], executions={n + 10: HELPER for n in range(3)}, nvtx=[])
    made = replace(made, capture=SimpleNamespace(**vars(made.capture) | {"thread_names": {11: "dataloader"}}))  # type: ignore[arg-type]
    assert {r["thread_name"] for r in host_phases(make_view(made)).to_pylist()} == {"dataloader"}


def test_phases_name_the_calls_of_the_operating_system_that_they_pass_in() -> None:
    """In the middle step fread holds 100 to 400 of the phase from 1,500 to 2,000, with a read in it; a sleep of 1,000 goes over
    two phases (from 2,250 to 3,900 lies before the call) and another thread's wait counts for nothing."""
    at = 4000
    calls = [
        (at + 1600, at + 1900, 11, "fread"),
        (at + 1600, at + 1800, 11, "read"),
        (at + 1900, at + 1950, 11, "mmap"),
        (at + 2240, at + 3240, 11, "nanosleep"),
        (at + 3250, at + 3900, 12, "sem_wait"),
    ]
    calls += [(a - d, b - d, t, n) for d in (4000, -4000) for a, b, t, n in calls]
    made = joined(
        [row for n in range(3) for row in step(4000 * n, n)],
        [fact("k")],
        executions={n + 10: HELPER for n in range(3)},
        os_calls=[{"start_ns": a, "end_ns": b, "thread": t, "name": n} for a, b, t, n in sorted(calls)],
    )
    found = [r for r in host_phases(make_view(made)).to_pylist() if r["hlo_module"] == "jit_step"]
    assert {r["phase"]: r["os_calls"] for r in found} == {
        "before_fetch": None,
        "fetch": None,
        "after_result": [("fread", 300), ("mmap", 50)],
        "upload": None,
        "between_arguments": None,
        "program": [("nanosleep", 10)],
        "before_call": [("nanosleep", 990)],
        "launch": None,
    }
