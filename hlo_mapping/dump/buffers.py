"""The buffer assignment: which values of a program share which allocation, and where in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hlo_mapping.dump import files
from hlo_mapping.dump.program import Program
from hlo_mapping.text.attributes import integers

_MOST_BYTES = 2**60
_ALLOCATION = re.compile(r"allocation (\d+): size (\d+)(?P<traits>.*?):?\s*")
_PARAMETER = re.compile(r"\bparameter (\d+), shape \|(.*?)\| at ShapeIndex \{([\d,\s]*)\}")
_OUTPUT = re.compile(r"\boutput shape is \|(.*?)\|")
_COLOR = re.compile(r"\bcolor (\d+)")
_VALUE = re.compile(r"\s*value: <(\d+) ([^\s{]+)(?:\{([\d,\s]*)\})?(?P<phi> \(phi\))? @(\d+)> \(size=(\d+),offset=(\d+)\): (.*)")


@dataclass(frozen=True, slots=True)
class BufferValue:
    """A value in an allocation: the part `index` of what instruction `name` makes, at `offset` bytes."""

    name: str
    index: tuple[int, ...]
    size: int
    """Bytes; a tuple's own table counts 8 a element."""
    offset: int
    shape: str
    is_phi: bool = False
    """Whether it stands for a loop-carried or branch-joined value, not for something an instruction computes."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """One allocation. A parameter that is also `maybe_live_out` is donated: an output reuses its memory."""

    number: int
    size: int
    """Bytes."""
    parameter: int | None = None
    parameter_index: tuple[int, ...] = ()
    shape: str = ""
    """The shape of the parameter or of the output, without layouts; "" for others."""
    maybe_live_out: bool = False
    temp: bool = False
    constant: bool = False
    thread_local: bool = False
    memory_space: int = 0
    """XLA's color: 0 device memory, 1 collective memory, 5 host memory."""
    values: tuple[BufferValue, ...] = ()


def read_buffer_assignment(program: Program) -> tuple[Allocation, ...]:
    """The allocations of a program by number; () where the dump has no buffer assignment. DumpError if it cannot be read."""
    path = program.files.get(files.BUFFERS)
    return parse_buffer_assignment(files.read_text(path)) if path is not None else ()


def parse_buffer_assignment(text: str) -> tuple[Allocation, ...]:
    """The allocations in the text of a buffer assignment; the live ranges that older dumps append are left out.

    () where a size is larger than any memory, as in a damaged text: sums of the others would be false.
    """
    allocations: list[Allocation] = []
    heading: re.Match[str] | None = None
    values: list[BufferValue] = []
    for line in text.splitlines():
        if found := _VALUE.fullmatch(line):
            values.append(_read_value(found))
        elif found := _ALLOCATION.fullmatch(line):
            allocations.extend(_finish(heading, values))
            heading, values = found, []
        elif heading is not None:
            break
    allocations.extend(_finish(heading, values))
    figures = (figure for a in allocations for figure in (a.size, *(number for v in a.values for number in (v.size, v.offset))))
    return tuple(allocations) if max(figures, default=0) < _MOST_BYTES else ()


def _finish(heading: re.Match[str] | None, values: list[BufferValue]) -> list[Allocation]:
    if heading is None:
        return []
    traits = heading["traits"]
    parameter, output, color = _PARAMETER.search(traits), _OUTPUT.search(traits), _COLOR.search(traits)
    allocation = Allocation(
        number=int(heading[1]),
        size=int(heading[2]),
        parameter=int(parameter[1]) if parameter else None,
        parameter_index=integers(parameter[3]) if parameter else (),
        shape=parameter[2] if parameter else output[1] if output else "",
        maybe_live_out="maybe-live-out" in traits,
        temp="preallocated-temp" in traits,
        constant=", constant" in traits,
        thread_local="thread-local" in traits,
        memory_space=int(color[1]) if color else 0,
        values=tuple(values),
    )
    return [allocation]


def _read_value(found: re.Match[str]) -> BufferValue:
    return BufferValue(
        name=found[2],
        index=integers(found[3] or ""),
        size=int(found[6]),
        offset=int(found[7]),
        shape=found[8],
        is_phi=found["phi"] is not None,
    )
