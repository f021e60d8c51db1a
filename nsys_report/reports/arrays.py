"""Arrow columns as NumPy arrays, as pictures and traces take them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NONE = -1
"""In place of an integer that is not known."""


def ints(table: pa.Table, name: str) -> NDArray[np.int64]:
    """An integer column, NONE where null or absent."""
    if name not in table.column_names:
        return np.full(len(table), NONE, np.int64)
    column = table[name]
    return np.asarray((pc.fill_null(column, NONE) if column.null_count else column).to_numpy(), np.int64)


def plain_words(table: pa.Table, name: str) -> list[str | None]:
    """A word column as plain strings; of a long table see codes."""
    return table[name].cast(pa.string()).to_pylist()


def codes(table: pa.Table, name: str) -> tuple[NDArray[np.int64], list[str]]:
    """A word column as codes, NONE for null, and its words."""
    column = table[name]
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    array = column.unify_dictionaries().combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        if array.num_chunks == 0:
            return np.empty(0, np.int64), []
        array = array.chunk(0)
    return np.asarray(pc.fill_null(array.indices, NONE).to_numpy(zero_copy_only=False), np.int64), array.dictionary.to_pylist()
