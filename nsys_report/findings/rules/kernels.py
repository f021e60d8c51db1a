"""Kernels so small that starting them decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from nsys_report.fact import Fact
from nsys_report.findings.ledger import work_of
from nsys_report.findings.model import Finding
from nsys_report.findings.parts import launches, moved, places
from nsys_report.findings.step import Context, Record, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.words import count, duration, size


def small_kernels(context: Context, step: Step) -> Iterator[Finding]:
    """Many kernels that move next to nothing: each takes what a kernel takes at least."""
    mine = step.where(lambda r: r["activity"] == "kernel" and _is_small(context, r))
    number, time = launches(mine), sum(step.spent(r) for r in mine)
    if number < threshold("kernels", "least_small") or time < threshold("kernels", "least_small_share") * step.kernel_ns:
        return
    least = min(r["time_per_execution_ns"] / r["launches_per_execution"] for r in mine)
    details = Counter[str]()
    for record in mine:
        details[record["class_detail"] or "unknown"] += round(record["launches_per_execution"])
    kinds = ", ".join(f"{n:,} {detail}" for detail, n in details.most_common(4))
    yield Finding(
        slug="small-kernels",
        title=f"{count(round(number))} of {count(step.kernels)} kernels are so small that starting them is most of their time",
        why=(
            f"They take {duration(time / number)} each and move {size(moved(mine))} in all, which the memory does in "
            f"{duration(context.bytes_ns(moved(mine)))}: the shortest takes {duration(least)}, for next to nothing ({kinds})."
        ),
        remedy=(
            "Fewer, larger kernels: let norms, rotary embedding, residual adds and cache writes fuse with their neighbours (one write for "
            "keys and values, one kernel for a norm), batch more rows, or write the layer's chain as one kernel."
        ),
        confidence="possible",
        basis=f"{count(round(number))} launches at the {duration(least)} of the shortest of them: what fusing every one of them would save",
        claims=work_of(step, mine),
        gain_ns=min(number * least, time),
        facts=(
            Fact("kernels", "small kernels", number, "count"),
            Fact("time_ns", "their time", time, "ns"),
            Fact("bytes", "bytes they move", moved(mine), "bytes"),
            Fact("least_ns", "the shortest one", least, "ns"),
        ),
        places=places(step, mine),
    )


def _is_small(context: Context, record: Record) -> bool:
    """Whether an instruction's launches are short and their bytes, which must be known, do not explain it."""
    each = record["time_per_execution_ns"] / record["launches_per_execution"]
    if each > threshold("kernels", "small_ns") or record["bytes_accessed"] is None:
        return False
    needed = context.bytes_ns(record["bytes_accessed"]) / record["launches_per_execution"]
    return bool(needed <= threshold("kernels", "small_bytes_share") * each)
