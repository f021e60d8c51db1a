"""What people named themselves: their own NVTX ranges and threads, beside those of XLA."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsys_report.analysis.arrays.view import Coded, Ints, View, coded, ints
from nsys_report.capture.catalogue import XLA_RANGE_PREFIXES

XLA_DOMAIN = "TSL"
"""NVTX domain of XLA's own ranges (tsl/profiler/backends/cpu/traceme via nvtx_utils)."""
COVERED = 0.5
"""Share of a stretch of time that a range must cover to name it."""


@dataclass(frozen=True, slots=True)
class UserRanges:
    """Closed ranges that are none of XLA's, in order of start."""

    start: Ints
    end: Ints
    thread: Ints
    text: Coded

    def naming(self, begin: int, end: int, thread: int, whole: tuple[int, int]) -> str | None:
        """The innermost range of a thread that covers most of a stretch; one around all of `whole` says nothing of a part of it."""
        mine = (self.thread == thread) & (self.start < end) & (self.end > begin)
        mine &= ~((self.start <= whole[0]) & (self.end >= whole[1]))
        rows = np.flatnonzero(mine)
        covered = np.minimum(self.end[rows], end) - np.maximum(self.start[rows], begin)
        rows = rows[covered >= COVERED * (end - begin)]
        if not len(rows):
            return None
        innermost = int(rows[np.argmin(self.end[rows] - self.start[rows])])
        return self.text.words[self.text.codes[innermost]]


def user_ranges(view: View) -> UserRanges:
    """The ranges of a capture that people opened; none where only XLA's were read."""
    nvtx = view.joined.capture.nvtx
    if nvtx is None or not len(nvtx):
        nothing = np.empty(0, np.int64)
        return UserRanges(nothing, nothing, nothing, Coded(np.empty(0, np.int32), ()))
    text, end = coded(nvtx, "text"), ints(nvtx, "end_ns")
    xla = text.isin(frozenset(word for word in text.words if word.startswith(XLA_RANGE_PREFIXES)))
    own = end[1] & (text.codes >= 0) & ~xla & ~coded(nvtx, "domain").isin(frozenset({XLA_DOMAIN}))
    return UserRanges(ints(nvtx, "start_ns")[0][own], end[0][own], ints(nvtx, "thread", missing=-1)[0][own], text.take(np.flatnonzero(own)))
