"""Attention: entries gathered into a buffer of their own before it, and scores written to memory between its two products."""

from __future__ import annotations

from collections.abc import Iterator

from nsys_report.fact import Fact
from nsys_report.findings.ledger import work_of
from nsys_report.findings.model import Finding
from nsys_report.findings.overlap import alone_ns
from nsys_report.findings.parts import launches, moved, places
from nsys_report.findings.rules.kernels import is_small
from nsys_report.findings.rules.remedies import fused_attention
from nsys_report.findings.step import Context, Record, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.units import duration, size, things


def gathered_context(context: Context, step: Step) -> Iterator[Finding]:
    """Cache entries gathered into a buffer of their own before attention reads them."""
    mine = [r for r in step.of("kv_gather") if r["class_detail"] != "reorder"]
    read = sum(r["kv_read_bytes"] or 0 for r in mine)
    gain = alone_ns(context, step, mine)
    attention = sum(step.spent(r) for r in step.of("attention"))
    if not mine or not attention or gain < threshold("caches", "least_share") * step.kernel_ns:
        return  # without attention, entries are gathered for something else
    yield Finding(
        slug="context-gathered",
        title=f"Each step gathers the whole context bucket, {size(read)} of keys and values, into a buffer of its own",
        why=(
            f"{things(round(launches(step, mine)), 'kernel')} read {size(read)} of cache entries, write them out ({duration(gain)}), and "
            f"attention reads them again. The program always takes the full bucket, whatever part of it the position needs; attention over "
            f"it takes another {duration(attention)}."
        ),
        remedy=(
            "Let attention read the pages where they are (a paged attention kernel, or a gather that fuses into its products), and choose "
            "the smallest of a few bucket sizes that holds the context."
        ),
        confidence="likely",
        basis="The gathers' own time; what a shorter context would save besides depends on positions, which the capture does not hold",
        claims=work_of(step, mine),
        gain_ns=gain,
        facts=(
            Fact("read_bytes", "entries gathered", read, "bytes"),
            Fact("time_ns", "time of the gathers", gain, "ns"),
            Fact("attention_ns", "attention over the bucket", attention, "ns"),
            Fact("kernels", "gathers", launches(step, mine), "count"),
        ),
        places=places(step, mine),
        to_capture="note the positions of the captured steps (a server's log has them) and compare the context's length with the bucket",
    )


def written_scores(context: Context, step: Step) -> Iterator[Finding]:
    """Attention whose scores are written to memory between its two products."""
    between = [r for r in step.of("attention", "softmax") if not is_small(context, r)]
    gain, total = alone_ns(context, step, between), moved(between)
    if not any(_moves_scores(context, r) for r in between) or gain < threshold("attention", "least_share") * step.kernel_ns:
        return
    yield Finding(
        slug="scores-written",
        title=f"Attention writes its scores out: {size(total)} move between its two products",
        why=(
            f"Scores, softmax and weights of every query and key go to memory and back in "
            f"{things(round(launches(step, between)), 'kernel')}, {duration(gain)} a step; a fused attention kernel keeps them on the chip."
        ),
        remedy=fused_attention(step),
        confidence="likely",
        basis="The time of the kernels between the two products, none of which a fused kernel needs",
        claims=work_of(step, between) | work_of(step, step.of("attention", "product"), "traffic"),
        gain_ns=gain,
        facts=(
            Fact("bytes", "scores moved", total, "bytes"),
            Fact("time_ns", "time", gain, "ns"),
            Fact("kernels", "kernels", launches(step, between), "count"),
        ),
        places=places(step, between),
    )


def _moves_scores(context: Context, record: Record) -> bool:
    """Whether moving bytes is a good part of a kernel's time: it is not just waiting to start."""
    needed = context.bytes_ns(record["bytes_accessed"] or 0)
    return bool(needed >= threshold("attention", "bandwidth_bound") * record["time_per_execution_ns"])
