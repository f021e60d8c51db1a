"""Pairs the launching instructions of two compiles of one program.

First what is alike with its neighborhood: fingerprints are refined by those of the works that a work reads from and is read by
(B. Weisfeiler and A. Leman, 1968), and where as many works before as after have the same one, they are pairs in order. Between
such anchors the rest is aligned by the operations it holds, so that works that were split or merged are found; what is left and
alike somewhere else has moved.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from hlo_mapping.pairing.alignment import Group, align, group_score
from hlo_mapping.pairing.work import Work, digest

Change: TypeAlias = Literal["same", "moved", "split", "merged", "new", "gone"]

ROUNDS = 3
"""Neighbors of neighbors that refine a fingerprint: enough to tell the first and last layers from those between."""


@dataclass(frozen=True, slots=True)
class InstructionPair:
    """Works before and after that do the same; several on a side that was split or merged, none where there is no counterpart.

    `same` is one work with one counterpart in its place, of the same kind; `moved` one whose counterpart stands elsewhere or is of
    another kind (a fusion that became a library call). `is_identical` says that all their operations and shapes are equal.
    """

    before: tuple[Work, ...]
    after: tuple[Work, ...]
    change: Change
    is_identical: bool = False

    @property
    def became(self) -> str:
        """How its kind changed, such as `product fusion → call __cublas$gemm`; "" where it did not."""
        kinds = [" + ".join(dict.fromkeys(w.kind for w in side)) for side in (self.before, self.after)]
        return f"{kinds[0]} → {kinds[1]}" if all(kinds) and kinds[0] != kinds[1] else ""


def pair_instructions(before: Sequence[Work], after: Sequence[Work]) -> tuple[InstructionPair, ...]:
    """Every work of both sides in one pair, in the order of the program after, what is gone where it stood."""
    found: dict[int, int] = {}
    for key in (_exact, _exact_elsewhere, _outline, _outline_elsewhere):
        _pair_alike(before, after, key, found)
    groups: list[Group] = [((i,), (j,)) for i, j in found.items()]
    for ones, others in _stretches(before, after, found):
        aligned = align([before[i] for i in ones], [after[j] for j in others])
        groups += [(tuple(ones[i] for i in a), tuple(others[j] for j in b)) for a, b in aligned]
    moved = _moved(before, after, groups)
    return _ordered(before, after, groups, moved)


def _exact(work: Work) -> str:
    return f"{work.exact} {work.code} {work.depth}"


def _exact_elsewhere(work: Work) -> str:
    """Whatever code it came from: scopes are renamed too."""
    return f"{work.exact} {work.depth}"


def _outline(work: Work) -> str:
    return f"{work.outline} {work.code} {work.depth}"


def _outline_elsewhere(work: Work) -> str:
    return f"{work.outline} {work.depth}"


def _pair_alike(before: Sequence[Work], after: Sequence[Work], key: Callable[[Work], str], found: dict[int, int]) -> None:
    """Pairs in order what has the same refined fingerprint as often before as after, the most refined first."""
    refined = list(zip(_refined(before, key), _refined(after, key), strict=True))
    for ones, others in reversed(refined):
        taken = set(found.values())
        left, right = _places(ones, set(found)), _places(others, taken)
        for label, places in left.items():
            if len(places) == len(right.get(label, ())):
                found.update(zip(places, right[label], strict=True))


def _places(labels: Sequence[int | str], taken: set[int]) -> dict[int | str, list[int]]:
    places: dict[int | str, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        if place not in taken:
            places[label].append(place)
    return places


def _refined(works: Sequence[Work], key: Callable[[Work], str]) -> Iterator[list[str]]:
    """The fingerprints of all works, unrefined first, then with their neighbors', and theirs."""
    users: list[list[int]] = [[] for _ in works]
    for place, work in enumerate(works):
        for source in work.sources:
            if source >= 0:
                users[source].append(place)
    labels = [key(work) for work in works]
    yield labels
    for _ in range(ROUNDS):
        labels = [
            digest(labels[n], *(labels[s] if s >= 0 else "parameter" for s in work.sources), "|", *sorted(labels[u] for u in users[n]))
            for n, work in enumerate(works)
        ]
        yield labels


def _stretches(before: Sequence[Work], after: Sequence[Work], found: dict[int, int]) -> Iterator[tuple[list[int], list[int]]]:
    """What is unpaired between anchors that stand in the same order on both sides."""
    taken = set(found.values())
    edges = [(-1, -1), *_in_order(sorted(found.items())), (len(before), len(after))]
    for (i, j), (next_i, next_j) in pairwise(edges):
        ones = [n for n in range(i + 1, next_i) if n not in found]
        others = [n for n in range(j + 1, next_j) if n not in taken]
        if ones and others:
            yield ones, others


def _in_order(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of pairs that rise on both sides."""
    tails: list[int] = []
    last: list[int] = []
    previous: list[int] = []
    for n, (_, j) in enumerate(pairs):
        at = bisect_left(tails, j)
        tails[at : at + 1] = [j]
        last[at : at + 1] = [n]
        previous.append(last[at - 1] if at else -1)
    chosen: list[tuple[int, int]] = []
    n = last[-1] if last else -1
    while n >= 0:
        chosen.append(pairs[n])
        n = previous[n]
    return chosen[::-1]


def _moved(before: Sequence[Work], after: Sequence[Work], groups: list[Group]) -> list[Group]:
    """Works without a counterpart in their place that have one elsewhere: in another loop, or out of order."""
    left, right = _unpaired(len(before), groups, 0), _unpaired(len(after), groups, 1)
    scores = [(group_score([before[i]], [after[j]]), i, j) for i in left for j in right if len(left) * len(right) <= 100_000]
    moved: list[Group] = []
    used: tuple[set[int], set[int]] = (set(), set())
    for score, i, j in sorted(scores, key=lambda s: (-s[0], abs(s[1] - s[2]), s[1], s[2])):
        if score > 0 and i not in used[0] and j not in used[1]:
            moved.append(((i,), (j,)))
            used[0].add(i)
            used[1].add(j)
    return moved


def _unpaired(size: int, groups: list[Group], side: int) -> list[int]:
    taken = {n for group in groups for n in group[side]}
    return [n for n in range(size) if n not in taken]


def _ordered(before: Sequence[Work], after: Sequence[Work], groups: list[Group], moved: list[Group]) -> tuple[InstructionPair, ...]:
    pairs = [((b[0], 0), _pair(before, after, a, b, False)) for a, b in groups]
    pairs += [((b[0], 0), _pair(before, after, a, b, True)) for a, b in moved]
    whole = groups + moved
    pairs += [((j, 0), InstructionPair((), (after[j],), "new")) for j in _unpaired(len(after), whole, 1)]
    place = {i: b[0] for a, b in whole for i in a}
    for i in _unpaired(len(before), whole, 0):
        near = next((place[n] for n in range(i, -1, -1) if n in place), -1)
        pairs.append(((near, i + 1), InstructionPair((before[i],), (), "gone")))
    return tuple(pair for _, pair in sorted(pairs, key=lambda p: p[0]))


def _pair(before: Sequence[Work], after: Sequence[Work], a: tuple[int, ...], b: tuple[int, ...], elsewhere: bool) -> InstructionPair:
    ones, others = tuple(before[i] for i in a), tuple(after[j] for j in b)
    identical = len(ones) == len(others) == 1 and ones[0].exact == others[0].exact
    change: Change = "same"
    if len(ones) != len(others):
        change = "split" if len(ones) < len(others) else "merged"
    elif (elsewhere and ones[0].depth != others[0].depth) or (not identical and _family(ones) != _family(others)):
        change = "moved"
    return InstructionPair(ones, others, change, identical)


def _family(works: tuple[Work, ...]) -> tuple[str, ...]:
    """The kinds of works: what XLA compiles itself is one, every library another."""
    return tuple(sorted(w.kind if w.kind.startswith("call ") else "compiled" for w in works))
