"""The texts of the queries that an SQLite export is asked, from the names of its tables and columns."""

from __future__ import annotations

from collections.abc import Sequence

from nsys_report.capture.catalogue import Extent, Field, Text
from nsys_report.capture.source import AnyOf, Condition, IsIn, StartsWith

Rows = tuple[int, int]
"""The first row number, and the one after the last."""


def quoted(name: str) -> str:
    """A table's or column's name as SQLite reads any name."""
    return '"' + name.replace('"', '""') + '"'


def select(table: str, fields: Sequence[Field], where: Sequence[Condition] = (), rows: Rows | None = None, *, cast_all: bool) -> str:
    """The fields of the rows that meet all conditions; `cast_all` turns every value into an integer, whatever it is stored as."""
    within = [f"rowid >= {rows[0]} AND rowid < {rows[1]}"] if rows is not None else []
    columns = ", ".join(f"{_expression(f, cast_all)} AS {quoted(f.name)}" for f in fields)
    return f"SELECT {columns} FROM {quoted(table)}{_where([*map(_condition, where), *within])}"


def selected(what: str, table: str, where: Sequence[Condition] = ()) -> str:
    """An expression over the rows that meet all conditions."""
    return f"SELECT {what} FROM {quoted(table)}{_where(list(map(_condition, where)))}"


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _expression(field: Field, cast_all: bool) -> str:
    if isinstance(field, Extent):
        x, y, z = (_integer(part, cast_all) for part in field.parts)
        return f"({x} << 32) | ({y} << 16) | {z}"
    if isinstance(field, Text):
        return f"coalesce(CAST({quoted(field.name)} AS BLOB), x'')"
    return _integer(field.name, cast_all)


def _integer(column: str, cast_all: bool) -> str:
    return f"CAST({quoted(column)} AS INTEGER)" if cast_all else quoted(column)


def _condition(condition: Condition) -> str:
    if isinstance(condition, AnyOf):
        return "(" + " OR ".join(_condition(c) for c in condition.conditions) + ")"
    if isinstance(condition, StartsWith):
        return "(" + " OR ".join(f"{quoted(condition.column)} GLOB {_literal(prefix + '*')}" for prefix in condition.prefixes) + ")"
    assert isinstance(condition, IsIn)
    return f"{quoted(condition.column)} {'NOT ' if condition.negated else ''}IN ({', '.join(map(str, condition.values))})"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
