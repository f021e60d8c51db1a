"""The repeated block in a sequence: the period that covers most of it, allowing some differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsys_report.analysis.arrays.view import Ints

LEAST_ALIKE = 0.85
"""Share of positions at which a block must agree with the next one. A decoder's first layer often differs in a kernel or two."""
MOST_CANDIDATES = 32
LEAST_COVERED = 0.25
"""Share of the sequence that the blocks must cover to be worth folding."""
NEARLY_AS_MUCH = 0.95
"""A shorter period is taken where it covers this share of what the best one does: two layers are also a block."""


@dataclass(frozen=True, slots=True)
class Period:
    """`count` blocks of `length` positions, the first at `start`."""

    start: int
    length: int
    count: int


def find_period(codes: Ints) -> Period | None:
    """The period of a sequence of codes, None where nothing repeats enough. Blocks may differ from each other in few positions."""
    found = [p for length in _candidates(codes) if (p := _blocks(codes, length)) is not None]
    most = max((p.length * p.count for p in found), default=0)
    if not found or most < LEAST_COVERED * len(codes):
        return None
    return min((p for p in found if p.length * p.count >= NEARLY_AS_MUCH * most), key=lambda p: p.length)


def _candidates(codes: Ints) -> list[int]:
    """Distances between equal neighbors in the sequence, those that occur most first."""
    order = np.argsort(codes, kind="stable")
    step = np.diff(order)[codes[order][1:] == codes[order][:-1]]
    if len(step) == 0:
        return []
    count = np.bincount(step)
    # A long period is seen at few places: what counts is how much of the sequence it explains.
    likely = np.argsort(-count * np.arange(len(count)), kind="stable")[:MOST_CANDIDATES]
    return [int(d) for d in likely if count[d] and 2 * d <= len(codes)]


def _blocks(codes: Ints, length: int) -> Period | None:
    """The longest stretch in which every block is LEAST_ALIKE to the next, cut into whole blocks."""
    alike = np.concatenate(([0], np.cumsum(codes[:-length] == codes[length:])))
    if len(alike) <= length:
        return None
    good = (alike[length:] - alike[:-length]) >= LEAST_ALIKE * length
    edges = np.flatnonzero(np.diff(np.concatenate(([0], good.astype(np.int8), [0]))))
    if len(edges) == 0:
        return None
    starts, stops = edges[::2], edges[1::2]
    best = int(np.argmax(stops - starts))
    start, reach = int(starts[best]), int(stops[best]) - 1 + 2 * length
    count = (reach - start) // length
    if count < 2:
        return None
    # The stretch may hold positions at either end that belong to no block: blocks lie where most positions agree with the next block's,
    # and of such places at the last one, since a network's first layer is often fused with what comes before it, its last one seldom.
    places = np.arange(start, reach - count * length + 1)
    agreeing = alike[places + (count - 1) * length] - alike[places]
    return Period(int(places[len(places) - 1 - int(np.argmax(agreeing[::-1]))]), length, count)
