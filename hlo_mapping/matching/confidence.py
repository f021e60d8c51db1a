"""How surely a launch was joined to its instruction, and by what.

The numbers are shares of right answers, measured against XLA's own annotations on captures that have them: an exact place in an
execution that fits throughout was never wrong, a library call found by its place hardly ever, a name with other launch dimensions often.
"""

from __future__ import annotations

import numpy as np

from hlo_mapping.matching.automaton import Automaton
from hlo_mapping.matching.schedule import KERNEL, LIBRARY

METHODS = ("nvtx", "sequence", "order", "schedule", "name", "autotuning")
"""nvtx: XLA's own range around the launch. sequence: kernel name, launch dimensions and place in the thunk sequence agree.
order: a library call, copy or memset, found by its place between others. schedule: as sequence, from the scheduled HLO where the dump
has no thunk sequence. name: the kernel name agrees, its launch dimensions or its neighbourhood do not. autotuning: a candidate that
XLA's autotuner tried; no program of the dump."""

NVTX, SEQUENCE, ORDER, SCHEDULE, NAME, AUTOTUNING = range(len(METHODS))

SURE = {NVTX: 1.0, SEQUENCE: 0.999, ORDER: 0.99, SCHEDULE: 0.95, NAME: 0.45}
"""Confidence by method in an execution that fits throughout."""

GOOD_FIT, POOR_FIT = 0.9, 0.5
"""Shares of exactly expected launches: from GOOD_FIT on an execution is its program's, below POOR_FIT it is not."""


NO_EVIDENCE = 0.4
"""Confidence where nothing of an execution can be judged: a program of library calls alone, found blind."""


def fit(exact: int, extra: int, missing: int, launches: int, free: int) -> float | None:
    """The share of an execution that is just as expected: exact over exact, unexpected, inexact and missing launches.

    `free` launches (library kernels and their helpers) can be neither exact nor wrong and do not count; None where none are left.
    """
    judged = launches - free + missing
    return None if judged <= 0 else exact / judged


def judge(automaton: Automaton, codes: np.ndarray, steps: np.ndarray, quality: float | None, readings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Method and confidence of each launch of one execution (-1 and nan where no instruction was found).

    `quality` is the execution's fit (None where nothing can be judged), `readings` for each step (and one more) how many different
    answers programs that fit as well would give.
    """
    kinds = np.array([s.kind for s in automaton.schedule.steps] + [""], object)
    exact = np.array([s >= 0 and (automaton.accept(s, c) or (1, 0))[1] == 1 for s, c in zip(steps.tolist(), codes.tolist(), strict=True)], bool)
    kind = kinds[steps]
    method = np.full(len(steps), -1)
    method[steps >= 0] = ORDER
    by_name = SCHEDULE if automaton.schedule.source == "scheduled_hlo" else SEQUENCE
    method[(kind == KERNEL) & exact] = by_name
    method[(kind == KERNEL) & ~exact & (steps >= 0)] = NAME
    confidence = np.array([SURE.get(m, np.nan) for m in method.tolist()])
    # next to a launch that fits nowhere, order is no longer proof
    lost = steps < 0
    near = lost.copy()
    near[1:] |= lost[:-1]
    near[:-1] |= lost[1:]
    ordered = near & np.isin(kind, (LIBRARY,))
    confidence[ordered] = np.minimum(confidence[ordered], 0.6)
    if quality is None or quality < GOOD_FIT:
        confidence = np.minimum(confidence, NO_EVIDENCE)
    confidence = confidence / readings[steps]
    confidence[steps < 0] = np.nan
    return method, confidence


def free_launches(automaton: Automaton, codes: np.ndarray, steps: np.ndarray) -> int:
    """Launches of an execution that stand at library calls, where anything may be launched, without being surely theirs."""
    library = np.array([s.kind == LIBRARY for s in automaton.schedule.steps] + [False], bool)[steps]
    return sum((automaton.accept(s, c) or (0, 0))[1] == 0 for s, c in zip(steps[library].tolist(), codes[library].tolist(), strict=True))
