"""Mixtures of experts whose products run over every expert for every row."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_mapping import Computation, Instruction, Module
from nsys_report.fact import Fact
from nsys_report.findings.ledger import work_of
from nsys_report.findings.model import Finding
from nsys_report.findings.parts import moved, places
from nsys_report.findings.rules.products import producers
from nsys_report.findings.step import Context, Record, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.words import duration, size, things

_MOVING = frozenset({"bitcast", "reshape", "transpose", "copy", "convert"})


def dense_experts(context: Context, step: Step) -> Iterator[Finding]:
    """Rows spread over all experts, zero but for their own, so that one dense product can take the place of many small ones."""
    module = step.module
    if module is None:
        return
    copies: dict[str, int] = {}
    products: list[tuple[Record, int]] = []
    for record in step.where(lambda r: r["kernel_class"] == "weights" and bool(r["flops"])):
        spread = {name: times for name in producers(module, record["hlo_instruction"]) if (times := _spread(module, name)) > 1}
        if spread:
            copies |= spread
            products.append((record, max(spread.values())))
    spreading = step.where(lambda r: r["hlo_instruction"] in copies)
    if not products or not spreading:
        return
    gain = sum(step.spent(r) * (1 - 1 / copies[r["hlo_instruction"]]) for r in spreading)
    more = {r["instruction_id"]: _arithmetic_beyond_bytes(step, r, times) for r, times in products}
    gain += sum(more.values())
    if gain < threshold("experts", "least_share") * step.kernel_ns:
        return
    flops, experts = sum(r["flops"] for r, _ in products), max(copies.values())
    needed = sum(r["flops"] / times for r, times in products)
    yield Finding(
        slug="experts-dense",
        title=f"{things(len(products), 'product')} run over all {experts} experts for every row: {flops / 1e9:,.1f} GFLOP where "
        f"{needed / 1e9:,.1f} are needed",
        why=f"XLA spreads each row over all experts, zero but for its own ({size(moved(spreading))} in "
        f"{duration(sum(step.spent(r) for r in spreading))}), and multiplies with every expert's weights. With few rows the weights' "
        f"bytes hide the arithmetic; with many it is {experts} times too much.",
        remedy="Use a grouped product (a ragged_dot that the library or a Pallas kernel runs by group), or gather each expert's rows "
        "into a buffer of fixed capacity.",
        confidence="likely",
        basis="The spreading kernels less one expert's share, and arithmetic beyond the time of the bytes",
        claims=work_of(step, [*spreading, *(r for r, _ in products if more[r["instruction_id"]] > 0)]),
        gain_ns=gain,
        facts=(
            Fact("experts", "experts", experts, "count"),
            Fact("flops", "operations", flops, "flops"),
            Fact("needed_flops", "operations needed", needed, "flops"),
            Fact("spread_bytes", "moved by spreading", moved(spreading), "bytes"),
            Fact("spread_ns", "time of spreading", sum(step.spent(r) for r in spreading), "ns"),
        ),
        places=places(step, (*spreading, *(r for r, _ in products))),
    )


def _arithmetic_beyond_bytes(step: Step, record: Record, times: int) -> float:
    """What a product's arithmetic takes beyond its bytes, and would not take for one expert a row, ns."""
    roof = step.roofs.get(record["instruction_id"])
    if roof is None or roof["roof"] != "compute":
        return 0.0
    return float(min(roof["roof_time_ns"] * (1 - 1 / times), step.spent(record)))


def _spread(module: Module, name: str) -> int:
    """How many copies of its rows, all but one masked to zero, a fusion writes; 1 where it does nothing of the kind."""
    instruction = module.instruction(name)
    if instruction is None or not instruction.called or instruction.called[0] not in module.by_name:
        return 1
    body = module.by_name[instruction.called[0]]
    select = _seen_through(body, body.root)
    if select.opcode != "select" or len(select.operands) != 3:
        return 1
    rows, zero = (_seen_through(body, body.by_name[o.name]) for o in select.operands[1:])
    if rows.opcode != "broadcast" or not _is_zero(body, zero):
        return 1
    source = body.by_name[rows.operands[0].name].shape.element_count
    return rows.shape.element_count // source if source > 1 else 1


def _seen_through(body: Computation, instruction: Instruction) -> Instruction:
    while instruction.opcode in _MOVING and instruction.operands:
        instruction = body.by_name[instruction.operands[0].name]
    return instruction


def _is_zero(body: Computation, instruction: Instruction) -> bool:
    if instruction.opcode == "broadcast":
        instruction = body.by_name[instruction.operands[0].name]
    return instruction.opcode == "constant" and (instruction.literal or "").strip() in ("0", "0.0", "0.")
