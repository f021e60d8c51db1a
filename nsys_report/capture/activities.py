"""Kernels, copies, memsets and graph launches in one table, in time order, each with the API call that launched it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.capture.arrays import (
    Ints,
    arrange,
    constant_word,
    encode,
    flat,
    integers,
    null_column,
    nullable,
    words,
    words_by_value,
)
from nsys_report.capture.catalogue import COPY_KINDS, MEMORY_KINDS
from nsys_report.capture.model import ACTIVITY, Omitted
from nsys_report.capture.strings import Strings

PROCESS_MASK = ~0xFFFFFF
"""A global thread id without its lowest 24 bits, the thread, is nsys's process key."""
_INT_MAX = 2**31 - 1
_UNSIGNED_NONE = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Times:
    """How raw records are mended: the shift the export applied (None: unknown)."""

    shift_ns: int | None


def process_id(global_pid: Ints) -> Ints:
    """The operating system's pid within nsys's process key (bits 24 to 47)."""
    return (global_pid >> 24) & 0xFFFFFF


def read_kernels(raw: pa.Table, strings: Strings) -> dict[str, pa.Array]:
    """Kernel rows as columns of ACTIVITY."""
    ids = flat(raw.column("demangledName"))
    if ids.null_count:
        ids = pc.coalesce(ids, flat(raw.column("shortName")))
    codes, distinct = encode(ids)
    known = strings.fetch(int(i) for i in distinct if isinstance(i, int))
    columns = _common(raw, "kernel")
    columns["name"] = words(codes, [known.get(int(i), f"kernel_{i}") for i in distinct if isinstance(i, int)])
    columns["grid"] = words_by_value(raw.column("grid"), _extent)
    columns["block"] = words_by_value(raw.column("block"), _extent)
    columns["graph_id"] = _kernel_graph(raw)
    return columns


def unnamed_kernels(raw: pa.Table, strings: Strings) -> int:
    """Kernels whose name the string table lacks."""
    codes, distinct = encode(raw.column("demangledName"))
    known = strings.fetch(int(i) for i in distinct if isinstance(i, int))
    lacking = [n for n, i in enumerate(distinct) if i not in known]
    return int(codes.null_count + pc.sum(pc.is_in(codes, value_set=pa.array(lacking, pa.int32()))).as_py()) if len(codes) else 0


def read_copies(raw: pa.Table) -> dict[str, pa.Array]:
    """Copy rows as columns of ACTIVITY."""
    columns = _common(raw, "memcpy")
    columns["bytes"] = flat(raw.column("bytes"))
    kind = words_by_value(raw.column("copyKind"), lambda k: COPY_KINDS.get(k, f"copy kind {k}"))
    columns["name"] = columns["copy_kind"] = kind
    columns["source_memory"] = words_by_value(raw.column("srcKind"), MEMORY_KINDS)
    columns["target_memory"] = words_by_value(raw.column("dstKind"), MEMORY_KINDS)
    columns["graph_id"] = pc.shift_right(columns["graph_node_id"], 32)
    return columns


def read_memsets(raw: pa.Table) -> dict[str, pa.Array]:
    """Memset rows as columns of ACTIVITY."""
    columns = _common(raw, "memset")
    columns["bytes"] = flat(raw.column("bytes"))
    columns["name"] = constant_word("memset", raw.num_rows)
    columns["target_memory"] = words_by_value(raw.column("memKind"), MEMORY_KINDS)
    columns["graph_id"] = pc.shift_right(columns["graph_node_id"], 32)
    return columns


def read_graphs(raw: pa.Table) -> dict[str, pa.Array]:
    """Rows of whole graph launches as columns of ACTIVITY; a graph is named by its executable's id, as node ids are."""
    columns = _common(raw, "graph")
    columns["graph_id"] = pc.coalesce(_absent_if_zero(raw.column("graphExecId")), _absent_if_zero(raw.column("graphId")))
    columns["name"] = words_by_value(columns["graph_id"], lambda i: f"graph {i}")
    return columns


def _common(raw: pa.Table, activity: str) -> dict[str, pa.Array]:
    rows = raw.num_rows
    node = raw.column("graphNodeId") if "graphNodeId" in raw.column_names else pa.nulls(rows, pa.int64())
    return {
        "activity": constant_word(activity, rows),
        "start_ns": flat(raw.column("start")),
        "end_ns": flat(raw.column("end")),
        "device_id": _device(raw.column("deviceId")),
        "stream_id": flat(raw.column("streamId")),
        "correlation_id": _absent_if_zero(raw.column("correlationId")),
        "graph_node_id": _absent_if_zero(node),
        "context_id": flat(raw.column("contextId")),
        "global_pid": _absent_if_zero(raw.column("globalPid")),
    }


def _absent_if_zero(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Old exports wrote 0 where newer ones write null."""
    array = flat(values)
    zero = pc.equal(array, 0)
    return pc.if_else(pc.fill_null(zero, False), pa.scalar(None, pa.int64()), array) if pc.any(zero).as_py() else array


def _device(values: pa.ChunkedArray) -> pa.Array:
    """As int32; CUPTI writes INT_MAX for a graph whose first node runs on the host."""
    array = flat(values)
    valid = pc.and_(pc.greater_equal(array, 0), pc.less(array, _INT_MAX))
    if not pc.all(valid).as_py():
        array = pc.if_else(valid, array, pa.scalar(None, pa.int64()))
    return array.cast(pa.int32())


def _kernel_graph(raw: pa.Table) -> pa.Array:
    """The graph's id where the export has it, else the high half of the node's id."""
    node = _absent_if_zero(raw.column("graphNodeId"))
    if node.null_count == len(node):
        return node
    high = pc.shift_right(node, 32)
    return pc.coalesce(high, _absent_if_zero(raw.column("graphId")))


def _extent(packed: int) -> str:
    return f"{packed >> 32},{(packed >> 16) & 0xFFFF},{packed & 0xFFFF}"


def mend_times(columns: dict[str, pa.Array], times: Times, omitted: Omitted) -> tuple[dict[str, pa.Array], Omitted]:
    """Drops records without times or from before the session, and closes reversed ones where they start; counts each."""
    start, end = integers(columns["start_ns"], 0), integers(columns["end_ns"], 0)
    untimed = (start == 0) | (end == 0)
    before = (end < 0) & ~untimed if times.shift_ns == 0 else np.zeros(len(start), bool)
    drop = untimed | before
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
        before_session=omitted.before_session + int(before.sum()),
        reversed=omitted.reversed + int(turned.sum()),
    )
    return columns, counted


def fill_places(columns: dict[str, pa.Array], only_process: int | None, devices: Mapping[tuple[int, int], int]) -> dict[str, pa.Array]:
    """Gives a row without process key the only one there is, and a row without device its context's."""
    pid = columns["global_pid"]
    if pid.null_count and only_process is not None:
        pid = pc.fill_null(pid, pa.scalar(only_process, pa.int64()))
    filled = columns | {"global_pid": pid}
    device = columns["device_id"]
    if device.null_count and devices:
        rows = np.flatnonzero(device.is_null().to_numpy(zero_copy_only=False))
        processes, contexts = process_id(integers(pid)), integers(columns["context_id"])
        found = device.to_pylist()
        for row in rows:
            found[row] = devices.get((int(processes[row]), int(contexts[row])))
        filled["device_id"] = pa.array(found, pa.int32())
    return filled


def join_parts(parts: list[dict[str, pa.Array]], runtime: pa.Table) -> pa.Table:
    """All activities in time order with the columns of their launches."""
    rows = [len(part["start_ns"]) for part in parts]
    columns: dict[str, pa.Array] = {}
    for field in ACTIVITY:
        pieces = [part.pop(field.name, None) for part in parts]
        if all(p is None for p in pieces):
            continue
        arrays = [null_column(field.type, n) if p is None else p for p, n in zip(pieces, rows, strict=True)]
        columns[field.name] = _concatenate(arrays)
    pid = columns["global_pid"]
    columns["process_id"] = nullable(process_id(integers(pid)), pid.is_null().to_numpy(zero_copy_only=False), pa.int64())
    table = arrange(columns, ACTIVITY)
    return _with_launches(table, runtime)


def _concatenate(arrays: list[pa.Array]) -> pa.Array:
    if len(arrays) == 1:
        return arrays[0]
    if isinstance(arrays[0], pa.DictionaryArray):
        unified = pa.chunked_array(arrays).unify_dictionaries()
        dictionary = unified.chunk(0).dictionary
        return pa.DictionaryArray.from_arrays(pa.concat_arrays([c.indices for c in unified.chunks]), dictionary)
    return pa.concat_arrays(arrays)


def launch_rows(activities: pa.Table, runtime: pa.Table) -> Ints:
    """For each activity the row of the API call with its process and correlation id, -1 where there is none.

    The correlation id alone would mix processes: ids are unique only within one. Of several calls with one id the first counts.
    """
    found = np.full(activities.num_rows, -1, np.int64)
    act_pid, act_id = integers(activities.column("global_pid"), 0), integers(activities.column("correlation_id"), -1)
    run_pid, run_id = integers(runtime.column("global_pid"), 0), integers(runtime.column("correlation_id"), -1)
    if not len(run_id) or not len(act_id):
        return found
    for process in np.unique(run_pid):
        calls = np.flatnonzero((run_pid == process) & (run_id != -1))
        rows = np.flatnonzero((act_pid == process) & (act_id != -1)) if process else np.empty(0, np.int64)
        if not len(rows) or not len(calls):
            continue
        order = calls[np.argsort(run_id[calls], kind="stable")]
        sorted_ids = run_id[order]
        wanted = act_id[rows]
        at = np.minimum(np.searchsorted(sorted_ids, wanted), len(order) - 1)
        hit = sorted_ids[at] == wanted
        found[rows[hit]] = order[at[hit]]
    return found


def _with_launches(activities: pa.Table, runtime: pa.Table) -> pa.Table:
    rows = launch_rows(activities, runtime)
    missing = rows < 0
    at = np.where(missing, 0, rows)

    def chosen(name: str) -> pa.Array:
        values = integers(runtime.column(name), 0)
        return nullable(values[at] if len(values) else np.zeros(len(at), np.int64), missing, pa.int64())

    names = flat(runtime.column("name"))
    codes = integers(names.indices)
    api = nullable(codes[at].astype(np.int32) if len(codes) else np.zeros(len(at), np.int32), missing, pa.int32())
    new = {
        "launch_thread": chosen("thread"),
        "launch_start_ns": chosen("start_ns"),
        "launch_end_ns": chosen("end_ns"),
        "launch_api": pa.DictionaryArray.from_arrays(api, names.dictionary),
    }
    return pa.Table.from_arrays([new.get(f.name, activities.column(f.name)) for f in ACTIVITY], schema=ACTIVITY)
