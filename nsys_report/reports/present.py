"""Arrow tables to tables of the report: which columns, under which heading, in which unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from nsys_report.quantities import name_of
from nsys_report.reports.model import Column, Mark, Row, Table
from nsys_report.units import Value

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Show:
    """A column to show: its key in the Arrow table, its heading, and when it is left out (model.Column.drop_rank).

    Without a heading it is a named quantity (nsys_report.quantities), and headed by its name.
    """

    key: str
    heading: str = ""
    drop_rank: int = 0
    unit: str = ""
    """"" takes the unit that the key ends in."""


_ENDINGS = (
    ("bytes_per_s", "bytes_per_s"),
    ("flops_per_s", "flops_per_s"),
    ("_ns", "ns"),
    ("bytes", "bytes"),
    ("bytes_accessed", "bytes"),
    ("bytes_per_execution", "bytes"),
    ("flops", "flops"),
    ("share", "ratio"),
    ("share_of_roof", "ratio"),
    ("share_of_measured", "ratio"),
    ("share_of_nominal", "ratio"),
    ("confidence", "confidence"),
)


def unit_of(key: str, kind: pa.DataType) -> str:
    """The unit that a column's name and type tell."""
    for ending, unit in _ENDINGS:
        if key.endswith(ending):
            return unit
    if pa.types.is_boolean(kind):
        return "flag"
    if key.endswith("_id"):
        return "number"
    return "count" if pa.types.is_integer(kind) or pa.types.is_floating(kind) else "text"


def columns_of(schema: pa.Schema, shows: Iterable[Show]) -> tuple[Column, ...]:
    """The report's columns, each with its meaning from the schema."""
    return tuple(_column(schema.field(show.key), show) for show in shows)


def _column(field: pa.Field, show: Show) -> Column:
    about = (field.metadata or {}).get(b"about", b"").decode()
    return Column(show.key, show.heading or name_of(show.key), show.unit or unit_of(show.key, field.type), about, show.drop_rank)


def no_marks(_record: Record) -> tuple[Mark, ...]:
    """No doubt about anything."""
    return ()


FEWEST_FOR_SPREAD = 5
"""Repeats from which on a 10th and a 90th percentile say more than the values themselves."""


def of_few(table: Table, repeats: int, kept: Iterable[str] = ()) -> Table:
    """A table over so many executions: without percentiles where they are too few. Columns `kept` are over something else."""
    if repeats >= FEWEST_FOR_SPREAD:
        return table
    blank = {i for i, c in enumerate(table.columns) if ("p10" in c.key or "p90" in c.key) and c.key not in kept}
    rows = tuple(replace(row, values=tuple(None if i in blank else v for i, v in enumerate(row.values))) for row in table.rows)
    return replace(table, rows=rows)


def present(
    data: pa.Table,
    shows: Sequence[Show],
    key: str,
    title: str,
    *,
    marks: Callable[[Record], tuple[Mark, ...]] = no_marks,
    words: Mapping[str, Callable[[Record], Value]] | None = None,
    labels: Mapping[str, Callable[[Record], str]] | None = None,
    total: Record | None = None,
    notes: tuple[str, ...] = (),
    lead: int | None = None,
    in_full: bool = False,
) -> Table:
    """A table of the report from an Arrow table, its rows in the order given.

    `marks` gives a row's doubts; `words` replaces the value of a column, `labels` only what pages show of it;
    `total` is a last row by column key.
    """
    columns = columns_of(data.schema, shows)
    own = words or {}
    rows = []
    for record in data.to_pylist():
        values = tuple(own[c.key](record) if c.key in own else record[c.key] for c in columns)
        doubts = tuple(mark for mark in marks(record) if any(c.key == mark.column for c in columns))
        rows.append(Row(values, doubts, labels=tuple((key, label(record)) for key, label in (labels or {}).items())))
    if total is not None:
        rows.append(Row(tuple(total.get(c.key) for c in columns), is_total=True))
    return Table(key, title, columns, tuple(rows), notes, lead, in_full)
