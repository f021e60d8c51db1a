"""A comparison as one JSON document, for scripts and gates.

`verdict` is one of same, slower, faster, unsure, everywhere. `before`, `after` and `difference` of a quantity are means, `low` and `high`
bound the difference (95 %); the verdict is drawn from `median_before` and `median_after`. An instruction's `before` and `after` are its
name, a list of names where several do the work, or null. diff.schema.json beside this file is its JSON Schema.
"""

from __future__ import annotations

import json
from typing import Any

from nsys_report.comparison.model import (
    Comparison,
    InstructionChange,
    ProgramChange,
    QuantityChange,
    Rollup,
    Setup,
    SidePlace,
    StepPart,
    Total,
)

FORMAT_VERSION = 1


def diff_document(comparison: Comparison, made_by: str) -> dict[str, Any]:
    """The document as plain values."""
    return {
        "format": "nsys-report diff",
        "version": FORMAT_VERSION,
        "made_by": made_by,
        "before": list(comparison.before),
        "after": list(comparison.after),
        "verdict": comparison.verdict,
        "setup": [_setup(s) for s in comparison.setup],
        "notes": list(comparison.notes),
        "programs": [_program(p) for p in comparison.programs],
        "instructions": [_instruction(n, c) for n, p in enumerate(comparison.programs) for c in p.instructions],
    }


def diff_json(comparison: Comparison, made_by: str) -> str:
    """The document as JSON, ending in a newline."""
    return json.dumps(diff_document(comparison, made_by), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _setup(s: Setup) -> dict[str, str]:
    return {"what": s.what, "before": s.before, "after": s.after}


def _program(p: ProgramChange) -> dict[str, Any]:
    return {
        "before": p.before,
        "after": p.after,
        "verdict": next((q.verdict for key in ("kernel_time_ns", "step_ns") if (q := p.quantity(key)) and q.verdict), None),
        "common_shift": p.common_shift,
        "setup": [_setup(s) for s in p.setup],
        "quantities": {q.key: quantity(q) for q in p.quantities},
        "parts": [_part(part) for part in p.parts],
        "rollups": [_rollup(r) for r in p.rollups],
    }


def quantity(q: QuantityChange) -> dict[str, Any]:
    """One quantity; a side that does not have it is null."""
    return {
        "before": q.before.mean if q.before else None,
        "after": q.after.mean if q.after else None,
        "difference": q.difference,
        "relative": q.relative,
        "low": q.low,
        "high": q.high,
        "verdict": q.verdict,
        "median_before": q.median_before,
        "median_after": q.median_after,
        "noise": q.noise_ns,
        "noise_from": q.noise_from or None,
        "runs_needed": q.runs_needed,
        "exact": {"before": _total(q.before), "after": _total(q.after)},
    }


def _total(total: Total | None) -> dict[str, int] | None:
    return {"total": total.total, "count": total.count} if total is not None else None


def _part(part: StepPart) -> dict[str, Any]:
    return {
        "group": part.group,
        "name": part.name,
        "before": part.before.mean,
        "after": part.after.mean,
        "difference": part.difference,
        "exact": {"before": _total(part.before), "after": _total(part.after)},
    }


def _rollup(r: Rollup) -> dict[str, Any]:
    return {"by": r.by, "name": r.name, "before": r.before.mean, "after": r.after.mean, "difference": r.difference}


def _instruction(program: int, c: InstructionChange) -> dict[str, Any]:
    return {
        "program": program,
        "before": _names(c.before),
        "after": _names(c.after),
        "change": c.change,
        "became": c.became or None,
        "identical": c.is_identical,
        "quantities": {"time_ns": quantity(c.time)},
        "places": {"before": [_place(p) for p in c.before], "after": [_place(p) for p in c.after]},
    }


def _names(places: tuple[SidePlace, ...]) -> str | list[str] | None:
    names = [p.instruction for p in places]
    return names if len(names) > 1 else names[0] if names else None


def _place(p: SidePlace) -> dict[str, Any]:
    return {
        "instruction": p.instruction,
        "kind": p.kind,
        "shape": p.shape,
        "time_ns": p.time.mean,
        "launches_per_execution": p.launches,
        "kernel_name": p.kernel_name,
        "kernel_class": p.kernel_class,
        "layer": p.layer,
        "op_name": p.op_name,
        "source": p.source,
        "bytes_accessed": p.bytes_accessed,
        "flops": p.flops,
    }
