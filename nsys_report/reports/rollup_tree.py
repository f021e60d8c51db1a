"""A program's roll-ups as trees: what the page draws, group within group down to the instructions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_report.analysis.program_rows import of_program
from nsys_report.analysis.rollup.dimensions import DIMENSIONS
from nsys_report.analysis.rollup.tree import rollup_table
from nsys_report.reports.present import Record
from nsys_report.reports.rollup_page import tells

if TYPE_CHECKING:
    from nsys_report.session import Session

MOST_INSTRUCTIONS = 600
"""Instructions with a row of their own, most time first; the others stand in their groups alone."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a group or an instruction takes; None where unknown."""

    name: str
    launches: float
    time_ns: float
    time_share: float | None
    share_of_roof: float | None
    bytes_accessed: float | None
    floor_ns: float | None
    is_above: bool


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A row of a tree in the order of reading: a group, or by `leaf` one of Rollups.leaves."""

    depth: int
    group: Figures | None = None
    leaf: int = -1


@dataclass(frozen=True, slots=True)
class Rollups:
    """A program's typical step, summed up in each way that tells its instructions apart."""

    leaves: tuple[tuple[str, Figures], ...]
    """Each instruction with its figures."""
    ways: tuple[tuple[str, str, tuple[TreeRow, ...]], ...]
    """Key, title and rows of each dimension."""


def rollup_trees(session: Session, record: Record, share_of_page: int = 1) -> Rollups | None:
    """The trees of one program; None where nothing ran."""
    work = of_program(session.results.work, record)
    if not len(work):
        return None
    ceilings = session.results.ceilings
    found = {by: rollup_table(work, by, ceilings, nested=True).to_pylist() for by in DIMENSIONS}
    singles = sorted((r for r in found["name"] if r["hlo_instruction"]), key=lambda r: -r["time_ns"])[: MOST_INSTRUCTIONS // share_of_page]
    places = {r["hlo_instruction"]: place for place, r in enumerate(singles)}
    ways = tuple(
        (by, DIMENSIONS[by].title, tuple(_rows(rows, places)))
        for by, rows in found.items()
        if by == "name" or tells([r["group"] for r in rows if not r["depth"]])
    )
    return Rollups(tuple((r["hlo_instruction"], _figures(r)) for r in singles), ways)


def _rows(rows: list[Record], places: Mapping[str, int]) -> list[TreeRow]:
    made = []
    for row in rows:
        if row["hlo_instruction"] is None:
            made.append(TreeRow(row["depth"], _figures(row)))
        elif row["hlo_instruction"] in places:
            made.append(TreeRow(row["depth"], leaf=places[row["hlo_instruction"]]))
    return made


def _figures(row: Record) -> Figures:
    launches, time, part, roof, moved, floor = (
        row[name] for name in ("launches", "time_ns", "time_share", "share_of_roof", "bytes_accessed", "floor_ns")
    )
    return Figures(row["group"], launches, time, part, roof, moved, floor, bool(row["above_roof"]))
