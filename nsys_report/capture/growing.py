"""Columns that are filled batch by batch into memory of their own, also by several threads at once.

The SQLite driver frees a batch only as a whole and only when none of its columns is in use; keeping batches, or joining them at the end,
would hold a large table twice. NumPy's memory is asked for in large pages, which the first touch of a large table is cheaper in.
"""

from __future__ import annotations

from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


class Numbers:
    """An int64 column of at most `most` rows; memory that is never written is never really taken."""

    def __init__(self, most: int) -> None:
        self._values: npt.NDArray[np.int64] = np.empty(most, np.int64)
        self._missing: npt.NDArray[np.bool_] | None = None
        self._any = False
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def put(self, at: int, piece: pa.Array) -> None:
        """Writes a batch of integers (or of nulls alone) at a row; threads may write to different rows at once."""
        rows = slice(at, at + len(piece))
        if piece.null_count:
            self._mask()[rows] = piece.is_null().to_numpy(zero_copy_only=False)
        if piece.null_count < len(piece):
            self._any = True
            self._values[rows] = (pc.fill_null(piece, 0) if piece.null_count else piece).to_numpy(zero_copy_only=False)

    def _mask(self) -> npt.NDArray[np.bool_]:
        with self._lock:
            if self._missing is None:
                self._missing = np.zeros(len(self._values), bool)
            return self._missing

    def move(self, source: int, target: int, rows: int) -> None:
        """Moves rows down to where they belong."""
        for values in (self._values, self._missing):
            if values is not None:
                values[target : target + rows] = values[source : source + rows]

    def finish(self, rows: int) -> pa.Array:
        """The first so many rows as a column."""
        if not self._any:
            return pa.nulls(rows, pa.int64())
        values = pa.py_buffer(self._values)
        if self._missing is None or not self._missing[:rows].any():
            return pa.Array.from_buffers(pa.int64(), rows, [None, values])
        self._values[:rows][self._missing[:rows]] = 0  # what was never written
        return pa.Array.from_buffers(pa.int64(), rows, [pa.array(~self._missing[:rows]).buffers()[1], values])


class Texts:
    """A binary column kept as codes: captures repeat few texts millions of times. One thread writes it, in order."""

    def __init__(self, most: int) -> None:
        self._codes = Numbers(most)
        self._place: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def put(self, at: int, piece: pa.Array) -> None:
        """Writes a batch of texts without nulls."""
        encoded = pc.dictionary_encode(piece.cast(pa.binary()))
        place = [self._place.setdefault(text, len(self._place)) for text in encoded.dictionary.to_pylist()]
        self._codes.put(at, pa.array(place, pa.int64()).take(encoded.indices))

    def move(self, source: int, target: int, rows: int) -> None:
        """Moves rows down to where they belong."""
        self._codes.move(source, target, rows)

    def finish(self, rows: int) -> pa.Array:
        """The first so many rows as a column, dictionary-encoded."""
        codes = self._codes.finish(rows).cast(pa.int32())
        return pa.DictionaryArray.from_arrays(codes, pa.array(list(self._place), pa.binary()))
