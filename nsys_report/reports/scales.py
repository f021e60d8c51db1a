"""Axes of pictures: the unit of a time, the ends of a logarithmic axis."""

from __future__ import annotations

import math

LEAST_DECADES = 2.5
"""Decades of a logarithmic axis: fewer have no room for a tick on each."""


def time_scale(longest_ns: float) -> tuple[float, str]:
    """The unit for an axis of times up to that: its nanoseconds, and its name."""
    return next(((size, name) for size, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")) if longest_ns >= size), (1.0, "ns"))


def wide(low: float, high: float) -> tuple[float, float]:
    """The ends of a logarithmic axis, moved apart to LEAST_DECADES where they are closer."""
    missing = LEAST_DECADES - math.log10(high / low)
    return (low / 10 ** (missing / 2), high * 10 ** (missing / 2)) if missing > 0 else (low, high)
