"""Pieces of a sequence that are alike, told by a hash, and by comparison where hashes agree that should not."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_mapping.matching import alike as module
from hlo_mapping.matching.alike import Pieces, alike

CODES = np.array([1, 2, 3, 1, 2, 3, 3, 2, 1, 1, 2, 1, 2, 3], np.int32)
PIECES = Pieces(np.array([0, 3, 6, 9, 11]), np.array([3, 3, 3, 2, 3]))


def test_order_and_length_tell_pieces_apart() -> None:
    assert alike(CODES, PIECES).tolist() == [0, 0, 1, 2, 0]


def test_labels_tell_pieces_apart() -> None:
    assert alike(CODES, PIECES, np.array([7, 7, 7, 7, 8])).tolist() == [0, 0, 1, 2, 3]


def test_pieces_with_one_hash_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_hashes", lambda codes, pieces, labels: np.zeros(len(pieces.first), np.uint64))
    assert alike(CODES, PIECES).tolist() == [0, 0, 1, 2, 0]


def test_blocks_hold_every_launch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 4)
    blocks = [(group.start, group.stop, at.tolist()) for group, at in PIECES.blocks()]
    assert blocks == [(0, 1, [0, 1, 2]), (1, 2, [3, 4, 5]), (2, 3, [6, 7, 8]), (3, 4, [9, 10]), (4, 5, [11, 12, 13])]
    assert alike(CODES, PIECES).tolist() == [0, 0, 1, 2, 0]


def test_no_pieces() -> None:
    assert alike(CODES, Pieces(np.empty(0, np.int64), np.empty(0, np.int64))).tolist() == []
