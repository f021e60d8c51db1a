"""The report as a frozen value, which every page, picture and export is made from.

Values stay raw here (ns, bytes, ratios); `units.cell_text` turns them into the same words wherever they are shown. Nothing below computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from nsys_report.fact import Fact
from nsys_report.findings.model import Finding
from nsys_report.units import UNITS, Value, cell_text

FORMAT_VERSION = 1
"""Version of the report as a document. 1: the first."""

SILENT_AT_ZERO = frozenset(
    {
        "weight_bytes",
        "kv_cache_bytes",
        "kv_read_bytes",
        "kv_write_bytes",
        "floor_measured_ns",
        "floor_nominal_ns",
        "flops",
        "flops_per_s",
        "unknown_ns",
    }
)
"""Keys of columns about what only some programs have, such as caches: pages leave them out where a program has none of it."""

Severity = Literal["ok", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the reader must know before trusting a figure: what it is (`message`) and what to do about it (`hint`)."""

    slug: str
    message: str
    hint: str = ""
    severity: Severity = "warning"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its key (units in the name), heading, unit, meaning.

    Where room is short, columns of the highest `drop_rank` are left out first, those of one rank together; rank 0 and the table's first
    column never.
    """

    key: str
    heading: str
    unit: str
    about: str = ""
    drop_rank: int = 0

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"column {self.key} has the unknown unit {self.unit!r}")

    @property
    def is_number(self) -> bool:
        return UNITS[self.unit].is_number

    @property
    def title(self) -> str:
        """The heading with the unit that its cells leave out."""
        unit = UNITS[self.unit].heading
        return f"{self.heading} {unit}" if unit else self.heading


@dataclass(frozen=True, slots=True)
class Mark:
    """A doubt or remark on one cell: a sign beside the figure, and what it says."""

    column: str
    sign: str
    says: str


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table, its values in the order of the columns."""

    values: tuple[Value, ...]
    marks: tuple[Mark, ...] = ()
    is_total: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    """(column key, text): what pages show in the raw value's stead."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of raw values. Short pages show its first `lead` rows and say how many there are; None shows all.

    A table `in_full` only is left out of short pages (terminal, Markdown), and stands in the page and the documents.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    lead: int | None = None
    in_full: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.values) != len(self.columns):
                raise ValueError(f"table {self.key}: a row of {len(row.values)} values for {len(self.columns)} columns")

    def texts(self, row: Row) -> tuple[str, ...]:
        """A row in words, each mark beside its figure."""
        signs = {mark.column: mark.sign for mark in row.marks}
        shown = {**{c.key: v for c, v in zip(self.columns, row.values, strict=True)}, **dict(row.labels)}
        return tuple(cell_text(c.unit, shown[c.key]) + (f" {signs[c.key]}" if c.key in signs else "") for c in self.columns)

    def telling(self, rows: tuple[Row, ...] | None = None) -> tuple[int, ...]:
        """The columns that pages show, by position: the first, and those that say something in some of the rows (all without `rows`).

        A column of nothing but unknown figures says nothing; nor does one of SILENT_AT_ZERO where all it knows is zero.
        """
        shown = self.rows if rows is None else rows
        return tuple(i for i, c in enumerate(self.columns) if i == 0 or any(_says(c, row.values[i]) for row in shown))

    def shown(self) -> tuple[Row, ...]:
        """The rows that a short page shows: the first `lead`, and every total."""
        if self.lead is None:
            return self.rows
        body = [row for row in self.rows if not row.is_total]
        return (*body[: self.lead], *(row for row in self.rows if row.is_total))

    def remarks(self, rows: tuple[Row, ...]) -> tuple[str, ...]:
        """What the marks of those rows say, each once, with its sign in front."""
        return tuple(dict.fromkeys(f"{mark.sign} {mark.says}" for row in rows for mark in row.marks))

    def records(self) -> Iterator[dict[str, Value]]:
        """Each row as raw values by column key."""
        for row in self.rows:
            yield {c.key: v for c, v in zip(self.columns, row.values, strict=True)}


def _says(column: Column, value: Value) -> bool:
    return value not in (None, "") and not (value == 0 and column.key in SILENT_AT_ZERO)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: sentences, facts and tables under one title; `module` names the program it is about."""

    key: str
    title: str
    lines: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    tables: tuple[Table, ...] = ()
    notices: tuple[Notice, ...] = ()
    module: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """What the report says of one capture."""

    name: str
    headline: str
    lines: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    notices: tuple[Notice, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Most time to be gained first."""
    sections: tuple[Section, ...] = ()

    def section(self, key: str) -> Section | None:
        """The section of that key, or None."""
        return next((s for s in self.sections if s.key == key), None)


@dataclass(frozen=True, slots=True)
class Report:
    """One part for each capture, and for several captures a table that sums them up."""

    parts: tuple[Part, ...]
    summary: Table | None = None
    made_by: str = ""
    """Name and version of the program."""
