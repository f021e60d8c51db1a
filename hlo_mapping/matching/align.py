"""Aligns the launches of one known execution with its program's schedule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlo_mapping.matching.automaton import Automaton
from hlo_mapping.matching.segments import ANNOTATED_CUT_OFF, GAP, MARGIN, TOO_MANY, TROUBLE


@dataclass(frozen=True, slots=True)
class LaunchAlignment:
    """For each launch the step of the program (-1 for none), and how well the whole fits.

    `exact` launches are just what was expected, `extra` nobody expected, `missing` expected kernels did not come. `cut_start` and
    `cut_end` tell that it fits best as a part of an execution.
    """

    steps: np.ndarray
    cost: float
    exact: int
    extra: int
    missing: int
    cut_start: bool = False
    cut_end: bool = False


Back = tuple[int, int, int, int]
"""(state before, step or -1, 1 if exact, kernels missing before)."""

BEFORE = -2
"""The state before the first launch of an execution whose start was cut off."""


def align(automaton: Automaton, codes: np.ndarray) -> LaunchAlignment:
    """The cheapest alignment of one execution's launches, whole or cut off at either end."""
    hypotheses: dict[int, float] = {-1: 0.0}
    history: list[dict[int, Back]] = []
    for at, token in enumerate(codes.tolist()):
        new: dict[int, float] = {}
        came: dict[int, Back] = {}
        for state, cost in hypotheses.items():
            for step, price, missing, exact in automaton.moves(state, token):
                _offer(new, came, step, cost + price, (state, step, exact, missing))
            _offer(new, came, state, cost + TOO_MANY, (state, -1, 0, 0))
        best = min(hypotheses.values())
        if at == 0:
            for step in automaton.places(token):
                _offer(new, came, step, ANNOTATED_CUT_OFF, (BEFORE, step, 1, 0))
        elif min(new.values()) > best + TROUBLE:
            _skip_ahead(automaton, token, {s: c for s, c in hypotheses.items() if c <= best + TROUBLE}, new, came)
        limit = min(new.values()) + MARGIN
        hypotheses = {s: c for s, c in new.items() if c <= limit}
        history.append(came)
    return _read_back(automaton, codes, hypotheses, history)


def _offer(new: dict[int, float], came: dict[int, Back], state: int, cost: float, back: Back) -> None:
    if cost < new.get(state, float("inf")):
        new[state], came[state] = cost, back


def _skip_ahead(automaton: Automaton, token: int, hypotheses: dict[int, float], new: dict[int, float], came: dict[int, Back]) -> None:
    """Offers that the execution goes on anywhere further down its program: records between were lost."""
    for state, cost in hypotheses.items():
        for step, missing in automaton.further_down(state, token):
            _offer(new, came, step, cost + GAP, (state, step, 1, missing))


def _read_back(automaton: Automaton, codes: np.ndarray, hypotheses: dict[int, float], history: list[dict[int, Back]]) -> LaunchAlignment:
    finished = {s: c + automaton.finish(s)[0] for s, c in hypotheses.items()}
    state = min(finished, key=lambda s: finished[s])
    cut_end = finished[state] > min(hypotheses.values()) + ANNOTATED_CUT_OFF
    if cut_end:
        state = min(hypotheses, key=lambda s: hypotheses[s])
    cost = hypotheses[state] + (ANNOTATED_CUT_OFF if cut_end else automaton.finish(state)[0])
    missing = 0 if cut_end else automaton.finish(state)[1]
    steps = np.full(len(codes), -1, np.int32)
    exact = extra = 0
    for at in range(len(codes) - 1, -1, -1):
        state, steps[at], is_exact, skipped = history[at][state]
        exact, missing, extra = exact + is_exact, missing + skipped, extra + int(steps[at] < 0)
    return LaunchAlignment(steps, cost, exact, extra, missing, state == BEFORE, cut_end)
