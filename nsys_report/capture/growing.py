"""Columns that grow batch by batch into memory of their own.

The SQLite driver frees a batch only as a whole and only when none of its columns is in use; keeping batches, or joining them at the end,
would hold a large table twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


class Numbers:
    """An int64 column of at most `most` rows; memory that is never written is never really taken."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._buffer: Any = None
        self._missing: npt.NDArray[np.bool_] | None = None
        self._rows = 0

    def add(self, piece: pa.Array) -> None:
        """Appends a batch of integers (or of nulls alone)."""
        start, stop = self._rows, self._rows + len(piece)
        self._rows = stop
        if piece.null_count == len(piece):
            piece_values: npt.NDArray[np.int64] | int = 0
        else:
            piece_values = pc.fill_null(piece, 0).to_numpy(zero_copy_only=False)
        if self._buffer is None:
            if piece.null_count == len(piece):
                return  # still nothing but nulls: no memory needed
            self._buffer = pa.allocate_buffer(max(self._most, stop) * 8)
            self._values()[:start] = 0
            if start:
                self._mask()[:start] = True
        self._values()[start:stop] = piece_values
        if piece.null_count:
            self._mask()[start:stop] = piece.is_null().to_numpy(zero_copy_only=False)

    def _values(self) -> npt.NDArray[np.int64]:
        return np.frombuffer(self._buffer, np.int64)

    def _mask(self) -> npt.NDArray[np.bool_]:
        if self._missing is None:
            self._missing = np.zeros(self._most, bool)
        return self._missing

    def finish(self) -> pa.Array:
        """The whole column."""
        if self._buffer is None:
            return pa.nulls(self._rows, pa.int64())
        validity = None if self._missing is None else pa.array(~self._missing[: self._rows]).buffers()[1]
        return pa.Array.from_buffers(pa.int64(), self._rows, [validity, self._buffer])


class Texts:
    """A binary column kept as codes: captures repeat few texts millions of times."""

    def __init__(self, most: int) -> None:
        self._codes = Numbers(most)
        self._place: dict[bytes, int] = {}

    def add(self, piece: pa.Array) -> None:
        """Appends a batch of texts without nulls."""
        encoded = pc.dictionary_encode(piece.cast(pa.binary()))
        place = [self._place.setdefault(text, len(self._place)) for text in encoded.dictionary.to_pylist()]
        self._codes.add(pa.array(place, pa.int64()).take(encoded.indices))

    def finish(self) -> pa.Array:
        """The whole column, dictionary-encoded."""
        codes = self._codes.finish().cast(pa.int32())
        return pa.DictionaryArray.from_arrays(codes, pa.array(list(self._place), pa.binary()))
