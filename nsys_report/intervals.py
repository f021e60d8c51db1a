"""Arithmetic on sets of half-open time ranges, in integer nanoseconds.

A set is a pair of int64 arrays (starts, ends). `union` makes one whose ranges are sorted and disjoint; the functions that say
"disjoint" need such a set. Ranges that end before they start (clock conversion does that) count as empty. Measuring a set against any
number of windows takes two binary searches a window, so overlaps are never added up twice and nothing loops over ranges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Ranges(NamedTuple):
    """A set of half-open ranges: `starts[i] <= t < ends[i]`, ns."""

    starts: Ints
    ends: Ints


EMPTY = Ranges(np.empty(0, np.int64), np.empty(0, np.int64))


def union(starts: Ints, ends: Ints) -> Ranges:
    """The disjoint, sorted ranges covering the same time; ranges that touch become one, empty ones go."""
    keep = ends > starts
    if not keep.all():
        starts, ends = starts[keep], ends[keep]
    if len(starts) == 0:
        return EMPTY
    if np.any(starts[1:] < starts[:-1]):
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    first = np.concatenate(([True], starts[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Ranges(starts[first], reach[last])


def union_of(*sets: Ranges) -> Ranges:
    """The union of several sets, disjoint or not."""
    return union(np.concatenate([s.starts for s in sets]), np.concatenate([s.ends for s in sets])) if sets else EMPTY


def length(disjoint: Ranges) -> int:
    """Nanoseconds covered by a disjoint set."""
    return int((disjoint.ends - disjoint.starts).sum())


def union_length(starts: Ints, ends: Ints) -> int:
    """Nanoseconds covered by ranges that may overlap."""
    return length(union(starts, ends))


def before(disjoint: Ranges, times: Ints) -> Ints:
    """How much of a disjoint set lies before each time, ns."""
    if len(disjoint.starts) == 0:
        return np.zeros(len(times), np.int64)
    sums = np.concatenate(([0], np.cumsum(disjoint.ends - disjoint.starts)))
    at = np.searchsorted(disjoint.starts, times, side="right")
    covered = np.where(at > 0, np.minimum(times, disjoint.ends[at - 1]) - disjoint.starts[at - 1], 0)
    return np.asarray(sums[np.maximum(at - 1, 0)] + covered, np.int64)


def within(disjoint: Ranges, starts: Ints, ends: Ints) -> Ints:
    """How much of a disjoint set lies within each window, ns; the windows may overlap one another."""
    return np.maximum(before(disjoint, np.maximum(starts, ends)) - before(disjoint, starts), 0)


def gaps(disjoint: Ranges, start: int, end: int) -> Ranges:
    """What of `[start, end)` a disjoint set leaves uncovered."""
    starts = np.concatenate(([start], disjoint.ends))
    ends = np.concatenate((disjoint.starts, [end]))
    return _kept(np.maximum(starts, start), np.minimum(ends, end))


def intersect(left: Ranges, right: Ranges) -> Ranges:
    """The time in both of two disjoint sets."""
    if len(left.starts) == 0 or len(right.starts) == 0:
        return EMPTY
    first = np.searchsorted(right.ends, left.starts, side="right")
    stop = np.searchsorted(right.starts, left.ends, side="left")
    count = np.maximum(stop - first, 0)
    owner = np.repeat(np.arange(len(left.starts)), count)
    other = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count) + first[owner]
    return _kept(np.maximum(left.starts[owner], right.starts[other]), np.minimum(left.ends[owner], right.ends[other]))


def subtract(left: Ranges, right: Ranges) -> Ranges:
    """The time in the first of two disjoint sets and not in the second; quick where the first is small, whatever the second is."""
    if len(left.starts) == 0 or len(right.starts) == 0:
        return left
    first = np.searchsorted(right.ends, left.starts, side="right")
    stop = np.searchsorted(right.starts, left.ends, side="left")
    cuts = np.maximum(stop - first, 0)
    owner = np.repeat(np.arange(len(left.starts)), cuts + 1)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(cuts + 1) - (cuts + 1), cuts + 1)
    at = first[owner] + number
    starts = np.where(number == 0, left.starts[owner], right.ends[np.maximum(at - 1, 0)])
    ends = np.where(number == cuts[owner], left.ends[owner], right.starts[np.minimum(at, len(right.starts) - 1)])
    return _kept(starts, ends)


def clip(ranges: Ranges, start: int, end: int) -> Ranges:
    """The ranges cut to `[start, end)`; what lies outside goes."""
    return _kept(np.maximum(ranges.starts, start), np.minimum(ranges.ends, end))


def grouped_union(group: Ints, starts: Ints, ends: Ints) -> tuple[Ints, Ranges]:
    """The union within each group: (group of each range, ranges), sorted by group, then start."""
    keep = ends > starts
    group, starts, ends = group[keep], starts[keep], ends[keep]
    if len(group) == 0:
        return np.empty(0, np.int64), EMPTY
    order = np.lexsort((starts, group))
    group, starts, ends = group[order], starts[order], ends[order]
    low, room = int(starts.min()), int(ends.max() - starts.min()) + 1
    rank = np.concatenate(([0], np.cumsum(group[1:] != group[:-1])))
    # Groups are laid end to end on one line, with a nanosecond between, so that one union does for all.
    offset = rank * room - low
    apart = union(starts + offset, ends + offset)
    owner = apart.starts // room
    back = owner * room - low
    names = group[np.concatenate(([True], group[1:] != group[:-1]))]
    return names[owner], Ranges(apart.starts - back, apart.ends - back)


def grouped_union_length(group: Ints, starts: Ints, ends: Ints, groups: int) -> Ints:
    """Nanoseconds covered by each group's ranges; shape (groups,). Quick where they come by group and start and none overlaps the next."""
    follows = (group[1:] > group[:-1]) | ((group[1:] == group[:-1]) & (starts[1:] >= ends[:-1]) & (starts[1:] >= starts[:-1]))
    if follows.all():
        return np.bincount(group, weights=np.maximum(ends - starts, 0), minlength=groups).astype(np.int64)
    owner, ranges = grouped_union(group, starts, ends)
    return np.bincount(owner, weights=ranges.ends - ranges.starts, minlength=groups).astype(np.int64)


def previous_end(starts: Ints, ends: Ints) -> Ints:
    """For ranges sorted by start: the latest end among those before each one; the first has its own start."""
    reach = np.maximum.accumulate(ends)
    return np.concatenate((starts[:1], reach[:-1]))


def _kept(starts: Ints, ends: Ints) -> Ranges:
    keep = ends > starts
    return Ranges(np.asarray(starts[keep], np.int64), np.asarray(ends[keep], np.int64))
