"""Library calls that follow each other without a kernel of XLA's own between them: which launches are whose.

Names seldom tell, but the host does: it launches the kernels of one call in quick succession and pauses before the next call. The pauses
are taken as medians over all executions of the same launches, so that a hiccup counts for nothing.
"""

from __future__ import annotations

import numpy as np

from hlo_mapping.kernel_kinds import tells
from hlo_mapping.matching.automaton import Automaton
from hlo_mapping.matching.schedule import LIBRARY

NO_PAUSE = 0.5
"""What it costs that a call begins after a pause that is as long as usual within the run; nothing from eight times that on."""


UNTOLD = 0.25
"""What it costs that a call begins with a kernel whose name does not tell of its routine."""


LATE_MEMSET = 0.1
"""What it costs that a memset or copy follows its call's kernels rather than precede the next one's."""


def neighboring_calls(automaton: Automaton, steps: np.ndarray) -> list[tuple[int, int]]:
    """Runs (start, end) of launches that stand at two or more library calls next to each other in the schedule."""
    kinds = np.array([s.kind == LIBRARY for s in automaton.schedule.steps] + [False], bool)
    at_call = kinds[steps]
    runs = []
    bounds = np.flatnonzero(np.diff(at_call.astype(np.int8), prepend=0, append=0))
    for a, b in zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True):
        inside = steps[a:b]
        first, last = int(inside[0]), int(inside[-1])
        if first < last and kinds[first : last + 1].all() and (np.diff(inside) >= 0).all():
            runs.append((a, b))
    return runs


def divide(automaton: Automaton, codes: np.ndarray, steps: np.ndarray, pauses: np.ndarray) -> np.ndarray:
    """The steps with runs of neighboring library calls divided anew, by names and by the host's pauses (ns) before each launch.

    A run stays as it is where a pause is unknown (negative), as within a CUDA graph.
    """
    divided = steps.copy()
    for a, b in neighboring_calls(automaton, steps):
        if (pauses[a + 1 : b] >= 0).all():
            first, count = int(steps[a]), int(steps[b - 1] - steps[a]) + 1
            divided[a:b] = first + _calls_of(automaton, codes[a:b].tolist(), first, count, pauses[a:b])
    return divided


def _calls_of(automaton: Automaton, codes: list[int], first: int, count: int, pauses: np.ndarray) -> np.ndarray:
    """For each launch which of `count` calls it belongs to, each call with at least one kernel, at the least cost."""
    usual = max(float(np.median(pauses[1:])), 1.0)
    begins = NO_PAUSE * np.clip(1.0 - np.log2(np.maximum(pauses / usual, 0.25)) / 3.0, 0.0, 1.5)
    kernel = [automaton.tokens[c].kind == "kernel" for c in codes]
    # two states a call: without a kernel so far, and with one
    best = np.full((len(codes), 2 * count), np.inf)
    came = np.full((len(codes), 2 * count), -1, np.int32)
    for at, token in enumerate(codes):
        for call in range(min(at + 1, count)):
            accepted = automaton.accept(first + call, token)
            if accepted is None:
                continue
            for before, cost in _ways(automaton, first + call, token, call, at, kernel[at]):
                target = 2 * call + (kernel[at] or (before >= 2 * call and before % 2))
                price = (best[at - 1, before] if at else 0.0) + cost + accepted[0] + (begins[at] if at and before < 2 * call else 0.0)
                if price < best[at, target]:
                    best[at, target], came[at, target] = price, before
    if not np.isfinite(best[-1, -1]):
        return np.minimum(np.arange(len(codes)), count - 1)
    found = np.zeros(len(codes), np.int32)
    state = 2 * count - 1
    for at in range(len(codes) - 1, -1, -1):
        found[at] = state // 2
        state = int(came[at, state])
    return found


def _ways(automaton: Automaton, step: int, token: int, call: int, at: int, is_kernel: bool) -> list[tuple[int, float]]:
    """States that a launch of a call may follow, and the price of following: the same call going on, or the one before, which must have
    launched a kernel."""
    routine = automaton.schedule.steps[step].call
    begin = automaton.call_price(step, -1, token) + (UNTOLD if is_kernel and not tells(routine, automaton.tokens[token].name) else 0.0)
    if at == 0:
        return [(-1, 0.0)]
    stay = automaton.call_price(step, step, token)
    ways = [(2 * call, stay), (2 * call + 1, stay + (0.0 if is_kernel else LATE_MEMSET))]
    return [*ways, (2 * call - 1, begin)] if call else ways
