"""Arguments that live in the host's memory and are brought in by the program itself."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_mapping import HOST_MEMORY
from nsys_report.fact import Fact
from nsys_report.findings.ledger import all_of, claimed_ns
from nsys_report.findings.model import Finding
from nsys_report.findings.step import Context, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.intervals import grouped_union_length
from nsys_report.words import duration, share, size


def offloaded_arguments(context: Context, step: Step) -> Iterator[Finding]:
    """Weights or caches kept in host memory, which every execution copies to the device before it computes with them."""
    held = _in_host_memory(step)
    chosen = context.in_step(step) & context.view.column("copy_kind").isin(frozenset({"HtoD"}))
    up = float(context.view.cost("bytes")[0][chosen].sum()) / step.executions
    if not held or up < threshold("host", "least_input_bytes"):
        return
    view = context.view
    time = grouped_union_length(view.device[chosen], view.start[chosen], view.end[chosen], len(view.devices)).sum() / step.executions
    claims = all_of(step, ("copies", "to_device"))
    exposed = min(claimed_ns(step, claims), time)
    if not exposed:
        return
    yield Finding(
        slug="arguments-in-host-memory",
        title=f"{size(up)} of arguments kept in host memory cross to the device in every step",
        why=(
            f"The program brings them in by itself: {duration(time)} a step at {size(up * 1e9 / time)} a second, "
            f"{share(exposed / time)} of it while no kernel runs; the kernels take {duration(step.busy_ns)}."
        ),
        remedy=(
            "Keep in device memory what fits (memory_kind='device'), or store it narrower; for the rest start each copy a layer ahead, so "
            "that it runs beside the layer before. The link is the floor of what stays outside."
        ),
        confidence="sure",
        basis="Copies within executions to arguments that the module holds in host memory, as far as nothing hides them",
        claims=claims,
        gain_ns=claimed_ns(step, claims),
        facts=(
            Fact("up_bytes", "to the device", up, "bytes"),
            Fact("argument_bytes", "arguments in host memory", held, "bytes"),
            Fact("time_ns", "time of the copies", time, "ns"),
            Fact("exposed_ns", "of it with nothing beside", exposed, "ns"),
        ),
    )


def _in_host_memory(step: Step) -> int:
    """Bytes of the program's arguments in host memory."""
    arrays = [leaf for p in step.module.entry.parameters for leaf in p.shape.leaves] if step.module is not None else []
    return sum(a.byte_size for a in arrays if a.layout is not None and a.layout.memory_space == HOST_MEMORY)
