"""What each launch of executions alike is: judged once for them all, then written over their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlo_mapping.matching import confidence
from hlo_mapping.matching.alike import Pieces
from hlo_mapping.matching.plans import DistinctSchedule, Plans
from hlo_mapping.matching.result import NONE


@dataclass(frozen=True, slots=True)
class Judgement:
    """A value per launch of executions alike, as in LaunchJoin, and how well they fit their schedule."""

    instruction: np.ndarray
    method: np.ndarray
    confidence: np.ndarray
    first_part: np.ndarray
    quality: float | None


class Judgements:
    """The judgements by key, and the columns of LaunchJoin that are written from them."""

    def __init__(self, rows: int, plans: Plans) -> None:
        self.plans = plans
        self.execution = np.full(rows, NONE, np.int32)
        self.instruction = np.full(rows, NONE, np.int32)
        self.method = np.full(rows, NONE, np.int8)
        self.confidence = np.full(rows, np.nan)
        self.first_part = np.ones(rows, bool)
        self.codes: dict[tuple[int, str], int] = {}
        self.known: dict[object, Judgement] = {}

    def code(self, number: int, name: str) -> int:
        """The code of an instruction of a program."""
        return self.codes.setdefault((number, name), len(self.codes))

    def remember(
        self, key: object, plan: DistinctSchedule, codes: np.ndarray, steps: np.ndarray, quality: float | None, readings: np.ndarray
    ) -> None:
        """Judges launches by the steps of a plan that they are."""
        number = plan.program.number
        names = self.plans.instructions[number]
        coded = np.array([self.code(number, n) if n is not None else NONE for n in names] + [NONE], np.int32)
        method, certain = confidence.judge(plan.automaton, codes, steps, quality, readings)
        instruction = coded[steps]
        method = np.where(instruction < 0, NONE, method).astype(np.int8)
        first = np.array([s.part == 0 for s in plan.schedule.steps] + [True], bool)[steps]
        first[1:] &= (steps[1:] != steps[:-1]) | (steps[1:] < 0)
        self.known[key] = Judgement(instruction, method, np.where(instruction < 0, np.nan, certain), first, quality)

    def write(self, rows: np.ndarray, pieces: Pieces, executions: np.ndarray, keys: Sequence[object | None], which: np.ndarray) -> None:
        """Writes executions over the rows of their pieces: `which` says for each which of the keys it has, None for no judgement."""
        for group, at in pieces.blocks():
            self.execution[rows[at]] = np.repeat(executions[group], pieces.length[group])
        judged = np.array([key is not None for key in keys], bool)
        chosen = judged[which]
        known = [self.known[key] for key in keys if key is not None]
        if not known:
            return
        if not chosen.all():
            pieces, which = Pieces(pieces.first[chosen], pieces.length[chosen]), which[chosen]
        sizes = np.array([len(j.method) for j in known])
        begin = np.zeros(len(keys), np.int64)
        begin[judged] = np.cumsum(sizes) - sizes
        columns = [(values, np.concatenate([getattr(j, name) for j in known])) for name, values in self._columns()]
        for group, at in pieces.blocks():
            place = at + np.repeat(begin[which[group]] - pieces.first[group], pieces.length[group])
            written = rows[at]
            for values, judgements in columns:
                values[written] = judgements[place]

    def rewrite(self, rows: np.ndarray, key: object, times: int) -> None:
        """Writes a judgement over the rows of so many executions, one after another."""
        for name, values in self._columns():
            values[rows] = np.tile(getattr(self.known[key], name), times)

    def _columns(self) -> tuple[tuple[str, np.ndarray], ...]:
        return (
            ("instruction", self.instruction),
            ("method", self.method),
            ("confidence", self.confidence),
            ("first_part", self.first_part),
        )

    def repeat(self, rows: np.ndarray, like: np.ndarray) -> None:
        """Gives rows what other rows have."""
        for values in (self.execution, self.instruction, self.method, self.confidence):
            values[rows] = values[like]
