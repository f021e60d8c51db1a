"""Which execution and kernel each busy nanosecond of a device counts to, so that overlapping work is never counted twice.

An execution's window runs from its start to the next start of the same program on the device; the last one's to its own end. Within its
window an execution owns the time of its own kernels, and of the copies on the device that its instructions ask for; where two of them
overlap, the one that started first owns the overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsys_report.analysis.arrays.view import Flags, Ints, View, once_per_view
from nsys_report.analysis.times.modules import intervals_to_next
from nsys_report.intervals import Ranges, length, subtract, union, within


@dataclass(frozen=True, slots=True)
class Windows:
    """The window of each execution, in the order of View.executions, ns."""

    start: Ints
    end: Ints
    """Never before `start`; two executions of a program that start at the same time leave the first an empty window."""

    @property
    def wall(self) -> Ints:
        """Length of each window, ns."""
        return self.end - self.start


@once_per_view
def windows(view: View) -> Windows:
    """The windows of all executions, cut-off ones too."""
    runs = view.executions
    interval, known = intervals_to_next(view)
    return Windows(runs.start, np.where(known, runs.start + interval, np.maximum(runs.end, runs.start)))


def does_work(view: View) -> Flags:
    """Which activities are kernels or the program's own copies, or whole graphs whose kernels the capture does not hold."""
    return view.work | view.activity.isin(frozenset({"graph"}))


def own_time(view: View, within_window: Windows) -> Ints:
    """The time of each activity that its execution owns, ns; 0 for other copies and for what is in no execution.

    An execution's owned times add up to the union of its work within its window.
    """
    owned = np.where(does_work(view) & (view.execution >= 0), view.duration, 0)
    rows, lost = unowned_time(view, within_window)
    owned[rows] -= lost
    return owned


def unowned_time(view: View, within_window: Windows) -> tuple[Ints, Ints]:
    """The activities of which their execution does not own all, and how much it does not, ns.

    Most executions run one activity after the other within their window, and own them whole: only the others are looked into.
    """
    graphs = np.flatnonzero(view.activity.isin(frozenset({"graph"})) & (view.execution >= 0))
    rows = view.inside if not len(graphs) else np.sort(np.concatenate((view.inside, graphs)))
    run = view.execution[rows]
    if np.any(run[1:] < run[:-1]):
        order = np.argsort(run, kind="stable")
        rows, run = rows[order], run[order]
    chosen = np.flatnonzero(_disturbed(view, rows, run, within_window)[run])
    rows, run = rows[chosen], run[chosen]
    if len(rows) == 0:
        return rows, np.empty(0, np.int64)
    start = np.clip(view.start[rows], within_window.start[run], within_window.end[run])
    end = np.clip(view.end[rows], start, within_window.end[run])
    order = np.lexsort((start, run))
    rows, run, start, end = rows[order], run[order], start[order], end[order]
    # One running maximum serves all executions: each is moved beyond the last by a room that none can leave.
    low, room = int(start.min()), int(end.max() - start.min()) + 1
    shift = run * room - low
    reach = np.maximum.accumulate(end + shift)
    earlier = np.concatenate(([0], reach[:-1]))
    lost = view.duration[rows] - np.maximum(end + shift - np.maximum(start + shift, earlier), 0)
    return rows[lost > 0], lost[lost > 0]


def _disturbed(view: View, rows: Ints, run: Ints, within_window: Windows) -> Flags:
    """Which executions hold work that overlaps, or that leaves their window; `rows` are grouped by execution, in time order."""
    found = np.zeros(len(view.executions), np.bool_)
    if len(rows) == 0:
        return found
    start, end = view.start[rows], view.end[rows]
    overlap = (start[1:] < end[:-1]) & (run[1:] == run[:-1])  # sorted by start: where any two overlap, two neighbors do
    found[run[1:][overlap]] = True
    first = np.flatnonzero(np.diff(run, prepend=-1))
    found[run[first]] |= np.maximum.reduceat(end, first) > within_window.end[run[first]]
    found[run[first]] |= start[first] < within_window.start[run[first]]
    return found


@dataclass(frozen=True, slots=True)
class BusyTime:
    """A device's busy time in disjoint sets: its work, copies in that no work hides, copies out that neither hides, and the rest."""

    work: Ranges
    copies_in: Ranges
    copies_out: Ranges
    rest: Ranges

    def within(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """The time of each set in each window."""
        work, copies_in, copies_out, rest = (within(r, starts, ends) for r in (self.work, self.copies_in, self.copies_out, self.rest))
        return work, copies_in, copies_out, rest

    @property
    def length(self) -> int:
        """How long the device was busy, ns."""
        return sum(length(r) for r in (self.work, self.copies_in, self.copies_out, self.rest))


def busy_times(view: View) -> tuple[BusyTime, ...]:
    """The busy time of every device, in the order of View.devices."""
    work = does_work(view)
    others = np.flatnonzero(~work)
    kind = view.column("copy_kind").take(others)
    copies_in = kind.isin(frozenset({"HtoD", "HtoA", "UVM HtoD"}))
    copies_out = kind.isin(frozenset({"DtoH", "AtoH", "UVM DtoH"}))
    kinds = (others[copies_in], others[copies_out], others[~(copies_in | copies_out)])
    return tuple(_busy_time(view, device, work, kinds) for device in range(len(view.devices)))


def _busy_time(view: View, device: int, work: Flags, others: tuple[Ints, ...]) -> BusyTime:
    here = view.device == device if len(view.devices) > 1 else None
    chosen = work if here is None else work & here
    sets = [union(view.start, view.end) if chosen.all() else union(view.start[chosen], view.end[chosen])]
    for rows in others:
        mine = rows if here is None else rows[here[rows]]
        left = union(view.start[mine], view.end[mine])
        for earlier in sets:
            left = subtract(left, earlier)
        sets.append(left)
    return BusyTime(*sets)
