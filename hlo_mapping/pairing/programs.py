"""Pairs the programs of two dumps: by name, and by what they compute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hlo_mapping.pairing.work import Work

Key = TypeVar("Key")
LEAST_ALIKE = 0.7
"""Share of works in common (Dice over outlines) from which programs of different names are a pair."""


@dataclass(frozen=True, slots=True)
class Described:
    """A program as pairing sees it: its name, its works (none where the dump lacks it), and how much time it takes."""

    name: str
    works: tuple[Work, ...]
    time: float


def pair_programs(before: Mapping[Key, Described], after: Mapping[Key, Described]) -> tuple[tuple[Key | None, Key | None], ...]:
    """Pairs of keys, most time first; None on one side for a program without a counterpart."""
    scores = [(_score(one, other), a, b) for a, one in before.items() for b, other in after.items()]
    places = {key: n for side in (before, after) for n, key in enumerate(side)}
    pairs: list[tuple[Key | None, Key | None]] = []
    for score, a, b in sorted(scores, key=lambda s: (-s[0], abs(places[s[1]] - places[s[2]]), places[s[1]])):
        if score > 0 and all(a != one for one, _ in pairs) and all(b != other for _, other in pairs):
            pairs.append((a, b))
    pairs += [(a, None) for a in before if all(a != one for one, _ in pairs)]
    pairs += [(None, b) for b in after if all(b != other for _, other in pairs)]
    return tuple(sorted(pairs, key=lambda p: -_time(p, before, after)))


def _time(pair: tuple[Key | None, Key | None], before: Mapping[Key, Described], after: Mapping[Key, Described]) -> float:
    a, b = pair
    return max(before[a].time if a is not None else 0.0, after[b].time if b is not None else 0.0)


def _score(one: Described, other: Described) -> float:
    """0 for programs that are no pair; a name in common counts most, then works in common, then equal work."""
    alike = _alike(one.works, other.works)
    if one.name != other.name:
        return alike if alike >= LEAST_ALIKE else 0.0
    exact = {w.exact for w in one.works} == {w.exact for w in other.works}
    return 1.0 + alike + exact


def _alike(one: Sequence[Work], other: Sequence[Work]) -> float:
    if not one or not other:
        return 0.0
    left, right = (Counter(w.outline for w in works) for works in (one, other))
    return 2 * (left & right).total() / (len(one) + len(other))
