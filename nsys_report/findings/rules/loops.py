"""Work inside a loop that does not need the loop: the same in each iteration, or a product that could be made for all iterations at "
"once."""

from __future__ import annotations

from collections.abc import Iterator

from nsys_report.fact import Fact
from nsys_report.findings.ledger import work_of
from nsys_report.findings.model import Finding
from nsys_report.findings.parts import by_time, launches, moved, places
from nsys_report.findings.step import Context, Record, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.units import count, duration, size, things


def repeated_work(context: Context, step: Step) -> Iterator[Finding]:
    """Kernels in a loop's body whose operands are the same in every iteration."""
    mine = _in_loops(step, "nothing")
    time = sum(step.spent(record) for record in mine)
    gain = sum(step.spent(record) * (1 - 1 / record["launches_per_execution"]) for record in mine)
    if not mine or gain < threshold("loops", "least_share") * step.kernel_ns:
        return
    yield Finding(
        slug="loop-invariant-work",
        title=f"{things(len(mine), 'instruction')} in a loop {'computes' if len(mine) == 1 else 'compute'} the same in each of "
        f"{count(round(max(r['launches_per_execution'] for r in mine)))} iterations",
        why=f"Nothing that {mine[0]['hlo_instruction']} reads changes from one iteration to the next. Together they take "
        f"{duration(time)} a "
        f"step and move {size(moved(mine))}.",
        remedy="Compute it once before the loop and pass it in as a constant of the loop (close over it, or carry it). XLA hoists what is "
        "small by itself (while-loop-invariant-code-motion), and leaves what would keep a large array alive.",
        confidence="possible",
        basis="Their time but for one iteration's; keeping the result takes memory, and reading it back in each iteration takes time",
        claims=work_of(step, mine),
        gain_ns=gain,
        facts=(
            Fact("time_ns", "time", time, "ns"),
            Fact("bytes", "bytes they move", moved(mine), "bytes"),
            Fact("launches", "launches", launches(step, mine), "count"),
        ),
        places=places(step, mine),
    )


def batchable_products(context: Context, step: Step) -> Iterator[Finding]:
    """Products in a loop's body that need of the iteration its number alone: one product over all iterations reads the weights once."""
    mine = [record for record in _in_loops(step, "counter") if record["flops"] and record["dot_type"]]
    time = sum(step.spent(record) for record in mine)
    once = sum(_batched_ns(context, step, record) for record in mine)
    if not mine or time - once < threshold("loops", "least_share") * step.kernel_ns:
        return
    yield Finding(
        slug="loop-products-apart",
        title=f"{things(len(mine), 'product')} in a loop {'does' if len(mine) == 1 else 'do'} not depend on what the loop computes: "
        f"{count(round(max(r['launches_per_execution'] for r in mine)))} small products instead of one",
        why=f"{mine[0]['hlo_instruction']} needs of an iteration its number alone, to pick its part of the input. As "
        f"{count(round(launches(step, mine)))} "
        f"products a step it takes {duration(time)}; one product over all iterations takes {duration(once)} at its roof.",
        remedy="Take the product out of the loop: multiply the whole sequence with the weights before the scan, and let the loop read "
        "its row "
        "of the result.",
        confidence="possible",
        basis="Their time less that of one product of all iterations at its roof",
        claims=work_of(step, mine),
        gain_ns=time - once,
        facts=(
            Fact("time_ns", "time", time, "ns"),
            Fact("once_ns", "as one product, at its roof", once, "ns"),
            Fact("launches", "launches", launches(step, mine), "count"),
        ),
        places=places(step, mine),
    )


def _in_loops(step: Step, dependence: str) -> list[Record]:
    """Instructions that run more than once a step in a loop's body and need only so much of the iteration, most time first."""
    flow = step.flow
    if flow is None:
        return []
    inside = step.where(lambda r: r["launches_per_execution"] > 1 and flow.is_in_loop(r["hlo_instruction"]))
    return list(by_time(step, [r for r in inside if r["activity"] == "kernel" and flow.dependence(r["hlo_instruction"]) == dependence]))


def _batched_ns(context: Context, step: Step, record: Record) -> float:
    """What a product takes at its roof when its weights are read once and not in each iteration."""
    weights = record["weight_bytes"] or 0
    rest = (record["bytes_accessed"] or 0) - weights
    arithmetic = step.arithmetic_ns(record)
    return max(context.bytes_ns(rest + weights / record["launches_per_execution"]), arithmetic)
