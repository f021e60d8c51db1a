"""Loops of which each iteration is launched anew, though it is short."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nsys_report.analysis.arrays.rows import LoopRow
from nsys_report.analysis.arrays.view import ints
from nsys_report.fact import Fact
from nsys_report.findings.ledger import claimed_ns
from nsys_report.findings.model import Finding
from nsys_report.findings.rules.launches import GRAPHS
from nsys_report.findings.rules.remedies import longer_bodies, loops_of
from nsys_report.findings.step import Context, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.words import count, duration, share, things


def launched_iterations(context: Context, step: Step) -> Iterator[Finding]:
    """Iterations of a loop that are launched as a graph each, while the device waits for the launch."""
    loop = context.loop(step)
    launches = loop["launches_per_iteration"] if loop is not None else None
    if loop is None or not launches or loop["kernels_per_iteration"] < threshold("loops", "least_graph") * launches:
        return  # no loop, or kernels launched one by one: launches.launches says so
    claims = step.inside(*GRAPHS)
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
        remedy=_remedy(step, loop),
        confidence="likely",
        basis="Idle time within executions while graphs are launched, less what the tracing of their nodes takes, of which a longer body "
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


def _remedy(step: Step, loop: LoopRow) -> str:
    if (loop["readbacks_per_iteration"] or 0) >= 0.5:
        return (
            "Do more in each iteration (several steps of the loop's work between two tests of its condition), or give the loop a trip "
            "count that is known when compiling, so that its launches need not wait for the host."
        )
    return longer_bodies(step)


def graphs_apart(context: Context, step: Step) -> Iterator[Finding]:
    """Executions that are launched as several graphs, for each of which the device waits."""
    claims = step.inside(*GRAPHS)
    idle, number = claimed_ns(step, claims), graph_launches(context, step)
    if number < threshold("launches", "least_graphs") or idle < threshold("launches", "least_launch_share") * step.wall_ns:
        return
    loops = [loop.name for loop in loops_of(step)]
    reason = (
        f"Each iteration of its loops ({', '.join(loops[:2])}{' and more' if len(loops) > 2 else ''}) is launched anew"
        if loops
        else "What no graph can hold, such as some calls of libraries, cuts it into parts"
    )
    yield Finding(
        slug="graphs-apart",
        title=f"An execution is {count(round(number))} graph launches: the GPU waits {duration(idle)} of each "
        f"{duration(step.wall_ns)} step for the next",
        why=f"{reason}, and a graph of few kernels is done before the host has launched the next: {duration(idle / number)} idle for each.",
        remedy=longer_bodies(step)
        if loops
        else "Let the graphs take in what is left out between them (--xla_gpu_enable_command_buffer names the kinds of work).",
        confidence="likely",
        basis="Idle time within executions while graphs are launched, less what the tracing of their nodes takes; all of it is an upper "
        "bound",
        claims=claims,
        gain_ns=idle,
        facts=(
            Fact("idle_ns", "idle for the next graph", idle, "ns"),
            Fact("graphs", "graph launches", number, "count"),
            Fact("loops", "loops", ", ".join(loops) or None),
        ),
    )


def graph_launches(context: Context, step: Step) -> float:
    """Launches of graphs in an execution, on average."""
    api = context.view.column("launch_api")
    by_graph = api.isin(frozenset(word for word in api.words if "GraphLaunch" in word))
    begun, known = ints(context.joined.activities, "launch_start_ns")
    return float(len(np.unique(begun[by_graph & known & context.in_step(step)])) / step.executions)
