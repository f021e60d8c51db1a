"""Kernels, copies, memsets and graph launches in one table, in time order, each with the API call that launched it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.capture.arrays import (
    Codes,
    Ints,
    arrange,
    constant_word,
    distinct,
    encode,
    flat,
    integers,
    lookup,
    nullable,
    word_column,
    words_by_value,
)
from nsys_report.capture.catalogue import COPY_KINDS, MEMORY_KINDS
from nsys_report.capture.model import ACTIVITY, Omitted
from nsys_report.capture.plausibility import impossible_sizes, impossible_spans
from nsys_report.capture.strings import Strings

PROCESS_MASK = ~0xFFFFFF
"""A global thread id without its lowest 24 bits, the thread, is nsys's process key."""
_INT_MAX = 2**31 - 1

_Number = TypeVar("_Number", np.int64, Ints)
Columns = dict[str, pa.Array]
"""Columns by name, all of one length."""


def process_id(global_pid: _Number) -> _Number:
    """The operating system's pid within nsys's process key (bits 24 to 47)."""
    return (global_pid >> 24) & 0xFFFFFF


def read_kernels(raw: Columns, strings: Strings) -> tuple[Columns, int]:
    """Kernel rows as columns of ACTIVITY, and how many have no name in the string table; takes the columns out of `raw`."""
    # the short name is what XLA called the kernel, and what other tools group by; a library's template arguments are left out
    ids, fallback = raw.pop("shortName"), raw.pop("demangledName", None)
    codes, distinct = encode(pc.coalesce(ids, fallback) if fallback is not None else ids)
    del ids, fallback
    numbers = [int(i) for i in distinct if isinstance(i, int)]
    known = strings.fetch(numbers)
    nameless = [n for n, i in enumerate(numbers) if i not in known]
    unnamed = codes.null_count
    if nameless:
        unnamed += pc.sum(pc.is_in(codes, value_set=pa.array(nameless, pa.int32()))).as_py() or 0
    columns: Columns = {
        "name": word_column(codes, [known.get(i, f"kernel_{i}") for i in numbers]),
        "grid": words_by_value(raw.pop("grid"), _extent),
        "block": words_by_value(raw.pop("block"), _extent),
    }
    return columns | _common(raw, "kernel"), int(unnamed)


def read_copies(raw: Columns) -> Columns:
    """Copy rows as columns of ACTIVITY; takes the columns out of `raw`."""
    kind = words_by_value(raw.pop("copyKind"), lambda k: COPY_KINDS.get(k, f"copy kind {k}"))
    columns: Columns = {
        "bytes": raw.pop("bytes"),
        "name": kind,
        "copy_kind": kind,
        "source_memory": words_by_value(raw.pop("srcKind"), MEMORY_KINDS),
        "target_memory": words_by_value(raw.pop("dstKind"), MEMORY_KINDS),
    }
    return columns | _common(raw, "memcpy")


def read_memsets(raw: Columns) -> Columns:
    """Memset rows as columns of ACTIVITY; takes the columns out of `raw`."""
    columns: Columns = {
        "bytes": raw.pop("bytes"),
        "name": constant_word("memset", len(raw["start"])),
        "target_memory": words_by_value(raw.pop("memKind"), MEMORY_KINDS),
    }
    return columns | _common(raw, "memset")


def read_graphs(raw: Columns) -> Columns:
    """Rows of whole graph launches as columns of ACTIVITY; a graph is named by its executable's id, as node ids are."""
    graph = pc.coalesce(_absent_if_zero(raw.pop("graphExecId")), _absent_if_zero(raw.pop("graphId")))
    return {"name": words_by_value(graph, lambda i: f"graph {i}")} | _common(raw, "graph")


def _common(raw: Columns, activity: str) -> Columns:
    rows = len(raw["start"])
    context = {"context_id": raw.pop("contextId")} if "contextId" in raw else {}
    return context | {
        "activity": constant_word(activity, rows),
        "device_id": _device(raw.pop("deviceId")),
        "graph_node_id": _absent_if_zero(raw.pop("graphNodeId", pa.nulls(rows, pa.int64()))),
        "start_ns": raw.pop("start"),
        "end_ns": raw.pop("end"),
        "stream_id": raw.pop("streamId"),
        "correlation_id": _absent_if_zero(raw.pop("correlationId")),
        "global_pid": _absent_if_zero(raw.pop("globalPid")),
    }


def _absent_if_zero(array: pa.Array) -> pa.Array:
    """Old exports wrote 0 where newer ones write null."""
    if array.null_count == len(array):
        return array
    zero = pc.equal(array, 0)
    return pc.if_else(pc.fill_null(zero, False), pa.scalar(None, pa.int64()), array) if pc.any(zero).as_py() else array


def lacks_device(array: pa.Array) -> bool:
    """Whether some row names no device; CUPTI writes INT_MAX for a graph whose first node runs on the host."""
    if array.null_count or not len(array):
        return bool(array.null_count)
    low, high = pc.min_max(array).as_py().values()
    return bool(low < 0 or high >= _INT_MAX)


def _device(array: pa.Array) -> pa.Array:
    """As int32, null where it names no device."""
    if lacks_device(array):
        valid = pc.and_(pc.greater_equal(array, 0), pc.less(array, _INT_MAX))
        array = pc.if_else(valid, array, pa.scalar(None, pa.int64()))
    return array.cast(pa.int32())


def _extent(packed: int) -> str:
    return f"{packed >> 32},{(packed >> 16) & 0xFFFF},{packed & 0xFFFF}"


def mend_times(columns: Columns, session_ns: int | None, omitted: Omitted) -> tuple[Columns, Omitted]:
    """Drops records without times or with impossible ones, and closes reversed ones where they start; counts each.

    Only a start and end of 0 mean that there is no time. Times below zero (warm-up, a shifted export) are as good as others.
    `session_ns` is how long recording took, None where unknown.
    """
    start, end = integers(columns["start_ns"], 0), integers(columns["end_ns"], 0)
    untimed = (start == 0) | (end == 0)
    impossible = impossible_spans(start, end, session_ns) & ~untimed
    drop = untimed | impossible
    turned = (end < start) & ~drop
    if not (drop.any() or turned.any()):
        return columns, omitted
    if turned.any():
        columns = columns | {"end_ns": pa.array(np.where(turned, start, end))}
    if drop.any():
        keep = pa.array(~drop)
        columns = {name: array.filter(keep) for name, array in columns.items()}
    counted = replace(
        omitted,
        untimed=omitted.untimed + int(untimed.sum()),
        impossible=omitted.impossible + int(impossible.sum()),
        reversed=omitted.reversed + int(turned.sum()),
    )
    return columns, counted


def check_sizes(columns: Columns, omitted: Omitted) -> tuple[Columns, Omitted]:
    """Byte counts that no memory can hold or move in the time become null, and are counted."""
    if "bytes" not in columns:
        return columns, omitted
    sizes, start, end = integers(columns["bytes"], 0), integers(columns["start_ns"]), integers(columns["end_ns"])
    impossible = impossible_sizes(sizes, end - start)
    if not impossible.any():
        return columns, omitted
    known = pa.array(
        np.where(impossible, 0, sizes), pa.int64(), mask=impossible | columns["bytes"].is_null().to_numpy(zero_copy_only=False)
    )
    return columns | {"bytes": known}, replace(omitted, oversized=omitted.oversized + int(impossible.sum()))


def fill_places(columns: Columns, only_process: int | None, devices: Mapping[tuple[int, int], int]) -> Columns:
    """Gives a row without process key the only one there is, and a row without device its context's."""
    pid = columns["global_pid"]
    if pid.null_count and only_process is not None:
        pid = pc.fill_null(pid, pa.scalar(only_process, pa.int64()))
    filled = columns | {"global_pid": pid}
    device = columns["device_id"]
    if device.null_count and devices and "context_id" in columns:
        rows = np.flatnonzero(device.is_null().to_numpy(zero_copy_only=False))
        processes, contexts = process_id(integers(pid)), integers(columns["context_id"])
        found = device.to_pylist()
        for row in rows:
            found[row] = devices.get((int(processes[row]), int(contexts[row])))
        filled["device_id"] = pa.array(found, pa.int32())
    return filled


def join_parts(parts: list[Columns], runtime: pa.Table) -> pa.Table:
    """All activities in time order with the columns of their launches; takes the columns out of the parts."""
    for part in parts:
        pid = part.pop("global_pid")
        process = pid.is_null().to_numpy(zero_copy_only=False) if pid.null_count else None
        part["launch"] = pa.array(launch_rows(pid, part["correlation_id"], runtime))
        part["process_id"] = nullable(process_id(integers(pid)), process, pa.int64())
    arranged = arrange(parts, pa.schema([*(f for f in ACTIVITY if f.name not in LAUNCH), pa.field("launch", pa.int32())]))
    return _with_launches(arranged, runtime)


LAUNCH = ("launch_thread", "launch_start_ns", "launch_end_ns", "launch_api")
"""The columns that come from the API call."""


def launch_rows(process: pa.Array, correlation: pa.Array, runtime: pa.Table) -> Codes:
    """For each activity, given its process key and correlation id, the row of the API call with both, -1 where there is none.

    The correlation id alone would mix processes: ids are unique only within one. Of several calls with one id the first counts.
    """
    found = np.full(len(process), -1, np.int32)
    pid, ids = integers(process, 0), integers(correlation, -1)
    run_pid, run_id = integers(runtime.column("global_pid"), 0), integers(runtime.column("correlation_id"), -1)
    for one in distinct(run_pid):
        calls = np.flatnonzero((run_pid == one) & (run_id != -1))
        if not one or not len(calls):
            continue
        rows = lookup(run_id[calls], ids)
        hit = rows >= 0
        if not (pid == one).all():
            hit &= pid == one
        found[hit] = calls[rows[hit]]
    return found


def _with_launches(activities: pa.Table, runtime: pa.Table) -> pa.Table:
    """The table with its column `launch` replaced by what the calls in those rows say."""
    rows = integers(activities.column("launch"), -1)
    missing = rows < 0
    at = np.maximum(rows, 0)

    def chosen(name: str) -> pa.Array:
        values = integers(runtime.column(name), 0)
        return nullable(values[at] if len(values) else np.zeros(len(at), np.int64), missing, pa.int64())

    names = flat(runtime.column("name"))
    codes = integers(names.indices).astype(np.int32)
    api = nullable(codes[at] if len(codes) else np.zeros(len(at), np.int32), missing, pa.int32())
    new = {
        "launch_thread": chosen("thread"),
        "launch_start_ns": chosen("start_ns"),
        "launch_end_ns": chosen("end_ns"),
        "launch_api": pa.DictionaryArray.from_arrays(api, names.dictionary),
    }
    return pa.Table.from_arrays([new[f.name] if f.name in new else activities.column(f.name) for f in ACTIVITY], schema=ACTIVITY)
