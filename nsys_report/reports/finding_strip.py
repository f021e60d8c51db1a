"""What a finding means on the timeline: the step of its program that is nearest to the typical one, and in it what the finding is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nsys_report.analysis.idle.causes import CODES
from nsys_report.analysis.program_rows import rows_of_program
from nsys_report.analysis.times.attribution import windows
from nsys_report.units import duration, share

if TYPE_CHECKING:
    from nsys_report.findings.model import Finding
    from nsys_report.session import Session

CELLS = 600
"""Cells that a step is divided into; a cell that is touched is drawn."""
COPIES = {
    "to_device": frozenset({"HtoD", "HtoA", "UVM HtoD"}),
    "to_host": frozenset({"DtoH", "AtoH", "UVM DtoH"}),
    "on_device": frozenset({"DtoD", "AtoD", "DtoA", "AtoA"}),
}
"""Kinds of copies by the part of a step's budget that they are in."""
Runs = tuple[tuple[int, int], ...]
"""(first cell, cells) of stretches."""
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FindingStrip:
    """The step nearest to the typical one: when the device did anything, and what of the step a finding is about."""

    execution_id: int
    step_ns: int
    work: Runs
    mine: Runs


def finding_strip(session: Session, finding: Finding) -> FindingStrip | None:
    """The strip of a finding; None where it is about no program, or nothing of it shows in a step."""
    run = _typical_run(session, finding)
    if run is None:
        return None
    view, span = session.results.view, windows(session.results.view)
    low, high = int(span.start[run]), int(span.end[run])
    device = int(view.executions.device[run])
    rows = np.arange(np.searchsorted(view.start, low), np.searchsorted(view.start, high))
    rows = rows[view.device[rows] == device]
    starts, ends = view.start[rows], view.end[rows]
    mine = _is_mine(session, finding, rows)
    idle = [session.results.idle[device].by_cause[CODES[part]] for _, part in finding.explains if part in CODES]
    about = runs_of([(starts[mine], ends[mine]), *((r.starts, r.ends) for r in idle)], low, high)
    if not about:
        return None
    return FindingStrip(int(view.executions.id[run]), high - low, runs_of([(starts, ends)], low, high), about)


def _typical_run(session: Session, finding: Finding) -> int | None:
    """The execution whose step is nearest to the typical one."""
    step = next(iter(rows_of_program(session.results.steps, finding.hlo_module, finding.program_id).to_pylist()), None)
    view = session.results.view
    keys = [(m.hlo_module, m.program_id) for m in view.modules]
    if step is None or (finding.hlo_module, finding.program_id) not in keys:
        return None
    mine = np.flatnonzero((view.executions.module == keys.index((finding.hlo_module, finding.program_id))) & view.executions.complete)
    wall = session.results.budgets.wall[mine]
    return int(mine[np.argmin(np.abs(wall - step["typical_ns"]))]) if len(mine) else None


def _is_mine(session: Session, finding: Finding, rows: Ints) -> NDArray[np.bool_]:
    """Which activities are of the instructions and copies that a finding claims."""
    view = session.results.view
    instructions = [int(key[1]) for key in finding.claims if len(key) == 2]
    kinds = frozenset[str]().union(*(COPIES.get(part, frozenset()) for category, part in finding.explains if category == "copies"))
    chosen = np.isin(view.instruction[rows], np.array(instructions, np.int64)) if instructions else np.zeros(len(rows), np.bool_)
    return chosen | (view.column("copy_kind").take(rows).isin(kinds) & ~view.work[rows])


def runs_of(ranges: list[tuple[Ints, Ints]], low: int, high: int) -> Runs:
    """The stretches of cells that ranges touch."""
    cells = np.zeros(CELLS + 1, np.int64)
    for starts, ends in ranges:
        inside = (ends > low) & (starts < high)
        first = (np.clip(starts[inside], low, high - 1) - low) * CELLS // (high - low)
        last = (np.clip(ends[inside], low + 1, high) - 1 - low) * CELLS // (high - low)
        np.add.at(cells, first, 1)
        np.add.at(cells, last + 1, -1)
    touched = np.cumsum(cells[:-1]) > 0
    edges = np.flatnonzero(np.diff(touched.astype(np.int8), prepend=0, append=0))
    return tuple((int(a), int(b - a)) for a, b in edges.reshape(-1, 2))


def strip_words(strip: FindingStrip) -> str:
    """The drawing in words."""
    part = sum(cells for _, cells in strip.mine) / CELLS
    step = f"The step of execution {strip.execution_id}, {duration(strip.step_ns)} long and nearest to the typical one"
    return f"{step}: what the finding is about shows in {share(part)} of it."
