"""The programs of one side over all its captures, each with the same instructions under the same names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_mapping import Described, HloError, Work, pair_instructions, pair_programs, works_of
from nsys_report.comparison.side import Samples

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SideProgram:
    """One program of a side. `rows` are the times of each instruction in all executions of all captures, ns; kernels that were joined to
    no instruction stand under their own names in `kernels`."""

    captures: tuple[Samples, ...]
    works: tuple[Work, ...]
    rows: dict[str, Times]
    kernels: dict[str, Times]

    @property
    def first(self) -> Samples:
        return self.captures[0]

    @property
    def count(self) -> int:
        """Executions, over all captures."""
        return sum(samples.count for samples in self.captures)

    def quantity(self, key: str) -> list[NDArray[np.float64]]:
        """Samples by capture, those without the figure left out."""
        return [s.quantities[key].astype(np.float64) for s in self.captures if key in s.quantities]

    def part(self, key: tuple[str, str]) -> int:
        """The total of a part of the step."""
        return sum(int(s.parts[key].sum()) for s in self.captures if key in s.parts)

    def fact(self, instruction: str) -> dict[str, Any]:
        """The row of the table of instructions, of the first capture that has it."""
        return next((s.facts[instruction] for s in self.captures if instruction in s.facts), {})


def side_programs(captures: Sequence[Sequence[Samples]]) -> dict[str, SideProgram]:
    """The programs of a side by label; programs of further captures stand with those of the first that they are the same as."""
    together: dict[str, list[tuple[Samples, tuple[Work, ...]]]] = {}
    for number, programs in enumerate(captures):
        found = {f"{s.label}" if not number else f"{s.label} ({number + 1})": (s, _works(s)) for s in programs}
        known = {label: members[0] for label, members in together.items()}
        for one, other in pair_programs(_described(known), _described(found)):
            if other is not None:
                together.setdefault(one or other, []).append(found[other])
    return {label: _merged(members) for label, members in together.items()}


def described(programs: dict[str, SideProgram]) -> dict[str, Described]:
    """Programs as pairing sees them."""
    return {label: Described(p.first.name, p.works, p.first.busy) for label, p in programs.items()}


def _described(programs: dict[str, tuple[Samples, tuple[Work, ...]]]) -> dict[str, Described]:
    return {label: Described(s.name, works, s.busy) for label, (s, works) in programs.items()}


def _works(samples: Samples) -> tuple[Work, ...]:
    """The program's works, each instruction once; none without a dump or with one that cannot be followed."""
    if samples.program is None or samples.program.module is None:
        return ()
    try:
        return tuple({w.instruction: w for w in works_of(samples.program.module)}.values())
    except HloError:
        return ()


def _merged(members: list[tuple[Samples, tuple[Work, ...]]]) -> SideProgram:
    works = members[0][1]
    size = sum(samples.count for samples, _ in members)
    rows: dict[str, Times] = {}
    kernels: dict[str, Times] = {}
    at = 0
    for samples, own in members:
        names = _names(works, own)
        for (is_kernel, name), times in zip(samples.instructions, samples.times, strict=True):
            target = kernels if is_kernel else rows
            row = target.setdefault(name if is_kernel else names.get(name, name), np.zeros(size, np.int64))
            row[at : at + samples.count] += times
        at += samples.count
    return SideProgram(tuple(samples for samples, _ in members), works, rows, kernels)


def _names(works: tuple[Work, ...], own: tuple[Work, ...]) -> dict[str, str]:
    """The first capture's name for each instruction of another capture's."""
    if works is own or not own:
        return {}
    pairs = pair_instructions(works, own)
    return {p.after[0].instruction: p.before[0].instruction for p in pairs if len(p.before) == len(p.after) == 1}
