"""Robust answers to two questions about a series: does it drift, and does it have two levels?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsys_report.analysis.arrays.quantiles import Floats, grouped_quantiles
from nsys_report.analysis.arrays.view import Ints

FEWEST_FOR_DRIFT = 8
MOST_POINTS = 200
"""Points of a drift's fit; longer series are cut into so many bins, each its median, since the fit looks at every pair."""
NORMAL_99 = 2.575829

FEWEST_FOR_LEVELS = 12
LEAST_SHARE_OF_A_LEVEL = 0.1
LEAST_RELATIVE_STEP = 0.03
"""The step between two levels as a share of the lower one, below which nobody cares."""
LEAST_SEPARATION = 4.0
"""Ashman's D, the step over the levels' common spread. Above 2 two normal distributions are told apart (Ashman and others, 1994); the
best cut through a single normal one gives 2.7 and through a uniform one 3.5, so more is asked for."""
LEAST_EMPTY = 0.4
"""A level is a heap: this share of the step between two of them holds no value."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Slope in units of the values per step of the number, with a 99 % interval."""

    slope: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TwoLevels:
    """Means of the two levels, and the share of values on the upper."""

    lower: float
    upper: float
    upper_share: float


def drift(number: Ints, values: Ints) -> Drift | None:
    """The Theil-Sen slope: the median of the slopes of all pairs, which a fifth of outliers cannot move. None for too few values.

    The interval is Sen's (1968), from the variance of Kendall's statistic without ties.
    """
    if len(values) < FEWEST_FOR_DRIFT:
        return None
    x, y = _binned(number, values)
    i, j = np.triu_indices(len(x), 1)
    run = x[j] - x[i]
    slopes = np.sort((y[j] - y[i])[run > 0] / run[run > 0])
    if len(slopes) == 0:
        return None
    n = len(x)
    half = NORMAL_99 * np.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    low = int(np.clip(np.floor((len(slopes) - half) / 2), 0, len(slopes) - 1))
    high = int(np.clip(np.ceil((len(slopes) + half) / 2), 0, len(slopes) - 1))
    return Drift(float(np.median(slopes)), float(slopes[low]), float(slopes[high]))


def two_levels(values: Ints) -> TwoLevels | None:
    """The two levels that part the values best (least variance within), or None where they are not clearly apart."""
    if len(values) < FEWEST_FOR_LEVELS:
        return None
    ordered = np.sort(values).astype(np.float64)
    n = len(ordered)
    least = max(int(np.ceil(n * LEAST_SHARE_OF_A_LEVEL)), 2)
    cut = np.arange(least, n - least + 1)
    if len(cut) == 0:
        return None
    sums, squares = np.cumsum(ordered), np.cumsum((ordered - ordered.mean()) ** 2)
    centerd = sums - ordered.mean() * np.arange(1, n + 1)
    between = centerd[cut - 1] ** 2 / cut + (centerd[-1] - centerd[cut - 1]) ** 2 / (n - cut)
    at = int(cut[np.argmax(between)])
    if squares[-1] == 0:
        return None
    low, high = ordered[:at], ordered[at:]
    spread = np.sqrt((low.var() + high.var()) / 2)
    step = high.mean() - low.mean()
    apart = step > LEAST_SEPARATION * max(spread, 1.0) and step > LEAST_RELATIVE_STEP * max(low.mean(), 1.0)
    empty = high[0] - low[-1] > LEAST_EMPTY * step
    return TwoLevels(float(low.mean()), float(high.mean()), len(high) / n) if apart and empty else None


def _binned(number: Ints, values: Ints) -> tuple[Floats, Floats]:
    order = np.argsort(number, kind="stable")
    x, y = number[order], values[order]
    if len(x) <= MOST_POINTS:
        return x.astype(np.float64), y.astype(np.float64)
    edges = np.linspace(0, len(x), MOST_POINTS + 1).astype(np.int64)
    bins = np.repeat(np.arange(MOST_POINTS), np.diff(edges))
    x_median, y_median = (grouped_quantiles(bins, column, MOST_POINTS, (0.5,))[0] for column in (x, y))
    return x_median, y_median
