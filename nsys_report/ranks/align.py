"""Which executions of different ranks are the same step, and by how much their captures' clocks differ, to begin with.

A collective ends on all of its ranks at once. So the ends of one rank's steps, moved by the difference of the clocks, fall on those of
another: the difference is what most pairs of ends have in common. That holds whatever a capture lacks at its start, end or in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsys_report.ranks.programs import Rank, SharedProgram
from nsys_report.ranks.summary import CaptureRuns, Ints

WINDOWS_NS = (50_000, 1_000_000, 20_000_000)
"""How far apart the ends of one collective may read on clocks that are aligned: on one host, over a network, over a slow one."""
ENOUGH = 0.5
"""Share of the steps that two captures can have in common that must agree on a difference of clocks."""
SAMPLE = 64
"""Steps of a capture that are tried against all others."""


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """`offsets` are what each capture's clock reads more than the first's, ns; `steps` the step of each execution, by program and rank.

    `method` says where each capture's offset comes from: reference, collectives, session or none (0 is then assumed).
    """

    offsets: np.ndarray
    method: tuple[str, ...]
    steps: tuple[tuple[Ints | None, ...], ...]
    unsure: frozenset[int]
    """Captures that another shift by whole steps would fit nearly as well, and no clock decides."""


def align(captures: Sequence[CaptureRuns], ranks: Sequence[Rank], programs: Sequence[SharedProgram]) -> Alignment:
    """Places the captures one after another on the times of those placed before."""
    offsets, method = np.zeros(len(captures)), ["none"] * len(captures)
    unsure: set[int] = set()
    ends = [[_step_ends(program, r) for r in range(len(ranks))] for program in programs]
    of_capture = [[r for r, rank in enumerate(ranks) if rank.capture == c] for c in range(len(captures))]
    placed: list[int] = []
    known: list[np.ndarray] = [np.empty(0, np.int64) for _ in programs]
    waiting = [c for c in range(len(captures)) if of_capture[c]]
    while waiting:
        chosen = next((c for c in waiting if placed and _common(ends, known, of_capture[c])), waiting[0])
        waiting.remove(chosen)
        prior = _session_offset(captures, chosen, offsets, placed)
        found = _offset(ends, known, of_capture[chosen], prior) if placed else None
        if found is not None:
            offsets[chosen], method[chosen] = found[0], "collectives"
            if not found[1]:
                unsure.add(chosen)
        elif prior is not None:
            offsets[chosen], method[chosen] = prior, "session"
        elif not placed:
            method[chosen] = "reference"
        placed.append(chosen)
        for p in range(len(programs)):
            for r in of_capture[chosen]:
                known[p] = _merged(known[p], _times(ends[p][r]) - int(offsets[chosen]))
    offsets -= offsets[0] if len(offsets) else 0
    steps = tuple(tuple(_numbered(known[p], e, offsets[ranks[r].capture]) for r, e in enumerate(ends[p])) for p in range(len(programs)))
    return Alignment(offsets, tuple(method), steps, frozenset(unsure))


def _step_ends(program: SharedProgram, rank: int) -> Ints | None:
    """When each execution's last kernel of its widest collective ended, -1 where it has none; None where the rank has no collective."""
    run = program.runs[rank]
    if run is None or not len(run.runs):
        return None
    widths = np.array([c.group_size or 0 for c in run.collectives])
    width = widths[run.runs.collective]
    widest = np.flatnonzero(width == width.max())
    found = np.full(len(run.start), -1, np.int64)
    np.maximum.at(found, run.runs.execution[widest], run.runs.end[widest])
    return found


def _times(ends: Ints | None) -> Ints:
    return np.sort(ends[ends >= 0]) if ends is not None else np.empty(0, np.int64)


def _common(ends: Sequence[Sequence[Ints | None]], known: Sequence[Ints], mine: Sequence[int]) -> bool:
    """Whether a capture runs a program that was placed before."""
    return any(len(known[p]) and ends[p][r] is not None for p in range(len(known)) for r in mine)


def _session_offset(captures: Sequence[CaptureRuns], chosen: int, offsets: np.ndarray, placed: Sequence[int]) -> float | None:
    """The offset by the sessions' starts: this clock reads 0 later in real time by as much as it reads less."""
    start = captures[chosen].realtime_ns
    other = next((c for c in placed if captures[c].realtime_ns is not None), None)
    if start is None or other is None:
        return None
    return float(offsets[other]) + ((captures[other].realtime_ns or 0) - start)  # whole numbers first: a float holds no ns of a date


def _offset(
    ends: Sequence[Sequence[Ints | None]], known: Sequence[Ints], mine: Sequence[int], prior: float | None
) -> tuple[float, bool] | None:
    """The difference of clocks that most steps agree on, and whether no other comes near; None where too few agree."""
    pieces, most = [], 0.0
    for p, reference in enumerate(known):
        own = next((_times(ends[p][r]) for r in mine if ends[p][r] is not None), np.empty(0, np.int64))
        if len(own) and len(reference):
            sample = _sampled(own)
            pieces.append(_differences(reference, sample))
            most += len(sample) * min(1.0, len(reference) / len(own))
    if not pieces:
        return None
    differences = np.sort(np.concatenate(pieces))
    for window in WINDOWS_NS:
        candidates = _densest(differences, window)
        if candidates[0][0] >= max(ENOUGH * most, 1):
            return _best(candidates, prior)
    return None


def _differences(reference: Ints, own: Ints) -> Ints:
    """This capture's times less the reference's, of all pairs."""
    return np.asarray((own[:, None] - reference[None, :]).reshape(-1), np.int64)


def _sampled(times: Ints) -> Ints:
    """At most SAMPLE of the times, evenly spread: steps of uneven length tell the difference of clocks with fewer."""
    return times[np.linspace(0, len(times) - 1, SAMPLE).astype(np.int64)] if len(times) > SAMPLE else times


def _densest(differences: Ints, window: int, most: int = 6) -> list[tuple[int, float, float]]:
    """(how many, their median, their spread) of the windows that hold most differences, none over another, the fullest first."""
    stop = np.searchsorted(differences, differences + window, side="right")
    counts = stop - np.arange(len(differences))
    found: list[tuple[int, float, float]] = []
    taken = np.zeros(len(differences), np.bool_)
    for at in np.argsort(-counts, kind="stable"):
        if len(found) == most:
            break
        inside = slice(at, stop[at])
        if taken[inside].any():
            continue
        taken[inside] = True
        middle = float(np.median(differences[inside]))
        found.append((int(counts[at]), middle, float(np.median(np.abs(differences[inside] - middle)))))
    return found


def _best(candidates: list[tuple[int, float, float]], prior: float | None) -> tuple[float, bool]:
    """The candidate with most steps; of several with nearly as many the one nearest to the sessions' starts, else the tightest."""
    near = [c for c in candidates if c[0] >= 0.75 * candidates[0][0]]
    if len(near) == 1:
        return near[0][1], True
    tight = sorted(near, key=lambda c: c[2])
    if tight[0][2] * 4 < tight[1][2] and tight[0][0] > 2:
        return tight[0][1], True
    if prior is not None:
        return min(near, key=lambda c: abs(c[1] - prior))[1], True
    return max(near, key=lambda c: (c[0], -c[2]))[1], False


def _merged(known: Ints, times: Ints) -> Ints:
    """The known steps' times and those of more steps: ones that lie near no known step."""
    if not len(times):
        return known
    if not len(known):
        return times
    new = times[_nearest(known, times)[1] > _tolerance(known)]
    return np.sort(np.concatenate((known, new)))


def _tolerance(known: Ints) -> float:
    """Half of the shortest usual step: what lies nearer to a step is that step."""
    return float(np.percentile(np.diff(known), 10)) / 2 if len(known) > 1 else float("inf")


def _nearest(known: Ints, times: Ints) -> tuple[Ints, Ints]:
    """For each time the index of the nearest known one, and how far it lies."""
    at = np.searchsorted(known, times)
    left, right = np.maximum(at - 1, 0), np.minimum(at, len(known) - 1)
    index = np.where(np.abs(times - known[left]) <= np.abs(known[right] - times), left, right)
    return index, np.abs(times - known[index])


def _numbered(known: Ints, ends: Ints | None, offset: float) -> Ints | None:
    """The step of each execution, -1 where it is none: two executions of a rank cannot be one step, the nearer is."""
    if ends is None or not len(known):
        return None
    index, distance = _nearest(known, ends - int(offset))
    index = np.where((ends >= 0) & (distance <= _tolerance(known)), index, -1)
    order = np.lexsort((distance, index))
    twice = np.zeros(len(index), np.bool_)
    twice[order[1:]] = (index[order[1:]] == index[order[:-1]]) & (index[order[1:]] >= 0)
    return np.where(twice, -1, index)
