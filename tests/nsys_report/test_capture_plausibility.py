"""Values that cannot be: left out or unknown, counted and said, and the rest as usual."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nsys_report.capture import open_capture
from nsys_report.capture.health import health
from nsys_report.capture.model import Capture
from nsys_report.capture.plausibility import impossible_sizes, impossible_spans
from tests.nsys_report.tiny_capture import KERNEL, MEMCPY, NVTX, PROCESS, RUNTIME, STRINGS, THREAD, build, call, kernel, nvtx

TOP = 2**63 - 1


def opened(path: Path, **tables: list[dict[str, Any]]) -> Capture:
    names = {"kernels": KERNEL, "calls": RUNTIME, "copies": MEMCPY, "ranges": NVTX, "session": "ANALYSIS_DETAILS"}
    return open_capture(build(path / "capture.sqlite", {names.get(n, n): rows for n, rows in tables.items()}, STRINGS))


def slugs(capture: Capture) -> set[str]:
    return {item.slug for item in health(capture).items}


def test_spans_that_cannot_be() -> None:
    start, end = np.array([0, -5, 10, -TOP - 1, 10, 3]), np.array([TOP, 5, 20, 4, 1_000_000_121, 1_000_100])
    assert impossible_spans(start, end, None).tolist() == [True, False, False, True, False, False]
    assert impossible_spans(start, end, 100).tolist() == [True, False, False, True, True, False]


def test_sizes_that_cannot_be() -> None:
    """A microsecond and the slack of one move 200 MB at most at 100 TB/s; no memory holds 2**50 bytes."""
    sizes, duration = np.array([-1, 200_000_000, 200_000_001, 2**50 + 1, TOP]), np.array([1_000, 1_000, 1_000, 10**15, TOP])
    assert impossible_sizes(sizes, duration).tolist() == [True, False, True, True, True]


def test_a_kernel_longer_than_the_recording(tmp_path: Path) -> None:
    capture = opened(
        tmp_path,
        kernels=[kernel(100, 200, 1), kernel(300, 3_600_000_000_000, 2)],
        calls=[call(10, 20, 1), call(30, 40, 2)],
        session=[{"duration": 5_000}],
    )
    assert capture.activities.column("end_ns").to_pylist() == [200]
    assert capture.omitted.impossible == 1
    assert "impossible" in slugs(capture)


def test_a_kernel_over_later_launches_of_its_stream(tmp_path: Path) -> None:
    """Launch 1 lies over 2 (which may begin early) and over 3, which begins 4 ms in: a stream does not do that."""
    late = [kernel(5_000_000 + 10 * n, 5_000_005 + 10 * n, n) for n in (2, 3, 4)]
    capture = opened(tmp_path, kernels=[kernel(1_000_000, 9_000_000, 1), *late], calls=[call(n, n + 1, n) for n in range(1, 5)])
    assert capture.activities.column("correlation_id").to_pylist() == [2, 3, 4]
    assert capture.omitted.overlapping == 1


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"streamId": 8}, id="another stream"),
        pytest.param({"deviceId": 1}, id="another device"),
        pytest.param({"correlationId": 1}, id="nodes of one graph"),
    ],
)
def test_what_may_run_beside_others(tmp_path: Path, changes: dict[str, int]) -> None:
    beside = [kernel(5_000_000 + 10 * n, 5_000_005 + 10 * n, n, **changes) for n in (2, 3, 4)]
    capture = opened(tmp_path, kernels=[kernel(1_000_000, 9_000_000, 1), *beside], calls=[call(n, n + 1, n) for n in range(1, 5)])
    assert capture.activities.num_rows == 4
    assert capture.omitted.overlapping == 0


def test_the_next_launch_may_begin_early(tmp_path: Path) -> None:
    kernels = [kernel(1_000_000, 9_000_000, 1), kernel(8_999_000, 10_500_000, 2), kernel(11_000_000, 11_000_010, 3)]
    assert opened(tmp_path, kernels=kernels, calls=[call(n, n + 1, n) for n in range(1, 4)]).activities.num_rows == 3


def launched(early: list[int]) -> dict[str, list[dict[str, Any]]]:
    """Kernels that start so much (ns) before their calls, one each 100 µs."""
    begin = [1_000_000 + 100_000 * n for n in range(len(early))]
    kernels = [kernel(at - gap, at - gap + 50_000, n + 1) for n, (at, gap) in enumerate(zip(begin, early, strict=True))]
    return {"kernels": kernels, "calls": [call(at, at + 5_000, n + 1) for n, at in enumerate(begin)]}


def test_a_clock_that_is_early_throughout_is_set_right(tmp_path: Path) -> None:
    """All 40 kernels start 28 to 30 µs before their calls: the least that restores the order is 30 µs."""
    capture = opened(tmp_path, **launched([30_000, 28_000] * 20))
    clocks = capture.info.clock_offset
    assert clocks is not None
    assert (clocks.misplaced, clocks.offset_ns, clocks.is_corrected) == (40, 30_000, True)
    late = np.subtract(capture.activities.column("start_ns").to_pylist(), capture.activities.column("launch_start_ns").to_pylist())
    assert late.tolist() == [0, 2_000] * 20
    assert "clocks" in slugs(capture)


def test_a_clock_that_drifts_is_said_and_left(tmp_path: Path) -> None:
    tables = launched([5_000 * (n + 1) for n in range(40)])
    capture = opened(tmp_path, **tables)
    assert capture.info.clock_offset is not None
    assert not capture.info.clock_offset.is_corrected
    assert sorted(capture.activities.column("start_ns").to_pylist()) == sorted(row["start"] for row in tables["kernels"])


def test_a_clock_that_is_right(tmp_path: Path) -> None:
    assert opened(tmp_path, **launched([-2_000] * 200 + [2_000])).info.clock_offset is None  # one of 201 is no disagreement of clocks


def test_copies_too_large(tmp_path: Path) -> None:
    copy = {"start": 12, "end": 1_012, "correlationId": 1, "globalPid": PROCESS, "copyKind": 1, "deviceId": 0, "streamId": 7}
    copies = [copy | {"bytes": 64}, copy | {"bytes": TOP, "streamId": 8}, copy | {"bytes": -5, "streamId": 9}]
    capture = opened(tmp_path, copies=copies, calls=[call(1, 2)])
    assert capture.activities.column("bytes").to_pylist() == [64, None, None]
    assert capture.omitted.oversized == 2


def test_host_records_at_impossible_times(tmp_path: Path) -> None:
    capture = opened(
        tmp_path,
        kernels=[kernel(100, 110)],
        calls=[call(1, 2), call(3, TOP, 2)],
        ranges=[nvtx(1, 5, "a"), nvtx(2, TOP, "b"), nvtx(3, None, "open to the end")],
    )
    assert capture.runtime.num_rows == 1
    assert capture.nvtx.column("text").to_pylist() == ["a", "open to the end"]
    assert capture.omitted.host_records == 2


@pytest.mark.parametrize(("bandwidth", "kept"), [(TOP, None), (-1, None), (0, None), (4_814_304_000_000, 4_814_304_000_000)])
def test_figures_of_a_gpu(tmp_path: Path, bandwidth: int, kept: int | None) -> None:
    capture = opened(
        tmp_path, kernels=[kernel(100, 110)], calls=[call(1, 2)], TARGET_INFO_GPU=[{"id": 0, "name": "G", "memoryBandwidth": bandwidth}]
    )
    (gpu,) = capture.info.gpus
    assert gpu.nominal_bytes_per_s == kept
    assert ("gpu-figures" in slugs(capture)) == (kept is None and bandwidth != 0)  # 0 is how a driver says that it does not know


@pytest.mark.parametrize(
    ("kind", "slug"), [(8, "launch-queue"), (2, "code-loading"), (6, "code-loading"), (7, "code-loading"), (3, "overhead"), (4, "overhead")]
)
def test_overhead_by_what_it_is(tmp_path: Path, kind: int, slug: str) -> None:
    overhead = [{"start": 120, "end": 180, "globalTid": THREAD, "nameId": None, "overheadType": kind}]
    capture = opened(
        tmp_path,
        kernels=[kernel(100, 110, 1), kernel(190, 200, 2)],
        calls=[call(1, 2, 1), call(3, 4, 2)],
        CUPTI_ACTIVITY_KIND_OVERHEAD=overhead,
    )
    (item,) = [i for i in health(capture).items if i.slug in ("launch-queue", "code-loading", "overhead")]
    assert item.slug == slug
    assert "60 ns (60 %)" in item.text


def test_records_that_stand_twice_count_once(tmp_path: Path) -> None:
    """An export appended to itself: each record is there again; two of the same times on other streams are two."""
    kernels = [kernel(1_000, 2_000, 1), kernel(1_000, 2_000, 1, streamId=8), kernel(3_000, 4_000, 2)]
    calls, ranges = [call(10, 20, 1), call(30, 40, 2)], [nvtx(5, 50, "XlaModule:#hlo_module=jit_f,program_id=1#")]
    capture = opened(tmp_path, kernels=kernels * 2, calls=calls * 2, ranges=ranges * 2)
    assert (capture.activities.num_rows, capture.runtime.num_rows, capture.nvtx.num_rows) == (3, 2, 1)
    assert (capture.omitted.repeated, capture.omitted.host_repeated) == (3, 3)
    assert {"repeated", "host-repeated"} <= slugs(capture)


def test_records_that_only_look_alike_stay(tmp_path: Path) -> None:
    """Nodes of one graph that run side by side, and records that name no call."""
    nodes = [kernel(1_000, 2_000, 1, graphNodeId=n) for n in (5, 6)]
    nameless = [kernel(5_000, 6_000, None), kernel(5_000, 6_000, None)]
    capture = opened(tmp_path, kernels=[*nodes, *nameless], calls=[call(10, 20, 1)])
    assert capture.activities.num_rows == 4
    assert capture.omitted.repeated == 0


def test_calls_and_ranges_that_end_before_they_start(tmp_path: Path) -> None:
    capture = opened(
        tmp_path, kernels=[kernel(100, 200, 1)], calls=[call(50, 20, 1)], ranges=[nvtx(60, 10, "step"), nvtx(70, None, "open")]
    )
    assert capture.runtime.column("end_ns").to_pylist() == [50]
    assert capture.nvtx.column("end_ns").to_pylist() == [60, None]
    assert capture.omitted.host_reversed == 2


def read_back(after_ns: int, results: int = 8) -> dict[str, list[dict[str, Any]]]:
    """Results copied to the host, each of which is there `after_ns` after the wait for it came back."""
    copies, calls = [], []
    for n in range(results):
        at = 100_000 * (n + 1)
        calls += [call(at, at + 5_000, n + 1, nameId=4), call(at + 6_000, at + 30_000, 100 + n, nameId=6)]
        place = {"correlationId": n + 1, "deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": PROCESS}
        end = at + 30_000 + after_ns
        copies.append({"start": end - 2_000, "end": end, "bytes": 4, "copyKind": 2, "srcKind": 2, "dstKind": 1, **place})
    return {"copies": copies, "calls": calls}


WAITING = {**STRINGS, 6: "cuStreamSynchronize"}


def test_a_clock_that_is_late_is_set_right(tmp_path: Path) -> None:
    """Each copy ends 40 µs after the host had seen it done, which cannot be: the GPU's clock is at least that late."""
    tables = read_back(40_000)
    capture = open_capture(build(tmp_path / "capture.sqlite", {MEMCPY: tables["copies"], RUNTIME: tables["calls"]}, WAITING))
    clocks = capture.info.clock_offset
    assert clocks is not None
    assert (clocks.misplaced, clocks.offset_ns, clocks.is_corrected) == (8, -40_000, True)
    assert capture.activities.column("end_ns").to_pylist()[0] == 130_000
    said = next(item.text for item in health(capture).items if item.slug == "clocks")
    assert said.startswith("8 results on the host only after it had waited for them: the GPU's clock is late by 40.0 µs")


def test_results_in_time_say_nothing_of_clocks(tmp_path: Path) -> None:
    tables = read_back(-3_000)
    capture = open_capture(build(tmp_path / "capture.sqlite", {MEMCPY: tables["copies"], RUNTIME: tables["calls"]}, WAITING))
    assert capture.info.clock_offset is None


def test_a_kernel_that_outlasts_all_calls(tmp_path: Path) -> None:
    """Nobody says how long recording took, but no program's last call is an hour before the end of its work."""
    capture = opened(tmp_path, kernels=[kernel(100, 200, 1), kernel(300, 3_600_000_000_000, 2)], calls=[call(10, 20, 1), call(30, 40, 2)])
    assert capture.activities.column("end_ns").to_pylist() == [200]
    assert capture.omitted.impossible == 1


def test_a_false_bandwidth_is_said_once(tmp_path: Path) -> None:
    gpu = [{"id": 0, "name": "NVIDIA H200", "memoryBandwidth": TOP}]
    capture = opened(tmp_path, kernels=[kernel(100, 200, 1)], calls=[call(10, 20, 1)], TARGET_INFO_GPU=gpu)
    assert "gpu-figures" in slugs(capture) and "gpu" not in slugs(capture)
