"""Launches as small integers: each distinct (kind, name, launch dimensions, bytes) is one token, and each thread's launches a sequence.

A stream of launches is what one host thread launched on one device, in launch order. Within a graph launch the kernels stand in the
order in which XLA recorded their nodes, each node once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hlo_mapping.matching.graph_order import recorded_order

SMALL_READBACK = 16
"""Bytes up to which a copy to the host, launched by the thread that launches kernels, may be a condition read back."""


@dataclass(frozen=True, slots=True)
class Token:
    """One distinct launch: `kind` is kernel, copy (device to device), memset or readback (a small copy to the host)."""

    kind: str
    name: str
    grid: str | None
    block: str | None
    byte_count: int | None


@dataclass(frozen=True)
class LaunchStream:
    """What one thread launched on one device.

    `rows` are row numbers of the activities table in launch order; `codes` the tokens; `inside` is true where a launch continues
    the graph launch of the one before, so that no execution can begin there. `fresh` is true where the thread put a host function on
    a stream since the launch before, as XLA does at the end of an execution; None where the thread never did.
    `repeats` are (row, row of the same node earlier in the same graph launch): iterations of a loop inside a graph.
    """

    process_id: int | None
    device_id: int
    thread: int | None
    rows: np.ndarray
    codes: np.ndarray
    inside: np.ndarray
    repeats: np.ndarray
    activities: pa.Table = field(repr=False)
    fresh: np.ndarray | None = None

    @cached_property
    def pauses(self) -> np.ndarray:
        """The host's time between one launch call and the next, ns; negative where it is unknown or within a graph launch."""
        begin = _numbers(self.activities.select(["launch_start_ns"]).take(self.rows), "launch_start_ns", -1)
        end = _numbers(self.activities.select(["launch_end_ns"]).take(self.rows), "launch_end_ns", -1)
        known = (begin[1:] >= 0) & (end[:-1] >= 0) & ~self.inside[1:]
        pauses = np.full(len(begin), -1, np.int64)
        pauses[1:] = np.where(known, np.maximum(begin[1:] - end[:-1], 0), -1)
        return pauses


def launch_streams(activities: pa.Table, host_functions: np.ndarray | None = None) -> tuple[tuple[Token, ...], tuple[LaunchStream, ...]]:
    """The distinct launches and the streams of an activities table (ACTIVITIES and LAUNCHES columns), which is in time order.

    `host_functions` counts for each activity the host functions that its thread had put on streams before.
    """
    codes, tokens = _intern(activities)
    rows = np.flatnonzero(codes >= 0)
    places = [_numbers(activities, name, -1) for name in ("process_id", "device_id", "launch_thread")]
    launch = _numbers(activities, "launch_start_ns", -1)[rows]
    unknown = launch < 0
    if unknown.any():
        launch = np.where(unknown, _order_without_calls(activities, rows, unknown), launch)
    group = _group_codes(rows, *places)
    if group is not None or not (launch[1:] >= launch[:-1]).all():
        order = np.lexsort((launch, group)) if group is not None else np.argsort(launch, kind="stable")
        rows, launch, group = rows[order], launch[order], group[order] if group is not None else None
    bounds = np.flatnonzero(np.diff(group, prepend=-1, append=-1)) if group is not None else np.array([0, len(rows)][: 1 + bool(len(rows))])
    streams = []
    for a, b in pairwise(bounds.tolist()):
        stream = _stream(activities, rows[a:b], codes, launch[a:b], *(int(place[rows[a]]) for place in places))
        streams.append(replace(stream, fresh=_fresh(host_functions, stream.rows)))
    return tokens, tuple(streams)


def _order_without_calls(activities: pa.Table, rows: np.ndarray, unknown: np.ndarray) -> np.ndarray:
    """What stands for the time of launch where no call was recorded: correlation ids, which count up with the calls of a process and which
    the kernels of a graph launch share; start times where there are none."""
    correlation = _numbers(activities, "correlation_id", 0)[rows]
    return correlation if (correlation[unknown] > 0).all() else _numbers(activities, "start_ns", 0)[rows]


def _stream(
    activities: pa.Table, rows: np.ndarray, codes: np.ndarray, launch: np.ndarray, process: int, device: int, thread: int
) -> LaunchStream:
    inside = np.zeros(len(rows), bool)
    repeats = np.empty((0, 2), np.int64)
    if activities["graph_node_id"].null_count < len(activities):
        node = _numbers(activities, "graph_node_id", -1)[rows]
        inside[1:] = (launch[1:] == launch[:-1]) & (node[1:] >= 0) & (node[:-1] >= 0)
        if inside.any():
            rows, inside, repeats = _in_recorded_order(rows, inside, node, codes[rows])
    return LaunchStream(
        process if process >= 0 else None, device, thread if thread != -1 else None, rows, codes[rows], inside, repeats, activities
    )


def _in_recorded_order(
    rows: np.ndarray, inside: np.ndarray, node: np.ndarray, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows, `inside` and `repeats` of a stream, each graph launch in the order in which its nodes were recorded."""
    number = np.cumsum(~inside) - 1
    order = recorded_order(node, number, codes)
    repeated = _repeats(node if order is None else node[order], number)
    if order is not None:
        rows = rows[order]
    if repeated is None:
        return rows, inside, np.empty((0, 2), np.int64)
    again = repeated >= 0
    return rows[~again], inside[~again], np.stack([rows[again], rows[repeated[again]]], 1)


def _fresh(host_functions: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    """Where the count of host functions grew since the launch before; None where it never does."""
    if host_functions is None:
        return None
    grown = np.diff(host_functions[rows], prepend=host_functions[rows[:1]]) > 0
    return grown if grown.any() else None


def _repeats(node: np.ndarray, launch_number: np.ndarray) -> np.ndarray | None:
    """For each row the position of an earlier row of the same node in the same launch, or -1; None where there is no such row."""
    if ((node[1:] > node[:-1]) | (launch_number[1:] != launch_number[:-1]) | (node[1:] < 0)).all():
        return None  # the usual case: ids rise within each launch
    order = np.lexsort((np.arange(len(node)), node, launch_number))
    same = (node[order][1:] == node[order][:-1]) & (launch_number[order][1:] == launch_number[order][:-1]) & (node[order][1:] >= 0)
    firsts = np.maximum.accumulate(np.where(np.concatenate([[True], ~same]), np.arange(len(node)), 0))
    found = np.full(len(node), -1)
    repeated = np.flatnonzero(same) + 1
    found[order[repeated]] = order[firsts[repeated]]
    return found


def _intern(activities: pa.Table) -> tuple[np.ndarray, tuple[Token, ...]]:
    """A token code for each row (-1 for activities that no thunk launches) and the distinct tokens."""
    kind, kinds = _words(activities, "activity")
    name, names = _words(activities, "name")
    grid, grids = _words(activities, "grid")
    block, blocks = _words(activities, "block")
    copy, copies = _words(activities, "copy_kind")
    size = _numbers(activities, "bytes", -1)
    is_kernel = _is(kind, kinds, "kernel")
    others = np.flatnonzero(~is_kernel)
    what = np.where(is_kernel, 0, -1)
    is_copy = _is(kind[others], kinds, "memcpy")
    what[others[is_copy & np.isin(copy[others], [k for k, w in enumerate(copies) if w in ("DtoD", "PtoP")])]] = 1
    what[others[_is(kind[others], kinds, "memset")]] = 2
    what[others[is_copy & _is(copy[others], copies, "DtoH") & (size[others] <= SMALL_READBACK)]] = 3
    chosen = np.flatnonzero(what >= 0)
    mixed = np.empty(len(activities), np.int64)
    mixed[others], sizes = _ranks(size[others])
    mixed[others] += len(names) * (len(grids) + 1) * (len(blocks) + 1)
    mixed[others] += np.where(what[others] > 0, what[others], 0) * (sizes + 1)
    kernels = np.flatnonzero(is_kernel) if len(others) else slice(None)
    mixed[kernels] = (name[kernels].astype(np.int64) * (len(grids) + 1) + grid[kernels] + 1) * (len(blocks) + 1) + block[kernels] + 1
    inverse, first = _renumbered(mixed[chosen])
    codes = np.full(len(activities), -1, np.int32)
    codes[chosen] = inverse
    tokens = []
    for row in chosen[first]:
        k = int(what[row])
        if k == 0:
            tokens.append(
                Token(
                    "kernel",
                    names[name[row]],
                    grids[grid[row]] if grid[row] >= 0 else None,
                    blocks[block[row]] if block[row] >= 0 else None,
                    None,
                )
            )
        else:
            tokens.append(Token(("", "copy", "memset", "readback")[k], "", None, None, int(size[row])))
    return codes, tuple(tokens)


def _is(codes: np.ndarray, words: list[str], word: str) -> np.ndarray:
    return codes == (words.index(word) if word in words else -2)


def _ranks(values: np.ndarray) -> tuple[np.ndarray, int]:
    """The rank of each value among the distinct ones, and how many those are."""
    distinct, rank = np.unique(values, return_inverse=True)
    return rank, len(distinct)


def _renumbered(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes as ranks among the distinct ones, and the first row of each; quick where codes are small."""
    if len(codes) and codes.min() >= 0 and codes.max() < max(4 * len(codes), 1 << 20):
        first = np.full(int(codes.max()) + 1, -1)
        first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
        used = np.flatnonzero(first >= 0)
        rank = np.zeros(len(first), np.int64)
        rank[used] = np.arange(len(used))
        return rank[codes], first[used]
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return inverse, first


def _words(table: pa.Table, name: str) -> tuple[np.ndarray, list[str]]:
    """The codes (-1 for null) and words of a dictionary column."""
    column = table[name].combine_chunks() if table[name].num_chunks != 1 else table[name].chunk(0)
    if not pa.types.is_dictionary(column.type):
        column = pc.dictionary_encode(column)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.indices.fill_null(-1).to_numpy(zero_copy_only=False), column.dictionary.to_pylist()


def _numbers(table: pa.Table, name: str, null: int) -> np.ndarray:
    """An integer column as int64, nulls replaced."""
    column = table[name]
    if column.null_count:
        column = pc.fill_null(column, null)
    values: np.ndarray = column.to_numpy().astype(np.int64, copy=False)
    return values


def _group_codes(rows: np.ndarray, *places: np.ndarray) -> np.ndarray | None:
    """A small code for each distinct combination of the places of rows; None where they have one place in common."""
    code: np.ndarray | None = None
    for place in places:
        part = place[rows] if len(rows) < len(place) else place
        if len(part) and (part != part[0]).any():
            values, inverse = np.unique(part, return_inverse=True)
            code = inverse if code is None else code * len(values) + inverse
    return code
