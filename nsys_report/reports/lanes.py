"""Slices that overlap without one holding the other need tracks of their own."""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def lanes(start: Ints, end: Ints, group: Ints) -> Ints:
    """The lane of each slice within its group, 0 where nothing overlaps; slices of a lane follow one another."""
    order = np.lexsort((end, start, group))
    first = np.r_[True, group[order][1:] != group[order][:-1]] if len(order) else np.empty(0, bool)
    bounds = [*np.flatnonzero(first).tolist(), len(order)]
    out = np.zeros(len(order), np.int64)
    for low, high in pairwise(bounds):
        rows = order[low:high]
        latest = np.maximum.accumulate(end[rows])
        if np.any(start[rows][1:] < latest[:-1]):
            out[rows] = _greedy(start[rows], end[rows])
    return out


def _greedy(start: Ints, end: Ints) -> list[int]:
    """Each slice into the lowest lane that is free when it starts; the slices come in order of start."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    made = 0
    out = []
    for begin, finish in zip(start.tolist(), end.tolist(), strict=True):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, made = made, made + 1
        heapq.heappush(busy, (finish, lane))
        out.append(lane)
    return out
