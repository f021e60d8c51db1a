"""The capture itself: damaged, disturbed by the profiler, or full of autotuning."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from nsys_report.fact import Fact
from nsys_report.findings.model import Finding
from nsys_report.findings.step import Context, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.words import count, duration, share


def damaged(context: Context) -> Iterator[Finding]:
    """A capture from which nothing can be said of the device's work."""
    for item in context.health.items:
        if item.severity == "fatal":
            yield Finding(
                slug=f"damaged-{item.slug}",
                title=f"This capture cannot be trusted: {item.text}",
                why="What the device did is not in it, so that idle time, kernel times and shares would mislead. They are not judged.",
                remedy=f"{item.remedy[:1].upper()}{item.remedy[1:]}." if item.remedy else "Capture again.",
                confidence="sure",
                basis="The capture's own records",
                to_capture=item.remedy,
                damage=True,
            )


def whole_graphs(context: Context) -> Iterator[Finding]:
    """Graphs recorded whole: their time is known, and nothing of what is inside."""
    if context.health.graph_mode == "graph" and not context.health.is_damaged:
        yield Finding(
            slug="graphs-whole",
            title="CUDA graphs are recorded whole: when they ran is known, their kernels are not",
            why="No kernel can be joined to an instruction, so nothing can be said of what takes a step's time on the device.",
            remedy="Capture again with nsys profile --cuda-graph-trace=node.",
            confidence="sure",
            basis="The capture's own records",
            to_capture="capture again with --cuda-graph-trace=node",
        )


def profiler(context: Context, step: Step) -> Iterator[Finding]:
    """The profiler's own work in a good part of the steps, and what the tracing of single graph nodes adds to their launches."""
    time, tracing = step.of_category("profiler"), step.part(("profiler", "node_tracing"))
    if time < threshold("capture", "profiler_share") * step.wall_ns:
        return
    nodes = f", {duration(tracing)} of it because every node of a graph is traced by itself" if tracing else ""
    less = "once more with --cuda-graph-trace=graph for the launches as they are, and " if tracing else ""
    yield Finding(
        slug="profiler-overhead",
        title=f"The profiler itself holds the GPU up {duration(time)} of each step",
        why=f"That is {share(time / step.wall_ns)} of the step{nodes}. Without the profiler the step is that much shorter.",
        remedy="Nothing in the program: take this time off when steps are compared with runs that nobody traced.",
        confidence="sure",
        basis="The profiler's own record of its overhead"
        + ("; a node's tracing as measured on an H200 (node and graph trace of the same program)" if tracing else ""),
        claims={source: 1.0 for source, account in step.accounts.items() if account.row[0] == "profiler"},
        gain_ns=0.0,
        facts=(Fact("time_ns", "time", time, "ns"), Fact("node_tracing_ns", "of it tracing nodes", tracing, "ns")),
        to_capture=f"capture {less}with less in it: -t cuda,nvtx -s none --cpuctxsw=none, fewer steps",
    )


def autotuning(context: Context) -> Iterator[Finding]:
    """Kernels that the autotuner ran inside the window."""
    coverage = context.results.coverage
    tuned = coverage.filter(pc.equal(coverage["scope"].cast("string"), "autotuning"))
    whole = coverage.filter(pc.equal(coverage["scope"].cast("string"), "total"))
    time, total = (pc.sum(t["kernel_time_ns"]).as_py() or 0 for t in (tuned, whole))
    if context.health.is_damaged or not time or time < threshold("capture", "autotuning_share") * total:
        return
    number = pc.sum(tuned["kernels"]).as_py()
    yield Finding(
        slug="autotuning-inside",
        title=f"{share(time / total)} of the kernel time is autotuning: {count(number)} kernels, {duration(time)}",
        why="XLA tries candidates when it compiles; they belong to no program's execution.",
        remedy="Keep the autotuner's results (--xla_gpu_per_fusion_autotune_cache_dir=DIR) or compiled programs "
        "(jax_compilation_cache_dir); start the capture after the warm-up.",
        confidence="sure",
        basis="Kernels in ranges without a program",
        facts=(Fact("kernels", "kernels", number, "count"), Fact("time_ns", "time", time, "ns")),
        stake_ns=float(time),
    )


def idle_device(context: Context) -> Iterator[Finding]:
    """A device that is mostly idle, in a capture without programs that would say more."""
    if context.steps or context.health.is_damaged or len(context.results.modules):
        return
    for device in context.results.devices.to_pylist():
        idle, span, kernels = device["idle_time_ns"], device["span_ns"], device["kernels"]
        if not kernels or idle < threshold("capture", "idle_share") * span:
            continue
        yield Finding(
            slug="device-idle",
            title=f"GPU {device['device_id']} is idle {share(idle / span)} of the time between its first and last activity",
            why=f"{count(kernels)} kernels of {duration(device['kernel_time_ns'] / kernels)} on average leave {duration(idle)} of "
            f"{duration(span)}: work comes more slowly than the device does it.",
            remedy="Launch ahead (read results later, take synchronizing calls out of the loop), use CUDA graphs or larger kernels.",
            confidence="sure",
            basis="Time without any activity on the device",
            facts=(
                Fact("idle_ns", "idle", idle, "ns"),
                Fact("span_ns", "first to last activity", span, "ns"),
                Fact("kernels", "kernels", kernels, "count"),
            ),
        )
