"""How surely a launch was joined to its instruction, and by what.

The numbers are bounds of shares of right answers, measured against XLA's own annotations. On captures with all their records, of 60,000
launches found by the thunk sequence, 40,000 found by the scheduled HLO and 6,000 found by order in executions that fit throughout, none
was wrong; with records taken out at random or in blocks (1 % to 20 % of them), 1 in 10,000 by sequence and 1 in 1,000 by order.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from hlo_mapping.matching.automaton import Automaton
from hlo_mapping.matching.schedule import KERNEL, LIBRARY

JoinMethod: TypeAlias = Literal["nvtx", "sequence", "order", "schedule", "name", "autotuning"]
JOIN_METHODS: tuple[JoinMethod, ...] = get_args(JoinMethod)
"""nvtx: XLA's own range around the launch. sequence: kernel name, launch dimensions and place in the thunk sequence agree.
order: a library call, copy or memset, found by its place between others. schedule: as sequence, from the scheduled HLO where the dump
has no thunk sequence. name: the kernel name agrees, its launch dimensions or its neighborhood do not. autotuning: a candidate that
XLA's autotuner tried; no program of the dump."""

NVTX, SEQUENCE, ORDER, SCHEDULE, NAME, AUTOTUNING = range(len(JOIN_METHODS))

SURE = {NVTX: 1.0, SEQUENCE: 0.999, ORDER: 0.99, SCHEDULE: 0.99, NAME: 0.45}
"""Confidence by method in an execution that fits throughout."""

CUT: dict[bool | None, float] = {True: 0.999, None: 0.99, False: 0.9}
"""Confidence in the bounds of an execution found by its launches, by whether the host's signs agree; None where there are none."""

GOOD_FIT, POOR_FIT = 0.9, 0.5
"""Shares of exactly expected launches: from GOOD_FIT on an execution is its program's, below POOR_FIT it is not."""


CROWDED = 0.95
"""Confidence of a library call right before or after another: a lost launch of the one can be made up by the other."""

SHIFTED = 0.6
"""Confidence next to a missing kernel, where it is not certain which of several alike is missing."""

WEAK = 4
"""Exact launches below which an execution is no evidence of itself, if the host saw none begin or end there."""

NO_EVIDENCE = 0.4
"""Confidence where nothing of an execution can be judged: a program of library calls alone, found blind."""


FORGIVEN_FROM = 8
"""Exact launches from which one deviation does not count against an execution."""


def fit(exact: int, extra: int, missing: int, launches: int, free: int) -> float | None:
    """The share of an execution that is just as expected: exact over exact, unexpected, inexact and missing launches, but for one.

    `free` launches (library kernels and their helpers) can be neither exact nor wrong and do not count; None where none are left.
    """
    judged = launches - free + missing
    if judged <= 0:
        return None
    return exact / (judged - (judged > exact >= FORGIVEN_FROM))


def judge(
    automaton: Automaton, codes: np.ndarray, steps: np.ndarray, quality: float | None, readings: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Method and confidence of each launch of one execution (-1 and nan where no instruction was found).

    `quality` is the execution's fit (None where nothing can be judged), `readings` for each step (and one more) how many different
    answers programs that fit as well would give.
    """
    kinds = np.array([s.kind for s in automaton.schedule.steps] + [""], object)
    exact = np.array(
        [s >= 0 and (automaton.accept(s, c) or (1, 0))[1] == 1 for s, c in zip(steps.tolist(), codes.tolist(), strict=True)], bool
    )
    kind = kinds[steps]
    method = np.full(len(steps), -1)
    method[steps >= 0] = ORDER
    by_name = SCHEDULE if automaton.schedule.source == "scheduled_hlo" else SEQUENCE
    method[(kind == KERNEL) & exact] = by_name
    method[(kind == KERNEL) & ~exact & (steps >= 0)] = NAME
    confidence = np.array([SURE.get(m, np.nan) for m in method.tolist()])
    library = np.concatenate([[False], kinds == LIBRARY])
    crowded = (library[1:] & (library[:-1] | np.concatenate([library[2:], [False]])))[steps]
    confidence[crowded] = np.minimum(confidence[crowded], CROWDED)
    # next to a launch that fits nowhere, order is no longer proof
    lost = steps < 0
    near = lost.copy()
    near[1:] |= lost[:-1]
    near[:-1] |= lost[1:]
    ordered = near & np.isin(kind, (LIBRARY,))
    confidence[ordered] = np.minimum(confidence[ordered], 0.6)
    shiftable = may_be_shifted(automaton, codes, steps)
    confidence[shiftable] = np.minimum(confidence[shiftable], SHIFTED)
    if quality is None or quality < GOOD_FIT:
        confidence = np.minimum(confidence, NO_EVIDENCE)
    confidence = confidence / readings[steps]
    confidence[steps < 0] = np.nan
    return method, confidence


def may_be_shifted(automaton: Automaton, codes: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Launches next to missing kernels that would fit as well one place further into the gap, and their neighbors in turn.

    A library call next to a gap is one in any case: what it launches may be another call's.
    """
    found = np.zeros(len(steps), bool)
    placed = np.flatnonzero(steps >= 0)
    at, code = steps[placed].tolist(), codes[placed].tolist()
    end = automaton.schedule.end
    gaps = [n for n in np.flatnonzero(np.diff(steps[placed]) > 1).tolist() if _is_gap(automaton, at[n], at[n + 1], code[n + 1])]
    for n in gaps:
        for side in (n, n + 1):
            found[placed[side]] |= automaton.schedule.steps[at[side]].kind == LIBRARY
        found[placed[n + 1 + _slack(automaton, at[n + 1 :], code[n + 1 :], range(at[n] + 1, at[n + 1]))]] = True
        found[placed[n - _slack(automaton, at[n::-1], code[n::-1], range(at[n] + 1, at[n + 1]))]] = True
    if len(at) and automaton.finish(at[-1])[1]:
        found[placed[len(at) - 1 - _slack(automaton, at[::-1], code[::-1], range(at[-1] + 1, end))]] = True
    return found


def _is_gap(automaton: Automaton, step: int, later: int, token: int) -> bool:
    """Whether going from one step to a later one passes over kernels or library calls that should have launched."""
    accepted = automaton.accept(later, token)
    move = next((m for m in automaton.moves(step, token) if m[0] == later), None)
    return accepted is None or move is None or move[2] > 0 or move[1] - accepted[0] > 0.5


def _slack(automaton: Automaton, at: list[int], code: list[int], free: range) -> np.ndarray:
    """How many launches, counted from a gap, could stand one place nearer to it: 0 to n - 1."""
    count = 0
    while count < len(at) and any((automaton.accept(s, code[count]) or (1.0, 0))[0] < 0.5 for s in free):
        free = range(at[count], at[count] + 1)
        count += 1
    return np.arange(count)


def free_launches(automaton: Automaton, codes: np.ndarray, steps: np.ndarray) -> int:
    """Launches of an execution that stand at library calls, where anything may be launched, without being surely theirs."""
    library = np.array([s.kind == LIBRARY for s in automaton.schedule.steps] + [False], bool)[steps]
    return sum((automaton.accept(s, c) or (0, 0))[1] == 0 for s, c in zip(steps[library].tolist(), codes[library].tolist(), strict=True))
