"""The gaps of a device, and of the activities around them what decides on their cause.

A capture holds millions of gaps, nearly all of them short pauses within a program that runs ahead. These are told from the others block by
block, so that what is computed of them stays in the processor's cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsys_report.analysis.arrays.view import Coded, Flags, Floats, Ints, View, coded, ints
from nsys_report.analysis.idle import causes
from nsys_report.intervals import Ranges

BLOCK = 1 << 16
"""Activities looked at in one go."""


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """Of all activities what decides whether a gap before them is a plain pause."""

    recorded: Flags
    start: Ints
    end: Ints
    to_host: Flags
    readback: Flags
    sets_condition: Flags

    @classmethod
    def of(cls, view: View) -> LaunchTimes:
        """Of all activities of a view."""
        table = view.joined.activities
        start, known = ints(table, "launch_start_ns")
        end, returned = ints(table, "launch_end_ns")
        to_host = is_word(view.column("copy_kind"), "DtoH")
        readback = np.zeros(len(start), np.bool_)
        rows = np.flatnonzero(to_host)
        readback[rows] = (view.cost("bytes")[0][rows] <= causes.READBACK_BYTES) & (view.execution[rows] >= 0)
        name = view.column("name")
        sets_condition = np.array([*(bool(causes.SETS_CONDITION.match(word or "")) for word in name.words), False], np.bool_)[name.codes]
        return cls(known, start, end if returned.all() else np.where(returned, end, start), to_host, readback, sets_condition)


@dataclass(frozen=True, slots=True)
class Launches:
    """Some activities: their call, the cause while that call is under way, and whether they copy or read back."""

    recorded: Flags
    start: Ints
    end: Ints
    execution: Ints
    cause: Ints
    traced: Floats
    """Share of a graph's launch call that goes to the recording of its nodes; 0 for other calls."""
    to_host: Flags
    to_device: Flags
    readback: Flags

    @classmethod
    def of(cls, view: View, calls: LaunchTimes, rows: Ints) -> Launches:
        """Of the activities in some rows."""
        kind = view.column("copy_kind").take(rows)
        pageable = is_word(_memory(view, "source_memory", rows), "pageable") | is_word(_memory(view, "target_memory", rows), "pageable")
        return cls(
            recorded=calls.recorded[rows],
            start=calls.start[rows],
            end=calls.end[rows],
            execution=view.execution[rows],
            cause=causes.causes_of_launches(view.column("launch_api").take(rows), kind, pageable),
            traced=_traced_share(view, calls, rows),
            to_host=calls.to_host[rows],
            to_device=is_word(kind, "HtoD"),
            readback=calls.readback[rows],
        )


def _traced_share(view: View, calls: LaunchTimes, rows: Ints) -> Floats:
    """Of each row's launch call the share that goes to the recording of the nodes that it launched, each of NODE_TRACE_NS."""
    nodes = view.joined.activities["graph_node_id"].is_valid().to_numpy(zero_copy_only=False) & calls.recorded
    if not nodes.any():
        return np.zeros(len(rows))
    launches, count = _nodes_by_launch(calls.start, nodes)
    start = calls.start[rows]
    at = np.minimum(np.searchsorted(launches, start), len(launches) - 1)
    traced = np.where((launches[at] == start) & nodes[rows], count[at] * float(causes.NODE_TRACE_NS), 0.0)
    took = np.maximum(calls.end[rows] - start, 1)
    return np.minimum(traced / took, 1.0)


def _nodes_by_launch(start: Ints, nodes: Flags) -> tuple[Ints, Ints]:
    """When each launch call began that launched graph nodes, in order, and how many nodes; a launch's nodes mostly lie together."""
    begins = np.flatnonzero(np.diff(start) != 0) + 1
    first = np.concatenate(([0], begins))
    count = np.add.reduceat(nodes, first, dtype=np.int64)
    launches, number = np.unique(start[first[count > 0]], return_inverse=True)
    return launches, np.bincount(number, count[count > 0]).astype(np.int64)


def is_word(column: Coded, word: str) -> Flags:
    """Which rows hold a word."""
    return column.codes == column.code(word)


def _memory(view: View, name: str, rows: Ints) -> Coded:
    """The kind of memory that copies read or write: the capture's column, whose rows are those of the joined activities."""
    captured = view.joined.capture.activities
    return (coded(captured, name) if len(captured) == len(view.start) else view.column(name)).take(rows)


@dataclass(frozen=True, slots=True)
class Around:
    """Gaps as ranges, with the rows of the activities before and after each: the one that ended last, and the next to start."""

    ranges: Ranges
    previous: Ints
    following: Ints


@dataclass(frozen=True, slots=True)
class DeviceGaps:
    """All gaps of a device, in order of time within each sort."""

    plain: Ranges
    """Pauses between activities whose launch call had returned before the gap began."""
    conditional: Around
    """The plain ones after a graph's condition was set."""
    others: Around


def device_gaps(view: View, calls: LaunchTimes, device: int) -> DeviceGaps:
    """The gaps between a device's activities, in which none of them runs."""
    rows = view.on(device)
    size = len(view.start) if isinstance(rows, slice) else len(rows)
    plain, conditional, others = [], [], []
    reach, top = np.iinfo(np.int64).min, -1  # how far the activities so far reach, and the last row that reaches so far
    for a in range(0, size, BLOCK):
        here: Ints = np.arange(a, min(a + BLOCK, size)) if isinstance(rows, slice) else rows[a : a + BLOCK]
        start, end = view.start[here], view.end[here]
        reached = np.maximum(np.maximum.accumulate(end), reach)
        before = np.concatenate(([reach], reached[:-1]))
        tops = np.maximum.accumulate(np.where(end == reached, np.arange(len(here)), -1))
        latest = np.concatenate(([top], np.where(tops >= 0, here[tops], top)))
        at = np.flatnonzero(start > before) if a else np.flatnonzero(start[1:] > before[1:]) + 1
        found = Around(Ranges(before[at], start[at]), latest[at], here[at])
        reach, top = int(reached[-1]), int(latest[-1])
        pause = _is_plain(calls, found)
        condition = pause & calls.sets_condition[found.previous]
        plain.append(_some(found, pause & ~condition).ranges)
        conditional.append(_some(found, condition))
        others.append(_some(found, ~pause))
    return DeviceGaps(_joined_ranges(plain), _joined(conditional), _joined(others))


def _is_plain(calls: LaunchTimes, gaps: Around) -> Flags:
    after = gaps.following
    returned = calls.recorded[after] & (calls.end[after] <= gaps.ranges.starts)
    return np.asarray(returned & ~calls.to_host[after] & ~calls.readback[gaps.previous], np.bool_)


def _some(gaps: Around, chosen: Flags) -> Around:
    ranges = Ranges(gaps.ranges.starts[chosen], gaps.ranges.ends[chosen])
    return Around(ranges, gaps.previous[chosen], gaps.following[chosen])


def _joined_ranges(parts: list[Ranges]) -> Ranges:
    empty = [np.empty(0, np.int64)]
    return Ranges(np.concatenate(empty + [p.starts for p in parts]), np.concatenate(empty + [p.ends for p in parts]))


def _joined(parts: list[Around]) -> Around:
    empty = [np.empty(0, np.int64)]
    return Around(
        _joined_ranges([p.ranges for p in parts]),
        np.concatenate(empty + [p.previous for p in parts]),
        np.concatenate(empty + [p.following for p in parts]),
    )
