"""What goes into a join and what comes out of it: annotations, executions found, and a value for every activity."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hlo_mapping.dump.program import Program

NONE = -1
"""The code for nothing, in columns of codes."""


@dataclass(frozen=True, slots=True)
class Annotations:
    """What annotated ranges say of each activity, as codes; -1 where they say nothing.

    `execution` numbers annotated executions, `module` and `program` are per execution (program -1 where the range names none),
    `instruction` codes into `instructions`. `autotuning` marks activities that the autotuner's trial runs launched.
    """

    execution: np.ndarray
    modules: tuple[str, ...]
    programs: tuple[int, ...]
    instruction: np.ndarray
    instructions: tuple[str, ...]
    autotuning: np.ndarray

    @classmethod
    def none(cls, rows: int) -> Annotations:
        """No annotation at all."""
        empty = np.full(rows, NONE, np.int64)
        return cls(empty, (), (), empty, (), np.zeros(rows, bool))


@dataclass(frozen=True, slots=True)
class JoinedExecution:
    """One execution: its program, how it was found, and how well its launches fit the program's schedule.

    `program` is None where the dump has no such program. `fit` is the share of launches just as expected (None where nothing can be
    judged); `missing` counts kernels that did not come, up to a few for each stretch of lost records. An execution is complete unless it
    is cut off, or misses more than the best execution of its program does. `tied` are programs that fit as well, as (name, number).
    """

    module: str
    number: int | None
    program: Program | None
    method: str
    confidence: float
    fit: float | None
    is_complete: bool
    thread: int | None
    tied: tuple[tuple[str, int], ...] = ()
    missing: int = 0
    seen: bool | None = None
    """Whether the host saw one end right before it and with it; None where it does not tell."""


@dataclass(frozen=True, slots=True)
class LaunchJoin:
    """The join, a value per activity row: index of its execution, code of its instruction, method and confidence.

    Codes are -1 and confidence nan where nothing was found. `instruction` codes into `instructions`, (program number, name) pairs;
    `first_part` is false where the launch continues the launch before it: one more kernel of the same instruction.
    """

    executions: tuple[JoinedExecution, ...]
    execution: np.ndarray
    instruction: np.ndarray
    instructions: tuple[tuple[int, str], ...]
    method: np.ndarray
    confidence: np.ndarray
    first_part: np.ndarray
    programs: dict[int, Program]
    notes: tuple[str, ...]


def completed(executions: list[JoinedExecution]) -> tuple[JoinedExecution, ...]:
    """The executions, those incomplete that miss kernels which others of their program have."""
    least: dict[object, int] = {}
    for e in executions:
        if e.is_complete and e.program is not None:
            least[e.number] = min(e.missing, least.get(e.number, e.missing))
    return tuple(replace(e, is_complete=False) if e.is_complete and e.missing > least.get(e.number, e.missing) else e for e in executions)
