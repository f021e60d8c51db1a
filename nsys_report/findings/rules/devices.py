"""Devices and threads that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nsys_report.analysis.arrays.view import ints
from nsys_report.fact import Fact
from nsys_report.findings.ledger import all_of, work_of
from nsys_report.findings.model import Finding
from nsys_report.findings.overlap import alone_ns
from nsys_report.findings.parts import launches, moved, places
from nsys_report.findings.step import Context, Record, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.intervals import Ints, intersect, length, union, union_of, within
from nsys_report.words import count, duration, share, size, things


def exposed_collectives(context: Context, step: Step) -> Iterator[Finding]:
    """Collectives during which nothing else runs on their device."""
    mine = step.of("other", "collective")
    alone = alone_ns(context, step, mine)
    if not mine or alone < threshold("devices", "least_share") * step.wall_ns:
        return
    time, number = sum(step.spent(r) for r in mine), launches(step, [r for r in mine if r["activity"] == "kernel"])
    beside = _independent_ns(step, mine)
    waiting = _waiting_for_others(context, step, [r["instruction_id"] for r in mine])
    late = f" Of that, {duration(waiting)} pass before the last device has begun the same collective." if waiting is not None else ""
    yield Finding(
        slug="collectives-exposed",
        title=f"{things(number, 'collective')} {'takes' if number == 1 else 'take'} {duration(time)} of each step, with nothing beside "
        f"for {duration(alone)}",
        why=f"{size(moved(mine))} are moved in an execution; computation that needs the result waits.{late}{_room(alone, beside)}",
        remedy=_remedy(step, beside),
        confidence="possible",
        basis="Their time in which no other kernel ran on the device; how much of it can be hidden depends on the program",
        claims=work_of(step, mine),
        gain_ns=alone,
        facts=(
            Fact("collectives", "collectives", number, "count"),
            Fact("time_ns", "their time", time, "ns"),
            Fact("alone_ns", "with nothing beside them", alone, "ns"),
            Fact("independent_ns", "work that could run beside them", beside, "ns"),
            Fact("waiting_ns", "waiting for the last device", waiting, "ns"),
            Fact("bytes", "bytes", moved(mine), "bytes"),
        ),
        places=places(step, mine),
    )


def _independent_ns(step: Step, mine: Sequence[Record]) -> float | None:
    """The time of kernels that neither need a collective's result nor are needed for it, for the one with most of it; None without HLO."""
    flow = step.flow
    if flow is None:
        return None
    spent = {record["hlo_instruction"]: step.spent(record) for record in step.instructions if record not in mine}
    tied = [flow.tied(record["hlo_instruction"]) for record in mine]
    return max((sum(time for name, time in spent.items() if name not in names) for names in tied), default=0.0)


def _room(alone: float, beside: float | None) -> str:
    if beside is None:
        return ""
    if beside < SERIAL * alone:
        return " Everything before it is needed for it and everything after it needs it: nothing in the program could run meanwhile."
    return f" {duration(beside)} of other kernels depend on none of that, and could run meanwhile."


SERIAL = 0.05
"""Of the collectives' time alone: with less independent work than that, a program is a chain in which nothing can hide them."""


def _remedy(step: Step, beside: float | None) -> str:
    """What fits the program: overlapping only where there is work to overlap with, and the scheduler only where it is off."""
    alone = sum(step.spent(record) for record in step.of("other", "collective"))
    hides = beside is None or beside >= SERIAL * alone
    scheduler = (
        "" if step.flag("xla_gpu_enable_latency_hiding_scheduler") == "true" else " (--xla_gpu_enable_latency_hiding_scheduler=true)"
    )
    parts = [f"Overlap them with work that does not need their result{scheduler}"] if hides else []
    parts += ["merge small ones", "shard so that fewer are needed"]
    parts += [] if hides else ["split the batch in two halves, so that one half computes while the other's collective runs"]
    text = f"{', '.join(parts[:-1])}, or {parts[-1]}; devices that arrive late are a matter of balance and of dispatch."
    return text[:1].upper() + text[1:]


def _waiting_for_others(context: Context, step: Step, instructions: list[int]) -> float | None:
    """From a device's start of a collective to the last device's, a step; None where executions on devices do not pair up."""
    view, chosen = context.view, context.in_step(step)
    devices = np.unique(view.device[chosen])
    if len(devices) < 2:
        return None
    waited, steps = 0.0, 0
    for instruction in instructions:
        starts = [view.start[chosen & (view.instruction == instruction) & (view.device == device)] for device in devices]
        if len({len(s) for s in starts}) != 1:
            return None
        together = np.stack(starts)
        waited += float((together.max(axis=0) - together).sum())
        steps = max(steps, together.size)
    return waited / steps if steps else None


def other_threads(context: Context, step: Step) -> Iterator[Finding]:
    """Executions that were launched and had to wait while the device ran another thread's."""
    waited, runs = _waited_for_others(context, step)
    mean = float(waited.mean()) if len(waited) else 0.0
    if mean < threshold("programs", "least_gain_share") * step.wall_ns:
        return
    affected = int((waited > 0).sum())
    yield Finding(
        slug="waits-for-other-thread",
        title=f"{count(affected)} of {count(runs)} executions wait for another thread's, {duration(waited[waited > 0].mean())} each",
        why=f"Two or more host threads launch on one device, which runs their executions one after the other: on average an execution "
        f"starts {duration(mean)} later than it could.",
        remedy="If latency matters, give the programs a device each or one queue that decides the order; if throughput does, this is the "
        "device being busy and no loss.",
        confidence="sure",
        basis="From the return of the launching call to the start on the device, as far as another thread's kernels ran then; the mean",
        claims=all_of(step, ("other_executions", "kernels")),
        gain_ns=mean,
        facts=(
            Fact("mean_ns", "wait on average", mean, "ns"),
            Fact("executions", "executions that waited", affected, "count"),
            Fact("each_ns", "one of those", float(waited[waited > 0].mean()), "ns"),
        ),
    )


def shared_gpu(context: Context, step: Step) -> Iterator[Finding]:
    """Kernels of other processes on the GPU that a program runs on."""
    view, row = context.view, ("other_executions", "kernels")
    mine = view.executions.device[(view.executions.module == step.number) & view.executions.complete]
    time = step.part(row)
    if not view.shared.intersection(mine.tolist()) or time < threshold("programs", "least_gain_share") * step.wall_ns:
        return
    processes = len({gpu.process_id for gpu in context.joined.capture.info.gpus if gpu.gpu_id is not None})
    beside = side_by_side(context)
    together = beside >= threshold("devices", "side_by_side")
    yield Finding(
        slug="gpu-shared",
        title=f"The GPU works for other processes for {duration(time)} of each {duration(step.wall_ns)} step",
        why=f"{count(processes)} processes of this capture use the same GPU, which runs their kernels "
        + (f"side by side, as under MPS: {share(beside)} of the time of the one that works least." if together else "in turn."),
        remedy="Give each process a GPU of its own, or let them run one after the other"
        + (
            "; side by side they share its memory's bandwidth and its multiprocessors."
            if together
            else "; under MPS kernels of several processes can run side by side where none fills the GPU."
        ),
        confidence="likely",
        basis="Kernels of no execution of this program within its steps, on a GPU that several processes use",
        claims=all_of(step, row),
        gain_ns=time,
        facts=(
            Fact("time_ns", "kernels of others", time, "ns"),
            Fact("processes", "processes on the GPU", processes, "count"),
            Fact("side_by_side", "of the least one's time beside others'", beside, "ratio"),
        ),
    )


def side_by_side(context: Context) -> float:
    """The share of its busy time in which the least busy process of a shared GPU runs beside another; the most over such GPUs.

    Without MPS a GPU gives each process all of itself for a while, so that kernels of two hardly ever run at a time.
    """
    view, found = context.view, 0.0
    process = ints(context.joined.activities, "process_id", missing=-1)[0]
    for device in view.shared:
        here = view.kernel & (view.device == device)
        each = [union(view.start[here & (process == one)], view.end[here & (process == one)]) for one in np.unique(process[here]).tolist()]
        for mine in each:
            others = union_of(*(one for one in each if one is not mine))
            found = max(found, length(intersect(mine, others)) / length(mine)) if len(each) > 1 and length(mine) else found
    return found


def _waited_for_others(context: Context, step: Step) -> tuple[Ints, int]:
    """For each complete execution the time between its launch and its start in which other threads' kernels ran, ns."""
    view = context.view
    runs = view.executions
    threads = np.unique(runs.thread[runs.thread >= 0])
    if len(threads) < 2:
        return np.empty(0, np.int64), 0
    returned, known = ints(context.joined.activities, "launch_end_ns")
    mine = np.flatnonzero(context.in_step(step) & known)
    first = mine[np.unique(view.execution[mine], return_index=True)[1]]
    waited = np.zeros(len(first), np.int64)
    thread = np.append(runs.thread, -1)[view.execution]
    for device in np.unique(view.device[first]):
        for one in np.unique(thread[first]):
            here = (view.device[first] == device) & (thread[first] == one)
            others = view.kernel & (view.device == device) & (thread != one) & (view.execution >= 0)
            waited[here] = within(union(view.start[others], view.end[others]), returned[first[here]], view.start[first[here]])
    return waited, len(first)
