"""What there is to say of a run: ranks that the others wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from nsys_report.fact import Fact
from nsys_report.findings.model import Finding, Place
from nsys_report.findings.thresholds import threshold
from nsys_report.ranks.lateness import KERNELS, Lateness
from nsys_report.ranks.run import Run
from nsys_report.ranks.summary import Ints
from nsys_report.ranks.words import cause_of, how_often
from nsys_report.units import duration, things

REMEDIES = {
    "host": "Look at what rank {rank}'s host does before it calls the program: input that is not ready, logging, checkpoints, garbage "
    "collection, other processes on its cores. Prefetch its input, and dispatch steps ahead of their results.",
    "compile": "Rank {rank} compiles inside the run: fix the shapes that it sees, and warm up before.",
    "launch": "Launching takes longer on rank {rank}: pin its process to cores near its GPU, and launch through CUDA graphs.",
    "copies": "Rank {rank} copies before its step: copy ahead, from pinned memory.",
    "profiler": "The profiler itself holds rank {rank} up: capture a shorter window, or graphs as a whole.",
    KERNELS: "Rank {rank}'s GPU takes longer for the same program: look at its clocks, power and temperature (nvidia-smi -q -d "
    "PERFORMANCE,CLOCK), at other processes on it, and at whether its share of the work is larger.",
}
OTHERWISE = "Compare rank {rank}'s timeline before {where} with that of a rank that waits for it."


def run_findings(run: Run, shown: int | None = None) -> tuple[Finding, ...]:
    """The ranks that cost the run time, the costliest first; those that are late in the same steps for the same cause are one finding.
    `shown` is the rank whose step is shown beside them: what it waits for a late rank is the part of its step that the finding explains.
    """
    groups: dict[object, list[Lateness]] = {}
    for late in run.late:
        groups.setdefault((late.program, late.steps, late.cause), []).append(late)
    found = (_late(run, tuple(members), shown) for members in groups.values())
    return tuple(f for f in found if (f.share or 0.0) >= threshold("ranks", "least_loss_share"))


def without_waiting(findings: Sequence[Finding], explained: Sequence[Finding]) -> tuple[Finding, ...]:
    """A rank's own findings once the run's are told: what it waits in collectives for late ranks is no longer its collectives' doing."""
    waited = {f.hlo_module: 0.0 for f in explained}
    for finding in explained:
        waited[finding.hlo_module] += finding.explained_ns
    return tuple(_less(f, waited.get(f.hlo_module, 0.0)) if f.slug == "collectives-exposed" else f for f in findings)


def _less(finding: Finding, waited: float) -> Finding:
    left = max(finding.explained_ns - waited, 0.0)
    scale = left / finding.explained_ns if finding.explained_ns else 0.0
    gain = None if finding.gain_ns is None else max(finding.gain_ns - waited, 0.0)
    step = finding.gain_ns / finding.share if finding.gain_ns and finding.share else 0.0
    return replace(
        finding,
        explained_ns=left,
        explains={part: ns * scale for part, ns in finding.explains.items()},
        gain_ns=gain,
        share=gain / step if gain is not None and step else finding.share,
        basis=f"{finding.basis}; less the {duration(waited)} that it waits for late ranks" if waited else finding.basis,
    )


def _step(run: Run, late: Lateness) -> float:
    return next(grid.step_ns for grid in run.grids if grid.program == late.program)


def _late(run: Run, members: tuple[Lateness, ...], shown: int | None) -> Finding:
    late = members[0]
    costs = _costs(run, members)
    total = float(costs.sum())
    number, step, loss = run.ranks[late.rank].number, _step(run, late), total / late.of if late.of else 0.0
    program = run.programs[late.program]
    cause = cause_of(late, float(run.kernel_ratio[late.rank]), bool(run.is_uniform[late.rank]))
    category = late.causes[0][0] if late.causes else ""
    where = late.collectives[0] if late.collectives else "its collectives"
    remedy = REMEDIES.get(category, OTHERWISE).format(rank=number, where=where)
    explained = _waited_for(run, members, costs, shown) if shown is not None else loss
    own = program.runs[shown if shown is not None else late.rank]
    error = float(run.clocks.error_ns[run.ranks[late.rank].capture])
    return Finding(
        slug="rank-late",
        title=_title(run, members, cause),
        why=_why(run, late, error),
        remedy=remedy,
        confidence="sure" if cause and len(late.steps) > 2 and late.median_ns > 10 * error else "likely",
        basis="How much later it came than the median of the other ranks where it came last, over all steps",
        facts=(
            Fact("rank", "rank", number, "number"),
            Fact("ranks", "late ranks", len(members), "count"),
            Fact("steps_late", "steps late", len(late.steps), "count"),
            Fact("steps", "of steps", late.of, "count"),
            Fact("median_ns", "late in the median of those", late.median_ns, "ns"),
            Fact("clock_error_ns", "error of the clocks", error if np.isfinite(error) else None, "ns"),
            *(Fact(f"{name}_ns", f"of that {name.replace('_', ' ')}", ns, "ns") for name, ns in late.causes),
        ),
        places=tuple(_places(run, late)),
        place_count=len(late.collectives),
        hlo_module=program.name,
        program_id=own.number if own is not None else None,
        executions=late.of,
        explained_ns=explained,
        gain_ns=loss,
        tried="untried",
        share=loss / step if step else None,
        total_gain_ns=total,
    )


def _title(run: Run, members: tuple[Lateness, ...], cause: str) -> str:
    late = members[0]
    when = f"{duration(late.median_ns)} late {how_often(late)}"
    if len(members) == 1:
        return f"Rank {run.ranks[late.rank].number} arrives {when}" + (f": {cause}" if cause else "")
    numbers = sorted(run.ranks[one.rank].number for one in members)
    shown = ", ".join(map(str, numbers[:4])) + (" ..." if len(numbers) > 4 else "")
    return f"{things(len(members), 'rank')} ({shown}) arrive {when}" + (f": on each, {cause}" if cause else "")


def _costs(run: Run, members: tuple[Lateness, ...]) -> Ints:
    """Of each meeting what it cost that one of these ranks came last, ns."""
    kernels, come = run.meetings.kernels, run.arrivals
    mine = np.isin(kernels.rank, [one.rank for one in members]) & (kernels.program == members[0].program)
    rows = np.flatnonzero(mine & come.is_last & np.isin(run.meetings.step, members[0].steps))
    costs = np.zeros(len(run.meetings), np.int64)
    np.maximum.at(costs, run.meetings.of[rows], come.late[rows])
    return costs


def _why(run: Run, late: Lateness, error: float) -> str:
    others = len(run.ranks) - 1
    parts = ", ".join(
        f"{duration(ns)} {WORDS.get(name, name.replace('_', ' '))}" for name, ns in late.causes[:3] if ns >= 0.05 * late.median_ns
    )
    where = late.collectives[0] if late.collectives else "its collectives"
    text = (
        f"It comes last to {where} in {things(len(late.steps), 'step')}, and {things(others, 'rank')} {'wait' if others > 1 else 'waits'}."
    )
    if parts:
        text += f" Beyond what the others need since the collective before: {parts}."
    return text + (f" The clocks are sure to {duration(error)}." if np.isfinite(error) else "")


WORDS = {"host": "on its host", "launch": "in launching", "kernels": "in kernels", "copies": "in copies", "profiler": "in the profiler"}


def _places(run: Run, late: Lateness) -> Iterator[Place]:
    program = run.programs[late.program]
    times = {one.instruction: one for one in run.collectives if one.program == program.name}
    for name in late.collectives[:3]:
        one = times.get(name)
        if one is not None:
            yield Place(name, one.time_ns, one.per_step, one.bytes, op_name=one.op_name or None)


def _waited_for(run: Run, members: tuple[Lateness, ...], costs: Ints, shown: int) -> float:
    """What a rank waits for late ones, the mean over its steps; 0 for a late rank itself, whose own findings say what it does."""
    if shown in {one.rank for one in members}:
        return 0.0
    met, come, program = run.meetings, run.arrivals, members[0].program
    rows = np.flatnonzero((met.kernels.rank == shown) & (met.kernels.program == program) & come.counted)
    grid = next(g for g in run.grids if g.program == program)
    steps = int(np.isfinite(grid.late[shown]).sum())
    return float(np.minimum(costs[met.of[rows]], come.waited[rows]).sum()) / steps if steps else 0.0


def waiting_share(run: Run) -> float | None:
    """What a rank waits for others, the mean over ranks and steps of the main program, as a share of its step; None without steps."""
    if not run.grids or not run.grids[0].step_ns or not np.isfinite(run.grids[0].waited).any():
        return None
    return float(np.nanmean(run.grids[0].waited)) / run.grids[0].step_ns
