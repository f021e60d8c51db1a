"""Profiled launches laid over a capture's executions: what each instruction moved, beside what it must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.counters.ncu import Profiled, plain_name
from nsys_report.joined import Joined

Key = tuple[str, str, str]
"""A launch by kernel name, grid and block."""
Difference = Literal["", "more", "less"]
MARGIN = 0.1
"""Share of the implied bytes by which measured ones may differ: sectors, counters and alignment account for as much."""
MOST_EXECUTIONS = 3
"""Of each program that are looked at for its sequence."""
SMALL = 1 << 20
"""Bytes up to which differences are not judged: launches read arguments and code as well."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One instruction: mean of its profiled launches."""

    hlo_module: str | None
    program_id: int | None
    hlo_instruction: str
    launches: int
    read_bytes: float | None
    written_bytes: float | None
    duration_ns: float | None
    implied_bytes: int | None
    difference: Difference
    """`more`: it moved more than its arrays hold, as what is read again or spilled; `less`: less than can be explained by what stays in
    L2, so that the implied bytes are too many."""

    @property
    def moved_bytes(self) -> float | None:
        return None if self.read_bytes is None or self.written_bytes is None else self.read_bytes + self.written_bytes

    @property
    def of_implied(self) -> float | None:
        """None for small ones: every launch reads its arguments and code too."""
        if self.moved_bytes is None or self.implied_bytes is None or self.implied_bytes <= SMALL:
            return None
        return self.moved_bytes / self.implied_bytes


@dataclass(frozen=True, slots=True)
class Overlay:
    """Instructions with measured bytes, in launch order of their programs, and how many launches fit no execution of the capture."""

    instructions: tuple[Measured, ...]
    launches: int
    placed: int


def lay_over(joined: Joined, profiled: Sequence[Profiled]) -> Overlay:
    """Finds each program's sequence of launches among the profiled ones, longest first, and takes each launch once.

    ncu runs the program again, so nothing but kernel name, grid, block and order ties a launch to the capture's. A sequence that does not
    occur as a whole is not placed.
    """
    keys = [(launch.kernel, launch.grid, launch.block) for launch in profiled]
    codes: dict[Key, int] = {}
    text = _encoded([codes.setdefault(key, len(codes)) for key in keys])
    free, found, placed = [True] * len(keys), [], 0
    for program in sorted(_sequences(joined), key=lambda one: -len(one.keys)):
        if any(key not in codes for key in program.keys):
            continue
        pattern = _encoded([codes[key] for key in program.keys])
        starts = [at for at in _occurrences(text, pattern) if all(free[at : at + len(program.keys)])]
        taken: list[int] = []
        for at in starts:
            if not taken or at >= taken[-1] + len(program.keys):
                taken.append(at)
        for at in taken:
            free[at : at + len(program.keys)] = [False] * len(program.keys)
        placed += len(taken) * len(program.keys)
        found += _measured(joined, program, [profiled[at : at + len(program.keys)] for at in taken]) if taken else []
    return Overlay(tuple(found), len(keys), placed)


@dataclass(frozen=True, slots=True)
class _Sequence:
    """The kernels of a typical execution in order of time, and the row of the facts that each belongs to (-1: none)."""

    hlo_module: str | None
    program_id: int | None
    keys: tuple[Key, ...]
    facts: tuple[int, ...]


def _sequences(joined: Joined) -> Iterator[_Sequence]:
    """For each program the sequence that most of its complete executions share, of those with kernels."""
    kernels = joined.activities.filter(pc.equal(joined.activities["activity"], "kernel"))
    by_program: dict[tuple[str | None, int | None], list[int]] = {}
    for row in joined.executions.filter(joined.executions["is_complete"]).select(["execution_id", "hlo_module", "program_id"]).to_pylist():
        by_program.setdefault((row["hlo_module"], row["program_id"]), []).append(row["execution_id"])
    for (module, number), executions in by_program.items():
        sequences: Counter[tuple[tuple[Key, ...], tuple[int, ...]]] = Counter()
        for one in executions[:MOST_EXECUTIONS]:
            mine = kernels.filter(pc.fill_null(pc.equal(kernels["execution_id"], one), False)).sort_by("start_ns")
            sequences[_keys(mine), tuple(pc.fill_null(mine["instruction_id"], -1).to_pylist())] += 1
        (keys, facts), _ = sequences.most_common(1)[0]
        if keys:
            yield _Sequence(module, number, keys, facts)


def _keys(kernels: pa.Table) -> tuple[Key, ...]:
    columns = (kernels[name].to_pylist() for name in ("name", "grid", "block"))
    return tuple((plain_name(name or ""), grid or "", block or "") for name, grid, block in zip(*columns, strict=True))


def _encoded(codes: Sequence[int]) -> str:
    """A string in which each code is a character, so that a sequence is found as text is."""
    return "".join(map(chr, (code + (code >= 0xD800) * 0x800 for code in codes)))


def _occurrences(text: str, pattern: str) -> Iterator[int]:
    at = text.find(pattern)
    while at >= 0:
        yield at
        at = text.find(pattern, at + 1)


def _measured(joined: Joined, program: _Sequence, runs: Sequence[Sequence[Profiled]]) -> list[Measured]:
    l2 = max((gpu.l2_bytes or 0 for gpu in joined.capture.info.gpus), default=0)
    places: dict[int, list[int]] = {}
    for place, fact in enumerate(program.facts):
        if fact >= 0:
            places.setdefault(fact, []).append(place)
    rows = joined.facts.select(["hlo_instruction", "bytes_accessed"]).take(list(places)).to_pylist() if places else []
    found = []
    for row, mine in zip(rows, places.values(), strict=True):
        sums = [
            [_sum([run[place].read_bytes for place in mine]), _sum([run[place].written_bytes for place in mine]), *_durations(run, mine)]
            for run in runs
        ]
        read, written, duration = (_mean(column) for column in zip(*sums, strict=True))
        difference = _difference(read, written, row["bytes_accessed"], l2)
        found.append(
            Measured(
                program.hlo_module,
                program.program_id,
                row["hlo_instruction"],
                len(mine) * len(runs),
                read,
                written,
                duration,
                row["bytes_accessed"],
                difference,
            )
        )
    return found


def _durations(run: Sequence[Profiled], places: Sequence[int]) -> tuple[float | None]:
    return (_sum([run[place].duration_ns for place in places]),)


def _sum(values: Sequence[float | None]) -> float | None:
    return None if any(value is None for value in values) else sum(value for value in values if value is not None)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _difference(read: float | None, written: float | None, implied: int | None, l2: int) -> Difference:
    """`less` only beyond what may still lie in L2 when the kernel has ended."""
    if read is None or written is None or implied is None or max(read + written, implied) <= SMALL:
        return ""
    if read + written > implied * (1 + MARGIN):
        return "more"
    return "less" if l2 and read + written < implied * (1 - MARGIN) - l2 else ""
