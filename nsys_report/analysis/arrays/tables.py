"""Making Arrow tables from NumPy columns: NaN and -1 codes become null, every column has its schema's type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nsys_report.analysis.arrays.view import ModuleKey
from nsys_report.capture.arrays import word_column as word_column

Column: TypeAlias = Any
"""A NumPy or Arrow array, or a sequence of values."""


def table(schema: pa.Schema, columns: Mapping[str, Column]) -> pa.Table:
    """A table of that schema; missing columns and NaN are null, floats are rounded for integer columns."""
    rows = max((len(c) for c in columns.values()), default=0)
    unknown = set(columns) - set(schema.names)
    if unknown:
        raise KeyError(f"not in the schema: {sorted(unknown)}")
    return pa.Table.from_arrays([_array(f, columns.get(f.name), rows) for f in schema], schema=schema)


def module_columns(keys: Sequence[ModuleKey]) -> dict[str, Column]:
    """The two key columns of a row per module key."""
    return {"hlo_module": [k.hlo_module for k in keys], "program_id": [k.program_id for k in keys]}


def divide(top: NDArray[Any], bottom: NDArray[Any] | float | None) -> NDArray[np.float64]:
    """top / bottom, NaN where there is nothing to divide by."""
    if bottom is None:
        return np.full(len(top), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.asarray(top, np.float64) / np.asarray(bottom, np.float64)
    return np.where(np.isfinite(out), out, np.nan)


def _array(field: pa.Field, column: Column | None, rows: int) -> pa.Array | pa.ChunkedArray:
    if column is None:
        return pa.nulls(rows, field.type)
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        missing = np.isnan(column)
        if pa.types.is_integer(field.type):
            return pa.array(np.where(missing, 0, np.rint(column)).astype(np.int64), mask=missing).cast(field.type)
        return pa.array(column, field.type, mask=missing)
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return _cast(column, field.type)
    return _cast(pa.array(column, field.type.value_type if pa.types.is_dictionary(field.type) else field.type), field.type)


def _cast(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if column.type == kind:
        return column
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(column.type):
        return pc.dictionary_encode(column.cast(kind.value_type))
    return column.cast(kind)
