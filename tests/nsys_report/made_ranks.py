"""Runs of many ranks made on paper: steps of known length, ranks that come late by known times, clocks that differ by known offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hlo_mapping import Collective
from nsys_report.ranks.summary import CaptureRuns, CollectiveRuns, DeviceRuns, ProgramRuns

US, MS = 1_000, 1_000_000
MOVING = 100 * US
"""What each collective takes once all are there."""
BEGIN = 50 * MS
"""When the run's first step begins, on the true clock."""


@dataclass(frozen=True)
class Made:
    """A run of `ranks` in one group whose steps take 5 ms and a little that differs from step to step.

    Each step holds `collectives` all-reduces of 10 MB, 1 ms of kernels before each; `late` says by how much a rank comes later to the
    first of a step, spent on its host; `slower` how much more time a rank's kernels take. `offset` is what a rank's clock reads more;
    `missing` are steps that a capture lacks. Ends of collectives scatter by `scatter`.
    """

    ranks: int = 4
    steps: int = 12
    collectives: int = 2
    late: Mapping[tuple[int, int], int] = field(default_factory=dict)
    slower: Mapping[int, float] = field(default_factory=dict)
    offset: Mapping[int, int] = field(default_factory=dict)
    drift: Mapping[int, float] = field(default_factory=dict)
    missing: frozenset[tuple[int, int]] = frozenset()
    begins: Mapping[int, int] = field(default_factory=dict)
    """When a rank's capture begins on the true clock; 0 where not named."""
    even: bool = False
    """Steps of equal length."""
    scatter: int = 1 * US
    groups: tuple[tuple[int, ...], ...] | None = None
    signature: Mapping[int, str] = field(default_factory=dict)
    tied: frozenset[str] = frozenset()
    """The collectives that each needs or that need it."""
    arrays: int = 1
    """Arrays of each collective, the smallest of four bytes if several."""
    size: int = 10_000_000
    realtime: bool = False
    """Whether the captures say when they began, on clocks that are right."""

    def pause(self, step: int) -> int:
        """What all hosts take before a step: 3 ms, and up to 1 ms more that a generator of its own draws."""
        return 3 * MS + (0 if self.even else int(np.random.default_rng(1000 + step).integers(0, MS)))

    def captures(self, labels: Sequence[str] | None = None) -> list[CaptureRuns]:
        """One capture a rank."""
        start, end, since, idle, busy = self._times()
        return [
            self._capture(r, (labels or [str(n) for n in range(self.ranks)])[r], start, end, since, idle, busy) for r in range(self.ranks)
        ]

    def _times(self) -> tuple[np.ndarray, ...]:
        """Of each (rank, step, collective) on the true clock: start, end, and what came since the one before."""
        shape = (self.ranks, self.steps, self.collectives)
        start, end, since, idle, busy = (np.zeros(shape, np.int64) for _ in range(5))
        rng = np.random.default_rng(7)
        at = np.full(self.ranks, BEGIN, np.int64)
        everyone = self.groups or (tuple(range(self.ranks)),)
        for step in range(self.steps):
            for c in range(self.collectives):
                since[:, step, c] = at
                idle[:, step, c] = [self.pause(step) + self.late.get((r, step), 0) if c == 0 else 0 for r in range(self.ranks)]
                busy[:, step, c] = [int(MS * self.slower.get(r, 1.0)) for r in range(self.ranks)]
                start[:, step, c] = at + idle[:, step, c] + busy[:, step, c]
                for group in everyone:
                    members = [m for m in group if m < self.ranks]
                    end[members, step, c] = start[members, step, c].max() + MOVING + rng.integers(0, self.scatter, len(members))
                at = end[:, step, c]
        return start, end, since, idle, busy

    def _capture(
        self, r: int, label: str, start: np.ndarray, end: np.ndarray, since: np.ndarray, idle: np.ndarray, busy: np.ndarray
    ) -> CaptureRuns:
        kept = [s for s in range(self.steps) if (r, s) not in self.missing and since[r, s, 0] >= self.begins.get(r, 0)]
        offset, drift = self.offset.get(r, 0), self.drift.get(r, 0.0)

        def read(times: np.ndarray) -> np.ndarray:
            return np.rint(times + offset + drift * times).astype(np.int64)

        many = len(kept) * self.collectives
        runs = CollectiveRuns(
            np.tile(np.arange(self.collectives), len(kept)),
            np.repeat(np.arange(len(kept)), self.collectives),
            np.zeros(many, np.int64),
            read(start[r, kept].reshape(-1)),
            read(end[r, kept].reshape(-1)),
            (end - start)[r, kept].reshape(-1),
            read(since[r, kept].reshape(-1)),
            busy[r, kept].reshape(-1),
            idle[r, kept].reshape(-1, 1).astype(np.int32),
        )
        groups = self.groups or (tuple(range(self.ranks)),)
        program = ProgramRuns(
            "jit_step",
            100 + r,
            self.signature.get(r, "jit_step/same"),
            read((since + idle)[r, kept, 0]),
            read(end[r, kept, -1]),
            np.full(len(kept), 2 * MS),
            np.ones(len(kept), np.bool_),
            tuple(
                Collective(f"all-reduce.{c}", "all-reduce", self.size, groups, self.arrays, self.size if self.arrays == 1 else 4)
                for c in range(self.collectives)
            ),
            runs,
            ("host_work",),
            {f"all-reduce.{c}": self.tied for c in range(self.collectives)},
            ("fusion.1", "fusion.2"),
            np.array([400_000.0, 600_000.0]) * self.slower.get(r, 1.0),
        )
        begin = self.begins.get(r, 0) + offset
        zero = 1_700_000_000_000_000_000 - offset if self.realtime else None
        span = (begin, int(program.end.max()) if len(kept) else begin)
        return CaptureRuns(f"rank_{label}.sqlite", label, (DeviceRuns(40 + r, 0, "NVIDIA H200", (program,)),), span, zero)
