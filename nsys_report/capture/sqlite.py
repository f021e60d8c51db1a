"""An nsys export in SQLite, read column by column: the driver of ADBC brings the rows as Arrow."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import adbc_driver_manager
import adbc_driver_sqlite
import pyarrow as pa

from nsys_report.capture.catalogue import Field
from nsys_report.capture.growing import Numbers, Texts
from nsys_report.capture.source import Condition, field_type, present
from nsys_report.capture.sql import Rows, quoted, select, selected
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

    def __init__(self, path: Path, name: Path | None = None) -> None:
        """Checks the file (see sqlite_checks) and reads its schema; raises InputError. `name` is the path that it goes by, if another."""
        self.path = name or path
        header = check_file(path)
        self._copy = copy_with_log(path) if has_log(path) else None
        self._uri = copied_uri(Path(self._copy.name), path) if self._copy is not None else read_only_uri(path, header)
        self._counts: dict[str, int] = {}
        self._views: frozenset[str] = frozenset()
        self.columns: Mapping[str, tuple[str, ...]] = self._inspect()

    def _inspect(self) -> dict[str, tuple[str, ...]]:
        query = "SELECT m.name, m.type, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type IN ('table', 'view')"
        found: dict[str, list[str]] = {}
        views = set()
        for table, kind, column in self._query(query):
            found.setdefault(table, []).append(column)
            if kind == "view":
                views.add(table)
        self._views = frozenset(views)
        return {table: tuple(columns) for table, columns in found.items() if not table.startswith("sqlite_")}

    def count(self, table: str, where: Sequence[Condition] = ()) -> int:
        """Rows in a table that meet all conditions."""
        if where:
            return int(self._query(selected("count(*)", table, where))[0][0])
        if table not in self._counts:
            self._counts[table] = int(self._query(selected("count(*)", table))[0][0])
        return self._counts[table]

    def has_rows(self, table: str, where: Sequence[Condition] = ()) -> bool:
        """Whether there are any that meet all conditions."""
        return bool(self._query(f"{selected('1', table, where)} LIMIT 1"))

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
        def query(rows: Rows | None = None) -> str:
            return select(table, fields, where, rows, cast_all=cast_all)

        kinds = [field_type(f) for f in fields]
        extent = self._row_numbers(table)
        first, most = (extent[0], extent[1] - extent[0] + 1) if extent is not None else (0, self.count(table))
        growing: list[Numbers | Texts] = [Texts(most) if kind == pa.binary() else Numbers(most) for kind in kinds]
        if extent is None or most < SPLIT_ROWS or pa.binary() in kinds:
            rows = self._fill(query(), growing, 0, strict=not cast_all)
            return [column.finish(rows) for column in growing]
        edges = [most * part // PARTS for part in range(PARTS + 1)]
        queries = [query((first + low, first + high)) for low, high in pairwise(edges)]
        with ThreadPoolExecutor(PARTS) as pool:
            counts = list(pool.map(lambda q, at: self._fill(q, growing, at, strict=not cast_all), queries, edges[:-1]))
        rows = 0
        for at, count in zip(edges, counts, strict=False):  # of a part that was filtered, the next one's rows follow further down
            if at != rows:
                for column in growing:
                    column.move(at, rows, count)
            rows += count
        return [column.finish(rows) for column in growing]

    def _row_numbers(self, table: str) -> Rows | None:
        """The first and last row number of a table; None for a view, and where the numbers are ids that may lie far apart."""
        if table in self._views:
            return None
        try:
            low, high = self._query(f"SELECT min(rowid), max(rowid) FROM {quoted(table)}")[0]
        except InputError:  # a table that was made without row numbers
            return None
        if not isinstance(low, int) or not isinstance(high, int):
            return (0, -1)
        return (low, high) if high - low < _LARGEST else None

    def _query(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a small query."""
        try:
            with closing(sqlite3.connect(self._uri, uri=True)) as connection:
                return connection.execute(query).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise damaged(self.path, _first_line(error)) from error

    @contextmanager
    def _batches(self, query: str) -> Iterator[pa.RecordBatchReader]:
        """The rows of a large query."""
        with (
            adbc_driver_sqlite.connect(self._uri) as database,
            adbc_driver_manager.AdbcConnection(database) as connection,
            adbc_driver_manager.AdbcStatement(connection) as statement,
        ):
            statement.set_options(**{adbc_driver_sqlite.StatementOptions.BATCH_ROWS.value: str(BATCH_ROWS)})
            statement.set_sql_query(query)
            stream, _ = statement.execute_query()
            with pa.RecordBatchReader.from_stream(stream) as reader:
                yield reader

    def _fill(self, query: str, growing: Sequence[Numbers | Texts], at: int, *, strict: bool) -> int:
        """Puts the rows of a query into columns from row `at` on; how many there were. `strict` raises _OtherTypes."""
        start = at
        try:
            with self._batches(query) as reader:
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


def _first_line(error: Exception) -> str:
    text = str(getattr(error, "orig", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__
