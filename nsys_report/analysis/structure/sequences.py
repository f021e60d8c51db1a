"""The sequence of work that a program's executions have in common, and its blocks where it repeats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsys_report.analysis.arrays.quantiles import Floats
from nsys_report.analysis.arrays.view import Ints, View
from nsys_report.analysis.structure.periods import Period


@dataclass(frozen=True, slots=True)
class Sequence:
    """The work of a typical execution: kernels, and the copies on the device that instructions ask for."""

    rows: Ints
    """Rows of the activities, of the first execution that has the sequence."""
    times: Floats
    """Their median durations over the executions that have it, ns."""
    alike: Ints
    """The rows of all those; shape (executions, positions)."""

    @property
    def executions(self) -> int:
        """How many executions have the sequence."""
        return len(self.alike)


def blocks(sequence: Sequence, period: Period) -> Ints:
    """The rows of the activities by block; shape (blocks, positions)."""
    end = period.start + period.length * period.count
    return sequence.rows[period.start : end].reshape(period.count, period.length)


def block_times(sequence: Sequence, period: Period) -> Floats:
    """The times by block; shape (blocks, positions)."""
    end = period.start + period.length * period.count
    return sequence.times[period.start : end].reshape(period.count, period.length)


@dataclass(frozen=True, slots=True)
class BlockSpans:
    """When a program's blocks ran, in each execution that has its typical sequence."""

    kind: str
    """iteration, layer or block (a layer that reads no model parameters)."""
    module: int
    """Index in View.modules."""
    execution: Ints
    """Rows of View.executions; shape (executions,)."""
    start: Ints
    """First start of each block, ns; shape (executions, blocks)."""
    end: Ints
    """Last end of each block."""


def block_spans(view: View, kind: str, module: int, sequence: Sequence, period: Period) -> BlockSpans:
    """When the blocks of a sequence ran."""
    rows = sequence.alike[:, period.start : period.start + period.length * period.count]
    rows = rows.reshape(len(rows), period.count, period.length)
    return BlockSpans(kind, module, view.execution[rows[:, 0, 0]], view.start[rows].min(axis=2), view.end[rows].max(axis=2))


def middle_block(sequence: Sequence, period: Period) -> Sequence:
    """One block as a sequence of its own: the rows of the middle one, the times of the median one."""
    first = period.start + period.count // 2 * period.length
    part = slice(first, first + period.length)
    return Sequence(sequence.rows[part], np.median(block_times(sequence, period), axis=0), sequence.alike[:, part])


def typical_sequences(view: View) -> list[Sequence | None]:
    """The commonest sequence of work in each program's complete executions, by instruction; None for a program without any."""
    rows = view.inside
    run = view.execution[rows]
    if np.any(run[1:] < run[:-1]):
        order = np.argsort(run, kind="stable")
        rows, run = rows[order], run[order]
    first = np.flatnonzero(np.diff(run, prepend=-1))
    count = np.diff(first, append=len(rows))
    there = run[first]
    module = np.where(view.executions.complete[there], view.executions.module[there], -1)
    return [_typical(view, rows, first[module == m], count[module == m]) for m in range(len(view.modules))]


def _typical(view: View, rows: Ints, first: Ints, count: Ints) -> Sequence | None:
    """The sequence of the executions whose work begins at `first` among the rows, and is so long."""
    if len(first) == 0:
        return None
    usual = int(np.bincount(count).argmax())
    starts = first[count == usual]
    matrix = rows[starts[:, None] + np.arange(usual)]
    what = view.instruction[matrix]
    if not (what == what[0]).all():
        _, group, alike = np.unique(what, axis=0, return_inverse=True, return_counts=True)
        matrix = matrix[group.ravel() == int(np.argmax(alike))]
    return Sequence(matrix[0], np.median(view.duration[matrix], axis=0), matrix)
