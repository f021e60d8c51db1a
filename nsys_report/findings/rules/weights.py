"""Weights moved before they are used: converted, merged, sliced or laid out anew in every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nsys_report.fact import Fact
from nsys_report.findings.ledger import work_of
from nsys_report.findings.model import Finding
from nsys_report.findings.overlap import alone_ns
from nsys_report.findings.parts import launches, moved, places
from nsys_report.findings.step import Context, Record, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.words import duration, size

_KINDS = {
    "convert": (
        "weights-converted",
        "Weights are converted into a buffer of their own in every step",
        "Convert inside the product (let the convert fuse into the dot), or store the weights in the type that is multiplied.",
    ),
    "convert and merge": (
        "weights-merged-types",
        "Weights of different types are converted to one and merged in every step",
        "Store them in one type when they are loaded (the small ones in the wider type), or do not merge them.",
    ),
    "concatenate": (
        "weights-merged",
        "Weights are merged into one matrix in every step",
        "Merge them once, when they are loaded, and give the program the merged matrix; or keep the products apart "
        "(XLA merges products that share an operand: --xla_disable_hlo_passes=dot-merger).",
    ),
    "slice": (
        "weights-sliced",
        "Each layer's weights are sliced out of a stacked array in every step",
        "Give the program one array a layer instead of a stack that a loop slices (unroll the scan: scan(..., unroll=N)), or keep the "
        "slice inside the product that reads it.",
    ),
    "relayout": (
        "weights-laid-out",
        "Weights are transposed or laid out anew in every step",
        "Store them in the layout that the product reads: transpose once when they are loaded, or let the compiler choose the arguments' "
        "layouts (jax.experimental.layout, AUTO).",
    ),
    "copy": (
        "weights-copied",
        "Weights are copied into a buffer of their own in every step",
        "Find what keeps the program from reading them where they are: a donated or aliased argument, or a loop that carries them.",
    ),
}
"""By class detail (of conversions that merge as well, both): slug, title and remedy."""


def staged_weights(context: Context, step: Step) -> Iterator[Finding]:
    """Kernels and copies whose results are nothing but model parameters, moved or in another type."""
    for kind, (slug, title, remedy) in _KINDS.items():
        mine = [r for r in step.of("weights") if _kind(step, r) == kind]
        gain = alone_ns(context, step, mine)
        if mine and gain >= threshold("weights", "least_share") * step.kernel_ns:
            yield _staged(step, mine, gain, slug, title, remedy)


def _kind(step: Step, record: Record) -> str:
    detail = record["class_detail"] or ""
    return "convert and merge" if detail == "convert" and _merges(step, record) else detail


def _merges(step: Step, record: Record) -> bool:
    """Whether a fusion concatenates."""
    module = step.module
    instruction = module.instruction(record["hlo_instruction"]) if module is not None else None
    if module is None or instruction is None:
        return False
    return any(
        i.opcode == "concatenate" for name in instruction.called if name in module.by_name for i in module.by_name[name].instructions
    )


def _staged(step: Step, mine: Sequence[Record], gain: float, slug: str, title: str, remedy: str) -> Finding:
    read = sum(r["weight_bytes"] or 0 for r in mine)
    written = _written(step, mine)
    time = sum(step.spent(r) for r in mine)
    copied = f" {size(read)} are read where they are stored, the rest from copies of them." if moved(mine) - written > 1.01 * read else ""
    hidden = f", {duration(time - gain)} of it beside other work" if time - gain > 0.01 * time else ""
    return Finding(
        slug=slug,
        title=f"{title}: {size(moved(mine) - written)} read and {size(written)} written",
        why=f"This takes {duration(time)} a step{hidden}, and the product reads the new buffer: the weights cross the memory three "
        f"times.{copied}",
        remedy=remedy,
        confidence="likely",
        basis="The time in which nothing else ran on the device",
        claims=work_of(step, mine),
        gain_ns=gain,
        facts=(
            Fact("time_ns", "time", time, "ns"),
            Fact("alone_ns", "time in which nothing else ran", gain, "ns"),
            Fact("read_bytes", "weights read", read, "bytes"),
            Fact("written_bytes", "written", written, "bytes"),
            Fact("launches", "kernels and copies", launches(step, mine), "count"),
        ),
        places=places(step, mine),
    )


def _written(step: Step, mine: Sequence[Record]) -> float:
    """Bytes of the buffers that these instructions write in a step; without a module, all that is not weights read."""
    total = 0.0
    for record in mine:
        instruction = step.module.instruction(record["hlo_instruction"]) if step.module is not None else None
        moves, read = record["bytes_accessed"] or 0, record["weight_bytes"] or 0
        if instruction is None:
            total += moves - read
            continue
        shape = next(instruction.shape.leaves) if instruction.opcode == "copy-start" else instruction.shape  # the rest is what it reads
        total += min(shape.byte_size * record["launches_per_execution"], moves)
    return total
