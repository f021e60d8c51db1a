"""What a scatter adds, and into how many places: the evidence that its updates collide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nsys_report.fact import Fact
from nsys_report.findings.step import Record, Step
from nsys_report.units import count

SMALL_TABLE = 1024
"""Rows up to which a product with one-hot rows takes the place of a scatter cheaply."""


def describe(step: Step, mine: Sequence[Record]) -> tuple[str, str, tuple[Fact, ...]]:
    """Updates and places of each scatter, most time first; and what to do where they are gradients of embeddings."""
    told = [(record, *sizes) for record in mine for sizes in [_sizes(step, record)] if sizes is not None]
    if not told:
        return "", "", ()
    parts = [f"{record['hlo_instruction']} adds {count(updates)} updates into {count(rows)} rows" for record, updates, rows in told[:3]]
    facts = tuple(
        Fact(f"updates_{n}", f"updates and rows of {record['hlo_instruction']}", f"{count(updates)} into {count(rows)}")
        for n, (record, updates, rows) in enumerate(told[:3], 1)
    )
    return f" {'; '.join(parts)}.", "".join(_remedy(step, mine, [rows for _, _, rows in told])), facts


def _sizes(step: Step, record: Record) -> tuple[int, int] | None:
    """How many updates a scatter makes, and how many places (rows) its array has."""
    flow = step.flow
    nodes = flow.nodes(record["hlo_instruction"], "scatter") if flow is not None else []
    if flow is None or not nodes:
        return None
    operand, indices, updates = (flow.graph.shapes[n] for n in flow.graph.inputs[nodes[0]][:3])
    if not operand.dimensions or not updates.element_count:
        return None
    vector = int(flow.graph.instructions[nodes[0]].attribute("index_vector_dim") or len(indices.dimensions))
    width = indices.dimensions[vector] if vector < len(indices.dimensions) else 1
    number = max(indices.element_count // max(width, 1), 1)
    return number, max(operand.element_count * number // updates.element_count, 1)


def _remedy(step: Step, mine: Sequence[Record], rows: Sequence[int]) -> Iterator[str]:
    if not any("embed" in (record["op_name"] or "").lower() or record["class_detail"] == "gradient" for record in mine):
        return
    yield "These are gradients of lookups: sort the ids and sum their runs (jax.ops.segment_sum with indices_are_sorted=True)"
    if any(r <= SMALL_TABLE for r in rows):
        yield f"; of tables of up to {count(max(r for r in rows if r <= SMALL_TABLE))} rows, multiply one-hot rows with the updates instead"
    yield ", or give the optimizer the ids and rows alone (a sparse update)."
