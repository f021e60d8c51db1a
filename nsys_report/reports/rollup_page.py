"""A program's typical step rolled up: by what its instructions are called, source line, layer and the other dimensions."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING, Any

from nsys_report.analysis.program_rows import of_program
from nsys_report.analysis.rollup.dimensions import DIMENSIONS
from nsys_report.analysis.rollup.tree import rollup_table
from nsys_report.reports.model import Mark, Table
from nsys_report.reports.present import Record, Show, present

if TYPE_CHECKING:
    import pyarrow as pa

    from nsys_report.analysis.results import AnalysisResults

KEY = "rollup_"
"""What the keys of these tables begin with; the dimension follows."""
DEFAULT = "name"
ABOVE = Mark("share_of_roof", "▲", "faster than the roof allows: L2 served it, or the bytes are counted wrong")
SUMMED = ("instructions", "launches", "time_ns", "time_share", "bytes_accessed", "floor_ns", "roof_ns", "unknown_ns")
TITLES = {
    "name": "What runs, by name",
    "scope": "By named scope",
    "source": "By source line",
    "layer": "By layer",
    "parameter": "By parameter",
    "class": "By class and detail",
    "opcode": "By opcode and kernel",
    "phase": "By phase of training",
}
NOTE = "of a typical step (mean over the middle half of steps, as in the budget); the rows add up to its kernels and its own copies"


def _shows(by: str) -> tuple[Show, ...]:
    return (
        Show("group", DIMENSIONS[by].title, unit="name"),
        Show("launches", "launches", 3),
        Show("each_ns", "each", 1),
        Show("time_ns", "time"),
        Show("time_share", "share"),
        Show("share_of_roof", "of the roof", 1, "ratio"),
        Show("bytes_accessed", "bytes", 2),
        Show("roof_ns", "at the roof", 4),
        Show("floor_ns", "floor", 5),
        Show("unknown_ns", "roof unknown", 4),
        Show("instructions", "instructions", 6),
    )


def rollup_tables(results: AnalysisResults, record: Record, top: int | None, chosen: str = DEFAULT) -> list[Table]:
    """A table for each dimension that tells the program's instructions apart; the chosen one stands on short pages too, and first."""
    work = of_program(results.work, record)
    order = sorted(DIMENSIONS, key=lambda by: by != chosen)
    found = [(by, rollup_table(work, by, results.ceilings)) for by in order if len(work)]
    return [_table(by, rows, top, by != chosen) for by, rows in found if by in (chosen, DEFAULT) or tells(rows["group"].to_pylist())]


def tells(groups: list[str]) -> bool:
    """Whether a dimension has a name for anything: not where all is without a scope, a source line, a layer."""
    return len(groups) > 1 or not groups[0].startswith(("no ", "outside of "))


def _table(by: str, rows: pa.Table, top: int | None, in_full: bool) -> Table:
    return present(
        rows, _shows(by), KEY + by, TITLES[by], marks=_marks, total=_total(rows), notes=(NOTE,), lead=top, in_full=in_full,
    )  # fmt: skip


def _marks(row: Record) -> tuple[Mark, ...]:
    return (ABOVE,) if row["above_roof"] else ()


def _total(rows: pa.Table) -> dict[str, Any]:
    """All of the program; bytes and roofs where they are known of everything."""
    total: dict[str, Any] = {name: [v for v in rows[name].to_pylist() if v is not None] for name in SUMMED}
    whole = {name: fsum(values) if len(values) == len(rows) else None for name, values in total.items()}
    known = (whole["time_ns"] or 0.0) - (whole["unknown_ns"] or 0.0)
    of_roof = whole["roof_ns"] / known if whole["roof_ns"] is not None and known else None
    return {**whole, "group": "all", "share_of_roof": of_roof}
