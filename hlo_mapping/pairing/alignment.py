"""Aligns two stretches of works of which some were split, merged, made new or dropped, by the operations they hold.

The moves are those that sentence alignment of translated texts uses (W. A. Gale and K. W. Church, Computational Linguistics 19(1), 1993):
one to one, one to several, several to one, and none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TypeAlias

from hlo_mapping.pairing.work import Atom, Work, amount, weight

Group: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""Places before and after that hold the same work."""

MOVES = ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (1, 4), (4, 1))
LEAST_ALIKE = 0.5
"""Share of operations in common (Dice) from which works can be a pair; a choice, made on compiles of one program with other flags."""
PER_MEMBER = 0.15
"""What each further member of a group must add in matched operations."""
RENAMED = 0.5
"""What an operation in common counts that came from other code: enough for works that are alike throughout."""
KIND_BONUS = 0.1
UNNAMED = 0.8
"""What an operation in common counts where only one side says which code it came from: rewrites of products lose it."""
MOST_CELLS = 400_000
"""A larger table is aligned by equal outlines alone: minutes of work would not make it surer."""


def align(before: Sequence[Work], after: Sequence[Work]) -> list[Group]:
    """Groups of places in `before` and `after`, in order; what is in none has no counterpart."""
    if not before or not after or len(before) * len(after) > MOST_CELLS:
        return []
    scorer = _Scorer(before, after)
    best = [[0.0] * (len(after) + 1) for _ in range(len(before) + 1)]
    came = [[(0, 0)] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in range(len(before) + 1):
        for j in range(len(after) + 1):
            best[i][j], came[i][j] = _best_move(scorer, best, i, j)
    return _followed(came, len(before), len(after))


def _best_move(scorer: _Scorer, best: list[list[float]], i: int, j: int) -> tuple[float, tuple[int, int]]:
    options = [(0.0, (0, 0))] if i == j == 0 else []
    if i:
        options.append((best[i - 1][j], (1, 0)))
    if j:
        options.append((best[i][j - 1], (0, 1)))
    for rows, columns in MOVES:
        if i >= rows and j >= columns:
            score = scorer.score(i - rows, i, j - columns, j)
            if score > 0:
                options.append((best[i - rows][j - columns] + score, (rows, columns)))
    return max(options, key=lambda option: option[0])


def _followed(came: list[list[tuple[int, int]]], i: int, j: int) -> list[Group]:
    found: list[Group] = []
    while i or j:
        rows, columns = came[i][j]
        if rows and columns:
            found.append((tuple(range(i - rows, i)), tuple(range(j - columns, j))))
        i, j = i - rows, j - columns
    return found[::-1]


class _Scorer:
    """Scores of groups, each distinct pair of works compared once; a group counts only where each of its works fits the other side."""

    def __init__(self, before: Sequence[Work], after: Sequence[Work]) -> None:
        self.before, self.after = before, after
        keys = {key: n for n, key in enumerate(dict.fromkeys(w.exact + w.code for w in (*before, *after)))}
        self.keys = [keys[w.exact + w.code] for w in before], [keys[w.exact + w.code] for w in after]
        self.pairs: dict[tuple[int, int], tuple[bool, bool]] = {}
        self.known: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}

    def score(self, first: int, last: int, start: int, end: int) -> float:
        """What a group of one work with one or several is worth: matched operations; 0 where it is none."""
        side = last - first == 1
        fits = (self._fits(i, j)[side] for i in range(first, last) for j in range(start, end))
        if not all(fits):
            return 0.0
        key = tuple(self.keys[0][first:last]), tuple(self.keys[1][start:end])
        if key not in self.known:
            self.known[key] = group_score(self.before[first:last], self.after[start:end])
        return self.known[key]

    def _fits(self, i: int, j: int) -> tuple[bool, bool]:
        """Whether most of one work's own operations are found in the other: of that before, and of that after; in loops as deep."""
        key = self.keys[0][i], self.keys[1][j]
        if key not in self.pairs:
            one, other = self.before[i], self.after[j]
            self.pairs[key] = (_brings(one, other.atoms), _brings(other, one.atoms))
        same = self.before[i].depth == self.after[j].depth
        return (same and self.pairs[key][0], same and self.pairs[key][1])


def group_score(ones: Sequence[Work], others: Sequence[Work]) -> float:
    """The weight of operations in common, less what further members must bring; 0 where less than half is common."""
    left, right = _together(ones), _together(others)
    shared = common(left, right)
    if 2 * shared < LEAST_ALIKE * (amount(left) + amount(right)):
        return 0.0
    if not all(_brings(w, right) for w in ones) or not all(_brings(w, left) for w in others):
        return 0.0
    if len(ones) == len(others) == 1:
        return shared + sum(bonus for bonus, given in _likeness(ones[0], others[0]) if given)
    return max(shared - PER_MEMBER * (len(ones) + len(others) - 2), 0.0)


def _likeness(one: Work, other: Work) -> tuple[tuple[float, bool], ...]:
    """What speaks for a pair beside its operations."""
    return ((KIND_BONUS, one.kind == other.kind), (0.5, one.outline == other.outline), (KIND_BONUS, one.elements == other.elements))


def common(left: Counter[Atom], right: Counter[Atom]) -> float:
    """The weight of the operations that both have; one whose code is unknown on a side counts a little less than one known to be alike."""
    exact = left & right
    shared = amount(exact)
    rest = [_by_operation(side - exact) for side in (left, right)]
    for operation, (named, unnamed) in rest[0].items():
        other_named, other_unnamed = rest[1].get(operation, (0, 0))
        soft = min(unnamed, other_named) + min(named, other_unnamed)
        renamed = min(named + unnamed - soft, min(named, other_named))
        shared += (UNNAMED * soft + RENAMED * max(renamed, 0)) * weight((operation, ""))
    return shared


def _by_operation(atoms: Counter[Atom]) -> dict[str, tuple[int, int]]:
    """How often each operation is there, with known code and without."""
    found: dict[str, tuple[int, int]] = {}
    for (operation, code), times in atoms.items():
        named, unnamed = found.get(operation, (0, 0))
        found[operation] = (named + times, unnamed) if code else (named, unnamed + times)
    return found


def _together(works: Sequence[Work]) -> Counter[Atom]:
    return works[0].atoms if len(works) == 1 else reduce(add, (w.atoms for w in works))


def _brings(work: Work, other: Counter[Atom]) -> bool:
    """Whether most of a member's own operations are found on the other side: a group holds no stranger."""
    return 2 * common(work.atoms, other) >= amount(work.atoms) * LEAST_ALIKE
