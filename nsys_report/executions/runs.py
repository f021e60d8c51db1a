"""Neighboring rows that are alike: what is asked of each row is asked once for each run of them.

All kernels of a graph launch have the same call, and a capture's activities stand in time order, so that runs are long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RowRuns:
    """Rows cut into runs: the first row of each, and how many rows it has."""

    first: NDArray[np.int64]
    length: NDArray[np.int64]

    @classmethod
    def of(cls, *columns: NDArray[Any]) -> RowRuns:
        """The longest runs of rows that are the same in all columns."""
        begins = np.ones(len(columns[0]), np.bool_)
        if len(begins):
            begins[1:] = False
            for column in columns:
                begins[1:] |= column[1:] != column[:-1]
        first = np.flatnonzero(begins)
        return cls(first, np.diff(first, append=len(begins)))

    def expand(self, values: NDArray[Any]) -> NDArray[Any]:
        """One value a run, as one value a row."""
        return np.repeat(values, self.length)
