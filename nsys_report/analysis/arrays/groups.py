"""Groups of activities by a code, without sorting them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nsys_report.analysis.arrays.view import Codes, Ints

_TABLE = 1 << 24
"""Codes up to here are looked up in a table, which is quicker than a hash of each."""


def dense_codes(code: NDArray[Any], size: int) -> tuple[Codes, Ints]:
    """Codes (0 <= code < size) renumbered in order of first appearance: the number of each row, and the codes that occur."""
    if size > _TABLE:
        seen = pa.array(code).dictionary_encode()
        return seen.indices.to_numpy(), np.asarray(seen.dictionary.to_numpy(zero_copy_only=False), np.int64)
    first = np.full(size, -1, np.int64)
    first[code[::-1]] = np.arange(len(code) - 1, -1, -1, dtype=np.int32)
    keys = np.flatnonzero(first >= 0)
    keys = keys[np.argsort(first[keys])]
    number = np.zeros(size, np.int32)
    number[keys] = np.arange(len(keys))
    return number[code], keys


def dense_tuples(parts: Sequence[tuple[NDArray[Any], int]]) -> tuple[Codes, tuple[Ints, ...]]:
    """Rows renumbered by several codes at once, each given with its size: the number of each row, and the codes of each number."""
    widths = tuple(width for _, width in parts)
    size = prod(widths)
    code: Any = parts[0][0].astype(np.int32 if size < 1 << 31 else np.int64)
    for part, width in parts[1:]:
        code *= width
        code += part.astype(code.dtype, copy=False)
    number, keys = dense_codes(code, size)
    return number, tuple(np.unravel_index(keys, widths))


def distinct_rows(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Rows of several columns renumbered in order of first appearance: the number of each row, and the first row of each number.

    By hashes, a column at a time: sorting rows of nine columns takes ten times as long.
    """
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        own = pa.array(column).dictionary_encode()
        combined = number * max(len(own.dictionary), 1) + own.indices.to_numpy()
        number = pa.array(combined).dictionary_encode().indices.to_numpy().astype(np.int64)
    first = np.empty(int(number.max()) + 1 if len(number) else 0, np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return number, first


def coded_floats(column: pa.ChunkedArray) -> tuple[NDArray[np.float64], Ints]:
    """The distinct values of a column of few, and the place of each row's among them, -1 for null."""
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    encoded = array.dictionary_encode()
    codes = encoded.indices.fill_null(-1) if encoded.indices.null_count else encoded.indices
    return encoded.dictionary.to_numpy(zero_copy_only=False).astype(np.float64), codes.to_numpy(zero_copy_only=False)
