"""The course of each figure over a history, and where its level changed.

Change points are found by ruptures' PELT on the logarithms of the values (C. Truong, L. Oudre and N. Vayatis, Signal Processing 167, 2020;
R. Killick, P. Fearnhead and I. A. Eckley, JASA 107, 2012), penalized as by BIC with the noise of successive differences. A level lasts for
three records at least, so that a lone spike is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import ruptures

from nsys_report.history.model import Record
from nsys_report.history.rule import MAD_TO_SIGMA

LEAST_LEVEL = 3
LEAST_RECORDS = 2 * LEAST_LEVEL
LEAST_CHANGE = 0.02
"""Levels closer than this are one: nobody acts on it."""
PENALTY = 3.0
LEAST_NOISE = 0.002
"""Of the logarithm: figures that repeat exactly would make a change of every digit."""


@dataclass(frozen=True, slots=True)
class Level:
    """Records `first` to `last` (by place, both included) of a series, which move around one median."""

    first: int
    last: int
    median: float
    change: float | None
    """Against the level before, as a share of it; None for the first."""


@dataclass(frozen=True, slots=True)
class Trend:
    """One figure of one case on one GPU, oldest first."""

    case: str
    gpu: str | None
    figure: str
    records: tuple[Record, ...]
    values: tuple[float, ...]
    levels: tuple[Level, ...]

    @property
    def changes(self) -> tuple[Level, ...]:
        """The levels that differ from the one before."""
        return self.levels[1:]

    def since(self, level: Level) -> str:
        """Where a level may have begun: after one record, by the next."""
        before, first = self.records[level.first - 1], self.records[level.first]
        commits = [r.environment.get("commit") for r in (before, first)]
        return f"{commits[0]}..{commits[1]}" if all(commits) and commits[0] != commits[1] else f"{before.recorded_at} – {first.recorded_at}"


def series_of(history: Sequence[Record], cases: Sequence[str] = ()) -> tuple[Trend, ...]:
    """Every figure of every case, contended runs left out; `cases` narrows it."""
    keys = dict.fromkeys((r.case, r.gpu, r.source, name) for r in history for name in r.figures if not cases or r.case in cases)
    return tuple(_series(history, *key) for key in keys)


def _series(history: Sequence[Record], case: str, gpu: str | None, source: str, figure: str) -> Trend:
    mine = tuple(r for r in history if (r.case, r.gpu, r.source) == (case, gpu, source) and figure in r.figures and not r.contended)
    values = tuple(r.figures[figure] for r in mine)
    return Trend(case, gpu, figure, mine, values, tuple(levels(values)))


def levels(values: Sequence[float]) -> Iterator[Level]:
    """The levels of a series; one where it is too short to say more."""
    if not values:
        return
    edges = [0, *_change_points(values), len(values)]
    medians = [float(np.median(values[a:b])) for a, b in pairwise(edges)]
    start, before = 0, None
    for n, median in enumerate(medians):
        last = n + 1 == len(medians)
        if not last and abs(medians[n + 1] - median) <= LEAST_CHANGE * abs(median):
            continue  # the next one is the same level
        middle = float(np.median(values[edges[start] : edges[n + 1]]))
        yield Level(edges[start], edges[n + 1] - 1, middle, (middle - before) / before if before else None)
        start, before = n + 1, middle


def _change_points(values: Sequence[float]) -> list[int]:
    if len(values) < LEAST_RECORDS or min(values) <= 0:
        return []
    signal = np.log(np.asarray(values, np.float64))
    steps = np.diff(signal)
    noise = max(MAD_TO_SIGMA * float(np.median(np.abs(steps - np.median(steps)))) / math.sqrt(2), LEAST_NOISE)
    found = ruptures.Pelt(model="l2", min_size=LEAST_LEVEL, jump=1).fit(signal / noise).predict(pen=PENALTY * math.log(len(values)))
    return [int(n) for n in found if n < len(values)]
