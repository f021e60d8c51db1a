"""One budget from two captures of a program: graphs traced node by node, and graphs traced whole.

Tracing each node of a CUDA graph names its kernels and slows its launch; tracing it whole leaves the launch as it is and names nothing.
So the step is that of the second pass, and what its graphs spend is told apart as in the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from nsys_report.session import Session

Key = tuple[str, int | None]
INSIDE = ("traffic", "below_roof", "kernels", "idle")
"""Categories of the budget that lie within a graph's own time, beside its floor."""


@dataclass(frozen=True, slots=True)
class PassRow:
    """A part of a step and the pass that it is known from. Times in ns, means over typical steps."""

    category: str
    part: str
    typical_ns: float
    share: float
    origin: str
    """`graph`: measured where graphs were traced whole; `node, scaled`: by the node pass's proportions."""


@dataclass(frozen=True, slots=True)
class PassPair:
    """A program in both passes: its executions pair by order, the first of one with the first of the other."""

    name: str
    program_id: int | None
    pairs: int
    unpaired: int
    node_busy_ns: float
    """Median busy time of the paired executions, nodes traced."""
    graph_busy_ns: float
    """The same, graphs traced whole."""
    node_step_ns: float
    graph_step_ns: float
    scale: float
    """What the node pass's times inside graphs were multiplied by."""
    rows: tuple[PassRow, ...]


def pair_passes(node: Session, graph: Session) -> list[PassPair]:
    """The programs that ran in both passes, those with whole graphs in the second; none where no graph was traced whole."""
    steps = [{_key(row): row for row in analysis.results.steps.to_pylist()} for analysis in (node, graph)]
    budgets = [_by_program(analysis.results.budget) for analysis in (node, graph)]
    busy = [_busy(analysis) for analysis in (node, graph)]
    return [
        _pair(key, (steps[0][key], steps[1][key]), (budgets[0][key], budgets[1][key]), (busy[0].get(key, []), busy[1].get(key, [])))
        for key in steps[1]
        if key in steps[0] and any(row["part"] == "graphs" for row in budgets[1].get(key, []))
    ]


def _key(row: dict[str, Any]) -> Key:
    return row["hlo_module"], row["program_id"]


def _by_program(table: pa.Table) -> dict[Key, list[dict[str, Any]]]:
    found: dict[Key, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        found.setdefault(_key(row), []).append(row)
    return found


def _busy(analysis: Session) -> dict[Key, list[int]]:
    """Busy time of each program's complete executions in the order they ran."""
    executions = analysis.joined.executions.select(["hlo_module", "program_id", "busy_time_ns", "is_complete"])
    found: dict[Key, list[int]] = {}
    for row in executions.to_pylist():
        if row["is_complete"] and row["busy_time_ns"] is not None:
            found.setdefault(_key(row), []).append(row["busy_time_ns"])
    return found


def _pair(
    key: Key,
    steps: tuple[dict[str, Any], dict[str, Any]],
    budgets: tuple[list[dict[str, Any]], list[dict[str, Any]]],
    busy: tuple[list[int], list[int]],
) -> PassPair:
    from statistics import median

    count = min(map(len, busy))
    rows, scale = _rows(*budgets)
    step = sum(row.typical_ns for row in rows)
    shares = tuple(PassRow(r.category, r.part, r.typical_ns, r.typical_ns / step if step else 0.0, r.origin) for r in rows)
    return PassPair(
        *key,
        pairs=count,
        unpaired=max(map(len, busy)) - count,
        node_busy_ns=median(busy[0][:count]) if count else 0.0,
        graph_busy_ns=median(busy[1][:count]) if count else 0.0,
        node_step_ns=steps[0]["typical_ns"],
        graph_step_ns=steps[1]["typical_ns"],
        scale=scale,
        rows=shares,
    )


def _rows(node: list[dict[str, Any]], graph: list[dict[str, Any]]) -> tuple[list[PassRow], float]:
    """The graph pass's rows, its whole graphs replaced by the floor and the scaled rest of the node pass; they still add up."""
    whole = sum(row["typical_ns"] for row in graph if row["part"] == "graphs")
    floor = [row for row in node if row["category"] == "floor"]
    rest = [row for row in node if row["category"] in INSIDE]
    left, inside = whole - sum(row["typical_ns"] for row in floor), sum(row["typical_ns"] for row in rest)
    scale = max(left, 0.0) / inside if inside else 0.0
    rows = [PassRow(r["category"], r["part"], r["typical_ns"], 0.0, "node") for r in floor]
    rows += [PassRow(r["category"], r["part"], r["typical_ns"] * scale, 0.0, "node, scaled") for r in rest]
    rows += [PassRow(r["category"], r["part"], r["typical_ns"], 0.0, "graph") for r in graph if r["part"] != "graphs"]
    return rows, scale
