"""Which execution and kernel each busy nanosecond of a device counts to, so that overlapping work is never counted twice.

An execution's window runs from its start to the next start of the same program on the device; the last one's to its own end. Within its
window an execution owns the time of its own kernels, and of the copies on the device that its instructions ask for; where two of them
overlap, the one that started first owns the overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsys_report.analysis.intervals import EMPTY, Ranges, union, union_of, within
from nsys_report.analysis.modules import intervals_to_next
from nsys_report.analysis.view import Flags, Ints, View


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
    owned = np.zeros(len(view.start), np.int64)
    rows = np.flatnonzero(does_work(view) & (view.execution >= 0))
    if len(rows) == 0:
        return owned
    run = view.execution[rows]
    start = np.clip(view.start[rows], within_window.start[run], within_window.end[run])
    end = np.clip(view.end[rows], start, within_window.end[run])
    order = np.lexsort((start, run)) if np.any(run[1:] < run[:-1]) else np.arange(len(rows))
    run, start, end = run[order], start[order], end[order]
    # One running maximum serves all executions: each is moved beyond the last by a room that none can leave.
    low, room = int(start.min()), int(end.max() - start.min()) + 1
    shift = run * room - low
    reach = np.maximum.accumulate(end + shift)
    earlier = np.concatenate(([0], reach[:-1]))
    owned[rows[order]] = np.maximum(end + shift - np.maximum(start + shift, earlier), 0)
    return owned


@dataclass(frozen=True, slots=True)
class BusyTime:
    """A device's busy time in layers: each is a disjoint set that holds the one before it."""

    work: Ranges
    and_copies_in: Ranges
    and_copies_out: Ranges
    everything: Ranges

    def within(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Time in each window of work; of copies in that no work hides; then of copies out; then of the rest."""
        layers = [within(r, starts, ends) for r in (self.work, self.and_copies_in, self.and_copies_out, self.everything)]
        return layers[0], layers[1] - layers[0], layers[2] - layers[1], layers[3] - layers[2]


def busy_times(view: View) -> tuple[BusyTime, ...]:
    """The busy time of every device, in the order of View.devices."""
    kind, work = view.column("copy_kind"), does_work(view)
    copies_in = kind.isin(frozenset({"HtoD", "HtoA", "UVM HtoD"}))
    copies_out = kind.isin(frozenset({"DtoH", "AtoH", "UVM DtoH"}))
    return tuple(_busy_time(view, view.device == d, work, copies_in, copies_out) for d in range(len(view.devices)))


def _busy_time(view: View, here: Flags, work: Flags, copies_in: Flags, copies_out: Flags) -> BusyTime:
    layers, covered = [], EMPTY
    for chosen in (here & work, here & copies_in & ~work, here & copies_out & ~work, here & ~(work | copies_in | copies_out)):
        ranges = union(view.start[chosen], view.end[chosen])
        covered = union_of(covered, ranges) if len(ranges.starts) else covered
        layers.append(covered)
    return BusyTime(*layers)
