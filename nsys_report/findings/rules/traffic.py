"""Arrays that one kernel writes and others read back, which a fusion or another order of work could keep on the chip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nsys_report.fact import Fact
from nsys_report.findings.flow import Flow, Passed
from nsys_report.findings.ledger import claimed_ns, unclaimed, work_of
from nsys_report.findings.model import Finding, Source
from nsys_report.findings.parts import by_time, places
from nsys_report.findings.step import Context, Record, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.units import count, duration, size, things

_SHOWN = 3


def written_intermediates(context: Context, step: Step, left: Mapping[Source, float]) -> Iterator[Finding]:
    """Large arrays written by one kernel and read by the next, and all the time of kernels that do little else."""
    flow = step.flow
    if flow is None or context.roof is None:
        return
    records = {record["hlo_instruction"]: record for record in step.instructions}
    values = _large(context, step, flow, records)
    mine = unclaimed(step, step.instructions, left)
    moved = _moved(values, {record["hlo_instruction"]: record for record in mine})
    claims = _claims(context, step, moved, records)
    time, total = claimed_ns(step, claims), sum(moved.values())
    if not claims or time < threshold("traffic", "least_share") * step.kernel_ns:
        return
    values = [value for value in values if {value.writer, *value.readers} & moved.keys()]
    fusible = _fusible_share(values, records)
    looped = any(flow.is_in_loop(value.writer) for value in values)
    yield Finding(
        slug="intermediates-written",
        title=f"{things(len(values), 'array')} of up to {size(max(v.bytes for v in values))} {'is' if len(values) == 1 else 'are'} "
        f"written by "
        f"one kernel and read back by the next: {size(total)} a step",
        why=f"{_sentences(values, records)} Moving them takes {duration(context.bytes_ns(total))} of each step at the roof"
        + (", iteration by iteration." if looped else "."),
        remedy="Let the reader compute what it reads: fuse the chain into one kernel (a Pallas or Triton kernel that keeps a tile on "
        "the chip, "
        "reductions over a tile as it is made), or keep the array in half precision, which halves its traffic"
        + ("; what is the same in each iteration can be computed once before the loop." if looped else "."),
        confidence="possible",
        basis="Time of these bytes at the ceiling, and of kernels that do little else than move them, as far as neither side is a product; "
        "all of that is an upper bound",
        claims=claims,
        gain_ns=time * fusible if fusible else None,
        facts=(
            Fact("bytes", "bytes written and read back", total, "bytes"),
            Fact("arrays", "arrays", len(values), "count"),
            Fact("largest_bytes", "the largest", max(v.bytes for v in values), "bytes"),
            Fact("at_roof_ns", "their time at the ceiling", context.bytes_ns(total), "ns"),
            *(
                Fact(f"array_{n}", v.shape, f"{v.writer} writes it; {', '.join(v.readers)} read it")
                for n, v in enumerate(values[:_SHOWN], 1)
            ),
        ),
        to_capture="" if fusible else "write such a chain as one kernel, and capture both",
        places=places(step, by_time(step, [records[name] for name in moved])),
    )


def _large(context: Context, step: Step, flow: Flow, records: Mapping[str, Record]) -> list[Passed]:
    """The arrays whose way through memory takes a fair time of the step, most first."""
    least = threshold("traffic", "least_array_share") * step.kernel_ns
    moved = {n: _bytes(value, records) for n, value in enumerate(flow.passed) if value.writer in records}
    chosen = [n for n, total in moved.items() if context.bytes_ns(total) >= least]
    return [flow.passed[n] for n in sorted(chosen, key=lambda n: -moved[n])]


def _bytes(value: Passed, records: Mapping[str, Record]) -> float:
    """What an array moves in a step: written once an execution of its writer, read by each reader."""
    names = [*(() if value.is_result else (value.writer,)), *value.readers]
    return sum(value.bytes * records[name]["launches_per_execution"] for name in names if name in records)


def _fusible_share(values: list[Passed], records: Mapping[str, Record]) -> float:
    """The share of the arrays' bytes of which neither writer nor any reader is a product or a library's call: those fuse least."""
    total = sum(_bytes(value, records) for value in values)
    plain = [v for v in values if not any(_multiplies(records[name]) for name in (v.writer, *v.readers) if name in records)]
    return sum(_bytes(value, records) for value in plain) / total if total else 0.0


def _multiplies(record: Record) -> bool:
    return bool(record["flops"]) or record["opcode"] == "custom-call"


def _moved(values: list[Passed], records: Mapping[str, Record]) -> dict[str, float]:
    """Bytes of such arrays by the instruction that moves them, no more than it moves beyond what it needs."""
    moved: dict[str, float] = {}
    for value in values:
        for name in (*(() if value.is_result else (value.writer,)), *value.readers):
            if name in records:
                moved[name] = moved.get(name, 0.0) + value.bytes * records[name]["launches_per_execution"]
    return {name: min(total, _wasted(records[name])) for name, total in moved.items() if _wasted(records[name]) > 0}


def _wasted(record: Record) -> float:
    needed = sum(record[name] or 0 for name in ("weight_bytes", "kv_read_bytes", "kv_write_bytes"))
    return float(max((record["bytes_accessed"] or 0) - needed, 0))


def _claims(context: Context, step: Step, moved: Mapping[str, float], records: Mapping[str, Record]) -> dict[Source, float]:
    """The traffic's share of each instruction; of one that moves such arrays and hardly does anything else, all its time."""
    claims: dict[Source, float] = {}
    for name, total in moved.items():
        record = records[name]
        mostly = total >= threshold("traffic", "mostly") * (record["bytes_accessed"] or 0)
        bound = context.bytes_ns(record["bytes_accessed"] or 0) >= threshold("traffic", "bandwidth_bound") * step.spent(record)
        if mostly and bound:
            claims |= work_of(step, [record])
        else:
            claims |= dict.fromkeys(work_of(step, [record], "traffic"), total / _wasted(record))
    return claims


def _sentences(values: list[Passed], records: Mapping[str, Record]) -> str:
    parts = []
    for value in values[:_SHOWN]:
        each = records[value.writer]["launches_per_execution"]
        times = f" {count(round(each))} times a step" if round(each) > 1 else ""
        readers = [name for name in value.readers if name in records]
        read = f"read by {', '.join(readers[:_SHOWN])}" if readers else "read again"
        parts.append(f"{value.shape} ({size(value.bytes)}) is written by {value.writer}{times} and {read}.")
    more = f" {things(len(values) - _SHOWN, 'more array')} likewise." if len(values) > _SHOWN else ""
    return " ".join(parts) + more
