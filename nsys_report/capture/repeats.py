"""Rows that stand twice: reports put together, or an export appended to itself, hold records again that happened once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nsys_report.capture.arrays import Flags, Ints, flat, integers

ACTIVITY_KEYS = ("activity", "process_id", "device_id", "stream_id", "correlation_id", "graph_node_id", "name", "grid", "block", "bytes")
CALL_KEYS = ("thread", "correlation_id", "name")
RANGE_KEYS = ("thread", "event_type", "text", "domain")


def without_repeats(table: pa.Table, keys: Sequence[str]) -> tuple[pa.Table, int]:
    """A table in order of start_ns and end_ns without the rows that are an earlier one again, and how many there were.

    Rows are the same where both times and all `keys` are; a row whose call or thread (the first of `correlation_id` and `thread` among the
    keys) is unknown repeats nothing.
    """
    start, end = integers(table.column("start_ns")), integers(table.column("end_ns"))
    alike = (start[1:] == start[:-1]) & (end[1:] == end[:-1])
    if not alike.any():
        return table, 0
    rows = np.flatnonzero(np.append(alike, False) | np.insert(alike, 0, False))
    known = table.column("correlation_id" if "correlation_id" in keys else "thread").is_valid().to_numpy()
    rows = rows[known[rows]]
    part = table.take(pa.array(rows))
    values = [start[rows], end[rows], *(_numbers(part.column(name)) for name in keys)]
    order = np.lexsort(values)
    same = np.logical_and.reduce([np.diff(value[order]) == 0 for value in values]) if len(order) else np.zeros(0, np.bool_)
    repeated: Flags = np.zeros(len(start), np.bool_)
    repeated[rows[order[1:][same]]] = True
    count = int(repeated.sum())
    return (table.filter(pa.array(~repeated)) if count else table), count


def _numbers(column: pa.ChunkedArray) -> Ints:
    values = flat(column)
    return integers(values.indices if isinstance(values, pa.DictionaryArray) else values)
