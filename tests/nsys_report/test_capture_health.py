"""What a capture can and cannot answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nsys_report.capture import open_capture
from nsys_report.capture.health import Health, health
from nsys_report.capture.health_items import HealthItem
from nsys_report.capture.model import Capture
from tests.conftest import CAPTURES
from tests.nsys_report.tiny_capture import KERNEL, MEMCPY, NVTX, PROCESS, RUNTIME, STRINGS, build, call, kernel, nvtx

Opened = Callable[[str], Capture]
DAMAGED = {"decode_graph", "shapes"}


def found(judged: Health) -> dict[str, str]:
    return {item.slug: item.severity for item in judged.items}


@pytest.mark.parametrize("name", CAPTURES)
def test_real_captures(name: str, capture: Opened) -> None:
    judged = health(capture(name))
    assert judged.is_damaged == (name in DAMAGED)
    assert judged.lost_launches == 0
    assert judged.unlaunched == 0
    for item in judged.items:
        assert item.text and "\n" not in item.text
        assert item.remedy or item.severity in ("ok", "info")


@pytest.mark.parametrize(
    ("name", "mode"),
    [("decode", "node"), ("decode_nocb", "none"), ("graph_2025", "graph"), ("decode_graph", "hidden"), ("torch_mlp", "none")],
)
def test_graph_modes(name: str, mode: str, capture: Opened) -> None:
    judged = health(capture(name))
    assert judged.graph_mode == mode
    remedies = [item.remedy for item in judged.items if item.slug == "graphs"]
    assert any("--cuda-graph-trace=node" in r for r in remedies) == (mode in ("graph", "hidden"))


def test_hidden_graph_work_is_not_called_complete(capture: Opened) -> None:
    judged = found(health(capture("decode_graph")))
    assert judged["graphs"] == "fatal"
    assert "lost-records" not in judged


def test_lost_records(capture: Opened) -> None:
    judged = health(capture("shapes"))
    assert judged.silent_ranges == 171
    (item,) = [i for i in judged.items if i.slug == "lost-records"]
    assert item.severity == "fatal"
    assert "171 of 175" in item.text


def test_window_edges(capture: Opened) -> None:
    judged = health(capture("cutoff_nocb"))
    assert (judged.early_kernels, judged.cut_launches, judged.lost_launches) == (31, 2, 0)
    assert found(judged)["window-start"] == found(judged)["window-end"] == "warning"
    assert health(capture("decode_nocb")).early_kernels == 0


def test_no_xla(capture: Opened) -> None:
    judged = health(capture("torch_mlp"))
    assert judged.xla_modules == 0
    assert found(judged)["ranges"] == "info"


def judge(path: Path, **tables: list[dict[str, Any]]) -> Health:
    names = {"kernels": KERNEL, "calls": RUNTIME, "ranges": NVTX}
    strings = STRINGS | {6: "cuStreamBeginCapture_v2", 7: "cuStreamEndCapture"}
    return health(open_capture(build(path / "capture.sqlite", {names.get(n, n): rows for n, rows in tables.items()}, strings)))


def test_lost_launches(tmp_path: Path) -> None:
    calls = [call(10 * i, 10 * i + 5, i) for i in range(1, 11)]
    kernels = [kernel(10 * i + 6, 10 * i + 9, i) for i in range(1, 11) if i not in (3, 4)]
    judged = judge(tmp_path, kernels=kernels, calls=calls)
    assert judged.lost_launches == 2
    assert found(judged)["lost-launches"] == "warning"


def test_most_launches_missing_at_the_end_are_lost_not_cut(tmp_path: Path) -> None:
    judged = judge(tmp_path, kernels=[kernel(16, 19, 1)], calls=[call(10 * i, 10 * i + 5, i) for i in range(1, 11)])
    assert (judged.lost_launches, judged.cut_launches) == (9, 0)
    assert judged.is_damaged


def test_stream_capture_and_failed_calls_launch_nothing(tmp_path: Path) -> None:
    calls = [
        call(10, 11, 1, nameId=6),
        call(12, 13, 2),
        call(14, 15, 3, nameId=7),
        call(16, 17, 4, returnValue=700),
        call(20, 21, 5),
    ]
    judged = judge(tmp_path, kernels=[kernel(22, 25, 5)], calls=calls)
    assert judged.lost_launches == judged.cut_launches == 0
    assert found(judged)["lost-records"] == "ok"


def test_activities_without_launch(tmp_path: Path) -> None:
    judged = judge(tmp_path, kernels=[kernel(5, 6, 900), kernel(22, 25, 5)], calls=[call(20, 21, 5)])
    assert judged.unlaunched == 1
    assert found(judged)["unlaunched"] == "warning"


def test_bodies_of_a_graphs_loops_have_no_launch_of_their_own(tmp_path: Path) -> None:
    kernels = [kernel(22, 25, 5, graphNodeId=7), kernel(26, 27, 900, graphNodeId=8), kernel(28, 29, 900, graphNodeId=8)]
    judged = judge(tmp_path, kernels=kernels, calls=[call(20, 21, 5)])
    assert judged.unlaunched == 0
    assert found(judged)["device-launched"] == "info"
    assert "unlaunched" not in found(judged)


def test_overhead_is_a_union_within_the_work(tmp_path: Path) -> None:
    overhead = [{"start": s, "end": e, "globalTid": None, "nameId": 1} for s, e in ((0, 120), (110, 150), (140, 145), (900, 5000))]
    judged = judge(tmp_path, kernels=[kernel(100, 200, 1), kernel(900, 1100, 1)], calls=[call(20, 21, 1)], PROFILER_OVERHEAD=overhead)
    (item,) = [i for i in judged.items if i.slug == "overhead"]
    assert item.severity == "warning"
    assert "25 %" in item.text  # 100 to 150 and 900 to 1100 of 1000 ns


def test_diagnostics_say_each_thing_once_and_no_path(tmp_path: Path) -> None:
    boost = "Error when processing events: Source ID=\n  x\n[QuadDCommon::tag_message*] = Cannot find string\n"
    texts = [
        (2, boost),
        (2, boost),
        (3, "cannot write /home/ada/secret.tmp"),
        (2, "No NVTX events collected. Does the process use NVTX?"),
        (1, "hi"),
    ]
    rows = [{"timestamp": 1, "severity": severity, "text": text, "globalPid": PROCESS} for severity, text in texts]
    judged = judge(tmp_path, kernels=[kernel(1, 2)], calls=[call(1, 2)], DIAGNOSTIC_EVENT=rows)
    said = [i.text for i in judged.items if i.slug == "diagnostics"]
    assert said == [
        "the profiler said 2 times: Error when processing events: Cannot find string",
        "the profiler said once: cannot write (path)",
    ]


def test_records_left_out_are_counted(tmp_path: Path) -> None:
    judged = judge(tmp_path, kernels=[kernel(0, 5), kernel(6, 7), kernel(9, 8)], calls=[call(1, 2)], ranges=[nvtx(1, 2, "mine")])
    assert found(judged)["untimed"] == found(judged)["reversed"] == "warning"
    assert found(judged)["gpu"] == "warning"
    assert found(judged)["ranges"] == "info"


def item(capture: Capture, slug: str) -> HealthItem:
    return next(item for item in health(capture).items if item.slug == slug)


def test_activities_that_name_no_call_are_not_lost_records(tmp_path: Path) -> None:
    """Three kernels without a correlation id, and three launches: which is whose is unknown, but nothing is lost."""
    calls = [call(10 * n, 10 * n + 5, n) for n in (1, 2, 3)]
    capture = open_capture(build(tmp_path / "c.sqlite", {KERNEL: [kernel(100 * n, 100 * n + 50, None) for n in (1, 2, 3)], RUNTIME: calls}))
    judged = health(capture)
    assert not judged.is_damaged and judged.lost_launches == 0
    assert "they name none; 3 launches have no record that names them" in item(capture, "unpaired").text


def test_why_activities_have_no_call(tmp_path: Path) -> None:
    """One began before the first call, one moved a page of unified memory, one names a call that is not there."""
    moved = {"start": 900, "end": 950, "bytes": 4096, "copyKind": 11, "srcKind": 4, "dstKind": 4, "globalPid": PROCESS, "streamId": 7}
    copies = [moved | {"correlationId": None, "deviceId": 0, "contextId": 1}]
    kernels = [kernel(100, 200, 7), kernel(500, 600, 1), kernel(700, 800, 99)]
    capture = open_capture(build(tmp_path / "c.sqlite", {KERNEL: kernels, MEMCPY: copies, RUNTIME: [call(300, 310, 1)]}))
    assert item(capture, "unlaunched").text.startswith("1 of 4 GPU activities")
    assert item(capture, "migrations").text.startswith("1 copy moved pages of unified memory")
    assert "those that they name are not recorded" in item(capture, "unpaired").text


def test_ranges_without_a_thread_lose_no_records(tmp_path: Path) -> None:
    ranges = [nvtx(5, 50, "XlaModule:#hlo_module=jit_f,program_id=1#", globalTid=None)]
    capture = open_capture(build(tmp_path / "c.sqlite", {KERNEL: [kernel(100, 200, 1)], RUNTIME: [call(10, 20, 1)], NVTX: ranges}))
    assert not health(capture).is_damaged
    assert item(capture, "ranges-without-thread").text.startswith("1 of 1 XLA ranges name no thread")


def test_ranges_without_an_end_amid_others(tmp_path: Path) -> None:
    """The last of a thread may have been open when recording stopped; one that another follows may not."""
    ranges = [nvtx(n, None, "XlaModule:#hlo_module=jit_f,program_id=1#") for n in (5, 25)]
    calls, kernels = [call(10, 20, 1), call(30, 40, 2)], [kernel(100, 200, 1), kernel(300, 400, 2)]
    capture = open_capture(build(tmp_path / "c.sqlite", {KERNEL: kernels, RUNTIME: calls, NVTX: ranges}))
    assert item(capture, "ranges-without-end").text.startswith("1 of XLA's ranges have no end")
