"""Arrow columns as NumPy arrays, as pictures and traces take them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nsys_report.analysis.arrays import view

NONE = -1
"""In place of an integer that is not known."""


def ints(table: pa.Table, name: str) -> NDArray[np.int64]:
    """An integer column, NONE where null or absent."""
    return view.ints(table, name, NONE)[0]


def plain_words(table: pa.Table, name: str) -> list[str | None]:
    """A word column as plain strings; of a long table see codes."""
    return table[name].cast(pa.string()).to_pylist()


def codes(table: pa.Table, name: str) -> tuple[NDArray[np.int64], list[str]]:
    """A word column as codes, NONE for null, and its words."""
    coded = view.coded(table, name)
    return np.asarray(coded.codes, np.int64), list(coded.words)
