"""An nsys export in SQLite, read column by column: SQLAlchemy looks at the schema and builds the selects, ADBC brings the rows as Arrow."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
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
from nsys_report.capture.sqlite_checks import check_file, damaged, read_only_uri

BATCH_ROWS = 1 << 14
"""Rows a batch. ADBC fixes a column's type in the first batch; every column is cast in SQL, so that no later batch can contradict it."""


class SqliteSource:
    """A checked SQLite export; every read opens a connection of its own, so that tables can be read side by side."""

    def __init__(self, path: Path) -> None:
        """Checks the file (see sqlite_checks) and reads its schema; raises InputError."""
        self.path = path
        self._uri = read_only_uri(path, check_file(path))
        self._counts: dict[str, int] = {}
        self.columns: Mapping[str, tuple[str, ...]] = self._inspect()

    def _inspect(self) -> dict[str, tuple[str, ...]]:
        engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(self._uri, uri=True), poolclass=NullPool)
        try:
            with engine.connect() as connection:
                look = inspect(connection)
                names = [*look.get_table_names(), *look.get_view_names()]
                return {name: tuple(c["name"] for c in look.get_columns(name)) for name in names}
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise damaged(self.path, _first_line(error)) from error
        finally:
            engine.dispose()

    def count(self, table: str) -> int:
        """Rows in a table."""
        if table not in self._counts:
            query = select(cast(func.count(), Integer)).select_from(_table(table))
            self._counts[table] = int(self._fetch(query, [pa.int64()], 1)[0][0].as_py())
        return self._counts[table]

    def read(self, table: str, fields: Sequence[Field], where: Sequence[Condition] = ()) -> dict[str, pa.Array]:
        """The named fields of the rows that meet all conditions; a column the table lacks is null."""
        have = [f for f in fields if present(f, self.columns[table])]
        if not have:
            return {f.name: pa.nulls(self.count(table), field_type(f)) for f in fields}
        query = select(*(_expression(f).label(f.name) for f in have)).select_from(_table(table))
        found = self._fetch(query.where(*(_condition(c) for c in where)), [field_type(f) for f in have], self.count(table))
        rows = len(found[0])
        columns = dict(zip((f.name for f in have), found, strict=True))
        return {f.name: columns[f.name] if f.name in columns else pa.nulls(rows, field_type(f)) for f in fields}

    def close(self) -> None:
        """Nothing is held open between reads."""

    def _fetch(self, query: Select[Any], kinds: Sequence[pa.DataType], most: int) -> list[pa.Array]:
        text = str(query.compile(dialect=dialect.dialect(), compile_kwargs={"literal_binds": True}))
        growing: list[Numbers | Texts] = [Texts(most) if kind == pa.binary() else Numbers(most) for kind in kinds]
        try:
            with adbc_driver_sqlite.dbapi.connect(self._uri) as connection, connection.cursor() as cursor:
                cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
                cursor.execute(text)
                with cursor.fetch_record_batch() as reader:
                    for batch in reader:
                        for column, piece in zip(growing, batch.columns, strict=True):
                            column.add(piece)
        except (adbc_driver_manager.Error, pa.ArrowException, OSError) as error:
            raise damaged(self.path, _first_line(error)) from error
        return [column.finish() for column in growing]


def _first_line(error: Exception) -> str:
    text = str(getattr(error, "orig", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _table(name: str) -> Any:
    return table(name)


def _expression(field: Field) -> ColumnElement[Any]:
    if isinstance(field, Extent):
        x, y, z = (cast(column(part), Integer) for part in field.parts)
        return x.bitwise_lshift(32).bitwise_or(y.bitwise_lshift(16)).bitwise_or(z)
    if isinstance(field, Text):
        return func.coalesce(cast(column(field.name), LargeBinary), literal_column("x''"))
    return cast(column(field.name), Integer)


def _condition(condition: Condition) -> ColumnElement[bool]:
    if isinstance(condition, AnyOf):
        return or_(*(_condition(c) for c in condition.conditions))
    if isinstance(condition, StartsWith):
        return or_(*(column(condition.column).op("GLOB")(f"{prefix}*") for prefix in condition.prefixes))
    assert isinstance(condition, IsIn)
    chosen = column(condition.column).in_(condition.values)
    return ~chosen if condition.negated else chosen
