"""Findings about how XLA combined a run's collectives: arrays that wait for each other, scalars among gradients, many small ones.

XLA's combiners (xla/service/all_reduce_combiner.cc and its kin) join collectives of one kind up to a number of bytes, a flag for each kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hlo_mapping import Collective
from nsys_report.fact import Fact
from nsys_report.findings.model import Finding, Place
from nsys_report.findings.thresholds import threshold
from nsys_report.ranks.bandwidth import CollectiveTime
from nsys_report.ranks.run import Run
from nsys_report.units import count, duration, size, things

FLAGS = {
    "all-reduce": "xla_gpu_all_reduce_combine_threshold_bytes",
    "all-gather": "xla_gpu_all_gather_combine_threshold_bytes",
    "reduce-scatter": "xla_gpu_reduce_scatter_combine_threshold_bytes",
}
"""What bounds the bytes of a combined collective (xla/xla.proto, DebugOptions)."""
SCALAR, LARGE, SMALL = 64, 1 << 20, 1 << 18
"""Bytes: up to that an array is a loss, a norm or a counter; from there on a collective takes longer than its latency; up to that not."""


def combining_findings(run: Run) -> Iterator[Finding]:
    """Findings about the main program's collectives. None explains time: what they take is the collectives' own."""
    if not run.grids:
        return
    grid = run.grids[0]
    program = run.programs[grid.program]
    times = {one.instruction: one for one in run.collectives if one.program == program.name}
    known = [(c, times[c.instruction]) for c in program.collectives if c.instruction in times]
    for found in (*_scalars(known), *_exposed(known, grid.step_ns), *_small(run, known, grid.step_ns)):
        yield _of(run, found, grid.step_ns)


def _of(run: Run, finding: Finding, step_ns: float) -> Finding:
    program = run.programs[run.grids[0].program]
    first = next(r for r in program.runs if r is not None)
    share = finding.gain_ns / step_ns if finding.gain_ns and step_ns else None
    steps = run.grids[0].late.shape[1]
    total = (finding.gain_ns or 0.0) * steps
    return replace(finding, hlo_module=program.name, program_id=first.number, executions=steps, share=share, total_gain_ns=total)


def _scalars(known: list[tuple[Collective, CollectiveTime]]) -> Iterator[Finding]:
    """Scalars that were combined with large arrays."""
    for c, time in known:
        if c.operands > 1 and (c.bytes or 0) >= LARGE and c.least_operand_bytes is not None and c.least_operand_bytes <= SCALAR:
            yield Finding(
                slug="scalar-in-collective",
                title=f"A scalar rides in {c.instruction}, an {c.kind} of {size(c.bytes or 0)}: who reads it waits for all of that",
                why=f"XLA combined {things(c.operands, 'array')} into one collective, the smallest of {size(c.least_operand_bytes)}, as a "
                "loss or a gradient's norm is. It would arrive after some microseconds by itself, and takes "
                f"{duration(time.moving_ns)} so, after the last gradient is known.",
                remedy="If the host reads the loss in each step, reduce it apart: read it a step later, or lower "
                f"{_flag(c.kind)} so that it is not combined.",
                confidence="possible",
                basis="The sizes of the collective's arrays; what the host would gain depends on when it reads the scalar",
                facts=(Fact("bytes", "bytes", c.bytes, "bytes"), Fact("moving_ns", "moving", time.moving_ns, "ns")),
                places=(_place(c, time),),
                to_capture="the same run with the scalar reduced apart",
                tried="untried",
                stake_ns=time.moving_ns,
            )


def _exposed(known: list[tuple[Collective, CollectiveTime]], step_ns: float) -> Iterator[Finding]:
    """Combined collectives that move with nothing beside them: their first array could be there sooner."""
    found = [(c, time, alone) for c, time in known if c.operands > 1 and (c.bytes or 0) >= LARGE and (alone := _alone(time))]
    gains = [alone * (1 - 1 / c.operands) for c, _, alone in found]
    if sum(gains) < threshold("ranks", "least_combining_share") * step_ns:
        return
    found = [one for _, one in sorted(zip(gains, found, strict=True), key=lambda pair: -pair[0])]
    arrays, alone = sum(c.operands for c, *_ in found), sum(alone for *_, alone in found)
    flags = " and ".join(dict.fromkeys(_flag(c.kind) for c, *_ in found))
    yield Finding(
        slug="combined-collective-exposed",
        title=f"{things(len(found), 'combined collective')} of {count(arrays)} arrays {'moves' if len(found) == 1 else 'move'} alone for "
        f"{duration(alone)} of each step",
        why=f"{size(sum(c.bytes or 0 for c, *_ in found))} move; all arrays of one must be there before the first kernel that needs any.",
        remedy=f"Lower {flags}, so that the array needed first arrives sooner and the others beside kernels; with the latency-hiding "
        "scheduler (--xla_gpu_enable_latency_hiding_scheduler=true).",
        confidence="possible",
        basis="Their time without other kernels and without waiting for ranks, less an equal part for the array needed first",
        facts=(
            Fact("collectives", "collectives", len(found), "count"),
            Fact("arrays", "arrays", arrays, "count"),
            Fact("alone_ns", "with nothing beside", alone, "ns"),
        ),
        places=tuple(_place(c, time) for c, time, _ in found[:3]),
        place_count=len(found),
        gain_ns=sum(gains),
        tried="untried",
    )


def _alone(time: CollectiveTime) -> float:
    """What one moves with no other kernel on the device, in a step, ns: waiting for ranks is none of it."""
    return max(min(time.exposed_ns - time.waiting_ns, time.moving_ns * time.per_step), 0.0)


def _small(run: Run, known: list[tuple[Collective, CollectiveTime]], step_ns: float) -> Iterator[Finding]:
    """Small collectives of one kind, none of which needs another: each takes its latency, together they would take one."""
    chains = run.programs[run.grids[0].program].tied
    for kind in dict.fromkeys(c.kind for c, _ in known):
        members: list[tuple[Collective, CollectiveTime]] = []
        for c, time in known:
            tied = chains.get(c.instruction)
            small = c.kind == kind and c.bytes is not None and c.bytes <= SMALL
            if small and tied is not None and not tied & {m.instruction for m, _ in members}:
                members.append((c, time))
        moving = [time.moving_ns * time.per_step for _, time in members]
        gain = float(np.sum(moving)) - max(moving, default=0.0)
        largest = max((c.bytes or 0 for c, _ in members), default=0)
        if len(members) > 2 and kind in FLAGS and gain >= threshold("ranks", "least_combining_share") * step_ns:
            yield Finding(
                slug="small-collectives",
                title=f"{count(len(members))} {kind}s of up to {size(largest)} run one by one, and none needs another",
                why=f"Each takes about its latency; {duration(float(np.sum(moving)))} a step together.",
                remedy=f"Raise {_flag(kind)}, or reduce one array that holds them all.",
                confidence="possible",
                basis="What they take beyond the longest of them; those that need each other's results are not counted",
                facts=(Fact("collectives", "collectives", len(members), "count"), Fact("moving_ns", "moving", float(np.sum(moving)), "ns")),
                places=tuple(_place(c, time) for c, time in members[:3]),
                place_count=len(members),
                gain_ns=gain,
                tried="untried",
            )


def _flag(kind: str) -> str:
    return f"--{FLAGS[kind]}" if kind in FLAGS else "the combiner's threshold"


def _place(c: Collective, time: CollectiveTime) -> Place:
    return Place(c.instruction, time.time_ns, time.per_step, c.bytes, op_name=c.op_name or None)
