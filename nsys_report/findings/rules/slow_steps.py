"""Executions that take longer than the rest of their program's: how often they come, and what in them is longer.

The typical step holds nothing of them, so that they claim none of it: they are ranked by what they take over the capture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nsys_report.analysis.idle.causes import CAUSES
from nsys_report.analysis.program_rows import rows_of_program
from nsys_report.fact import Fact
from nsys_report.findings.model import Finding
from nsys_report.findings.parts import places
from nsys_report.findings.step import Context, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.words import count, duration

LEAST = 2
"""A single slow execution is an accident, or the first of its capture."""


@dataclass(frozen=True, slots=True)
class SlowOnes:
    """The executions of a program that stand out by one measure (schemas repeats.REPEATS and SLOW)."""

    ids: tuple[int, ...]
    """Of those that are listed, in their order."""
    number: int
    of: int
    excess_ns: float
    """Their time above the median, together."""
    every: int | None
    """The distance in executions, where it is the same between any two of three or more."""

    @property
    def how_often(self) -> str:
        """How many of how many, and how often."""
        often = f", one in every {count(self.every)}," if self.every else ""
        return f"{count(self.number)} of {count(self.of)} executions{often}"

    @property
    def each_ns(self) -> float:
        """What one of them takes above the median, on average."""
        return self.excess_ns / self.number

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Their figures."""
        return (
            Fact("executions", "slow executions", self.number, "count"),
            Fact("every", "one in so many", self.every, "count"),
            Fact("each_ns", "more in each", self.each_ns, "ns"),
            Fact("excess_ns", "more in all of them", self.excess_ns, "ns"),
        )


def slow_executions(context: Context, step: Step) -> Iterator[Finding]:
    """Executions whose kernels take longer than in the others, and the instruction that does."""
    slow = slow_ones(context, step, "kernel_time_ns")
    if slow is None:
        return
    above: dict[str, float] = {}
    for row in _rows(context, step, "kernel_time_ns"):
        if row["hlo_instruction"] is not None:
            above[row["hlo_instruction"]] = above.get(row["hlo_instruction"], 0.0) + row["instruction_excess_ns"]
    name = max(above, key=above.__getitem__, default=None)
    most = min(above[name], slow.excess_ns) if name is not None else 0.0
    mine = step.where(lambda r: r["hlo_instruction"] == name) if 2 * most >= slow.excess_ns else []
    waits = any(record["class_detail"] == "collective" for record in mine)
    yield Finding(
        slug="slow-executions",
        title=f"{slow.how_often} take {duration(slow.each_ns)} longer than the others" + (f", in {name}" if mine else ""),
        why=f"{name} takes {duration(most)} of the {duration(slow.excess_ns)} that they are longer in all."
        if mine
        else f"No instruction takes half of the {duration(slow.excess_ns)} that they are longer in all: many kernels are slower at once.",
        remedy="A collective waits until the last device has come: look at the other ranks' captures for the one that begins these "
        "executions late, and at what its host does before them."
        if waits
        else "Compare what these executions are given with the others' inputs: sizes, indices that collide, branches taken."
        if mine
        else "Look for what slows the whole device then: another process on the GPU, or its clock (nvidia-smi -q -d PERFORMANCE).",
        confidence="sure" if mine else "possible",
        basis="Kernel time above the median of the program's executions; no part of the typical step",
        facts=(*slow.facts, Fact("instruction", "mostly in", name if mine else None)),
        places=places(step, mine),
        stake_ns=slow.excess_ns,
    )


def late_executions(context: Context, step: Step) -> Iterator[Finding]:
    """Executions before which the device is idle for longer than before the others, and why."""
    slow = slow_ones(context, step, "host_gap_ns")
    if slow is None:
        return
    cause, most = _cause(context, step, slow)
    yield Finding(
        slug="late-executions",
        title=f"Before {slow.how_often} the GPU is idle {duration(slow.each_ns)} longer than before the others",
        why=f"Mostly ({duration(most)} of it): {CAUSES[cause].about}.",
        remedy="Look for what the program does on the host only then (logging, a checkpoint, the next batch, garbage collection), and do "
        "it on another thread, ahead of time or less often."
        if CAUSES[cause].category == "host"
        else "Look for what is different in these steps: what they copy, compile or launch that the others do not.",
        confidence="sure",
        basis="Host gap above the median of the program's executions; no part of the typical step",
        facts=(*slow.facts, Fact("cause", "mostly", CAUSES[cause].key)),
        to_capture="name the phases of the host with NVTX ranges, or sample it (-t cuda,nvtx,osrt --python-sampling=true)",
        stake_ns=slow.excess_ns,
    )


def slow_ones(context: Context, step: Step, measure: str) -> SlowOnes | None:
    """The executions that stand out by a measure; None where there are not two, or they take too little over the capture."""
    key = (step.key.hlo_module, step.key.program_id)
    for row in context.results.repeats.to_pylist():
        if (row["hlo_module"], row["program_id"], row["measure"]) != (*key, measure) or row["slow_executions"] < LEAST:
            continue
        if row["slow_excess_ns"] < threshold("programs", "least_slow_share") * step.wall_ns * row["executions"]:
            return None
        ids = sorted({one["execution_id"] for one in _rows(context, step, measure)})
        every = _every(context, step, ids) if len(ids) == row["slow_executions"] else None
        return SlowOnes(tuple(ids), row["slow_executions"], row["executions"], float(row["slow_excess_ns"]), every)
    return None


def _rows(context: Context, step: Step, measure: str) -> list[dict[str, Any]]:
    rows = rows_of_program(context.results.slow, step.key.hlo_module, step.key.program_id).to_pylist()
    return [row for row in rows if row["measure"] == measure]


def _every(context: Context, step: Step, ids: list[int]) -> int | None:
    """The distance between executions in the program's order, where it is the same between any two neighbors of three or more."""
    runs = context.view.executions
    mine = runs.id[runs.module == step.number][np.argsort(runs.start[runs.module == step.number], kind="stable")]
    between = np.diff(np.flatnonzero(np.isin(mine, ids)))
    return int(between[0]) if len(between) > 1 and between[0] > 1 and (between == between[0]).all() else None


def _cause(context: Context, step: Step, slow: SlowOnes) -> tuple[int, float]:
    """The cause (index in CAUSES) by which their host gaps exceed the median most, and by how much on average."""
    parts, runs = context.results.gap_parts, context.view.executions
    times = np.stack([np.asarray(parts[f"{cause.key}_ns"].fill_null(0).to_numpy(), np.float64) for cause in CAUSES], axis=1)
    mine, far = runs.module == step.number, np.isin(runs.id, slow.ids)
    above = times[far].mean(axis=0) - np.median(times[mine], axis=0)
    return int(above.argmax()), float(above.max())
