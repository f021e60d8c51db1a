"""Kernels so small that starting them decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from nsys_report.fact import Fact
from nsys_report.findings.ledger import all_of, work_of
from nsys_report.findings.model import Finding, Source
from nsys_report.findings.parts import launches, moved, places
from nsys_report.findings.step import Context, Record, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.words import count, duration, size

_LAUNCHED = frozenset({"kernel", "memcpy", "memset"})
"""Activities of instructions that can be small: XLA runs a slice or a copy as either a kernel or a copy on the device."""


def small_kernels(context: Context, step: Step) -> Iterator[Finding]:
    """Many kernels that move next to nothing: each takes what a kernel takes at least."""
    every = step.where(lambda r: r["activity"] in _LAUNCHED)
    mine = [r for r in every if is_small(context, r)]
    number, time = launches(step, mine), sum(step.spent(r) for r in mine)
    if number < threshold("kernels", "least_small") or time < threshold("kernels", "least_small_share") * step.kernel_ns:
        return
    least = min(r["time_per_execution_ns"] / r["launches_per_execution"] for r in mine)
    details = Counter[str]()
    for record in mine:
        details[record["class_detail"] or "unknown"] += round(record["launches_per_execution"])
    kinds = ", ".join(f"{n:,} {detail}" for detail, n in details.most_common(4))
    called = "kernels" if all(r["activity"] == "kernel" for r in mine) else "kernels and copies"
    yield Finding(
        slug="small-kernels",
        title=f"{count(round(number))} of {count(round(launches(step, every)))} {called} are so small that starting them is most of "
        "their time",
        why=(
            f"They take {duration(time / number)} each and move {size(moved(mine))} in all, which the memory does in "
            f"{duration(context.bytes_ns(moved(mine)))}: the shortest takes {duration(least)}, for next to nothing ({kinds})."
        ),
        remedy=_remedy(details),
        confidence="possible",
        basis=f"Half of {count(round(number))} launches, each fused with a neighbor, at the {duration(least)} of the shortest of them",
        claims=work_of(step, mine),
        gain_ns=min(number / 2 * least, time),
        facts=(
            Fact("kernels", "small kernels", number, "count"),
            Fact("time_ns", "their time", time, "ns"),
            Fact("bytes", "bytes they move", moved(mine), "bytes"),
            Fact("least_ns", "the shortest one", least, "ns"),
        ),
        places=places(step, mine),
    )


_FUSED = (
    (("norm",), "a norm in one kernel"),
    (("rope",), "rotary embedding with the product before it"),
    (("entry",), "one write for keys and values"),
    (("elementwise", "residual", "activation", "broadcast", "copy", "slice", "update", "index"), "elementwise work with its neighbors"),
    (("reduce", "softmax"), "reductions with what they reduce"),
    (("loop control",), "several iterations in one (unroll the loop's body)"),
    (("product",), "products that share an input in one"),
)
"""By the details of the kernels found, what to fuse."""


def _remedy(details: Counter[str]) -> str:
    fused = [words for kinds, words in _FUSED if any(details[kind] for kind in kinds)]
    chain = f" ({', '.join(fused[:4])})" if fused else ""
    return f"Fewer, larger kernels{chain}: let them fuse, give each more rows (a larger batch), or write the chain as one kernel."


def pauses(context: Context, step: Step, left: Mapping[Source, float]) -> Iterator[Finding]:
    """The device's short pauses between the activities of an execution: each starts when the one before has ended."""
    row = ("idle", "between_activities")
    number, time = context.pauses(step, threshold("kernels", "longest_pause_ns"))
    idle = step.part(row)
    if not number or not idle or time < threshold("kernels", "least_pause_share") * step.wall_ns:
        return
    yield Finding(
        slug="pauses-between-kernels",
        title=f"{count(round(number))} short pauses between kernels leave the GPU idle {duration(time)} of each step",
        why=f"A kernel starts when the one before it has ended and its writes are seen: {duration(time / number)} each on average, beside "
        f"{duration(step.kernel_ns or step.busy_ns)} of kernels.",
        remedy="Fewer, larger kernels: what fuses needs no pause. Independent work on further streams fills them.",
        confidence="possible",
        basis=f"Pauses of up to {duration(threshold('kernels', 'longest_pause_ns'))} within executions, of work launched in time",
        claims=all_of(step, row, share=min(time / idle, 1.0)),
        gain_ns=min(time, idle),
        facts=(
            Fact("pauses", "pauses", number, "count"),
            Fact("time_ns", "idle in them", time, "ns"),
            Fact("each_ns", "one of them", time / number, "ns"),
        ),
    )


def is_small(context: Context, record: Record) -> bool:
    """Whether an instruction's launches are short and their bytes, which must be known, do not explain it."""
    each = record["time_per_execution_ns"] / record["launches_per_execution"]
    if each > threshold("kernels", "small_ns") or record["bytes_accessed"] is None:
        return False
    needed = context.bytes_ns(record["bytes_accessed"]) / record["launches_per_execution"]
    return bool(needed <= threshold("kernels", "small_bytes_share") * each)
