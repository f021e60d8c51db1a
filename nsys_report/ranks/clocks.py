"""The difference of the captures' clocks, from all collectives: its drift where there is one, and how far a single time may be wrong."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nsys_report.ranks.summary import Ints

ROUNDS, DRIFT_ROUNDS = 40, 3
LEAST_FOR_DRIFT = 24
"""Collectives from which on a drift is asked for."""
SURE_DRIFT = 4.0
"""A drift counts where it moves the clock, over the capture, by so many times the spread of the collectives' ends."""
LEAST_DRIFT_NS = 2_000
ERROR_QUANTILE = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Clocks:
    """What each capture's clock reads more than the first capture's at `origin_ns` of its own times, ns, and how much that grows.

    `error_ns` is what 95 % of a capture's collectives end within of the time at which the other ranks' end, after alignment;
    nan where no collective ties it to the others. `tied` counts those collectives.
    """

    offset_ns: np.ndarray
    drift: np.ndarray
    """ns a ns; 0 where none shows."""
    origin_ns: np.ndarray
    error_ns: np.ndarray
    tied: Ints

    def common(self, capture: Ints, times: Ints) -> np.ndarray:
        """Times of captures on the first capture's clock, ns."""
        return times - self.offset_ns[capture] - self.drift[capture] * (times - self.origin_ns[capture])


def clocks(captures: int, capture: Ints, meeting: Ints, end: Ints, begin: np.ndarray) -> Clocks:
    """From the ends of collectives (of which capture, of which meeting) and offsets to begin with.

    Each round takes a meeting's time to be the mean of its captures' ends and moves each clock by the median of what it is off.
    """
    tied = np.bincount(capture, minlength=captures).astype(np.int64)
    clock = Clocks(begin.astype(float), np.zeros(captures), _origins(captures, capture, end), np.full(captures, np.nan), tied)
    if not len(capture):
        return clock
    order = np.argsort(capture, kind="stable")
    bounds = np.searchsorted(capture[order], np.arange(captures + 1))
    clock = _settled(clock, capture, meeting, end, order, bounds)
    for _ in range(DRIFT_ROUNDS):
        more = _drifts(clock, capture, meeting, end, order, bounds)
        if not more.any():
            break
        drift = clock.drift + more - more[0]
        clock = _settled(Clocks(clock.offset_ns, drift, clock.origin_ns, clock.error_ns, tied), capture, meeting, end, order, bounds)
    return Clocks(clock.offset_ns, clock.drift, clock.origin_ns, _errors(clock, capture, meeting, end, order, bounds), tied)


def _origins(captures: int, capture: Ints, end: Ints) -> np.ndarray:
    """The middle of each capture's collectives."""
    low, high = np.full(captures, np.inf), np.full(captures, -np.inf)
    np.minimum.at(low, capture, end)
    np.maximum.at(high, capture, end)
    there = np.isfinite(low)
    return (np.where(there, low, 0.0) + np.where(there, high, 0.0)) / 2


def _settled(clock: Clocks, capture: Ints, meeting: Ints, end: Ints, order: Ints, bounds: Ints) -> Clocks:
    offset = clock.offset_ns.copy()
    for _ in range(ROUNDS):
        moved = Clocks(offset, clock.drift, clock.origin_ns, clock.error_ns, clock.tied)
        times = moved.common(capture, end)
        off = (times - _means(meeting, times)[meeting])[order]
        change = np.array([np.median(off[a:b]) if b > a else 0.0 for a, b in pairwise(bounds)])
        offset = offset + change
        if np.abs(change).max() < 1:
            break
    return Clocks(offset - offset[0], clock.drift, clock.origin_ns, clock.error_ns, clock.tied)


def _means(meeting: Ints, times: np.ndarray) -> np.ndarray:
    return np.asarray(np.bincount(meeting, times) / np.maximum(np.bincount(meeting), 1))


def _against_others(clock: Clocks, capture: Ints, meeting: Ints, end: Ints) -> np.ndarray:
    """How far each end lies from the mean of the same meeting's other ends, ns."""
    times = clock.common(capture, end)
    count = np.bincount(meeting)[meeting]
    return np.where(count > 1, (times - _means(meeting, times)[meeting]) * count / np.maximum(count - 1, 1), 0.0)


def _drifts(clock: Clocks, capture: Ints, meeting: Ints, end: Ints, order: Ints, bounds: Ints) -> np.ndarray:
    """By how much each clock runs faster than the mean, where that is more than the ends' spread: from its first to its last third."""
    times = clock.common(capture, end)
    off = times - _means(meeting, times)[meeting]
    found = np.zeros(len(bounds) - 1)
    for c, (a, b) in enumerate(pairwise(bounds)):
        if b - a < LEAST_FOR_DRIFT:
            continue
        rows = order[a:b]
        rows = rows[np.argsort(end[rows], kind="stable")]
        first, last = rows[: len(rows) // 3], rows[-(len(rows) // 3) :]
        moved = float(np.median(off[last]) - np.median(off[first]))
        spread = float(np.median(np.abs(off[first] - np.median(off[first])))) + 1.0
        if abs(moved) > max(SURE_DRIFT * spread, LEAST_DRIFT_NS):
            found[c] = moved / float(np.median(end[last]) - np.median(end[first]))
    return found


def _errors(clock: Clocks, capture: Ints, meeting: Ints, end: Ints, order: Ints, bounds: Ints) -> np.ndarray:
    off = np.abs(_against_others(clock, capture, meeting, end))[order]
    return np.array([np.quantile(off[a:b], ERROR_QUANTILE) if b > a else np.nan for a, b in pairwise(bounds)])
