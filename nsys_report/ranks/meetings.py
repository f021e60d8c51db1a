"""Meetings: one collective of one step, and the ranks that come to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlo_mapping import Collective
from nsys_report.ranks.align import Alignment
from nsys_report.ranks.programs import Kernels, Rank, SharedProgram, all_kernels
from nsys_report.ranks.summary import Ints

ENDS_TOGETHER = frozenset({"all-reduce", "all-gather", "reduce-scatter", "all-to-all"})
"""Kinds that no rank leaves before all have come, and that all leave at once: only those tell the difference of clocks."""


@dataclass(frozen=True, slots=True, eq=False)
class Meetings:
    """`kernels` are those of collectives whose step is known; `step` is each one's, `of` its meeting, by meeting then rank.

    The other columns have a row a meeting: its first row of `kernels`, how many ranks came, how many its group has (0 where unknown),
    and whether its ends are taken to coincide.
    """

    kernels: Kernels
    step: Ints
    of: Ints
    first: Ints
    came: Ints
    group_size: Ints
    ends_together: np.ndarray

    def __len__(self) -> int:
        return len(self.first)


def meetings(ranks: Sequence[Rank], programs: Sequence[SharedProgram], alignment: Alignment) -> Meetings:
    """The collectives of all ranks by step, those that only one rank came to left out."""
    kernels = all_kernels(ranks, programs)
    step = np.full(len(kernels), -1, np.int64)
    group = np.zeros(len(kernels), np.int64)
    size = np.zeros(len(kernels), np.int64)
    together = np.zeros(len(kernels), np.bool_)
    numbers = _participants(ranks)
    place = kernels.program * len(ranks) + kernels.rank  # rows stand in this order
    for p, program in enumerate(programs):
        for r in range(len(ranks)):
            steps = alignment.steps[p][r]
            rows = slice(*np.searchsorted(place, [p * len(ranks) + r, p * len(ranks) + r + 1]).tolist())
            if steps is not None:
                step[rows] = steps[kernels.execution[rows]]
        mine = np.flatnonzero(kernels.program == p)
        for c, collective in enumerate(program.collectives):
            rows = mine[kernels.collective[mine] == c]
            of_rank, sizes = _groups(collective, numbers)
            group[rows], size[rows] = of_rank[kernels.rank[rows]], sizes[kernels.rank[rows]]
            together[rows] = collective.kind in ENDS_TOGETHER
    return _met(kernels, step, group, size, together)


def _participants(ranks: Sequence[Rank]) -> Ints:
    """XLA's number of each rank: its place in the run, or its own number where ranks are missing."""
    return np.array([rank.number for rank in ranks], np.int64)


def _groups(collective: Collective, numbers: Ints) -> tuple[Ints, Ints]:
    """Of each rank the group it meets in and that group's size; one group of unknown size where the ranks' numbers are no devices'."""
    group, size = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
    if collective.groups is None:
        return group, size
    known = {device: (n, len(members)) for n, members in enumerate(collective.groups) for device in members}
    if not all(int(number) in known for number in numbers):
        return group, size + (len(collective.groups[0]) if len(collective.groups) == 1 else 0)
    pairs = np.array([known[int(number)] for number in numbers], np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _met(kernels: Kernels, step: Ints, group: Ints, size: Ints, together: np.ndarray) -> Meetings:
    rows = np.flatnonzero(step >= 0)
    keys = (kernels.program, step, kernels.collective, kernels.occurrence, group)
    order = rows[np.lexsort((kernels.rank[rows], *(key[rows] for key in reversed(keys))))]
    changed = np.zeros(len(order), np.bool_)
    changed[:1] = True
    for key in keys:
        changed[1:] |= key[order[1:]] != key[order[:-1]]
    of = np.cumsum(changed) - 1
    count = np.bincount(of, minlength=0)
    order = order[count[of] > 1] if len(of) else order
    changed = changed[count[of] > 1] if len(of) else changed
    first = np.flatnonzero(changed)
    came = np.diff(first, append=len(order))
    return Meetings(
        kernels.take(order), step[order], np.cumsum(changed) - 1, first, came.astype(np.int64), size[order[first]], together[order[first]]
    )
