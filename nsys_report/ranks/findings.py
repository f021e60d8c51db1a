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
    """The ranks that cost the run time, the costliest first. `shown` is the rank whose step is shown beside them: what it waits for a
    late rank is the part of its step that the finding explains."""
    return tuple(
        _late(run, late, shown) for late in run.late if _mean_loss(run, late) >= threshold("ranks", "least_loss_share") * _step(run, late)
    )


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


def _mean_loss(run: Run, late: Lateness) -> float:
    return late.lost_ns / late.of if late.of else 0.0


def _late(run: Run, late: Lateness, shown: int | None) -> Finding:
    number, step, loss = run.ranks[late.rank].number, _step(run, late), _mean_loss(run, late)
    program = run.programs[late.program]
    cause = cause_of(late, float(run.kernel_ratio[late.rank]), bool(run.is_uniform[late.rank]))
    category = late.causes[0][0] if late.causes else ""
    where = late.collectives[0] if late.collectives else "its collectives"
    remedy = REMEDIES.get(category, OTHERWISE).format(rank=number, where=where)
    explained = _waited_for(run, late, shown) if shown is not None else loss
    own = program.runs[shown if shown is not None else late.rank]
    error = float(run.clocks.error_ns[run.ranks[late.rank].capture])
    return Finding(
        slug="rank-late",
        title=f"Rank {number} arrives {duration(late.median_ns)} late {how_often(late)}" + (f": {cause}" if cause else ""),
        why=_why(run, late, error),
        remedy=remedy,
        confidence="sure" if cause and len(late.steps) > 2 and late.median_ns > 10 * error else "likely",
        basis="How much later it came than the median of the other ranks where it came last, over all steps",
        facts=(
            Fact("rank", "rank", number, "number"),
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
        total_gain_ns=late.lost_ns,
    )


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


def _waited_for(run: Run, late: Lateness, shown: int) -> float:
    """What a rank waits for a late one, the mean over its steps; 0 for the late rank itself, whose own findings say what it does."""
    if shown == late.rank:
        return 0.0
    met, come = run.meetings, run.arrivals
    cost = come.is_last & (come.late > 0) & (met.kernels.rank == late.rank) & (met.kernels.program == late.program)
    lateness = np.zeros(len(met), np.int64)
    lateness[met.of[cost]] = come.late[cost]
    rows = np.flatnonzero((met.kernels.rank == shown) & (met.kernels.program == late.program) & come.counted)
    rows = rows[np.isin(met.step[rows], late.steps)]
    grid = next(g for g in run.grids if g.program == late.program)
    steps = int(np.isfinite(grid.late[shown]).sum())
    return float(np.minimum(lateness[met.of[rows]], come.waited[rows]).sum()) / steps if steps else 0.0


def waiting_share(run: Run) -> float | None:
    """What a rank waits for others, the mean over ranks and steps of the main program, as a share of its step; None without steps."""
    if not run.grids or not run.grids[0].step_ns or not np.isfinite(run.grids[0].waited).any():
        return None
    return float(np.nanmean(run.grids[0].waited)) / run.grids[0].step_ns
