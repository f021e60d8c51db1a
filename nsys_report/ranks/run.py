"""The report of a run as a frozen value: from what its captures send to who waits for whom, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsys_report.ranks.align import Alignment, align
from nsys_report.ranks.arrivals import Arrivals, arrivals
from nsys_report.ranks.bandwidth import CollectiveTime, collective_times, hosts_of
from nsys_report.ranks.clocks import Clocks, clocks
from nsys_report.ranks.lateness import Grid, Lateness, grid, kernel_ratios, lateness
from nsys_report.ranks.meetings import Meetings, meetings
from nsys_report.ranks.programs import Rank, SharedProgram, number_ranks, shared_programs
from nsys_report.ranks.summary import CaptureRuns, Failure


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Many ranks as one run; indices of ranks, captures and programs are those of the tuples here."""

    captures: tuple[CaptureRuns, ...]
    ranks: tuple[Rank, ...]
    programs: tuple[SharedProgram, ...]
    alignment: Alignment
    clocks: Clocks
    meetings: Meetings
    arrivals: Arrivals
    grids: tuple[Grid, ...]
    """Of the programs in which ranks meet, most time in collectives first."""
    late: tuple[Lateness, ...]
    """The costliest first."""
    collectives: tuple[CollectiveTime, ...]
    kernel_ratio: np.ndarray
    """By rank, in the program with most time in collectives: how long its kernels take against the others'; nan where unknown."""
    is_uniform: np.ndarray
    """By rank: whether all of its kernels are slower alike, as with a lower clock."""
    failures: tuple[Failure, ...] = ()


def analyze_run(captures: Sequence[CaptureRuns], failures: Sequence[Failure] = ()) -> Run:
    """Aligns and compares the ranks of a run; a pure function of its arguments."""
    ranks = number_ranks(captures)
    programs = shared_programs(ranks)
    placed = align(captures, ranks, programs)
    met = meetings(ranks, programs, placed)
    use = np.flatnonzero(met.ends_together[met.of]) if len(met) else np.empty(0, np.int64)
    clock = clocks(len(captures), met.kernels.capture[use], met.of[use], met.kernels.end[use], placed.offsets)
    come = arrivals(captures, met, clock)
    seen = tuple(grid(p, len(ranks), programs, met, come) for p in np.unique(met.kernels.program).tolist())
    error = clock.error_ns[[rank.capture for rank in ranks]] if ranks else np.empty(0)
    late = sorted((one for g in seen for one in lateness(g, error, programs, met, come)), key=lambda one: -one.lost_ns)
    ratio, uniform = kernel_ratios(programs[0]) if programs else (np.empty(0), np.empty(0, np.bool_))
    return Run(
        tuple(captures),
        ranks,
        programs,
        placed,
        clock,
        met,
        come,
        seen,
        tuple(late),
        collective_times(programs, met, come, hosts_of(captures)),
        ratio,
        uniform,
        tuple(failures),
    )
