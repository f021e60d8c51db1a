"""Which ranks come late, in which steps, and where they lost the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsys_report.analysis.idle.causes import CAUSES
from nsys_report.findings.thresholds import threshold
from nsys_report.ranks.arrivals import Arrivals
from nsys_report.ranks.meetings import Meetings
from nsys_report.ranks.programs import SharedProgram
from nsys_report.ranks.summary import Ints

KERNELS = "kernels"
"""Time lost while the device was busy with more than the others were; other causes are those of idle time."""
CATEGORIES = {cause.key: cause.category for cause in CAUSES} | {KERNELS: KERNELS}
"""The part of a step that each cause counts to."""
UNIFORM = 0.5
"""Kernels are slower throughout, as with a lower clock, where the quartiles of their ratios lie within so much of the ratio's excess."""
LEAST_RATIO = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Steps of one program by rank, ns; shape (ranks, steps). nan where a rank has no such step or nothing of it counts."""

    program: int
    late: np.ndarray
    """How much later than the others a rank came to the step's collectives, in sum."""
    waited: np.ndarray
    """How long it waited in them."""
    lost: np.ndarray
    """What it cost the run: the lateness of the last to come, in sum; a rank that others were later than costs nothing there."""
    step_ns: float
    """The median time from step to step."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """A rank that comes late in some steps of a program."""

    rank: int
    program: int
    steps: tuple[int, ...]
    of: int
    """Steps that it has and that count."""
    median_ns: float
    """Over those steps."""
    lost_ns: float
    """What it cost the run over all of them."""
    causes: tuple[tuple[str, float], ...]
    """(category, ns in the median late step) that it spent beyond the others' median before it came: KERNELS, host, launch, ..."""
    cause: str
    """Of the first category the cause of idle time that most of it is; KERNELS, or "" where nothing was spent beyond the others."""
    collectives: tuple[str, ...]
    """Where it came late, by instruction, most time first."""

    @property
    def every(self) -> int | None:
        """3 where it is every third step, 1 where it is every one; None without such an order."""
        if len(self.steps) == self.of:
            return 1
        gaps = set(np.diff(self.steps).tolist())
        return gaps.pop() if len(gaps) == 1 and len(self.steps) > 2 else None


def grid(program: int, ranks: int, programs: Sequence[SharedProgram], met: Meetings, come: Arrivals) -> Grid:
    """One program's steps by rank."""
    rows = np.flatnonzero(met.kernels.program == program)
    steps = int(met.step[rows].max()) + 1 if len(rows) else 0
    counted = rows[come.counted[rows]]
    place = met.kernels.rank[counted] * steps + met.step[counted]

    def summed(values: Ints) -> np.ndarray:
        return np.bincount(place, values, minlength=ranks * steps).reshape(ranks, steps)

    there = np.bincount(place, minlength=ranks * steps).reshape(ranks, steps) > 0
    lost = np.where(come.is_last, come.late, 0)
    late, waited, costs = (np.where(there, summed(v[counted]), np.nan) for v in (come.late, come.waited, lost))
    return Grid(program, late, waited, costs, _step_time(programs[program]))


def _step_time(program: SharedProgram) -> float:
    """The median time from one execution's start to the next, over all ranks."""
    gaps = [np.diff(run.start) for run in program.runs if run is not None and len(run.start) > 1]
    return float(np.median(np.concatenate(gaps))) if gaps else 0.0


def lateness(seen: Grid, error: np.ndarray, programs: Sequence[SharedProgram], met: Meetings, come: Arrivals) -> list[Lateness]:
    """The ranks that come late, the costliest first; `error` is that of each rank's clock."""
    found = []
    for rank in range(len(seen.late)):
        steps = _late_steps(seen.late[rank], seen.step_ns, 2 * float(np.nan_to_num(error[rank])))
        if not len(steps):
            continue
        rows = np.flatnonzero((met.kernels.program == seen.program) & (met.kernels.rank == rank) & (come.late > 0))
        rows = rows[np.isin(met.step[rows], steps)]
        median = float(np.median(seen.late[rank][steps]))
        causes, cause = _causes(rank, rows, steps, median, programs[seen.program], met, come)
        found.append(
            Lateness(
                rank,
                seen.program,
                tuple(steps.tolist()),
                int(np.isfinite(seen.late[rank]).sum()),
                median,
                float(seen.lost[rank][steps].sum()),
                causes,
                cause,
                _places(rows, programs[seen.program], met, come),
            )
        )
    return sorted(found, key=lambda late: -late.lost_ns)


def _late_steps(late: np.ndarray, step_ns: float, error: float) -> Ints:
    """The steps in which a rank is late by a good part of a step, or in most of which it is by a small one: whichever is more in sum."""
    late = np.nan_to_num(late, nan=-1.0)
    much = np.flatnonzero(late > max(threshold("ranks", "least_late_share") * step_ns, error))
    some = np.flatnonzero(late > max(threshold("ranks", "steady_late_share") * step_ns, error))
    steady = len(some) >= max(threshold("ranks", "steady_steps") * int((late >= 0).sum()), LEAST_STEADY)
    return some if steady and late[some].sum() > 2 * late[much].sum() else much


LEAST_STEADY = 4
"""Steps below which being last in most of them can be chance."""


def _places(rows: Ints, program: SharedProgram, met: Meetings, come: Arrivals) -> tuple[str, ...]:
    time = np.bincount(met.kernels.collective[rows], come.late[rows], minlength=len(program.collectives))
    return tuple(program.collectives[c].instruction for c in np.argsort(-time, kind="stable") if time[c] > 0)


def _causes(
    rank: int, rows: Ints, steps: Ints, most: float, program: SharedProgram, met: Meetings, come: Arrivals
) -> tuple[tuple[tuple[str, float], ...], str]:
    """What a rank spent before the collectives that it came late to, beyond the median of those who came early, and its largest cause.

    Causes of one category are weighed together, for a host's time may fall under one on one rank and under another on the next.
    """
    own = _spent(rank, rows, program, met)
    others = {cause: np.zeros(len(rows)) for cause in CATEGORIES}
    for n, row in enumerate(rows):
        first = met.first[met.of[row]]
        rest = np.arange(first, first + met.came[met.of[row]])
        early = rest[np.argsort(come.arrives[rest], kind="stable")][: max(len(rest) // 2, 1)]
        spent = [_spent(int(met.kernels.rank[r]), np.array([r]), program, met) for r in early[early != row][:MOST_OTHERS]]
        for cause in set().union(*spent):
            others[cause][n] = np.median([s[cause][0] if cause in s else 0.0 for s in spent])
    place = np.searchsorted(steps, met.step[rows])

    def typical(names: list[str]) -> float:
        beyond = np.sum([own.get(name, 0.0) - others[name] for name in names], axis=0)
        return float(np.median(np.bincount(place, beyond, minlength=len(steps))))

    members: dict[str, list[str]] = {}
    for cause, category in CATEGORIES.items():
        members.setdefault(category, []).append(cause)
    lost = {category: min(typical(names), most) for category, names in members.items()}
    causes = tuple(sorted(((c, ns) for c, ns in lost.items() if ns > 0), key=lambda pair: -pair[1]))
    return causes, max(members[causes[0][0]], key=lambda name: typical([name])) if causes else ""


MOST_OTHERS = 16
"""Ranks that a late one is compared with: the first so many to come, of the first half."""


def _spent(rank: int, rows: Ints, program: SharedProgram, met: Meetings) -> dict[str, np.ndarray]:
    """The time before collectives by what the device and its host did then, ns, for rows of one rank."""
    run = program.runs[rank]
    if run is None:
        return {}
    of_rank = met.kernels.row[rows]
    spent = {KERNELS: met.kernels.busy[rows].astype(float)}
    for n, cause in enumerate(run.causes):
        spent[cause] = run.runs.idle[of_rank, n].astype(float)
    return spent


def kernel_ratios(program: SharedProgram) -> tuple[np.ndarray, np.ndarray]:
    """How long each rank's kernels take against the median of the other ranks, the median over instructions, and whether all do alike.

    nan for ranks that share no instruction with another.
    """
    names = sorted({name for run in program.runs if run is not None for name in run.kernels})
    index = {name: n for n, name in enumerate(names)}
    times = np.full((len(program.runs), len(names)), np.nan)
    for rank, run in enumerate(program.runs):
        if run is not None and len(run.kernels):
            times[rank, [index[name] for name in run.kernels]] = run.kernel_ns
    ratio, uniform = np.full(len(program.runs), np.nan), np.zeros(len(program.runs), np.bool_)
    whole = _median(times)
    for rank in range(len(program.runs)):
        # one rank more or less moves the median of few ranks only
        ratio[rank], uniform[rank] = _ratio(times, rank, _median(np.delete(times, rank, axis=0)) if len(times) <= MOST_OTHERS else whole)
    return ratio, uniform


def _median(times: np.ndarray) -> np.ndarray:
    """The median over ranks of each instruction, nan where none has it."""
    found = np.full(times.shape[1], np.nan)
    known = np.flatnonzero(np.isfinite(times).any(axis=0)) if len(times) else np.empty(0, np.int64)
    found[known] = np.nanmedian(times[:, known], axis=0)
    return found


def _ratio(times: np.ndarray, rank: int, others: np.ndarray) -> tuple[float, bool]:
    shared = np.flatnonzero(np.isfinite(times[rank]) & np.isfinite(others))
    if not len(shared):
        return float("nan"), False
    ratios = times[rank, shared] / np.maximum(others[shared], 1.0)
    low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
    excess = middle - 1
    return float(middle), bool(excess > LEAST_RATIO and low > 1 + (1 - UNIFORM) * excess and high < 1 + (1 + UNIFORM) * excess)
