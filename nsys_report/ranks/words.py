"""What a rank's lateness is, in words."""

from __future__ import annotations

from nsys_report.analysis.idle.causes import CAUSES
from nsys_report.ranks.lateness import KERNELS, Lateness
from nsys_report.units import count, share, things

ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 9: "ninth", 10: "tenth"}
ABOUT = {cause.key: cause.about for cause in CAUSES} | {
    KERNELS: "its kernels take longer",
    "host_work": "its host does something else between two calls",
    "xla_dispatch": "its host takes longer to execute the program, in no CUDA call",
    "before_fetch": "its host begins later to fetch the result before",
    "synchronising": "its host stands longer in a synchronizing call",
    "launch_call": "its host takes longer to launch kernels",
    "graph_launch": "its host takes longer to launch the graph",
    "launch_latency": "its kernels start later after their launch",
    "first_kernel_latency": "its first kernel starts later after its launch",
    "compile": "it compiles or loads code",
    "allocation": "its host allocates memory",
    "profiler": "the profiler holds it up",
    "node_tracing": "the profiler holds it up: nodes of a graph are traced one by one",
}
"""The causes of lateness as ends of a sentence; what is not here reads as in analysis.idle.causes."""


def how_often(late: Lateness) -> str:
    """In which steps: every one, every third, or so many."""
    if late.every == 1:
        return "in every step"
    if late.every is not None:
        nth = ORDINALS.get(late.every, f"{late.every}th")
        return f"in every {nth} step"
    return f"in {count(len(late.steps))} of {things(late.of, 'step')}"


def cause_of(late: Lateness, ratio: float, is_uniform: bool) -> str:
    """Where the time was lost; "" where nothing that the capture holds was longer than on other ranks."""
    if late.cause == KERNELS and is_uniform:
        return f"all of its kernels take {share(ratio - 1)} longer, as with a lower clock"
    return ABOUT.get(late.cause, "")
