"""The timeline of a capture as frozen values: rows of marks, what marks say, and how busy each device was. Nothing below computes.

Times are ns from the timeline's origin. Arrays are read, never written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Look:
    """What marks that look and read alike say."""

    name: str
    """Instruction, kernel, copy, call, range, or cause of idle time."""
    color: str
    """Name of a color of the page: c- and a class, b- and a part of the budget, h- and a kind of host work."""
    program: str | None = None
    """The program whose instruction it is, by the title of its section."""
    instruction: str | None = None
    label: str = ""
    """What a person calls it: layers[3].o_proj; "" where nobody gave it a name."""
    facts: tuple[tuple[str, str], ...] = ()
    """What else there is to say: labels and words."""
    figures: tuple[tuple[str, int], ...] = ()
    """Of the same what is a number, raw: bytes, flops."""


@dataclass(frozen=True, slots=True, eq=False)
class MarkRow:
    """Marks that never overlap, in order of start, as columns; several rows of one name hold what runs beside one another."""

    group: str
    """Programs, GPU 0, a host thread."""
    name: str
    kind: str
    """stream, idle, block (layers, iterations), range (NVTX) or call (of the CUDA API)."""
    start_ns: Ints
    duration_ns: Ints
    look: Ints
    """Index into Timeline.looks."""

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """How a device spent each part of the capture: percent of each bin by what ran (classes, copies) and by why nothing did."""

    group: str
    bin_ns: float
    colors: tuple[str, ...]
    names: tuple[str, ...]
    percent: Ints
    """Shape (kinds, bins); a bin adds up to about 100, less where the capture says nothing of it."""


@dataclass(frozen=True, slots=True)
class StepView:
    """A step worth looking at: its execution, and what to see of the axis so that it stands amid its neighbors."""

    execution_id: int
    low_ns: int
    high_ns: int


@dataclass(frozen=True, slots=True, eq=False)
class StepTimeline:
    """One capture on one axis."""

    origin_ns: int
    """Time in the capture at which the axis begins."""
    span_ns: int
    windows: tuple[tuple[int, int], ...]
    """The stretches whose marks `rows` hold; elsewhere there are executions and strips alone."""
    rows: tuple[MarkRow, ...] = field(repr=False)
    looks: tuple[Look, ...] = field(repr=False)
    strips: tuple[Strip, ...] = field(repr=False)
    steps: tuple[StepView, ...] = ()
    """Of each program the one of median length, the median one by kernel time, the slowest and the first."""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.rows))
