"""How a training step's kernel time divides into phases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hlo_mapping import TRAINING_PHASES, WORD, column
from nsys_report.analysis.arrays.schemas import MODULE_KEY

PHASE_TIMES = pa.schema(
    [
        *MODULE_KEY,
        column("phase", WORD, "input, forward, loss, rematerialized, backward, collective, optimizer or unknown"),
        column("instructions", pa.int64(), "instructions of the phase that ran"),
        column("launches_per_execution", pa.float64(), "their kernels and own copies in an execution; mean"),
        column("typical_ns", pa.float64(), "their time in a typical step"),
        column("typical_share", pa.float64(), "share of the typical time of all phases of the program, 0 to 1"),
        column("time_mean_ns", pa.float64(), "their time in an execution; mean over complete executions"),
        column("time_share", pa.float64(), "share of the mean time of all phases of the program, 0 to 1"),
    ]
)
"""A row per training program and phase, in the order of a step; the times add up to that of the program's joined kernels and own copies.

What was joined to no instruction is in the phase unknown.
"""


def phases_table(instructions: pa.Table, modules: pa.Table) -> pa.Table:
    """Sums of an instruction table (schema INSTRUCTIONS) over the programs in which an instruction has a phase."""
    known = instructions.filter(pc.is_valid(instructions["phase"]))
    keys = set(zip(known["hlo_module"].to_pylist(), known["program_id"].to_pylist(), strict=True))
    whole = {_key(row): row["complete_executions"] for row in modules.select([*_KEY, "complete_executions"]).to_pylist()}
    rows = [r for key in sorted(keys, key=str) for r in _rows(instructions, key, whole[key])]
    return pa.Table.from_pylist(rows, PHASE_TIMES)


_KEY = tuple(field.name for field in MODULE_KEY)
_FIGURES = ("launches_per_execution", "executions", "typical_ns", "time_mean_ns")


def _key(row: Mapping[str, Any]) -> tuple[str | None, int | None]:
    return row["hlo_module"], row["program_id"]


def _rows(instructions: pa.Table, key: tuple[str | None, int | None], executions: int) -> list[dict[str, object]]:
    mine = [r for r in instructions.select([*_KEY, "phase", *_FIGURES]).to_pylist() if _key(r) == key]
    whole = {name: sum(r[name] or 0.0 for r in mine) for name in ("typical_ns", "time_mean_ns")}
    found: list[dict[str, object]] = []
    for phase in TRAINING_PHASES:
        part = [r for r in mine if (r["phase"] or "unknown") == phase]
        times = {name: sum(r[name] or 0.0 for r in part) for name in whole}
        if part:
            launches = sum((r["launches_per_execution"] or 0.0) * r["executions"] for r in part) / executions
            shares = {
                "typical_share": times["typical_ns"] / whole["typical_ns"] if whole["typical_ns"] else None,
                "time_share": times["time_mean_ns"] / whole["time_mean_ns"] if whole["time_mean_ns"] else None,
            }
            figures = {"instructions": len(part), "launches_per_execution": launches, **times, **shares}
            found.append({"hlo_module": key[0], "program_id": key[1], "phase": phase, **figures})
    return found
