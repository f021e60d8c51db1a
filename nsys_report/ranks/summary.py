"""What one capture sends to the report of a run: a few arrays for each of its devices, small enough to gather from thousands.

Times are ns of the capture's own session. Nothing here points back at the capture, its activities or its dump.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hlo_mapping import Collective

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveRuns:
    """Every kernel of every collective of one program on one device, in order of start, as columns.

    `collective` is an index into ProgramRuns.collectives, `occurrence` counts its kernels within one execution (loops run it again),
    `execution` is an index into ProgramRuns.start. The columns from `busy` on speak of the time between the end of the device's
    previous collective (of any program; the execution's start where there is none) and the start of this one.
    """

    collective: Ints
    execution: Ints
    occurrence: Ints
    start: Ints
    end: Ints
    exposed: Ints
    """How much of it runs with no other kernel beside it on the device, ns."""
    since: Ints
    """Where the time before it begins."""
    busy: Ints
    """What of that time the device was busy with something else, ns."""
    idle: NDArray[np.int32]
    """And how long it was idle, by cause, ns (analysis.causes); shape (rows, ProgramRuns.causes)."""

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True, eq=False)
class ProgramRuns:
    """The executions of one program on one device."""

    name: str
    number: int | None
    """XLA's number of it in its process; other ranks may have another."""
    signature: str
    """Equal for ranks that compiled the same program: what its instructions are, without XLA's number."""
    start: Ints
    end: Ints
    busy: Ints
    """Length of the union of each execution's activities, ns."""
    complete: NDArray[np.bool_]
    collectives: tuple[Collective, ...]
    """Those that ran, by instruction; without a dump by the kernel's name."""
    runs: CollectiveRuns
    causes: tuple[str, ...]
    """Causes of idle time that occur before its collectives, by key."""
    tied: dict[str, frozenset[str]]
    """Of each collective of the HLO the others that it needs or that need it."""
    kernels: tuple[str, ...]
    """Its instructions with kernels, collectives left out."""
    kernel_ns: NDArray[np.float64]
    """The median duration of each one's kernels."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRuns:
    """One device of one capture: a rank of the run."""

    process_id: int
    device_id: int
    gpu: str | None
    programs: tuple[ProgramRuns, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CaptureRuns:
    """One capture of a run. All of its devices share one clock."""

    name: str
    """What the report calls it."""
    label: str
    """What names it among the captures: its rank, where the captures' paths tell."""
    devices: tuple[DeviceRuns, ...]
    span_ns: tuple[int, int]
    """First and last moment of which the capture holds records."""
    realtime_ns: int | None = None
    """ns since 1970 at the zero of its times; None where it does not say."""
    monotonic_ns: int | None = None
    """The machine's monotonic clock at the same moment."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """A capture of the run that could not be read: the rest is reported without it."""

    name: str
    label: str
    message: str
    hint: str = ""
