"""An nsys export as a directory of one file a table, with the columns of the SQLite export: Parquet (nsys export --type parquetdir) or
Arrow (--type arrowdir)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.capture.arrays import flat
from nsys_report.capture.catalogue import Extent, Field, Text
from nsys_report.capture.source import AnyOf, Condition, IsIn, StartsWith, field_type, present
from nsys_report.errors import InputError

if TYPE_CHECKING:
    import pyarrow.parquet as pq


class FolderSource(ABC):
    """A directory whose file stems are the table names."""

    ending: ClassVar[str]
    export: ClassVar[str]
    """What nsys export calls the format."""

    def __init__(self, path: Path) -> None:
        """Reads every file's schema; raises InputError for one that cannot be read."""
        self.path = path
        self._files = {file.stem: file for file in sorted(path.glob(f"*{self.ending}"))}
        self.columns: Mapping[str, tuple[str, ...]] = {name: self._names(name) for name in self._files}

    @abstractmethod
    def stored_names(self, file: Path) -> list[str]:
        """The columns of a file."""

    @abstractmethod
    def stored_rows(self, file: Path) -> int:
        """How many rows a file has."""

    @abstractmethod
    def stored(self, file: Path, columns: list[str]) -> pa.Table:
        """Some columns of a file."""

    def _names(self, table: str) -> tuple[str, ...]:
        with self._reading(table) as file:
            return tuple(self.stored_names(file))

    @contextmanager
    def _reading(self, table: str) -> Iterator[Path]:
        try:
            yield self._files[table]
        except (pa.ArrowException, OSError) as error:
            raise InputError(
                f"{self._files[table]}: cannot be read as {self.export}: {error}",
                f"export the report again with nsys export --type {self.export}, or use --type sqlite",
                slug="capture-damaged",
            ) from error

    def count(self, table: str, where: Sequence[Condition] = ()) -> int:
        """Rows in a table that meet all conditions."""
        if where:
            return len(self._rows(table, set(), where))
        with self._reading(table) as file:
            return self.stored_rows(file)

    def has_rows(self, table: str, where: Sequence[Condition] = ()) -> bool:
        """Whether there are any that meet all conditions."""
        return self.count(table, where) > 0

    def read(self, table: str, fields: Sequence[Field], where: Sequence[Condition] = ()) -> dict[str, pa.Array]:
        """The named fields of the rows that meet all conditions; a column the table lacks is null."""
        stored = self._rows(table, {name for f in fields if present(f, self.columns[table]) for name in _parts(f)}, where)
        return {f.name: flat(_field(f, stored)) for f in fields}

    def _rows(self, table: str, columns: set[str], where: Sequence[Condition]) -> pa.Table:
        """The rows that meet all conditions, with some columns and those that are asked about."""
        wanted = columns | {name for c in where for name in _condition_columns(c)}
        with self._reading(table) as file:
            stored = self.stored(file, [name for name in self.columns[table] if name in wanted])
        for condition in where:
            stored = stored.filter(_mask(condition, stored))
        return stored

    def close(self) -> None:
        """Nothing is held open between reads."""
        return


class ParquetSource(FolderSource):
    """nsys export --type parquetdir."""

    ending, export = ".parquet", "parquetdir"

    def stored_names(self, file: Path) -> list[str]:
        """From the file's footer."""
        return list(_parquet(file).schema_arrow.names)

    def stored_rows(self, file: Path) -> int:
        """From the file's footer."""
        return int(_parquet(file).metadata.num_rows)

    def stored(self, file: Path, columns: list[str]) -> pa.Table:
        """Reads these columns alone."""
        return _parquet(file).read(columns=columns)


def _parquet(file: Path) -> pq.ParquetFile:
    import pyarrow.parquet as pq

    return pq.ParquetFile(file)


class ArrowSource(FolderSource):
    """nsys export --type arrowdir: streams of record batches, as IPC files are read too."""

    ending, export = ".arrow", "arrowdir"

    def stored_names(self, file: Path) -> list[str]:
        """From the schema before the first batch."""
        with _arrow(file) as reader:
            return list(reader.schema.names)

    def stored_rows(self, file: Path) -> int:
        """Of all batches, which are looked at and not copied."""
        with _arrow(file) as reader:
            return sum(batch.num_rows for batch in reader)

    def stored(self, file: Path, columns: list[str]) -> pa.Table:
        """The batches' columns as they lie in the file."""
        with _arrow(file) as reader:
            chosen = [batch.select(columns) for batch in reader]
            schema = pa.schema([reader.schema.field(name) for name in columns])
        rows = sum(batch.num_rows for batch in chosen)
        return pa.Table.from_batches(chosen, schema) if columns else pa.table({"": pa.nulls(rows)}).select([])


@contextmanager
def _arrow(file: Path) -> Iterator[pa.RecordBatchReader]:
    with pa.memory_map(str(file)) as stored:
        if stored.read(6) == b"ARROW1":  # a file of batches with an index behind them
            opened = pa.ipc.open_file(stored)
            batches = (opened.get_batch(number) for number in range(opened.num_record_batches))
            yield pa.RecordBatchReader.from_batches(opened.schema, batches)
        else:
            stored.seek(0)
            yield pa.ipc.open_stream(stored)


FORMATS = (ParquetSource, ArrowSource)


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
        text = _plain(stored.column(condition.column)).cast(pa.binary())
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
        return pc.fill_null(_plain(stored.column(field.name)).cast(pa.binary()), b"")
    if isinstance(field, Extent):
        x, y, z = (_whole(stored.column(part)) for part in field.parts)
        return pc.bit_wise_or(pc.bit_wise_or(pc.shift_left(x, 32), pc.shift_left(y, 16)), z)
    return _whole(stored.column(field.name))


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values instead of codes for them."""
    if not pa.types.is_dictionary(values.type):
        return values
    return pa.chunked_array([chunk.dictionary_decode() for chunk in values.chunks], values.type.value_type)


def _whole(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """As int64; ids stored unsigned keep their bits, as SQLite shows them, instead of overflowing or going through floats."""
    if values.type == pa.uint64():
        return pa.chunked_array([chunk.view(pa.int64()) for chunk in values.chunks], pa.int64())
    return values.cast(pa.int64())
