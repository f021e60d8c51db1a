"""Real captures, cut down: the counts that their ORIGIN.md states."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pyarrow.compute as pc
import pytest

from nsys_report.capture import open_capture
from nsys_report.capture.model import ACTIVITY, Capture
from tests.conftest import CAPTURES, FIXTURES

Opened = Callable[[str], Capture]

COUNTS = {
    "decode": {"kernel": 1620, "memcpy": 70},
    "decode_nocb": {"kernel": 648, "memcpy": 28},
    "serve": {"kernel": 4 * 129 + 4 * 174, "memcpy": 56, "memset": 24},
    "while_decode_nocb": {"kernel": 2 * 2005, "memcpy": 42},
    "decode_scan_nocb": {"kernel": 4 * 161, "memcpy": 112},
    "threads": {"kernel": 9 * 8 + 8 * 12, "memcpy": 16},
    "sharded_nocb": {"kernel": 8 * 36, "memcpy": 4},
    "train": {"kernel": 5 * 32, "memcpy": 15},
    "train_host": {"kernel": 3 * 32, "memcpy": 177},
    "int8": {"kernel": 6 * 16, "memcpy": 6},
    "moe": {"kernel": 6 * 16, "memcpy": 12},
    "cublas_nocb": {"kernel": 4 * 138 + 4 * 181, "memcpy": 56},
    "cutoff_nocb": {"kernel": 31 + 4 * 162 + 111, "memcpy": 30},
    "decode_graph": {"memcpy": 28},
    "graph_2025": {"graph": 8, "memcpy": 56},
    "torch_mlp": {"kernel": 84, "memcpy": 9, "memset": 9},
    "served": {"kernel": 176, "memcpy": 113},
    "shapes": {"kernel": 9, "memcpy": 3, "memset": 9},
}
MODULES = {
    "decode": {"jit_decode_step": 10, "jit_stage": 30},
    "serve": {"jit_prefill_chunk": 4, "jit_decode_step": 4, "jit_stage": 24},
    "while_decode_nocb": {"jit_generate": 2},
    "sharded_nocb": {"jit_tp_mlp": 8},
    "torch_mlp": {},
}


@pytest.mark.parametrize("name", CAPTURES)
def test_activities(name: str, capture: Opened) -> None:
    table = capture(name).activities
    assert table.schema.equals(ACTIVITY, check_metadata=True)
    assert dict(Counter(table.column("activity").to_pylist())) == COUNTS[name]
    starts = table.column("start_ns").to_pylist()
    assert starts == sorted(starts)
    assert table.column("launch_thread").null_count == 0
    assert pc.all(pc.less_equal(table.column("launch_start_ns"), table.column("start_ns"))).as_py()


@pytest.mark.parametrize("name", MODULES)
def test_xla_ranges(name: str, capture: Opened) -> None:
    found = (re.match(r"XlaModule:.*hlo_module=([\w.]+)", text or "") for text in capture(name).nvtx.column("text").to_pylist())
    assert dict(Counter(match[1] for match in found if match)) == MODULES[name]


def test_ranges_are_in_xlas_domain(capture: Opened) -> None:
    assert set(capture("decode").nvtx.column("domain").to_pylist()) == {"TSL"}
    assert set(capture("decode").nvtx.column("event_type").to_pylist()) == {59}


def test_only_xlas_ranges_and_none() -> None:
    path = FIXTURES / "shapes" / "capture.sqlite"
    every, xla, none = (open_capture(path, ranges=ranges).nvtx for ranges in ("all", "xla", "none"))
    assert (every.num_rows, xla.num_rows, none.num_rows) == (3392, 3392, 0)


def test_graph_launch_fans_out(capture: Opened) -> None:
    kernels = capture("decode").activities.filter(pc.equal(capture("decode").activities.column("activity"), "kernel"))
    per_launch = Counter(kernels.column("correlation_id").to_pylist())
    assert set(per_launch.values()) == {162}
    assert len(per_launch) == 10
    assert set(kernels.column("launch_api").to_pylist()) == {"cuGraphLaunch"}
    assert kernels.column("graph_node_id").null_count == 0
    assert {node >> 32 for node in kernels.column("graph_node_id").to_pylist()} == {5}
    assert capture("decode").graph_nodes.num_rows == 486


def test_whole_graphs(capture: Opened) -> None:
    graphs = capture("graph_2025").activities.filter(pc.equal(capture("graph_2025").activities.column("activity"), "graph"))
    assert Counter(graphs.column("name").to_pylist()) == {"graph 32": 4, "graph 59": 4}
    assert graphs.column("bytes").null_count == graphs.num_rows


def test_copies_and_their_bytes(capture: Opened) -> None:
    table = capture("decode").activities
    copies = table.filter(pc.equal(table.column("activity"), "memcpy")).to_pylist()
    assert Counter(row["copy_kind"] for row in copies) == {"HtoD": 30, "DtoD": 30, "DtoH": 10}
    assert {row["bytes"] for row in copies if row["copy_kind"] == "DtoH"} == {128000}  # logits: 32000 values of f32
    assert all(row["name"] == row["copy_kind"] and row["grid"] is None for row in copies)
    assert {(row["source_memory"], row["target_memory"]) for row in copies if row["copy_kind"] == "HtoD"} == {("pinned", "device")}


def test_two_devices(capture: Opened) -> None:
    opened = capture("sharded_nocb")
    kernels = opened.activities.filter(pc.equal(opened.activities.column("activity"), "kernel"))
    assert Counter(kernels.column("device_id").to_pylist()) == {0: 144, 1: 144}
    assert [gpu.device_id for gpu in opened.info.gpus] == [0, 1]


def test_what_the_capture_says_of_itself(capture: Opened) -> None:
    info = capture("decode").info
    assert (info.nsys_version, info.schema_version, info.graph_trace_mode) == ("2023.4.4.54", "3.7.2", "node")
    (gpu,) = info.gpus
    assert (gpu.name, gpu.nominal_bytes_per_s, gpu.sm_count) == ("NVIDIA H200", 4_814_304_000_000, 132)
    assert (gpu.l2_bytes, gpu.compute_capability) == (62_914_560, "9.0")
    assert capture("graph_2025").info.nsys_version == "2025.3.2.0"


def test_api_names_and_synchronizations(capture: Opened) -> None:
    calls = Counter(capture("torch_mlp").runtime.column("name").to_pylist())
    assert calls["cudaLaunchKernel"] and calls["cudaStreamSynchronize"] and not calls["cuKernelGetAttribute"]
    assert set(capture("torch_mlp").synchronizations.column("kind").to_pylist()) == {"stream"}
    assert set(capture("decode").synchronizations.column("kind").to_pylist()) == {"stream_wait_event"}
    assert capture("torch_mlp").tables["CUPTI_ACTIVITY_KIND_RUNTIME"] == 234  # the table's rows, not those read


def test_allocations(capture: Opened) -> None:
    table = capture("cublas_nocb").memory_usage
    assert table.num_rows == 960
    assert set(table.column("operation").to_pylist()) <= {"allocate", "free"}
    assert capture("decode").memory_usage.num_rows == 0


def test_progress_is_told() -> None:
    told: list[tuple[str, float]] = []
    open_capture(FIXTURES / "int8" / "capture.sqlite", lambda text, share: told.append((text, share)))
    shares = [share for _, share in told]
    assert shares == sorted(shares) and shares[-1] == 1.0
