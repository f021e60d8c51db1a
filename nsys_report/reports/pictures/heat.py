"""Who is late when: ranks by steps as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_report.ranks.words import how_often
from nsys_report.reports.pictures.model import HeatMap
from nsys_report.units import duration, things

if TYPE_CHECKING:
    from nsys_report.ranks.run import Run

MOST_ROWS, MOST_COLUMNS = 64, 160
"""Rows and columns of the map: of more ranks or steps each cell holds several, and shows the latest of them."""


def heat_map(run: Run) -> HeatMap | None:
    """The map of the program with most time in collectives; None where ranks meet in none."""
    if not run.grids or not np.isfinite(run.grids[0].late).any():
        return None
    grid = run.grids[0]
    numbers = [str(rank.number) for rank in run.ranks]
    rows, columns = _bins(len(numbers), MOST_ROWS), _bins(grid.late.shape[1], MOST_COLUMNS)
    cells = np.fmax.reduceat(np.fmax.reduceat(grid.late, rows, axis=0), columns, axis=1)
    steps = [str(n) for n in range(grid.late.shape[1])]
    several = len(rows) < len(numbers) or len(columns) < len(steps)
    notes: tuple[str, ...] = (
        "A cell is how much later than the median of the other ranks a rank comes to the step's collectives, in sum.",
    )
    notes += ("A cell stands for several ranks or steps, and shows the latest.",) if several else ()
    program = run.programs[grid.program].name
    return HeatMap(_title(run, program), program, _names(numbers, rows), _names(steps, columns), cells, notes)


def _bins(count: int, most: int) -> np.ndarray:
    """Where each bin begins."""
    return np.arange(0, count, -(-count // most))


def _names(names: list[str], begins: np.ndarray) -> tuple[str, ...]:
    ends = np.append(begins[1:], len(names))
    return tuple(names[a] if b - a == 1 else f"{names[a]}–{names[b - 1]}" for a, b in zip(begins, ends, strict=True))


def _title(run: Run, program: str) -> str:
    late = next((one for one in run.late if one.program == run.grids[0].program), None)
    if late is None:
        return f"{program}: none of {things(len(run.ranks), 'rank')} comes late"
    return f"{program}: rank {run.ranks[late.rank].number} comes {duration(late.median_ns)} late {how_often(late)}"
