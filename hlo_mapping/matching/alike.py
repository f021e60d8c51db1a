"""Executions that launched the same: what is asked of an execution is asked once for all that are alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

BLOCK = 1 << 16
"""Launches looked at in one go: what is computed of them stays in the processor's cache."""
_MULTIPLIERS = tuple(np.uint64(m) for m in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93))


@dataclass(frozen=True, slots=True)
class Pieces:
    """A sequence of launches cut into pieces: where each begins, and how many launches it has (none has none)."""

    first: np.ndarray
    length: np.ndarray

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """The pieces in groups of about BLOCK launches, and of each group the positions of its launches in the sequence."""
        ends = np.cumsum(self.length)
        a = 0
        while a < len(ends):
            b = max(int(np.searchsorted(ends, (ends[a - 1] if a else 0) + BLOCK, side="right")), a + 1)
            first, length = self.first[a:b], self.length[a:b]
            before = np.cumsum(length) - length
            yield slice(a, b), np.arange(length.sum()) + np.repeat(first - before, length)
            a = b


def alike(codes: np.ndarray, pieces: Pieces, *labels: np.ndarray) -> np.ndarray:
    """For each piece a number that it shares with those that hold the same codes in the same order under the same labels.

    Numbers count up from 0 in order of first appearance. Pieces are told apart by one hash of each, and then compared.
    """
    if not len(pieces.first):
        return np.empty(0, np.int64)
    hashes = _hashes(codes, pieces, labels)
    _, first, number = np.unique(hashes, return_index=True, return_inverse=True)
    if not _same(codes, pieces, first[number], labels):
        return _told_apart(codes, pieces, labels)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number]


def _hashes(codes: np.ndarray, pieces: Pieces, labels: tuple[np.ndarray, ...]) -> np.ndarray:
    hashes = _mixed(pieces.length, np.zeros(1, np.uint64))
    for number, label in enumerate(labels):
        hashes += _mixed(label, hashes * np.uint64(2 * number + 3))
    for group, at in pieces.blocks():
        length = pieces.length[group]
        starts = np.cumsum(length) - length
        place = at - np.repeat(pieces.first[group], length)
        hashes[group] += np.add.reduceat(_mixed(codes[at], place.astype(np.uint64)), starts)
    return hashes


def _mixed(values: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Well-spread 64-bit numbers of values at places."""
    a, b, c = _MULTIPLIERS
    mixed: np.ndarray = values.astype(np.uint64) * a + place * b
    mixed ^= mixed >> np.uint64(29)
    mixed *= c
    mixed ^= mixed >> np.uint64(32)
    return mixed


def _same(codes: np.ndarray, pieces: Pieces, like: np.ndarray, labels: tuple[np.ndarray, ...]) -> bool:
    """Whether every piece holds the same as the piece that it is taken to be like."""
    if any((label[like] != label).any() for label in (pieces.length, *labels)):
        return False
    shift = pieces.first[like] - pieces.first
    return all((codes[at] == codes[at + np.repeat(shift[group], pieces.length[group])]).all() for group, at in pieces.blocks())


def _told_apart(codes: np.ndarray, pieces: Pieces, labels: tuple[np.ndarray, ...]) -> np.ndarray:
    """The same numbers without a hash, for the day on which two pieces that differ have the same one."""
    known: dict[object, int] = {}
    numbers = [
        known.setdefault((codes[a : a + n].tobytes(), *(label[k] for label in labels)), len(known))
        for k, (a, n) in enumerate(zip(pieces.first.tolist(), pieces.length.tolist(), strict=True))
    ]
    return np.array(numbers, np.int64)
