"""Which stretches of a capture the timeline holds in detail: all of it where there is room, else chosen steps with what is around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

import numpy as np

from nsys_report.intervals import Ranges, union
from nsys_report.reports.timeline.model import Ints

MOST_MARKS = 30_000
"""Marks in the rows of one page: about half a megabyte."""
LEAST_AROUND = 20_000
"""A window begins and ends at least so long beside its execution, ns, so that what leads to it is seen."""


def windows(starts: Sequence[Ints], span: tuple[int, int], steps: Iterable[tuple[int, int]], room: int) -> Ranges:
    """The stretches to show, disjoint and in order; ns of the capture.

    `starts` holds the start of everything that would be a mark, each array in order of time; `steps` the steps worth showing, the most
    important first, of which at least the first is shown.
    """
    if sum(map(len, starts)) <= room:
        return Ranges(np.array([span[0]]), np.array([span[1]]))
    chosen: list[tuple[int, int]] = []
    for low, high in steps:
        room -= sum(int(np.searchsorted(s, high) - np.searchsorted(s, low)) for s in starts)
        if chosen and room < 0:
            break
        chosen.append((low, high))
    if not chosen:
        chosen.append((span[0], _reach(starts, span, room)))
    return union(*(np.array(ends, np.int64) for ends in zip(*chosen, strict=True)))


def _reach(starts: Sequence[Ints], span: tuple[int, int], room: int) -> int:
    """How far into the capture there is room for everything."""
    every = np.sort(np.concatenate(list(starts)))
    return int(every[room]) if len(every) > room else span[1]


def step_windows(start: Ints, end: Ints, rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Of executions of one program (ends in order of start) those in `rows`, each from the one before it to the one after it."""
    for row in rows:
        low = start[row - 1] if row else start[row] - (end[row] - start[row]) - LEAST_AROUND
        high = end[row + 1] if row + 1 < len(end) else end[row] + LEAST_AROUND
        yield int(min(low, start[row] - LEAST_AROUND)), int(max(high, end[row] + LEAST_AROUND))


def in_turns(programs: Iterable[Iterable[tuple[int, int]]]) -> Iterator[tuple[int, int]]:
    """The first window of each program, then the second of each, and so on."""
    for turn in zip_longest(*programs):
        yield from (window for window in turn if window is not None)


def overlapping(start: Ints, end: Ints, shown: Ranges) -> Ints:
    """Which ranges (in order of start) lie at least in part in the windows."""
    at = np.searchsorted(shown.ends, start, side="right")
    inside = at < len(shown.starts)
    return np.flatnonzero(inside & (end >= shown.starts[np.minimum(at, len(shown.starts) - 1)]))
