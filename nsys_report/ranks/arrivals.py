"""Who comes when to each collective, how long the others wait, and by how much a rank is late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsys_report.ranks.clocks import Clocks
from nsys_report.ranks.meetings import Meetings
from nsys_report.ranks.summary import CaptureRuns, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """As columns, a row for each row of Meetings.kernels, ns on the common clock."""

    arrives: Ints
    """After the first rank to come."""
    waited: Ints
    """From its coming to the last rank's."""
    late: Ints
    """Beyond the median of the other ranks' coming; 0 where that is less than the clocks' error, or where it does not count."""
    counted: np.ndarray
    """False where a capture begins only after the first rank had come: what its rank did until then, nobody knows."""
    is_last: np.ndarray
    moving: Ints
    """A row a meeting: the shortest of its kernels, which is that of a rank that waited for nobody."""
    lost: Ints
    """A row a meeting: how much later the last rank came than the median of the others; 0 as in `late`."""


def arrivals(captures: Sequence[CaptureRuns], met: Meetings, clock: Clocks) -> Arrivals:
    """From meetings and clocks; a pure function of its arguments."""
    kernels = met.kernels
    if not len(met):
        empty = np.empty(0, np.int64)
        return Arrivals(empty, empty, empty, np.empty(0, np.bool_), np.empty(0, np.bool_), empty, empty)
    come = np.rint(clock.common(kernels.capture, kernels.start)).astype(np.int64)
    first, last = np.minimum.reduceat(come, met.first), np.maximum.reduceat(come, met.first)
    begun = np.array([capture.span_ns[0] for capture in captures], np.int64)
    begun = np.rint(clock.common(np.arange(len(captures)), begun)).astype(np.int64)
    latest_begin = np.maximum.reduceat(begun[kernels.capture], met.first)
    counted = (latest_begin <= first)[met.of]
    late = come - _median_of_others(come, met)
    error = np.nan_to_num(clock.error_ns, nan=0.0)[kernels.capture]
    late = np.where(counted & (late > np.maximum.reduceat(error, met.first)[met.of]), late, 0)
    is_last = come == last[met.of]
    return Arrivals(
        come - first[met.of],
        last[met.of] - come,
        late,
        counted,
        is_last,
        np.minimum.reduceat(kernels.end - kernels.start, met.first),
        np.maximum.reduceat(late, met.first),
    )


def _median_of_others(come: Ints, met: Meetings) -> Ints:
    """For each row the median of the meeting's other rows: of an even number the earlier of the two in the middle."""
    order = np.lexsort((come, met.of))
    place = np.empty(len(come), np.int64)
    place[order] = np.arange(len(come)) - met.first[met.of]
    others = met.came[met.of] - 1
    middle = (others - 1) // 2
    middle = middle + (place <= middle)
    sorted_come = come[order]
    return np.asarray(sorted_come[met.first[met.of] + middle], np.int64)
