"""Loops of which each iteration is launched anew, though it is short."""

from __future__ import annotations

from collections.abc import Iterator

from nsys_report.fact import Fact
from nsys_report.findings.ledger import claimed_ns
from nsys_report.findings.model import Finding, Source
from nsys_report.findings.step import Context, Record, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.words import count, duration, share, things

PARTS = ("graph_launch", "launch_latency")
"""Parts of the budget's launching in which the device waits for the next iteration's graph."""


def launched_iterations(context: Context, step: Step) -> Iterator[Finding]:
    """Iterations of a loop that are launched as a graph each, while the device waits for the launch."""
    loop = context.loop(step)
    launches = loop["launches_per_iteration"] if loop is not None else None
    if loop is None or not launches or loop["kernels_per_iteration"] < threshold("loops", "least_graph") * launches:
        return  # no loop, or kernels launched one by one: launches.launches says so
    claims = _claims(context, step)
    idle = claimed_ns(step, claims)
    if loop["iterations"] < threshold("loops", "least_iterations") or idle < threshold("launches", "least_launch_share") * step.wall_ns:
        return
    number = round(loop["iterations"] * launches)
    yield Finding(
        slug="iterations-launched",
        title=f"A loop's {count(loop['iterations'])} iterations are {count(number)} graph launches of their own: the GPU waits "
        f"{duration(idle)} of each {duration(step.wall_ns)} step for the next",
        why=f"An iteration's {count(loop['kernels_per_iteration'])} kernels and copies take {duration(loop['iteration_time_ns'])}, and one "
        f"begins every {duration(loop['period_ns'])}: the GPU is idle for {share(loop['idle_per_iteration_ns'] / loop['period_ns'])} of "
        f"the loop, with the profiler's own work and short pauses among it. In each the host launches "
        f"{things(round(launches), 'graph')}, and is not ahead of the device.",
        remedy=_remedy(loop),
        confidence="likely",
        basis="Idle time within the loop while graphs are launched, less what the tracing of their nodes takes, of which a longer body "
        f"leaves one part in {count(round(threshold('loops', 'unrolled')))}",
        claims=claims,
        gain_ns=idle * (1 - 1 / threshold("loops", "unrolled")),
        facts=(
            Fact("idle_ns", "idle for launches in the loop", idle, "ns"),
            Fact("iterations", "iterations", loop["iterations"], "count"),
            Fact("launches", "launches an iteration", launches, "count"),
            Fact("kernels", "kernels an iteration", loop["kernels_per_iteration"], "count"),
            Fact("period_ns", "from one iteration to the next", loop["period_ns"], "ns"),
            Fact("kernel_ns", "kernels of an iteration", loop["iteration_time_ns"], "ns"),
            Fact("idle_per_iteration_ns", "idle in an iteration, whatever the cause", loop["idle_per_iteration_ns"], "ns"),
        ),
        to_capture="capture once more with --cuda-graph-trace=graph: launches as short as they are without the profiler"
        if step.part(("profiler", "node_tracing"))
        else "",
    )


def _claims(context: Context, step: Step) -> dict[Source, float]:
    """Of the rows of launching the shares that lie within the loop's iterations."""
    inside = context.loop_idle(step)
    found: dict[Source, float] = {}
    for row in (("launch", part) for part in PARTS):
        whole, time = step.mean.get(row, 0.0), inside.get(row, 0.0)
        if whole and time and ("part", *row) in step.accounts:
            found[("part", *row)] = min(time / whole, 1.0)
    return found


def _remedy(loop: Record) -> str:
    if (loop["readbacks_per_iteration"] or 0) >= 0.5:
        return (
            "Do more in each iteration (several steps of the loop's work between two tests of its condition), or give the loop a trip "
            "count that is known when compiling, so that its launches need not wait for the host."
        )
    return (
        "Unroll the loop (scan and fori_loop take unroll=8 or so), so that a graph holds several iterations; or let one graph hold the "
        "whole loop (command buffers of type WHILE: --xla_gpu_enable_command_buffer=+WHILE)."
    )
