"""An nsys export as a directory of Parquet files (nsys export --type parquetdir): one file a table, the columns of the SQLite export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nsys_report.capture.arrays import flat
from nsys_report.capture.catalogue import Extent, Field, Text
from nsys_report.capture.source import AnyOf, Condition, IsIn, StartsWith, field_type, present
from nsys_report.errors import InputError


class ParquetSource:
    """A directory whose file stems are the table names."""

    def __init__(self, path: Path) -> None:
        """Reads every file's schema; raises InputError for one that cannot be read."""
        self.path = path
        self._files = {file.stem: file for file in sorted(path.glob("*.parquet"))}
        self.columns: Mapping[str, tuple[str, ...]] = {name: tuple(self._open(name).schema_arrow.names) for name in self._files}

    def _open(self, table: str) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self._files[table])
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(table, error) from error

    def _damaged(self, table: str, error: Exception) -> InputError:
        return InputError(
            f"{self._files[table]}: cannot be read as Parquet: {error}",
            "export the report again with nsys export --type parquetdir, or use --type sqlite",
            slug="capture-damaged",
        )

    def count(self, table: str, where: Sequence[Condition] = ()) -> int:
        """Rows in a table that meet all conditions."""
        return len(self._rows(table, set(), where)) if where else int(self._open(table).metadata.num_rows)

    def has_rows(self, table: str, where: Sequence[Condition] = ()) -> bool:
        """Whether there are any that meet all conditions."""
        return self.count(table, where) > 0

    def read(self, table: str, fields: Sequence[Field], where: Sequence[Condition] = ()) -> dict[str, pa.Array]:
        """The named fields of the rows that meet all conditions; a column the table lacks is null."""
        stored = self._rows(table, {name for f in fields if present(f, self.columns[table]) for name in _parts(f)}, where)
        return {f.name: flat(_field(f, stored)) for f in fields}

    def _rows(self, table: str, columns: set[str], where: Sequence[Condition]) -> pa.Table:
        """The rows that meet all conditions, with some columns and those that are asked about."""
        file = self._open(table)
        wanted = columns | {name for c in where for name in _condition_columns(c)}
        try:
            stored = file.read(columns=[name for name in self.columns[table] if name in wanted])
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(table, error) from error
        for condition in where:
            stored = stored.filter(_mask(condition, stored))
        return stored

    def close(self) -> None:
        """Nothing is held open between reads."""


def _parts(field: Field) -> tuple[str, ...]:
    return field.parts if isinstance(field, Extent) else (field.name,)


def _condition_columns(condition: Condition) -> tuple[str, ...]:
    if isinstance(condition, AnyOf):
        return tuple(c.column for c in condition.conditions)
    return (condition.column,)


def _mask(condition: Condition, stored: pa.Table) -> pa.ChunkedArray:
    if isinstance(condition, AnyOf):
        masks = [_mask(c, stored) for c in condition.conditions]
        result = masks[0]
        for mask in masks[1:]:
            result = pc.or_kleene(result, mask)
        return result
    if isinstance(condition, StartsWith):
        text = stored.column(condition.column).cast(pa.binary())
        masks = [pc.starts_with(text, prefix) for prefix in condition.prefixes]
        result = masks[0]
        for mask in masks[1:]:
            result = pc.or_kleene(result, mask)
        return pc.fill_null(result, False)
    assert isinstance(condition, IsIn)
    numbers = _whole(stored.column(condition.column))
    chosen = pc.is_in(numbers, value_set=pa.array(condition.values, pa.int64()))
    return pc.and_kleene(pc.invert(chosen), pc.is_valid(numbers)) if condition.negated else chosen


def _field(field: Field, stored: pa.Table) -> pa.ChunkedArray:
    if not present(field, stored.column_names):
        return pa.chunked_array([pa.nulls(stored.num_rows, field_type(field))])
    if isinstance(field, Text):
        return pc.fill_null(stored.column(field.name).cast(pa.binary()), b"")
    if isinstance(field, Extent):
        x, y, z = (_whole(stored.column(part)) for part in field.parts)
        return pc.bit_wise_or(pc.bit_wise_or(pc.shift_left(x, 32), pc.shift_left(y, 16)), z)
    return _whole(stored.column(field.name))


def _whole(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """As int64; ids stored unsigned keep their bits, as SQLite shows them, instead of overflowing or going through floats."""
    if values.type == pa.uint64():
        return pa.chunked_array([chunk.view(pa.int64()) for chunk in values.chunks], pa.int64())
    return values.cast(pa.int64())
