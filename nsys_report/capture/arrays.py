"""Small columnar tools: integers without floats, text as dictionary codes, time order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hlo_mapping import WORD

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
_TABLE = 1 << 26
"""Ids up to here are looked up in a table of their own, which is several times quicker than a search."""


class _WithoutPandas:
    """A finder that finds no pandas."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def _leave_pandas_out() -> None:
    """pyarrow looks for pandas at the first array that it makes, a seventh of a small report's time.

    Asked while there is none to be found, it does not look again before something becomes a data frame.
    """
    if "pandas" not in sys.modules:
        finder = _WithoutPandas()
        sys.meta_path.insert(0, finder)
        try:
            pa.array([0])
        finally:
            sys.meta_path.remove(finder)


_leave_pandas_out()


def flat(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One contiguous array."""
    if isinstance(values, pa.ChunkedArray):
        return (
            values.chunk(0)
            if values.num_chunks == 1
            else pa.concat_arrays(values.chunks)
            if values.num_chunks
            else pa.nulls(0, values.type)
        )
    return values


def integers(values: pa.ChunkedArray | pa.Array, null: int = -1) -> Ints:
    """As int64 with `null` for nulls; never through floats, which would lose ids above 2**53."""
    array = flat(values)
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(null, array.type))
    result: Ints = array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return result


def distinct(values: Ints) -> list[int]:
    """The distinct values, in order; quick where there are few."""
    if len(values) and (values == values[0]).all():
        return [int(values[0])]
    return sorted(pa.array(values).unique().to_pylist())


def lookup(keys: Ints, wanted: Ints) -> Codes:
    """For each wanted id the place of its first occurrence among the keys, -1 where there is none; negative ids are in none."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int32)
    highest = int(keys.max())
    if highest >= _TABLE or int(keys.min()) < 0:
        order = np.argsort(keys, kind="stable")
        at = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
        return np.where((keys[order[at]] == wanted) & (wanted >= 0), order[at], -1).astype(np.int32)
    table = np.full(highest + 2, -1, np.int32)
    table[keys[::-1]] = np.arange(len(keys) - 1, -1, -1, dtype=np.int32)
    return table[np.where((wanted < 0) | (wanted > highest), highest + 1, wanted)]


def nullable(values: npt.NDArray[np.generic], missing: Flags | None, kind: pa.DataType) -> pa.Array:
    """An array of a fixed-width type with nulls where `missing`; shares the memory of values that have that type's width."""
    exact = np.ascontiguousarray(values, kind.to_pandas_dtype())
    validity = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing is not None and missing.any() else None
    return pa.Array.from_buffers(kind, len(exact), [validity, pa.py_buffer(exact)])


def decode(value: bytes) -> str:
    """Text as captures hold it: UTF-8, what is not becomes the replacement character."""
    return value.decode("utf-8", errors="replace")


def encode(values: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, list[object]]:
    """Codes (int32, null for null) and the distinct values they stand for."""
    array = flat(values)
    encoded = array if isinstance(array, pa.DictionaryArray) else array.dictionary_encode()
    return encoded.indices.cast(pa.int32()), encoded.dictionary.to_pylist()


def word_column(codes: pa.Array | np.ndarray, texts: Sequence[str | None]) -> pa.DictionaryArray:
    """A WORD column from codes into texts, of which -1 and null are null; equal texts share one code, and a None text is a null value."""
    if isinstance(codes, np.ndarray):
        codes = pa.array(codes.astype(np.int32, copy=False), mask=codes < 0)
    distinct = list(dict.fromkeys(t for t in texts if t is not None))
    if len(distinct) != len(texts):
        place = {t: i for i, t in enumerate(distinct)}
        moved = pa.array([place[t] if t is not None else None for t in texts], pa.int32())
        codes = moved.take(codes) if len(moved) else codes
    return pa.DictionaryArray.from_arrays(codes.cast(pa.int32()), pa.array(distinct, pa.string()))


def rows_with(column: pa.ChunkedArray | pa.DictionaryArray, word: str) -> Ints:
    """The rows of a WORD column that hold a word."""
    array = flat(column)
    texts = array.dictionary.to_pylist()
    return np.flatnonzero(integers(array.indices) == texts.index(word)) if word in texts else np.empty(0, np.int64)


def words_by_value(values: pa.ChunkedArray | pa.Array, text: Mapping[int, str] | Callable[[int], str | None]) -> pa.DictionaryArray:
    """A WORD column from integers; a number that the mapping lacks is null."""
    codes, distinct = encode(values)
    lookup = text.get if isinstance(text, Mapping) else text
    return word_column(codes, [lookup(int(v)) for v in distinct])  # type: ignore[call-overload]


def constant_word(text: str, rows: int) -> pa.DictionaryArray:
    """A WORD column that says the same in every row."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text], pa.string()))


def null_column(kind: pa.DataType, rows: int) -> pa.Array:
    """A column of nulls."""
    if kind == WORD:
        return pa.DictionaryArray.from_arrays(pa.nulls(rows, pa.int32()), pa.array([], pa.string()))
    return pa.nulls(rows, kind)


def time_order(start: Ints, end: Ints) -> npt.NDArray[np.int64] | None:
    """Row numbers in order of start, then end; None when the rows stand so already."""
    if len(start) < 2:
        return None
    if (start[1:] >= start[:-1]).all() and not ((start[1:] == start[:-1]) & (end[1:] < end[:-1])).any():
        return None
    order = np.argsort(start, kind="stable")
    ties = np.flatnonzero(np.diff(start[order]) == 0)
    if len(ties) and (end[order[ties]] > end[order[ties + 1]]).any():
        order = np.lexsort((end, start))
    return order


def arrange(parts: Sequence[dict[str, pa.Array]], schema: pa.Schema) -> pa.Table:
    """The parts as one table in order of start_ns, then end_ns; a column that a part lacks is null there.

    Takes the columns out of the parts one by one, so that no second copy of a large table is held.
    """
    rows = [len(part["start_ns"]) for part in parts]
    places = _places(parts, rows)
    arrays = []
    for field in schema:
        pieces = [part.pop(field.name, None) for part in parts]
        arrays.append(_put_together([None if p is None else flat(p) for p in pieces], rows, places, field.type))
        pieces.clear()
    return pa.Table.from_arrays(arrays, schema=schema)


def _places(parts: Sequence[dict[str, pa.Array]], rows: Sequence[int]) -> list[npt.NDArray[np.int64]] | None:
    """For each part the row in the whole table of each of its rows; None where the parts follow one another in order."""
    if not sum(rows):
        return None
    end_name = "end_ns" if "end_ns" in parts[0] else "start_ns"
    start, end = (np.concatenate([integers(part[name]) for part in parts]) for name in ("start_ns", end_name))
    order = time_order(start, end)
    if order is None:
        return None
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return np.split(place, np.cumsum(rows)[:-1])


def _put_together(
    pieces: Sequence[pa.Array | None], rows: Sequence[int], places: list[npt.NDArray[np.int64]] | None, kind: pa.DataType
) -> pa.Array:
    """One column from its pieces, each row at its place."""
    total = sum(rows)
    known = [p for p in pieces if p is not None and p.null_count < len(p)]
    if not known:
        return null_column(kind, total)
    if len(pieces) == 1 and places is None:
        return known[0].cast(kind)
    width, texts = (pa.int32(), _shared_dictionary(known)) if kind == WORD else (kind, None)
    values = np.zeros(total, width.to_pandas_dtype())
    missing = np.ones(total, np.bool_) if len(known) < len(pieces) or any(p.null_count for p in known) else None
    first = 0
    for n, (piece, count) in enumerate(zip(pieces, rows, strict=True)):
        at = places[n] if places is not None else slice(first, first + count)
        first += count
        if piece is None or piece.null_count == count:
            continue
        if texts is not None:
            moved = pa.array([texts[t] for t in piece.dictionary.to_pylist()], pa.int32())
            piece = moved.take(piece.indices) if list(texts)[: len(moved)] != piece.dictionary.to_pylist() else piece.indices
        values[at] = (pc.fill_null(piece, 0) if piece.null_count else piece).to_numpy(zero_copy_only=False)
        if missing is not None:
            missing[at] = piece.is_null().to_numpy(zero_copy_only=False) if piece.null_count else False
    made = nullable(values, missing, width)
    return made if texts is None else pa.DictionaryArray.from_arrays(made, pa.array(list(texts), pa.string()))


def _shared_dictionary(columns: Sequence[pa.DictionaryArray]) -> dict[str, int]:
    """Every text of the columns with a code of its own, in order of first use."""
    texts: dict[str, int] = {}
    for column in columns:
        for text in column.dictionary.to_pylist():
            texts.setdefault(text, len(texts))
    return texts


def empty(schema: pa.Schema) -> pa.Table:
    """A table without rows."""
    return schema.empty_table()
