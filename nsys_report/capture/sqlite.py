"""An nsys export in SQLite, read column by column: SQLAlchemy looks at the schema and builds the selects, ADBC brings the rows as Arrow."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import adbc_driver_manager
import adbc_driver_sqlite.dbapi
import pyarrow as pa
from sqlalchemy import (
    ColumnElement,
    Integer,
    LargeBinary,
    Select,
    cast,
    column,
    create_engine,
    func,
    inspect,
    literal_column,
    or_,
    select,
    table,
)
from sqlalchemy.dialects import sqlite as dialect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from nsys_report.capture.catalogue import Extent, Field, Text
from nsys_report.capture.growing import Numbers, Texts
from nsys_report.capture.source import AnyOf, Condition, IsIn, StartsWith, field_type, present
from nsys_report.capture.sqlite_checks import check_file, copied_uri, copy_with_log, damaged, has_log, read_only_uri
from nsys_report.errors import InputError

BATCH_ROWS = 1 << 15
"""Rows a batch."""
SPLIT_ROWS = 1 << 18
"""Rows from which a table is read in parts, side by side: SQLite reads without Python's lock."""
PARTS = max(2, min(4, os.cpu_count() or 1))
_LARGEST = 1 << 27
"""Row numbers that reach further than this are no count of rows, but somebody's ids."""


class _OtherTypes(Exception):
    """A column that should hold integers holds something else."""


class SqliteSource:
    """A checked SQLite export; every read opens a connection of its own, so that tables can be read side by side."""

    def __init__(self, path: Path) -> None:
        """Checks the file (see sqlite_checks) and reads its schema; raises InputError."""
        self.path = path
        header = check_file(path)
        self._copy = copy_with_log(path) if has_log(path) else None
        self._uri = copied_uri(Path(self._copy.name), path) if self._copy is not None else read_only_uri(path, header)
        self._counts: dict[str, int] = {}
        self._views: frozenset[str] = frozenset()
        self.columns: Mapping[str, tuple[str, ...]] = self._inspect()

    def _inspect(self) -> dict[str, tuple[str, ...]]:
        engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(self._uri, uri=True), poolclass=NullPool)
        try:
            with engine.connect() as connection:
                look = inspect(connection)
                self._views = frozenset(look.get_view_names())
                names = [*look.get_table_names(), *self._views]
                return {name: tuple(c["name"] for c in look.get_columns(name)) for name in names}
        except (SQLAlchemyError, sqlite3.Error, UnicodeDecodeError) as error:
            raise damaged(self.path, _first_line(error)) from error
        finally:
            engine.dispose()

    def count(self, table: str) -> int:
        """Rows in a table."""
        if table not in self._counts:
            self._counts[table] = int(self._first(select(func.count().label("rows")).select_from(_table(table)))[0])
        return self._counts[table]

    def has_rows(self, table: str) -> bool:
        """Whether there are any."""
        return bool(
            self._first(
                select(func.count().label("rows")).select_from(select(literal_column("1")).select_from(_table(table)).limit(1).subquery())
            )[0]
        )

    def read(self, table: str, fields: Sequence[Field], where: Sequence[Condition] = ()) -> dict[str, pa.Array]:
        """The named fields of the rows that meet all conditions; a column the table lacks is null."""
        have = [f for f in fields if present(f, self.columns[table])]
        if not have:
            return {f.name: pa.nulls(self.count(table), field_type(f)) for f in fields}
        try:
            found = self._read(table, have, where, cast_all=False)
        except (_OtherTypes, adbc_driver_manager.Error):
            # The driver takes a column's type from its first batch. Casting every value costs a sixth more, and is nearly never needed.
            found = self._read(table, have, where, cast_all=True)
        rows = len(found[0])
        if not where:
            self._counts[table] = rows
        columns = dict(zip((f.name for f in have), found, strict=True))
        return {f.name: columns[f.name] if f.name in columns else pa.nulls(rows, field_type(f)) for f in fields}

    def close(self) -> None:
        """Nothing is held open between reads; a copy that was made to read is removed."""
        if self._copy is not None:
            self._copy.cleanup()

    def _read(self, table: str, fields: Sequence[Field], where: Sequence[Condition], *, cast_all: bool) -> list[pa.Array]:
        query = select(*(_expression(f, cast_all).label(f.name) for f in fields)).select_from(_table(table))
        query = query.where(*(_condition(c) for c in where))
        kinds = [field_type(f) for f in fields]
        extent = self._row_numbers(table)
        first, most = (extent[0], extent[1] - extent[0] + 1) if extent is not None else (0, self.count(table))
        growing: list[Numbers | Texts] = [Texts(most) if kind == pa.binary() else Numbers(most) for kind in kinds]
        if extent is None or most < SPLIT_ROWS or pa.binary() in kinds:
            rows = self._fill(query, growing, 0, strict=not cast_all)
            return [column.finish(rows) for column in growing]
        edges = [most * part // PARTS for part in range(PARTS + 1)]
        rowid: ColumnElement[int] = literal_column("rowid")
        queries = [query.where(rowid >= first + low, rowid < first + high) for low, high in pairwise(edges)]
        with ThreadPoolExecutor(PARTS) as pool:
            counts = list(pool.map(lambda q, at: self._fill(q, growing, at, strict=not cast_all), queries, edges[:-1]))
        rows = 0
        for at, count in zip(edges, counts, strict=False):  # of a part that was filtered, the next one's rows follow further down
            if at != rows:
                for column in growing:
                    column.move(at, rows, count)
            rows += count
        return [column.finish(rows) for column in growing]

    def _row_numbers(self, table: str) -> tuple[int, int] | None:
        """The first and last row number of a table; None for a view, and where the numbers are ids that may lie far apart."""
        if table in self._views:
            return None
        rowid: ColumnElement[int] = literal_column("rowid")
        query: Any = select(func.min(rowid).label("low"), func.max(rowid).label("high")).select_from(_table(table))
        try:
            low, high = self._first(query)
        except InputError:  # a table that was made without row numbers
            return None
        if not isinstance(low, int) or not isinstance(high, int):
            return (0, -1)
        return (low, high) if high - low < _LARGEST else None

    def _first(self, query: Select[Any]) -> list[Any]:
        """The values of a query's first row."""
        try:
            with adbc_driver_sqlite.dbapi.connect(self._uri) as connection, connection.cursor() as cursor:
                cursor.execute(_text(query))
                return [column[0].as_py() for column in cursor.fetch_arrow_table().columns]
        except (adbc_driver_manager.Error, pa.ArrowException, OSError) as error:
            raise damaged(self.path, _first_line(error)) from error

    def _fill(self, query: Select[Any], growing: Sequence[Numbers | Texts], at: int, *, strict: bool) -> int:
        """Puts the rows of a query into columns from row `at` on; how many there were. `strict` raises _OtherTypes."""
        start = at
        try:
            with adbc_driver_sqlite.dbapi.connect(self._uri) as connection, connection.cursor() as cursor:
                cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
                cursor.execute(_text(query))
                with cursor.fetch_record_batch() as reader:
                    for batch in reader:
                        if growing and at + batch.num_rows > len(growing[0]):
                            raise damaged(self.path, "a table holds more rows than it counts")
                        for column, piece in zip(growing, batch.columns, strict=True):
                            if strict and isinstance(column, Numbers) and piece.type != pa.int64():
                                raise _OtherTypes
                            column.put(at, piece)
                        at += batch.num_rows
        except (adbc_driver_manager.Error, pa.ArrowException, OSError) as error:
            if strict:
                raise _OtherTypes from error
            raise damaged(self.path, _first_line(error)) from error
        return at - start


def _text(query: Select[Any]) -> str:
    return str(query.compile(dialect=dialect.dialect(), compile_kwargs={"literal_binds": True}))


def _first_line(error: Exception) -> str:
    text = str(getattr(error, "orig", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _table(name: str) -> Any:
    return table(name)


def _expression(field: Field, cast_all: bool) -> ColumnElement[Any]:
    if isinstance(field, Extent):
        x, y, z = (cast(column(part), Integer) if cast_all else column(part, Integer) for part in field.parts)
        return x.bitwise_lshift(32).bitwise_or(y.bitwise_lshift(16)).bitwise_or(z)
    if isinstance(field, Text):
        return func.coalesce(cast(column(field.name), LargeBinary), literal_column("x''"))
    return cast(column(field.name), Integer) if cast_all else column(field.name, Integer)


def _condition(condition: Condition) -> ColumnElement[bool]:
    if isinstance(condition, AnyOf):
        return or_(*(_condition(c) for c in condition.conditions))
    if isinstance(condition, StartsWith):
        return or_(*(column(condition.column).op("GLOB")(f"{prefix}*") for prefix in condition.prefixes))
    assert isinstance(condition, IsIn)
    chosen = column(condition.column).in_(condition.values)
    return ~chosen if condition.negated else chosen
