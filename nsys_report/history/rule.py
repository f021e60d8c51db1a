"""When a new figure is a regression against those recorded before.

Times: against the median m of the last ten and their median absolute deviation, flagged above max(1.25 m, m + 4 * 1.4826 * MAD), with fewer
than three records above 1.5 m, and never for less than 0.1 ms. Bytes are exact, and flagged when they grow by more than a hundredth;
coverage, a share, when it falls by more than a hundredth. What is better is never flagged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

Kind = Literal["time", "bytes", "coverage"]

LAST = 10
FEW, FEW_FACTOR = 3, 1.5
FACTOR, DEVIATIONS, MAD_TO_SIGMA = 1.25, 4.0, 1.4826
LEAST_NS = 100_000.0
BYTES_GROWTH, COVERAGE_LOSS = 0.01, 0.01


@dataclass(frozen=True, slots=True)
class Judged:
    """A figure against its history: `limit` is where flagging starts; None for both where there is no history."""

    value: float
    median: float | None
    limit: float | None
    records: int
    flagged: bool


def kind_of(figure: str) -> Kind:
    """Which rule a figure falls under, by its name."""
    name = figure.rpartition(":")[2]
    return "coverage" if name.endswith("share") else "bytes" if "bytes" in name else "time"


def judge(figure: str, value: float, history: Sequence[float]) -> Judged:
    """A new value of a figure against the values recorded before, oldest first."""
    last = list(history)[-LAST:]
    if not last:
        return Judged(value, None, None, 0, False)
    kind, middle = kind_of(figure), median(last)
    if kind == "coverage":
        limit = middle - COVERAGE_LOSS
        return Judged(value, middle, limit, len(last), value < limit)
    if kind == "bytes":
        limit = middle * (1 + BYTES_GROWTH)
        return Judged(value, middle, limit, len(last), value > limit)
    limit = time_limit(last)
    return Judged(value, middle, limit, len(last), value > limit)


def time_limit(last: Sequence[float]) -> float:
    """The longest time, ns, that is no regression against these."""
    middle = median(last)
    if len(last) < FEW:
        limit = FEW_FACTOR * middle
    else:
        spread = median(abs(v - middle) for v in last)
        limit = max(FACTOR * middle, middle + DEVIATIONS * MAD_TO_SIGMA * spread)
    return max(limit, middle + LEAST_NS)
