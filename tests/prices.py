"""What the join's prices are worth: each halved and doubled, on captures whose truth XLA's own ranges say.

    python -m tests.prices [FIXTURE ...]

Each capture is joined with its ranges (the truth) and without them, whole and with each twentieth launch taken out, and the kernels that
got another instruction are counted. A price is good where neither its half nor its double does better; most rows say the same three
times, which is how wide the margins are. Takes about a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import ModuleType
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from hlo_mapping import kernel_kinds
from hlo_mapping.dump.index import DumpIndex, index_dump
from hlo_mapping.matching import align, automaton, beam, calls, join, schedule, segments
from hlo_mapping.matching.result import Annotations, LaunchJoin
from nsys_report.capture import open_capture
from nsys_report.executions.host import host_functions_before
from nsys_report.executions.nvtx import annotate
from tests.conftest import FIXTURES

ANNOTATED = ("decode_nocb", "cublas_nocb", "sharded_nocb", "while_decode_nocb", "decode_scan_nocb", "moe")
PRICES: tuple[tuple[ModuleType, str], ...] = (
    (automaton, "FIRST_MISSING"), (automaton, "NEXT_MISSING"), (automaton, "OTHER_DIMENSIONS"), (automaton, "OTHER_SIZE"),
    (automaton, "STRANGE_LIBRARY"), (automaton, "UNUSUAL_LIBRARY"), (automaton, "READY_MADE"), (automaton, "BEGINS_WITH_HELPER"),
    (schedule, "UNSEEN_BRANCH"), (schedule, "UNSEEN_IN_GRAPH"), (segments, "TOO_MANY"), (segments, "GAP"), (calls, "UNTOLD"),
)  # fmt: skip
"""Where each price stands. A module that has taken one by name is given the scaled one too."""
TAKEN = 20
"""Of so many launches one is taken out."""


class Case:
    """One capture: what XLA's ranges say of each launch, and what is needed to join it without them."""

    def __init__(self, name: str) -> None:
        capture = open_capture(FIXTURES / name / "capture.sqlite", ranges="xla")
        self.dump: DumpIndex = index_dump(FIXTURES / name / "xla_dump")
        self.activities: pa.Table = capture.activities
        self.host = host_functions_before(capture.activities, capture.runtime)
        ranges = annotate(self.activities, capture.nvtx, self.dump.numbers_by_name())
        self.truth = _instructions(join.join(self.activities, self.dump, ranges.annotations, self.host))
        self.kernel = np.array(self.activities["activity"].to_pylist()) == "kernel"

    def wrong(self, rows: np.ndarray) -> tuple[int, int]:
        """(kernels whose instruction is not XLA's, kernels) of a blind join of some of the launches."""
        activities = self.activities.take(rows)
        found = _instructions(join.join(activities, self.dump, Annotations.none(len(activities)), self.host[rows]))
        known = self.kernel[rows] & (self.truth[rows] != "")
        return int((found[known] != self.truth[rows][known]).sum()), int(known.sum())


def _instructions(found: LaunchJoin) -> np.ndarray:
    return np.array([*(name for _, name in found.instructions), ""], object)[found.instruction]


@contextmanager
def scaled(home: ModuleType, name: str, factor: float) -> Iterator[None]:
    """A price times a factor, wherever it was imported."""
    price = getattr(home, name) * factor
    with ExitStack() as stack:
        for module in {home, align, automaton, beam, calls, join, schedule, segments}:
            if hasattr(module, name):
                stack.enter_context(patch.object(module, name, price))
        yield


@contextmanager
def skips_scaled(factor: float) -> Iterator[None]:
    """The price of each kind's skip times a factor."""
    kinds = tuple(replace(k, skip=k.skip * factor) for k in kernel_kinds.KINDS)
    kernel_kinds.kind_of_target.cache_clear()
    with patch.object(kernel_kinds, "KINDS", kinds):
        yield
    kernel_kinds.kind_of_target.cache_clear()


def share_wrong(cases: list[Case]) -> tuple[float, float]:
    """Kernels with another instruction than XLA's, of whole captures and of those with launches taken out; shares."""
    out = []
    for step in (0, TAKEN):
        counted = [c.wrong(_left(len(c.activities), step)) for c in cases]
        out.append(sum(w for w, _ in counted) / sum(n for _, n in counted))
    return out[0], out[1]


def _left(size: int, step: int) -> np.ndarray:
    rows = np.arange(size)
    return rows if not step else rows[rows % step != step // 2]


def main(names: list[str]) -> None:
    cases = [Case(name) for name in names or ANNOTATED]
    sys.stdout.write(f"{'price':20} {'now':>6}   wrong: whole, with 1 of {TAKEN} taken out; at half, as it is, at double\n")
    for home, name in PRICES:
        found = []
        for factor in (0.5, 1.0, 2.0):
            with scaled(home, name, factor):
                found.append(share_wrong(cases))
        _say(name, getattr(home, name), found)
    found = []
    for factor in (0.5, 1.0, 2.0):
        with skips_scaled(factor):
            found.append(share_wrong(cases))
    _say("skip of a call", kernel_kinds.KINDS[-1].skip, found)


def _say(name: str, price: float, found: list[tuple[float, float]]) -> None:
    shares = "   ".join(f"{whole:.3%} {cut:.3%}" for whole, cut in found)
    sys.stdout.write(f"{name:20} {price:6.2f}   {shares}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
