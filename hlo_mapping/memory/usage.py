"""What memory a program needs, from the allocations that XLA planned for it (its buffer assignment).

The bytes of all allocations are the total that XLA's own memory report says. Arguments and results are there all the time; what lies in
the block of temporaries comes and goes, and how much of it is in use at each instruction follows from the order of the program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hlo_mapping.dump.buffers import Allocation, read_buffer_assignment
from hlo_mapping.dump.program import Program
from hlo_mapping.errors import HloError
from hlo_mapping.ir import Module
from hlo_mapping.memory.liveness import Key, schedule

HOST_SPACE = 5
"""XLA's color of host memory (stream_executor/gpu/gpu_executor and xla/layout.h, Layout::kHostMemorySpace)."""


@dataclass(frozen=True, slots=True)
class TemporaryValue:
    """A value among the temporaries: the part `index` of what an instruction makes, alive from place `first` to place `last`."""

    instruction: str
    index: tuple[int, ...]
    allocation: int
    offset: int
    size: int
    first: int
    last: int
    shape: str


@dataclass(frozen=True, slots=True)
class Donation:
    """An argument that the program returns a new version of the same shape of, in another buffer: donated, it would save its size."""

    parameter: int
    index: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class ProgramMemory:
    """Bytes on the device by what they are for, and the temporaries in the order of the program."""

    arguments: int
    """Arguments, those that results reuse too."""
    donated: int
    """Part of arguments: donated, and reused for results."""
    results: int
    """Results in buffers of their own."""
    constants: int
    temporaries: int
    """The block that temporaries lie in."""
    host: int
    """Buffers in host memory, in none of the others."""
    total: int
    """All on the device, with what threads keep for themselves: XLA's own total."""
    order: tuple[str, ...]
    values: tuple[TemporaryValue, ...]
    unplaced: int
    """Bytes of temporaries of which the text does not say when they are alive."""
    donations: tuple[Donation, ...] = ()

    @cached_property
    def live(self) -> tuple[tuple[int, int], ...]:
        """(place, bytes of temporaries in use from there on), where that changes."""
        return tuple(_live(self.values))

    @property
    def peak(self) -> tuple[int, int]:
        """The first place with most temporaries in use, and their bytes; (0, 0) without any."""
        return max(self.live, key=lambda step: (step[1], -step[0]), default=(0, 0))

    def alive_at(self, place: int) -> tuple[TemporaryValue, ...]:
        """The temporaries that are alive at a place, largest first; of several in one buffer the one that began last."""
        found: dict[tuple[int, int, int], TemporaryValue] = {}
        for value in sorted(self.values, key=lambda v: v.first):
            if value.first <= place <= value.last:
                found[(value.allocation, value.offset, value.size)] = value
        return tuple(sorted(found.values(), key=lambda v: (-v.size, v.first)))

    @property
    def fragmentation(self) -> float | None:
        """The share of the temporaries' block that is never in use at once; None without temporaries."""
        return 1 - self.peak[1] / self.temporaries if self.temporaries else None


def program_memory(program: Program) -> ProgramMemory | None:
    """The memory of a program; None where the dump holds no buffer assignment or no module. HloError if it cannot be read."""
    if program.module is None:
        return None
    allocations = read_buffer_assignment(program)
    try:
        return memory_of(program.module, allocations) if allocations else None
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        where = program.module.source or program.name
        raise HloError(f"{where}: when its values are alive cannot be followed ({type(error).__name__}: {error})") from error


def memory_of(module: Module, allocations: tuple[Allocation, ...]) -> ProgramMemory:
    """The memory of a module with these allocations."""
    device = [a for a in allocations if a.memory_space != HOST_SPACE]
    arguments = [a for a in device if a.parameter is not None]
    temporaries = [a for a in device if a.temp]
    results = [a for a in device if a.maybe_live_out and a.parameter is None]
    order = schedule(module)
    values = tuple(_values(temporaries, order.ranges))
    placed = {(v.allocation, v.offset, v.size) for v in values}
    lost = {(a.number, v.offset, v.size) for a in temporaries for v in a.values} - placed
    return ProgramMemory(
        arguments=sum(a.size for a in arguments),
        donated=sum(a.size for a in arguments if a.maybe_live_out),
        results=sum(a.size for a in results),
        constants=sum(a.size for a in device if a.constant),
        temporaries=sum(a.size for a in temporaries),
        host=sum(a.size for a in allocations if a.memory_space == HOST_SPACE),
        total=sum(a.size for a in device),
        order=order.order,
        values=values,
        unplaced=sum(size for _, _, size in lost),
        donations=tuple(_donations(module, arguments, results)),
    )


def _values(temporaries: list[Allocation], ranges: Mapping[Key, tuple[int, int]]) -> list[TemporaryValue]:
    found = []
    for allocation in temporaries:
        for value in allocation.values:
            alive = ranges.get((value.name, value.index))
            if alive is not None:
                found.append(TemporaryValue(value.name, value.index, allocation.number, value.offset, value.size, *alive, value.shape))
    return found


def _live(values: tuple[TemporaryValue, ...]) -> list[tuple[int, int]]:
    """Bytes in use after each place where a value begins or ends; what shares a buffer counts once."""
    begins: dict[int, list[TemporaryValue]] = {}
    ends: dict[int, list[TemporaryValue]] = {}
    for value in values:
        begins.setdefault(value.first, []).append(value)
        ends.setdefault(value.last + 1, []).append(value)
    alive: Counter[tuple[int, int, int]] = Counter()
    steps = []
    for place in sorted(begins.keys() | ends.keys()):
        for value in ends.get(place, ()):
            alive[(value.allocation, value.offset, value.size)] -= 1
        for value in begins.get(place, ()):
            alive[(value.allocation, value.offset, value.size)] += 1
        steps.append((place, _covered(key for key, times in alive.items() if times > 0)))
        alive = +alive
    return steps


def _covered(parts: object) -> int:
    """The bytes of the union of (allocation, offset, size)."""
    total, allocation, reached = 0, -1, 0
    for number, offset, size in sorted(parts):  # type: ignore[call-overload]
        if number != allocation:
            allocation, reached = number, 0
        total += max(offset + size - max(offset, reached), 0)
        reached = max(reached, offset + size)
    return total


def _donations(module: Module, arguments: list[Allocation], results: list[Allocation]) -> list[Donation]:
    """Arguments that are not reused and whose shape a result in a buffer of its own has, each result once, the largest first."""
    free = Counter(a.values[0].shape.split("{")[0] for a in results if a.values)
    found = []
    for argument in sorted((a for a in arguments if not a.maybe_live_out), key=lambda a: -a.size):
        shape = argument.shape.split("{")[0]
        if argument.size and free[shape] > 0:
            free[shape] -= 1
            found.append(Donation(argument.parameter or 0, argument.parameter_index, argument.size))
    return found
