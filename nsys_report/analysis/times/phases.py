"""How a training step's kernel time divides into phases."""

from __future__ import annotations

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
        column("time_mean_ns", pa.float64(), "their time in an execution; mean over complete executions"),
        column("time_share", pa.float64(), "share of the time of all phases of the program, 0 to 1"),
    ]
)
"""A row per training program and phase, in the order of a step; the times add up to that of the program's joined kernels and own copies.

What was joined to no instruction is in the phase unknown.
"""


def phases_table(instructions: pa.Table) -> pa.Table:
    """Sums of an instruction table (schema columns.INSTRUCTIONS) over the programs in which an instruction has a phase."""
    known = instructions.filter(pc.is_valid(instructions["phase"]))
    keys = set(zip(known["hlo_module"].to_pylist(), known["program_id"].to_pylist(), strict=True))
    rows = [r for key in sorted(keys, key=str) for r in _rows(instructions, key)]
    return pa.Table.from_pylist(rows, PHASE_TIMES)


def _rows(instructions: pa.Table, key: tuple[str | None, int | None]) -> list[dict[str, object]]:
    names = ["hlo_module", "program_id", "phase", "launches_per_execution", "time_mean_ns"]
    mine = [r for r in instructions.select(names).to_pylist() if (r["hlo_module"], r["program_id"]) == key]
    whole = sum(r["time_mean_ns"] or 0.0 for r in mine)
    found: list[dict[str, object]] = []
    for phase in TRAINING_PHASES:
        part = [r for r in mine if (r["phase"] or "unknown") == phase]
        if part:
            time = sum(r["time_mean_ns"] or 0.0 for r in part)
            launches = sum(r["launches_per_execution"] or 0.0 for r in part)
            share = time / whole if whole else None
            figures = {"instructions": len(part), "launches_per_execution": launches, "time_mean_ns": time, "time_share": share}
            found.append({"hlo_module": key[0], "program_id": key[1], "phase": phase, **figures})
    return found
