"""Which of hundreds of instructions changed: their noise is learned from those whose work did not change.

An instruction of a few microseconds moves by tens of nanoseconds from run to run, a long one by a share of itself. Both are scaled by
one factor, the spread of unchanged instructions around their common shift, so that hundreds of verdicts at once stay trustworthy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from nsys_report.comparison.noise import MAD_TO_SIGMA, MEDIAN_ERROR

Floats = NDArray[np.float64]

FIXED_NS, SHARE = 100.0, 0.01
"""Shape of the noise of an instruction's median time between runs: a part that is the same for all, and one that grows with it."""
ASSUMED_SCALE = 2.5
"""Its scale where too few instructions are unchanged: what three captures of one decode step differ by at most, with room."""
LEAST_ALIKE = 20
QUANTILE, ROOM = 0.95, 1.75
"""The scale is this quantile of the unchanged ones' differences, with room for the rest: one that did change must not widen it."""
TIMER_NS = 32.0
"""Resolution of the GPU's timestamps."""
LEAST_SHARE = 0.005


@dataclass(frozen=True, slots=True)
class Learned:
    """The noise of each instruction, ns, how it is known, and the share by which all of them moved."""

    band: Floats
    origin: str
    shift: float
    loose: Floats
    """The noise that is assumed where none can be learned: what is known to that width may be called the same."""


def learn(before: Floats, after: Floats, alike: NDArray[np.bool_]) -> Learned:
    """From medians before and after; `alike` marks those whose work is identical on both sides."""
    size = np.maximum(before, after)
    shape = np.sqrt(FIXED_NS**2 + (SHARE * size) ** 2)
    loose = ASSUMED_SCALE * shape
    known = alike & (before > 0) & (after > 0)
    if known.sum() < LEAST_ALIKE:
        return Learned(loose, "assumed", 0.0, loose)
    shift = _weighted_median((after[known] - before[known]) / before[known], before[known])
    rest = np.abs(after[known] - before[known] * (1 + shift)) / shape[known]
    scale = ROOM * float(np.quantile(rest, QUANTILE))
    return Learned(np.maximum(scale * shape, np.maximum(TIMER_NS, LEAST_SHARE * size)), "alike", shift, loose)


def half_widths(samples: list[Floats]) -> Floats:
    """How well the median of each row of samples is known, ns: corrected for as many questions as there are rows."""
    questions = max((len(s) for s in samples), default=1)
    factor = float(stats.norm.ppf(1 - 0.025 / max(questions, 1)))
    errors = []
    for rows in samples:
        middle = np.median(rows, axis=1, keepdims=True)
        spread = MAD_TO_SIGMA * np.median(np.abs(rows - middle), axis=1)
        errors.append(MEDIAN_ERROR * spread / np.sqrt(rows.shape[1]))
    return factor * np.sqrt(sum(e**2 for e in errors))


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    upto = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(upto, upto[-1] / 2)])
