"""The programs a capture may have run, ready for matching: schedules bound to the capture's tokens, identical ones as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hlo_mapping.dump.index import DumpIndex
from hlo_mapping.dump.program import Program
from hlo_mapping.matching.automaton import Automaton
from hlo_mapping.matching.schedule import Schedule, build_schedule
from hlo_mapping.matching.tokens import Token

SMALL_DUMP = 300
"""Dumps of up to this many modules are read whole; of larger ones only what the capture can have run."""

_KERNEL = re.compile(r"\bkernel ?= ?([\w$]+)|kCustomKernel\s+(?:\[[^\]]*\]\s*)?([\w$]+) grid:")


@dataclass(frozen=True, slots=True)
class Plan:
    """One distinct schedule: the program that stands for it and its twins, programs that launch the very same sequence."""

    automaton: Automaton
    program: Program
    twins: tuple[Program, ...] = ()

    @property
    def schedule(self) -> Schedule:
        return self.automaton.schedule


@dataclass(frozen=True, slots=True)
class Plans:
    """All distinct schedules of a dump over one alphabet, and which plan each program number has.

    `instructions` holds for each program number its own instruction at each step: twins may number theirs differently.
    """

    plans: tuple[Plan, ...]
    by_number: dict[int, int]
    programs: dict[int, Program]
    instructions: dict[int, tuple[str | None, ...]]

    def readings(self, plan: Plan, rivals: int = 0) -> np.ndarray:
        """For each step of a plan how many different answers (module, instruction) its twins and `rivals` other programs would give."""
        alike = [(p.name, self.instructions[p.number]) for p in (plan.program, *plan.twins)]
        if len(alike) == 1:
            return np.full(plan.schedule.end + 1, 1 + rivals)
        counts = [len({(name, steps[s]) for name, steps in alike}) for s in range(plan.schedule.end)]
        return np.array([*counts, 1]) + rivals


def plan(programs: Iterable[Program], tokens: Sequence[Token]) -> Plans:
    """Plans for programs that launch something. Of identical ones the one compiled last stands for all."""
    groups: dict[object, list[tuple[Program, Schedule]]] = {}
    known = {p.number: p for p in programs}
    for program in known.values():
        schedule = build_schedule(program)
        if schedule.steps:
            groups.setdefault(schedule.signature, []).append((program, schedule))
    plans: list[Plan] = []
    numbers: dict[int, int] = {}
    instructions: dict[int, tuple[str | None, ...]] = {}
    for members in groups.values():
        members.sort(key=lambda m: m[0].number)
        program, schedule = members[-1]
        for member, own in members:
            numbers[member.number] = len(plans)
            instructions[member.number] = tuple(s.instruction for s in own.steps)
        plans.append(Plan(Automaton(schedule, tokens), program, tuple(m for m, _ in members[:-1])))
    return Plans(tuple(plans), numbers, known, instructions)


def candidates(dump: DumpIndex, tokens: Sequence[Token], named: Iterable[int] = ()) -> tuple[int, ...]:
    """Numbers of the programs that the capture can have run: those that annotations name, and those whose kernels it holds.

    A dump of thousands of modules is mostly of programs that the capture never saw; reading only their thunk sequences tells.
    """
    wanted = set(named) & set(dump.numbers)
    if len(dump.numbers) <= SMALL_DUMP:
        return tuple(dump.numbers)
    kernels = {t.name for t in tokens if t.kind == "kernel"}
    for number in dump.numbers:
        if number not in wanted and _may_have_run(dump.files(number), kernels):
            wanted.add(number)
    return tuple(sorted(wanted))


def _may_have_run(files: object, kernels: set[str]) -> bool:
    path = next((p for suffix, p in dict(files).items() if "thunk_sequence" in str(suffix)), None)  # type: ignore[call-overload]
    if path is None:
        return True
    names = {a or b for a, b in _KERNEL.findall(Path(path).read_text(errors="replace"))}
    return not names or len(names & kernels) >= 0.5 * len(names)
