"""Records as captures of many versions hold them: absent columns, nulls, other processes, odd times, odd text."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsys_report.capture import open_capture
from nsys_report.capture.catalogue import api_name, api_stem, resolve
from nsys_report.capture.model import Capture
from tests.nsys_report.tiny_capture import (
    KERNEL,
    MEMCPY,
    NVTX,
    OTHER,
    OTHER_THREAD,
    PROCESS,
    RUNTIME,
    STRINGS,
    THREAD,
    build,
    call,
    kernel,
    nvtx,
)


def opened(path: Path, strings: dict[int, str | bytes] | None = None, **tables: list[dict[str, Any]]) -> Capture:
    names = {"kernels": KERNEL, "calls": RUNTIME, "copies": MEMCPY, "ranges": NVTX}
    rows = {names.get(name, name): value for name, value in ({"calls": [call(1, 2)]} | tables).items()}
    return open_capture(build(path / "capture.sqlite", rows, strings or STRINGS))


def test_correlation_ids_are_unique_only_within_a_process(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        kernels=[kernel(100, 110, 5), kernel(105, 115, 5, globalPid=OTHER), kernel(120, 130, 6, globalPid=OTHER)],
        calls=[call(50, 60, 5), call(70, 80, 5, globalTid=OTHER_THREAD), call(90, 95, 6)],
    ).activities
    assert found.column("launch_start_ns").to_pylist() == [50, 70, None]  # 6 is the first process's, not the second's
    assert found.column("launch_thread").to_pylist() == [THREAD, OTHER_THREAD, None]
    assert found.column("process_id").to_pylist() == [111, 112, 112]
    assert found.column("launch_api").to_pylist() == ["cudaLaunchKernel", "cudaLaunchKernel", None]


def test_a_missing_process_is_the_only_one_there_is(tmp_path: Path) -> None:
    one = opened(tmp_path, kernels=[kernel(100, 110, globalPid=None)])
    assert one.activities.column("launch_start_ns").to_pylist() == [1]
    assert one.activities.column("process_id").to_pylist() == [111]
    (tmp_path / "two").mkdir()
    two = opened(tmp_path / "two", kernels=[kernel(100, 110, globalPid=None)], calls=[call(1, 2), call(1, 2, globalTid=OTHER_THREAD)])
    assert two.activities.column("launch_start_ns").to_pylist() == [None]
    assert two.activities.column("process_id").to_pylist() == [None]
    assert two.omitted.without_process == 1


def test_negative_process_keys(tmp_path: Path) -> None:
    """Hardware ids of 0x80 and more make the signed 64-bit number negative."""
    key = (0xFE << 56 | 1 << 48 | 77 << 24) - (1 << 64)
    found = opened(tmp_path, kernels=[kernel(100, 110, globalPid=key)], calls=[call(1, 2, globalTid=key | 9)]).activities
    assert found.column("process_id").to_pylist() == [77]
    assert found.column("launch_start_ns").to_pylist() == [1]


def test_ids_beyond_the_reach_of_floats(tmp_path: Path) -> None:
    big = 2**53 + 1
    found = opened(tmp_path, kernels=[kernel(10, 11, None), kernel(20, 21, big, graphNodeId=big)], calls=[call(1, 2, big)]).activities
    assert found.column("correlation_id").to_pylist() == [None, big]
    assert found.column("graph_node_id").to_pylist() == [None, big]
    assert found.column("launch_start_ns").to_pylist() == [None, 1]


def test_values_that_come_late(tmp_path: Path) -> None:
    """A column of nulls over more rows than a batch holds, then numbers; and text the same way."""
    count = 40_000
    kernels = [kernel(i, i + 1, i, graphNodeId=None if i < count else (3 << 32) + i) for i in range(1, count + 2)]
    ranges = [nvtx(i, i + 1, None if i < count else "late", textId=1 if i < count else None) for i in range(1, count + 2)]
    capture = opened(tmp_path, kernels=kernels, ranges=ranges)
    assert capture.activities.column("graph_node_id").null_count == count - 1
    assert capture.activities.column("graph_node_id")[-1].as_py() == (3 << 32) + count + 1
    assert capture.nvtx.column("text")[-1].as_py() == "late"
    assert capture.nvtx.column("text")[0].as_py() == "loop_add_fusion"


def test_only_the_barest_columns(tmp_path: Path) -> None:
    capture = opened(tmp_path, kernels=[{"start": 5, "end": 9, "shortName": 2}], calls=[{"start": 1, "end": 2, "nameId": 3}])
    (row,) = capture.activities.to_pylist()
    assert (row["name"], row["device_id"], row["grid"], row["launch_start_ns"]) == ("gemm_fusion_dot_3", None, None, None)
    assert capture.info.gpus == ()
    assert capture.info.nsys_version is None


def test_times_that_cannot_be(tmp_path: Path) -> None:
    kernels = [kernel(0, 50), kernel(40, 0), kernel(30, 20), kernel(30, 30, 2), kernel(10, 15)]
    capture = opened(tmp_path, kernels=kernels)
    assert capture.activities.select(["start_ns", "end_ns"]).to_pylist() == [
        {"start_ns": 10, "end_ns": 15},
        {"start_ns": 30, "end_ns": 30},
        {"start_ns": 30, "end_ns": 30},
    ]
    assert (capture.omitted.untimed, capture.omitted.reversed) == (2, 1)


@pytest.mark.parametrize("shift", ["0", "-1000", None])
def test_times_below_zero_are_times(tmp_path: Path, shift: str | None) -> None:
    """Warm-up before the capture's range, or an export that was shifted, with or without a record of it."""
    meta = {} if shift is None else {"META_DATA_EXPORT": [{"name": "EXPORT_CONFIG_TIME_SHIFT", "value": shift}]}
    capture = opened(tmp_path, kernels=[kernel(-20, -10), kernel(5, 8)], calls=[call(-40, -30)], **meta)
    assert capture.activities.column("start_ns").to_pylist() == [-20, 5]
    assert capture.runtime.column("start_ns").to_pylist() == [-40]


def test_rows_out_of_order(tmp_path: Path) -> None:
    kernels = [kernel(30, 40), kernel(10, 25), kernel(10, 15)]
    copies = [{"start": 12, "end": 13, "correlationId": 1, "globalPid": PROCESS, "bytes": 64, "copyKind": 10, "deviceId": 0}]
    found = opened(tmp_path, kernels=kernels, copies=copies).activities
    assert found.column("end_ns").to_pylist() == [15, 25, 13, 40]
    assert found.column("activity").to_pylist() == ["kernel", "kernel", "memcpy", "kernel"]
    assert found.column("name").to_pylist() == ["loop_add_fusion", "loop_add_fusion", "PtoP", "loop_add_fusion"]
    assert found.column("grid").to_pylist() == ["4,1,1", "4,1,1", None, "4,1,1"]


def test_large_launch_extents(tmp_path: Path) -> None:
    found = opened(tmp_path, kernels=[kernel(1, 2, gridX=2**31 - 1, gridY=65535, gridZ=65535)]).activities
    assert found.column("grid").to_pylist() == [f"{2**31 - 1},65535,65535"]


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    strings: dict[int, str | bytes] = {1: b"caf\xe9_kernel", 3: "cuLaunchKernel"}
    capture = opened(tmp_path, strings, kernels=[kernel(1, 2)], ranges=[nvtx(1, 2, None, textId=1)])
    assert capture.activities.column("name").to_pylist() == ["caf\ufffd_kernel"]
    assert capture.nvtx.column("text").to_pylist() == ["caf\ufffd_kernel"]


def test_names_that_the_string_table_lacks(tmp_path: Path) -> None:
    capture = opened(tmp_path, kernels=[kernel(1, 2, shortName=99, demangledName=99), kernel(3, 4)], calls=[call(1, 2, nameId=98)])
    assert capture.activities.column("name").to_pylist() == ["kernel_99", "loop_add_fusion"]
    assert capture.omitted.without_name == 1
    assert capture.runtime.column("name").to_pylist() == ["call_98"]


def test_without_string_table(tmp_path: Path) -> None:
    path = build(tmp_path / "capture.sqlite", {KERNEL: [kernel(1, 2)], RUNTIME: [call(1, 2)]})
    database = sqlite3.connect(path)
    database.execute("DROP TABLE StringIds")
    database.close()
    assert open_capture(path).activities.column("name").to_pylist() == ["kernel_1"]


def test_ranges_of_every_kind(tmp_path: Path) -> None:
    ranges = [
        nvtx(-5, None, "TSL", eventType=75, domainId=1),
        nvtx(-4, None, "NCCL", eventType=75, domainId=1, globalTid=OTHER_THREAD),
        nvtx(1, 9, "XlaModule:#hlo_module=f,program_id=1#", domainId=1),
        nvtx(2, 8, "gather", domainId=1, globalTid=OTHER_THREAD),
        nvtx(3, None, "still open", eventType=60),
        nvtx(4, 2, "reversed", eventType=70),
        nvtx(5, None, "a mark", eventType=34),
        nvtx(6, 7, "", textId=2),
    ]
    found = opened(tmp_path, kernels=[kernel(1, 2)], ranges=ranges).nvtx.to_pylist()
    assert [(r["text"], r["domain"], r["end_ns"]) for r in found] == [
        ("XlaModule:#hlo_module=f,program_id=1#", "TSL", 9),
        ("gather", "NCCL", 8),
        ("still open", None, None),
        ("reversed", None, 4),
        ("gemm_fusion_dot_3", None, 7),
    ]
    xla = open_capture(tmp_path / "capture.sqlite", ranges="xla").nvtx
    assert xla.column("text").to_pylist() == ["XlaModule:#hlo_module=f,program_id=1#"]
    assert xla.column("domain").to_pylist() == ["TSL"]


@pytest.mark.parametrize(
    ("recorded", "name", "stem"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel", "cudaLaunchKernel"),
        ("cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC", "cudaLaunchKernelExC"),
        ("cudaStreamGetCaptureInfo_v2_v11030", "cudaStreamGetCaptureInfo_v2", "cudaStreamGetCaptureInfo"),
        ("cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync"),
        ("cuLaunchKernel_ptsz", "cuLaunchKernel_ptsz", "cuLaunchKernel"),
    ],
)
def test_api_names(recorded: str, name: str, stem: str) -> None:
    assert api_name(recorded) == name
    assert api_stem(recorded) == stem


def test_the_exact_table_goes_before_versions() -> None:
    assert resolve("K", ["K_V3", "K", "K_V10"]) == "K"
    assert resolve("K", ["K_V3", "K_V10", "K_V10_OLD", "KK"]) == "K_V10"
    assert resolve("CUPTI_ACTIVITY_KIND_MEMCPY", ["CUPTI_ACTIVITY_KIND_MEMCPY2"]) is None


def test_a_versioned_table(tmp_path: Path) -> None:
    path = build(tmp_path / "capture.sqlite", {f"{KERNEL}_V2": [kernel(1, 2)], RUNTIME: [call(1, 2)]})
    assert open_capture(path).activities.num_rows == 1


def test_the_device_of_a_graph_that_starts_on_the_host(tmp_path: Path) -> None:
    graph = {"start": 5, "end": 9, "deviceId": 2**31 - 1, "contextId": 4, "correlationId": 1, "globalPid": PROCESS, "graphExecId": 8}
    context = {"processId": 111, "contextId": 4, "deviceId": 3}
    tables = {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [graph], "TARGET_INFO_CUDA_CONTEXT_INFO": [context]}
    (row,) = opened(tmp_path, **tables).activities.to_pylist()
    assert (row["activity"], row["device_id"], row["name"]) == ("graph", 3, "graph 8")


def test_renumbered_devices(tmp_path: Path) -> None:
    """Two ranks that each see device 0: the capture's device table tells which GPU each has."""
    gpus = [
        {"id": n, "name": f"GPU {n}", "memoryBandwidth": (n + 1) * 10**12, "smCount": 132, "computeMajor": 9, "computeMinor": 0}
        for n in (0, 1)
    ]
    devices = [{"gpuId": 0, "cudaId": 0, "pid": 112}, {"gpuId": 1, "cudaId": 0, "pid": 111, "numMultiprocessors": 16}]
    capture = opened(
        tmp_path,
        kernels=[kernel(1, 2), kernel(3, 4, globalPid=OTHER)],
        TARGET_INFO_GPU=gpus,
        TARGET_INFO_CUDA_DEVICE=[{"numMultiprocessors": None} | d for d in devices],
    )
    assert [(g.process_id, g.name, g.sm_count) for g in capture.info.gpus] == [(111, "GPU 1", 16), (112, "GPU 0", 132)]


def test_synchronization_kinds_by_the_calls_name(tmp_path: Path) -> None:
    """nsys 2025.5 to 2026.1 store a stream synchronization as 2, the number of a stream's wait for an event."""
    sync = {"start": 5, "end": 9, "correlationId": 1, "globalPid": PROCESS, "syncType": 2, "streamId": 7, "contextId": 1}
    rows = [sync, sync | {"start": 6, "correlationId": 44, "streamId": 2**32 - 1}]
    strings: dict[int, str | bytes] = {**STRINGS, 3: "cudaStreamSynchronize_v3020"}
    found = opened(tmp_path, strings, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION=rows).synchronizations
    assert found.column("kind").to_pylist() == ["stream", "stream_wait_event"]
    assert found.column("thread").to_pylist() == [THREAD, None]
    assert found.column("stream_id").to_pylist() == [7, None]


def test_secrets_are_not_read(tmp_path: Path) -> None:
    meta = [
        {"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": "TOKEN=hunter2"},
        {"name": "PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "value": "Node"},
    ]
    capture = opened(tmp_path, kernels=[kernel(1, 2)], META_DATA_CAPTURE=meta)
    assert capture.info.graph_trace_mode == "node"
    assert "hunter2" not in repr(capture)


def test_a_parquet_directory_reads_the_same(tmp_path: Path) -> None:
    """Same columns, other types: unsigned ids, and text that is not UTF-8 under a string type."""
    kernels, calls = [kernel(100, 110, 5), kernel(90, 95, None, globalPid=None)], [call(50, 60, 5)]
    ranges = [nvtx(-5, None, "TSL", eventType=75, domainId=1), nvtx(1, 9, "XlaModule:#x#", domainId=1), nvtx(2, 3, None, textId=2)]
    capture = opened(tmp_path, kernels=kernels, calls=calls, ranges=ranges)
    folder = tmp_path / "pqtdir"
    folder.mkdir()
    tables = {KERNEL: kernels, RUNTIME: calls, NVTX: ranges, "StringIds": [{"id": k, "value": v} for k, v in STRINGS.items()]}
    for name, rows in tables.items():
        table = pa.Table.from_pylist(rows)
        for column in ("globalPid", "globalTid", "domainId"):
            if column in table.column_names:
                place = table.column_names.index(column)
                table = table.set_column(place, column, table.column(column).cast(pa.uint64()))
        pq.write_table(table, folder / f"{name}.parquet")
    for mode in ("all", "xla"):
        same = open_capture(folder, ranges=mode)
        assert same.activities.to_pylist() == capture.activities.to_pylist()
        assert same.runtime.to_pylist() == capture.runtime.to_pylist()
    assert open_capture(folder).nvtx.to_pylist() == capture.nvtx.to_pylist()
    assert open_capture(folder, ranges="xla").nvtx.num_rows == 1


def test_a_table_read_in_parts_is_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row numbers with gaps, calls that are left out, nulls in one part only: the parts close up."""
    strings = STRINGS | {9: "cuCtxSetCurrent_v4000"}
    kernels = [kernel(10 * i, 10 * i + 5, i, graphNodeId=None if i < 60 else 77, shortName=1 + i % 2) for i in range(1, 101)]
    calls = [call(10 * i - 8, 10 * i - 6, i, nameId=9 if i % 3 == 0 and i > 50 else 3) for i in range(1, 101)]
    path = build(tmp_path / "capture.sqlite", {KERNEL: kernels, RUNTIME: calls}, strings)
    with sqlite3.connect(path) as database:
        database.execute(f"DELETE FROM {KERNEL} WHERE rowid BETWEEN 20 AND 30")
    whole = open_capture(path)
    monkeypatch.setattr("nsys_report.capture.sqlite.SPLIT_ROWS", 10)
    monkeypatch.setattr("nsys_report.capture.sqlite.BATCH_ROWS", 7)
    parts = open_capture(path)
    assert parts.activities.equals(whole.activities)
    assert parts.runtime.equals(whole.runtime)
    assert parts.activities.num_rows == 89
    assert parts.activities.column("graph_node_id").null_count == 59 - 11
    assert parts.tables[KERNEL] == 89


@pytest.mark.parametrize("odd", ["12", 12.0, b"12"])
def test_integers_stored_as_something_else(odd: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite keeps what it is given, in a column without a type; the driver expects what its first batch held."""
    monkeypatch.setattr("nsys_report.capture.sqlite.BATCH_ROWS", 2)
    for place in (0, 4):
        kernels = [kernel(10 * i, 10 * i + 5, i, streamId=7) for i in range(1, 6)]
        kernels[place]["streamId"] = odd
        folder = tmp_path / str(place)
        folder.mkdir()
        streams = opened(folder, kernels=kernels).activities.column("stream_id").to_pylist()
        assert streams == [12 if i == place else 7 for i in range(5)]


def test_a_table_without_row_numbers(tmp_path: Path) -> None:
    path = build(tmp_path / "capture.sqlite", {RUNTIME: [call(1, 2)]})
    with sqlite3.connect(path) as database:
        database.execute(f"CREATE TABLE {MEMCPY} (start INTEGER PRIMARY KEY, end, bytes, copyKind, globalPid) WITHOUT ROWID")
        database.executemany(f"INSERT INTO {MEMCPY} VALUES (?, ?, ?, ?, ?)", [(30, 40, 8, 1, PROCESS), (10, 20, 4, 2, PROCESS)])
    assert open_capture(path).activities.select(["start_ns", "bytes", "copy_kind"]).to_pylist() == [
        {"start_ns": 10, "bytes": 4, "copy_kind": "DtoH"},
        {"start_ns": 30, "bytes": 8, "copy_kind": "HtoD"},
    ]


def test_row_numbers_that_are_ids(tmp_path: Path) -> None:
    """Rows far apart must not ask for memory for all that could lie between."""
    path = build(tmp_path / "capture.sqlite", {KERNEL: [kernel(10, 20, 1), kernel(30, 40, 2)], RUNTIME: [call(1, 2)]})
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE {KERNEL} SET rowid = 1 << 50 WHERE start = 30")
    assert open_capture(path).activities.column("start_ns").to_pylist() == [10, 30]


@pytest.mark.parametrize(
    "tables",
    [
        pytest.param({"META_DATA_EXPORT": [{"name": "EXPORT_PRODUCT_VERSION"}]}, id="no values"),
        pytest.param({"META_DATA_EXPORT": [{"value": "2025.3"}]}, id="no names"),
        pytest.param({"META_DATA_CAPTURE": [{"value": "node"}]}, id="no names of settings"),
        pytest.param({"META_DATA_CAPTURE": [{"name": "CUDA_GRAPH_TRACE_OPTIONS:MODE"}]}, id="no values of settings"),
    ],
)
def test_metadata_without_a_column(tables: dict[str, list[dict[str, Any]]], tmp_path: Path) -> None:
    capture = opened(tmp_path, kernels=[kernel(5, 8)], **tables)
    assert capture.activities.num_rows == 1
    assert (capture.info.nsys_version, capture.info.graph_trace_mode) == (None, None)


@pytest.mark.parametrize(("value", "shift"), [("²", 0), ("9" * 5000, 0), ("-", 0), ("", 0), ("-1000", -1000)])
def test_a_shift_that_is_no_number(value: str, shift: int, tmp_path: Path) -> None:
    meta = [{"name": "EXPORT_CONFIG_TIME_SHIFT", "value": value}]
    assert opened(tmp_path, kernels=[kernel(5, 8)], META_DATA_EXPORT=meta).info.time_shift_ns == shift
