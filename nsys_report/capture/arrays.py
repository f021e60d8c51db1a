"""Small columnar tools: integers without floats, text as dictionary codes, time order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hlo_mapping.columns import WORD

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


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


def nullable(values: npt.NDArray[np.generic], missing: Flags, kind: pa.DataType) -> pa.Array:
    """An array with nulls where `missing`."""
    return pa.array(values, kind, mask=missing if missing.any() else None)


def decode(value: bytes) -> str:
    """Text as captures hold it: UTF-8, what is not becomes the replacement character."""
    return value.decode("utf-8", errors="replace")


def encode(values: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, list[object]]:
    """Codes (int32, null for null) and the distinct values they stand for."""
    if isinstance(values, pa.DictionaryArray):
        return values.indices.cast(pa.int32()), values.dictionary.to_pylist()
    chunked = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    if not chunked.num_chunks or not len(chunked):
        return pa.array([], pa.int32()), []
    encoded = pc.dictionary_encode(chunked)
    codes = pa.concat_arrays([chunk.indices for chunk in encoded.chunks])
    return codes.cast(pa.int32()), encoded.chunk(0).dictionary.to_pylist()


def words(codes: pa.Array, texts: Sequence[str | None]) -> pa.DictionaryArray:
    """A WORD column from codes into texts; equal texts share one code, and a None text is a null value."""
    distinct = list(dict.fromkeys(t for t in texts if t is not None))
    if len(distinct) != len(texts):
        place = {t: i for i, t in enumerate(distinct)}
        moved = pa.array([place[t] if t is not None else None for t in texts], pa.int32())
        codes = moved.take(codes) if len(moved) else codes
    return pa.DictionaryArray.from_arrays(codes.cast(pa.int32()), pa.array(distinct, pa.string()))


def words_by_value(values: pa.ChunkedArray | pa.Array, text: Mapping[int, str] | Callable[[int], str | None]) -> pa.DictionaryArray:
    """A WORD column from integers; a number that the mapping lacks is null."""
    codes, distinct = encode(values)
    lookup = text.get if isinstance(text, Mapping) else text
    return words(codes, [lookup(int(v)) for v in distinct])  # type: ignore[call-overload]


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
    steps = np.diff(start)
    if (steps > 0).all():
        return None
    if (steps >= 0).all() and not ((steps == 0) & (np.diff(end) < 0)).any():
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
    order = None
    if sum(rows):
        start = np.concatenate([integers(part["start_ns"]) for part in parts]) if len(parts) > 1 else integers(parts[0]["start_ns"])
        end_name = "end_ns" if "end_ns" in parts[0] else "start_ns"
        end = np.concatenate([integers(part[end_name]) for part in parts]) if len(parts) > 1 else integers(parts[0][end_name])
        order = time_order(start, end)
        del start, end
    chosen = None if order is None else pa.array(order.astype(np.int32 if sum(rows) < 2**31 else np.int64))
    arrays = []
    for field in schema:
        pieces = [part.pop(field.name, None) for part in parts]
        column = _concatenate([null_column(field.type, n) if p is None else flat(p) for p, n in zip(pieces, rows, strict=True)], field.type)
        pieces.clear()
        if chosen is not None and column.null_count < len(column):
            column = column.take(chosen)
        arrays.append(column if column.type == field.type else column.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _concatenate(arrays: list[pa.Array], kind: pa.DataType) -> pa.Array:
    if len(arrays) == 1:
        return arrays[0]
    if not arrays or all(a.null_count == len(a) for a in arrays):
        return null_column(kind, sum(len(a) for a in arrays))
    if isinstance(arrays[0], pa.DictionaryArray):
        unified = pa.chunked_array(arrays).unify_dictionaries()
        return pa.DictionaryArray.from_arrays(pa.concat_arrays([c.indices for c in unified.chunks]), unified.chunk(0).dictionary)
    return pa.concat_arrays(arrays)


def empty(schema: pa.Schema) -> pa.Table:
    """A table without rows."""
    return schema.empty_table()
