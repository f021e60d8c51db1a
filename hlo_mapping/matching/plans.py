"""The programs a capture may have run, ready for matching: schedules bound to the capture's tokens, identical ones as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hlo_mapping.dump.program import Program
from hlo_mapping.matching.automaton import Automaton
from hlo_mapping.matching.schedule import Schedule, build_schedule
from hlo_mapping.matching.tokens import Token

NamedProgram = tuple[str, int]
"""(name, number) of a program that launches the very same sequence as another."""


@dataclass(frozen=True, slots=True)
class DistinctSchedule:
    """One distinct schedule: the program that stands for it, and those of identical schedules."""

    automaton: Automaton
    program: Program
    identical: tuple[NamedProgram, ...] = ()

    @property
    def schedule(self) -> Schedule:
        return self.automaton.schedule


@dataclass(frozen=True, slots=True)
class Plans:
    """All distinct schedules of a dump over one alphabet, and which plan each program number has.

    `instructions` holds for each program number its own instruction at each step: identical programs may number theirs differently.
    """

    plans: tuple[DistinctSchedule, ...]
    by_number: dict[int, int]
    programs: dict[int, Program]
    instructions: dict[int, tuple[str | None, ...]]

    def readings(self, plan: DistinctSchedule, alternatives: int = 0) -> np.ndarray:
        """For each step of a plan how many different answers (module, instruction) identical programs and `alternatives` others give."""
        alike = {(name, self.instructions[number]) for name, number in ((plan.program.name, plan.program.number), *plan.identical)}
        if len(alike) == 1:
            return np.full(plan.schedule.end + 1, 1 + alternatives)
        counts = [len({(name, steps[s]) for name, steps in alike}) for s in range(plan.schedule.end)]
        return np.array([*counts, 1]) + alternatives


def plan(programs: Iterable[Program], tokens: Sequence[Token], duplicates: Mapping[int, Sequence[NamedProgram]] | None = None) -> Plans:
    """Plans for programs that launch something. Of identical ones the one compiled last stands for all.

    `duplicates` are programs that were not read because their files say the same as those of the program of that number.
    """
    duplicates = duplicates or {}
    groups: dict[object, list[tuple[Program, Schedule]]] = {}
    known = {p.number: p for p in programs}
    for program in known.values():
        schedule = build_schedule(program)
        if schedule.steps:
            groups.setdefault(schedule.signature, []).append((program, schedule))
    plans: list[DistinctSchedule] = []
    numbers: dict[int, int] = {}
    instructions: dict[int, tuple[str | None, ...]] = {}
    for members in groups.values():
        members.sort(key=lambda m: m[0].number)
        program, schedule = members[-1]
        identical: list[NamedProgram] = [(m.name, m.number) for m, _ in members[:-1]]
        for member, own in members:
            names = tuple(s.instruction for s in own.steps)
            identical += duplicates.get(member.number, ())
            for number in (member.number, *(n for _, n in duplicates.get(member.number, ()))):
                numbers[number] = len(plans)
                instructions[number] = names
        plans.append(DistinctSchedule(Automaton(schedule, tokens), program, tuple(identical)))
    return Plans(tuple(plans), numbers, known, instructions)
