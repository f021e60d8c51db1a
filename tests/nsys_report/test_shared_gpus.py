"""Several processes on one GPU are one GPU: busy by union, idle only where none works, gaps ended by anybody's work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nsys_report.analysis.arrays.view import make_view
from nsys_report.capture import open_capture
from nsys_report.capture.health import health
from nsys_report.capture.model import shared_places
from nsys_report.findings.rules import devices
from nsys_report.findings.step import make_context
from nsys_report.notebook import analyze
from nsys_report.pipeline import capture_ceilings
from tests.nsys_report.tiny_capture import KERNEL, OTHER, OTHER_THREAD, RUNTIME, STRINGS, build, call, kernel


def two_processes(path: Path, second_gpu: int) -> Path:
    """Kernels of process 111 at 100 to 200 and 500 to 600, of 112 at 150 to 300; each calls its device 0."""
    rows: dict[str, list[dict[str, Any]]] = {
        KERNEL: [kernel(100, 200, 1), kernel(500, 600, 2), kernel(150, 300, 1, globalPid=OTHER)],
        RUNTIME: [call(50, 60, 1), call(70, 80, 2), call(50, 60, 1, globalTid=OTHER_THREAD)],
        "TARGET_INFO_GPU": [{"id": n, "name": "G"} for n in (0, 1)],
        "TARGET_INFO_CUDA_DEVICE": [{"gpuId": 0, "cudaId": 0, "pid": 111}, {"gpuId": second_gpu, "cudaId": 0, "pid": 112}],
    }
    return build(path / "capture.sqlite", rows, STRINGS)


def test_two_processes_on_one_gpu(tmp_path: Path) -> None:
    found = analyze(two_processes(tmp_path, 0))
    (device,) = found.results.devices.to_pylist()
    assert (device["kernels"], device["busy_time_ns"], device["idle_time_ns"]) == (3, 200 + 100, 200)
    assert device["process_id"] is None
    assert found.report().parts[0].headline.startswith("G · ")


def test_two_processes_with_a_gpu_each(tmp_path: Path) -> None:
    """The same ordinal in both, as CUDA_VISIBLE_DEVICES makes it."""
    found = analyze(two_processes(tmp_path, 1))
    assert [(d["process_id"], d["busy_time_ns"]) for d in found.results.devices.to_pylist()] == [(111, 200), (112, 150)]
    assert found.report().parts[0].headline.startswith("2 × G · ")


def test_places_on_one_gpu(tmp_path: Path) -> None:
    gpus = open_capture(two_processes(tmp_path, 0)).info.gpus
    assert shared_places(gpus) == {(111, 0): (111, 0), (112, 0): (111, 0)}
    assert shared_places(gpus[:1]) == {}


@pytest.mark.parametrize("second", [0, 1])
def test_the_views_devices(tmp_path: Path, second: int) -> None:
    view = make_view(analyze(two_processes(tmp_path, second)).joined)
    assert view.devices == (((111, 0),) if second == 0 else ((111, 0), (112, 0)))
    assert view.shared == (frozenset({0}) if second == 0 else frozenset())


def test_kernels_side_by_side_tell_of_mps(tmp_path: Path) -> None:
    """Of the second process's 150 ns 50 lie beside a kernel of the first: a third, where taking turns leaves next to nothing."""
    made = analyze(two_processes(tmp_path, 0))
    context = make_context(made.joined, made.results, made.health)
    assert devices.side_by_side(context) == pytest.approx(50 / 150)


def test_a_process_that_sees_few_of_the_multiprocessors_has_a_part_of_the_card(tmp_path: Path) -> None:
    """A MIG slice whose name does not say so: 16 of 132 multiprocessors, so that the card's bandwidth is not its own."""
    rows: dict[str, list[dict[str, Any]]] = {
        KERNEL: [kernel(100, 200, 1)],
        RUNTIME: [call(50, 60, 1)],
        "TARGET_INFO_GPU": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "smCount": 132, "memoryBandwidth": 3_350_000_000_000}],
        "TARGET_INFO_CUDA_DEVICE": [{"gpuId": 0, "cudaId": 0, "pid": 111, "numMultiprocessors": 16}],
    }
    capture = open_capture(build(tmp_path / "capture.sqlite", rows, STRINGS))
    (gpu,) = capture.info.gpus
    assert (gpu.sm_count, gpu.whole_sm_count, gpu.is_part) == (16, 132, True)
    assert capture_ceilings(capture).roof is None
    assert capture_ceilings(capture, {"measured": 400}).roof is not None
    assert "gpu-part" in {item.slug for item in health(capture).items}
