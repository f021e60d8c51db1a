"""What any store of an nsys export offers, whether SQLite or a directory of Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from nsys_report.capture.catalogue import Extent, Field, TableSpec, Text
from nsys_report.errors import InputError


@dataclass(frozen=True, slots=True)
class IsIn:
    """Rows whose integer column holds one of the values; `negated`: none of them."""

    column: str
    values: tuple[int, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Rows whose text column begins with one of the prefixes."""

    column: str
    prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Rows for which one of the conditions holds."""

    conditions: tuple[IsIn | StartsWith, ...]


Condition = IsIn | StartsWith | AnyOf


class Source(Protocol):
    """An opened export; reading raises InputError when the file turns out to be damaged."""

    @property
    def path(self) -> Path:
        """The file or directory."""
        ...

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """Every table and view with its columns."""
        ...

    def count(self, table: str, where: Sequence[Condition] = ()) -> int:
        """Rows in a table that meet all conditions."""
        ...

    def has_rows(self, table: str, where: Sequence[Condition] = ()) -> bool:
        """Whether there are any that meet all conditions."""
        ...

    def read(self, table: str, fields: Sequence[Field], where: Sequence[Condition] = ()) -> dict[str, pa.Array]:
        """The named fields of the rows that meet all conditions.

        Integer and Extent come as int64, Text as binary (plain or as codes), where null reads as empty.
        """
        ...

    def close(self) -> None:
        """Lets go of the file."""
        ...


def field_type(field: Field) -> pa.DataType:
    """The Arrow type in which a field is read."""
    return pa.binary() if isinstance(field, Text) else pa.int64()


def present(field: Field, columns: Sequence[str]) -> bool:
    """Whether a table with these columns can give the field."""
    if isinstance(field, Extent):
        return all(part in columns for part in field.parts)
    return field.name in columns


def require(spec: TableSpec, table: str, source: Source) -> None:
    """Raises InputError when the table lacks a column that nothing can stand in for."""
    columns = source.columns[table]
    missing = [f.name for f in spec.fields if f.required and not present(f, columns)]
    if missing:
        raise InputError(
            f"{source.path}: table {table} has no column {', '.join(missing)}; it has {', '.join(columns)}",
            "export the report again with nsys export --type sqlite",
            slug="capture-schema",
        )
