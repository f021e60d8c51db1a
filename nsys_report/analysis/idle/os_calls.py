"""What a thread did in the operating system's runtime (read, pthread_cond_wait, ...), where the capture traced it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nsys_report.analysis.arrays.view import Coded, Ints, View, coded, ints


@dataclass(frozen=True, slots=True)
class ThreadCalls:
    """The calls of one thread that lie in no other, in order, none of which begins before the one before ends."""

    start: Ints
    end: Ints
    name: Coded


@dataclass(frozen=True, slots=True)
class OsCalls:
    """The traced calls by thread."""

    threads: Mapping[int, ThreadCalls]

    def within(self, begin: int, end: int, thread: int) -> dict[str, int]:
        """The time of a thread in calls by name within a stretch, ns, longest first; it adds up to no more than the stretch."""
        calls = self.threads.get(thread)
        if calls is None:
            return {}
        found: dict[str, int] = {}
        for row in range(int(np.searchsorted(calls.end, begin, "right")), int(np.searchsorted(calls.start, end))):
            name = calls.name.words[calls.name.codes[row]]
            found[name] = found.get(name, 0) + min(int(calls.end[row]), end) - max(int(calls.start[row]), begin)
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def os_calls(view: View) -> OsCalls:
    """The traced calls of the threads that launch work; none where the capture has none."""
    table = view.joined.capture.os_calls
    start, end, thread = ints(table, "start_ns")[0], ints(table, "end_ns")[0], ints(table, "thread")[0]
    name = coded(table, "name")
    return OsCalls({one: _outermost(start, end, name, np.flatnonzero(thread == one)) for one in np.unique(thread).tolist()})


def _outermost(start: Ints, end: Ints, name: Coded, rows: Ints) -> ThreadCalls:
    """Some calls without those that lie in another: functions of the C library call one another."""
    rows = rows[np.lexsort((-end[rows], start[rows]))]
    before = np.concatenate([start[rows[:1]], np.maximum.accumulate(end[rows])[:-1]])
    kept = end[rows] > before
    rows, before = rows[kept], before[kept]
    return ThreadCalls(np.maximum(start[rows], before), end[rows], name.take(rows))
