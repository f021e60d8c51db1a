"""Nodes of CUDA graphs that choose what runs next."""

from __future__ import annotations

from collections.abc import Iterator

from nsys_report.fact import Fact
from nsys_report.findings.ledger import all_of, claimed_ns
from nsys_report.findings.model import Finding
from nsys_report.findings.step import Context, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.units import duration

CHOOSING = ("idle", "conditional_nodes")


def conditional_nodes(context: Context, step: Step) -> Iterator[Finding]:
    """Time in which the device chooses a graph's branch, or whether its loop goes on."""
    claims = all_of(step, CHOOSING)
    time = claimed_ns(step, claims)
    if time < threshold("launches", "least_choice_share") * step.wall_ns:
        return
    yield Finding(
        slug="conditional-nodes",
        title=f"Conditional nodes of a CUDA graph leave the GPU idle {duration(time)} of each step",
        why="Before each branch and each iteration of a loop inside a graph, a small kernel sets a condition and the device then "
        "chooses what "
        "runs next; nothing else runs meanwhile.",
        remedy="Ask less often: take the branch every so many iterations (where a list or a table is rebuilt, a wider margin makes that "
        "rarer), "
        "do more in each iteration, or replace a cheap branch by a select.",
        confidence="possible",
        basis="Idle time beside the kernels that set conditions",
        claims=claims,
        gain_ns=time,
        facts=(Fact("time_ns", "idle while choosing", time, "ns"),),
    )
