"""The pictures of a report as frozen values: what is drawn, with its finding as the title. Nothing below computes or draws.

Times are ns, bandwidths bytes a second. Arrays are read, never written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BudgetPart:
    """One part of a step's bar: its key (a category of the budget), name, time and share of the step."""

    key: str
    label: str
    ns: float
    share: float
    mostly: str = ""


@dataclass(frozen=True, slots=True)
class BudgetBar:
    """Where a typical step goes, as parts that add up to it."""

    title: str
    program: str
    step_ns: float
    parts: tuple[BudgetPart, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassRate:
    """One class's implied bandwidth; None where its bytes are unknown."""

    kernel_class: str
    bytes_per_s: float | None
    time_ns: float
    time_share: float
    share_of_measured: float | None
    share_of_nominal: float | None
    is_above: bool


@dataclass(frozen=True, slots=True)
class ClassRates:
    """The bandwidth of each class against the ceilings, bytes a second."""

    title: str
    program: str
    rows: tuple[ClassRate, ...]
    measured: float | None
    nominal: float | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """One instruction on the roofline."""

    name: str
    kernel_class: str
    flops_per_byte: float
    flops_per_s: float
    time_ns: float
    time_share: float
    share_of_roof: float | None


@dataclass(frozen=True, slots=True)
class Roof:
    """One line of the roof: a bandwidth (bytes a second) or a rate of arithmetic (operations a second)."""

    label: str
    value: float
    is_bandwidth: bool


@dataclass(frozen=True, slots=True)
class Roofline:
    """Instructions against bandwidth and arithmetic; those without flops have no place on it."""

    title: str
    program: str
    points: tuple[Point, ...]
    roofs: tuple[Roof, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Executions over time, in order of start, as columns; several in one mark where there are too many.

    `gap_ns` is -1 where there is none; `lane` is an index into `lanes`; `count` is how many executions a mark stands for,
    its times then being their medians, `slowest_ns` their largest span.
    """

    title: str
    lanes: tuple[str, ...]
    lane: Ints
    start_ns: Ints
    end_ns: Ints
    kernel_time_ns: Floats
    gap_ns: Floats
    slowest_ns: Ints
    execution_id: Ints
    count: Ints
    is_complete: NDArray[np.bool_]
    origin_ns: int = 0
    """Time in the capture that the picture's axis begins at."""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lane)


@dataclass(frozen=True, slots=True, eq=False)
class HeatMap:
    """By how much each rank (row) comes late in each step (column), ns; nan where it has no such step, or nothing of it counts."""

    title: str
    program: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    late_ns: Floats
    notes: tuple[str, ...] = ()

    @property
    def most_ns(self) -> float:
        """The largest cell; 0 where there is none."""
        return float(np.nanmax(self.late_ns)) if np.isfinite(self.late_ns).any() else 0.0


@dataclass(frozen=True, slots=True)
class Kind:
    """What bars of one look and name are: an instruction with its kernel, or a copy."""

    name: str
    """HLO instruction, or kernel where none is known, or kind of copy."""
    kernel: str
    kernel_class: str
    """A class of kernels, kernel where none is known, or copy, memset, graph."""
    detail: str
    bytes: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """One execution, or a stretch of a capture without executions: bars on rows, as columns.

    `start_ns` counts from `origin_ns`; `row` is an index into `rows`, `kind` into `kinds`.
    """

    title: str
    role: str
    """Why this one is shown: median, slowest, first, or ""."""
    execution_id: int | None
    program: str
    origin_ns: int
    span_ns: int
    rows: tuple[str, ...]
    row: Ints
    start_ns: Ints
    duration_ns: Ints
    kind: Ints
    kinds: tuple[Kind, ...] = field(repr=False)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True)
class ProgramPictures:
    """The pictures of one program; absent ones had nothing to show."""

    program: str
    """Its name with XLA's number, as the report's sections have it."""
    name: str
    """Its name as titles have it."""
    budget: BudgetBar | None
    rates: ClassRates | None
    roofline: Roofline | None
    timelines: tuple[Timeline, ...]
    """The median execution first, then the slowest and the first, then others as far as there is room."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """The pictures of one capture."""

    name: str
    runs: Runs | None
    programs: tuple[ProgramPictures, ...]
    stretch: Timeline | None = None
    """Where there are no executions: the capture's activities, or their beginning."""
