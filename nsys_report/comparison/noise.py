"""Is a difference more than noise? Intervals, bands of noise, verdicts, and how many more runs would tell.

Two kinds of noise are kept apart. Within a capture the executions are repeats, and the interval of a difference follows from their
spread. Between runs a program's time moves too (clocks, memory placement, the host): with two captures or more on each side that is
measured; with one it is assumed. A difference is slower or faster where it is larger than both together, same where it lies within
the noise between runs and is known well enough to say so, and unsure otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from nsys_report.comparison.model import QuantityChange, Total, Verdict

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 999
MAD_TO_SIGMA = 1.4826
"""Standard deviation of normal values by their median absolute deviation."""
MEDIAN_ERROR = 1.2533
"""Standard error of a median of normal values by that of their mean: the square root of pi / 2."""
MOST_RUNS = 200
"""More captures than this are not named as a number that would tell."""
HOST_QUANTITIES = frozenset({"step_ns", "host_gap_ns", "idle_ns", "copies_ns"})
LOOSE = 2.0
"""Nothing is called the same that is not known to twice the band of noise."""
SHARE_OF_HOST = {"copies_ns": 2.0}
"""Noise of a part of host time by that of all of it: what waits for a copy's result waits elsewhere the next time."""
TOLERANCE = 1.0
"""A measured band wider than so many assumed ones says nothing of a difference inside it."""


@dataclass(frozen=True, slots=True)
class Noise:
    """What two runs of one unchanged program are taken to differ by, as shares, where it is not measured."""

    kernel: float = 0.005
    """Of kernel time. Three captures of one program differ by up to 0.13 % in median kernel time, with one GPU at one clock."""
    host: float = 0.3
    """Of all time but the kernels'. The same captures differ by up to 29 % there."""
    least_ns: float = 250.0
    """Never less: the GPU's timestamps step by 32 ns, and a kernel of a microsecond moves by several steps."""

    def of(self, key: str, median: float, kernels: float = 0.0) -> float:
        """The assumed noise of a figure, ns; `kernels` is the kernel time in it, which is steadier than the rest."""
        share = self.host * SHARE_OF_HOST.get(key, 1.0) if key in HOST_QUANTITIES else self.kernel
        return max(share * abs(median - kernels) + self.kernel * kernels, self.least_ns)


@dataclass(frozen=True, slots=True)
class Band:
    """How far apart runs of one program may be, ns, and how that is known."""

    half: float
    origin: str
    spread: float
    """Standard deviation between runs, ns."""


def quantity(key: str, before: Sequence[Floats], after: Sequence[Floats], noise: Noise, kernels: float = 0.0) -> QuantityChange:
    """The figure `key`, of samples in ns by capture on each side, of which `kernels` ns are kernel time."""
    ones, others = _filled(before), _filled(after)
    if not ones or not others:
        return QuantityChange(key, _total(before), _total(after), verdict="unsure")
    pooled = np.concatenate(ones), np.concatenate(others)
    medians = float(np.median(pooled[0])), float(np.median(pooled[1]))
    low, high = _interval(*pooled)
    half = median_half_width(*pooled)
    assumed = noise.of(key, max(medians), kernels)
    band = _band(ones, others, assumed)
    verdict = judge(medians[1] - medians[0], half, band.half, LOOSE * band.half)
    if len(ones) == len(others) and all(map(np.array_equal, ones, others)):
        verdict = "same"  # the same captures: nothing to doubt
    elif verdict == "same" and not _tells(key, medians[1] - medians[0], medians[0], band, assumed):
        verdict = "unsure"
    needed = runs_that_tell(abs(medians[1] - medians[0]), band.spread, _small(medians[0])) if verdict == "unsure" else None
    return QuantityChange(key, _total(ones), _total(others), low, high, verdict, *medians, band.half, band.origin, needed)


def judge(difference: float, half: float, band: float, loose: float) -> Verdict:
    """The verdict on a difference known to ± `half`, where runs may be `band` apart; both are independent, and add up as such.

    The same is what differs by no more than the band, and is known to `loose`.
    """
    if abs(difference) > math.hypot(half, band):
        return "slower" if difference > 0 else "faster"
    return "same" if abs(difference) <= band and half <= loose else "unsure"


def _tells(key: str, difference: float, before: float, band: Band, assumed: float) -> bool:
    """Whether a difference inside the band may be called none: not where the band is wide, nor where host time's noise is only assumed."""
    if band.origin == "measured":
        return band.half <= TOLERANCE * assumed
    return key not in HOST_QUANTITIES or abs(difference) <= _small(before)


def _small(before: float) -> float:
    """A difference of host times that nobody need ask about: 2 %."""
    return 0.02 * abs(before)


def _band(before: Sequence[Floats], after: Sequence[Floats], assumed: float) -> Band:
    """Between-run noise: from the captures' medians where each side has several, else assumed."""
    if min(len(before), len(after)) < 2:
        return Band(assumed, "assumed", assumed / 2)
    sides = [np.array([np.median(capture) for capture in side]) for side in (before, after)]
    freedom = sum(len(side) - 1 for side in sides)
    spread = math.sqrt(sum(float(((side - side.mean()) ** 2).sum()) for side in sides) / freedom)
    factor = float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom))
    return Band(factor * spread * math.sqrt(sum(1 / len(side) for side in sides)), "measured", spread)


def runs_that_tell(difference: float, spread: float, small: float) -> int | None:
    """The least number of captures a side with which a difference of that size would stand out, or none of that size could hide."""
    wanted = max(difference, small)
    if wanted <= 0 or spread <= 0:
        return None
    for runs in range(2, MOST_RUNS + 1):
        if float(stats.t.ppf(0.5 + CONFIDENCE / 2, 2 * runs - 2)) * spread * math.sqrt(2 / runs) < wanted:
            return runs
    return None


def median_half_width(before: Floats, after: Floats) -> float:
    """How well the difference of the medians is known, ns: from the median absolute deviations, so that stray executions do not count."""
    errors = [
        MEDIAN_ERROR * MAD_TO_SIGMA * float(np.median(np.abs(side - np.median(side)))) / math.sqrt(len(side)) for side in (before, after)
    ]
    freedom = max(len(before) + len(after) - 2, 1)
    return float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom)) * math.hypot(*errors)


def _interval(before: Floats, after: Floats) -> tuple[float, float]:
    """A bootstrap interval of the difference of the means (percentiles); the difference itself where nothing can be resampled."""
    observed = float(after.mean() - before.mean())
    if min(len(before), len(after)) < 2 or (np.ptp(before) == 0 and np.ptp(after) == 0):
        return observed, observed

    def difference(one: Floats, other: Floats, axis: int = -1) -> Floats:
        return np.asarray(other.mean(axis=axis) - one.mean(axis=axis))

    found = stats.bootstrap(
        (before, after), difference, method="percentile", n_resamples=RESAMPLES, confidence_level=CONFIDENCE, rng=np.random.default_rng(0)
    ).confidence_interval
    return min(float(found.low), observed), max(float(found.high), observed)


def _filled(side: Sequence[Floats]) -> list[Floats]:
    return [capture for capture in side if len(capture)]


def _total(side: Sequence[Floats]) -> Total | None:
    samples = [capture for capture in side if len(capture)]
    return Total(sum(int(c.sum()) for c in samples), sum(len(c) for c in samples)) if samples else None
