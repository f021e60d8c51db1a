"""Cuts a stream of launches into executions of programs: the cheapest explanation of every launch, found in one pass.

At each launch the search holds a few hypotheses: outside any execution, or after some step of some program. Each next launch is a step
of its program, one launch too many, the first of another execution, or nobody's. Hypotheses that cost too much more than the best are
dropped; where one stands alone, what lies behind it is settled. A stretch that was settled as one whole execution is remembered, and
where the same launches come again the answer is copied, so that the work is done once for each distinct sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hlo_mapping.matching.automaton import Automaton

NOBODYS = 2.0
"""A launch that belongs to no execution."""

TOO_MANY = 3.0
"""A launch within an execution that the program does not have."""

BEGIN = 0.3
"""Every execution: fewer explain better."""

CUT_OFF = 1.0
"""An execution whose start lies before the capture, or whose end lies after it."""

UNSIGNALLED = 1.0
"""An execution that begins where the host saw none end, or goes on where it saw one end, if its thread tells where executions end."""

MARGIN = 10.0
"""How much dearer than the best a hypothesis may be and live on."""

SETTLED = 2.4
"""Where an execution can end, rivals dearer by this much are given up: less than one launch too many or missing."""

OUTSIDE = (-1, -1)

State = tuple[int, int]
"""(program, step after which it stands); OUTSIDE between executions."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One execution: launches `start` to `end` of the stream, by program `program` (an index), at what cost.

    `rivals` are programs that explain the same launches nearly as well, with how much dearer. `exact` counts the launches that are
    just what was expected, `extra` those that nobody expected, `missing` the expected kernels that did not come.
    """

    start: int
    end: int
    program: int
    cost: float
    exact: int
    extra: int
    missing: int
    cut_start: bool = False
    cut_end: bool = False
    rivals: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Cut:
    """The segments of a stream in order, and for each launch the step of its program (-1 for none)."""

    segments: tuple[Segment, ...]
    steps: np.ndarray


@dataclass(slots=True)
class _Pattern:
    """A stretch of launches already settled as one execution."""

    codes: bytes
    length: int
    segment: Segment
    steps: np.ndarray


@dataclass(slots=True)
class _Trace:
    """How the hypotheses at one launch came about: state → (state before, step, cost of the move, exact, missing)."""

    came: dict[State, tuple[State, int, float, int, int]] = field(default_factory=dict)
    ended: tuple[State, float, int, tuple[tuple[int, float], ...]] | None = None
    """The hypothesis that ended here to stand outside: (its state, cost of ending, kernels missing, rivals)."""


class Cutter:
    """Cuts streams over one alphabet into executions of the given programs. Remembers patterns across streams."""

    def __init__(self, automata: Sequence[Automaton]) -> None:
        self.automata = automata
        self.patterns: dict[int, list[_Pattern]] = {}
        self._starts: dict[int, tuple[tuple[State, float, int, int], ...]] = {}

    def cut(self, codes: np.ndarray, inside: np.ndarray, fresh: np.ndarray | None = None) -> Cut:
        """Cuts one stream: token codes, whether a launch continues the graph launch before it, and whether the host saw an execution end
        before it (None where it never does)."""
        return _Pass(self, codes, inside, fresh).run()

    def starts(self, token: int) -> tuple[tuple[State, float, int, int], ...]:
        """Hypotheses that an execution begins with this token: (state, cost, exact, missing)."""
        found = self._starts.get(token)
        if found is None:
            moves = [((p, step), BEGIN + cost, exact, missing) for p, a in enumerate(self.automata) for step, cost, missing, exact in a.moves(-1, token)]
            # a program that would start with a misfit is only worth a thought where no program starts right
            best = min((m[1] for m in moves), default=0.0)
            found = self._starts[token] = tuple(m for m in moves if m[1] <= min(best + 4.0, 6.0))
        return found

    def resumptions(self, token: int) -> tuple[tuple[State, float, int, int], ...]:
        """Hypotheses that the stream opens in the middle of an execution."""
        return tuple(((p, step), BEGIN + CUT_OFF, 1, 0) for p, a in enumerate(self.automata) for step in a.places(token))


class _Pass:
    """One stream on its way through the cutter."""

    def __init__(self, cutter: Cutter, codes: np.ndarray, inside: np.ndarray, fresh: np.ndarray | None) -> None:
        self.cutter = cutter
        self.automata = cutter.automata
        self.codes = codes.tolist()
        self.inside = inside.tolist() + [False]
        # what it costs to begin or to go on at each launch, by what the host saw
        told = np.full(len(codes), fresh is not None)
        told[:1] = False
        signal = fresh if fresh is not None else np.zeros(len(codes), bool)
        self.to_begin = np.where(told & ~signal, UNSIGNALLED, 0.0).tolist() + [0.0]
        self.to_go_on = np.where(told & signal, UNSIGNALLED, 0.0).tolist()
        # a pattern must fit its graph launches and signals too, so the flags are part of what is compared
        self.buffer = (codes.astype(np.int32) * 4 + inside * 2 + signal).astype(np.int32).tobytes()
        self.steps = np.full(len(codes), -1, np.int32)
        self.segments: list[Segment] = []
        self.traces: list[_Trace] = []
        self.settled_to = 0

    def run(self) -> Cut:
        active: dict[State, float] = {OUTSIDE: 0.0}
        at, count = 0, len(self.codes)
        while at < count:
            if len(active) == 1 and OUTSIDE in active and at:
                jumped = self.jump(at)
                if jumped != at:
                    at = jumped
                    continue
            active = self.advance(at, active)
            at += 1
            if len(active) == 1 and OUTSIDE in active:
                self.settle(at, OUTSIDE)
                active = {OUTSIDE: 0.0}
        if self.traces:
            self.settle(count, min(active, key=lambda s: active[s] + (0.0 if s == OUTSIDE else CUT_OFF)))
        return Cut(tuple(self.segments), self.steps)

    def jump(self, at: int) -> int:
        """Copies settled answers as long as known patterns follow each other; returns where they end."""
        count = len(self.codes)
        while at < count:
            for pattern in self.cutter.patterns.get(self.codes[at], ()):
                end = at + pattern.length
                if end > count or self.inside[at] or self.inside[end] or self.to_begin[end] and end < count:
                    continue
                if self.buffer[4 * at + 4 : 4 * end] == pattern.codes:
                    self.steps[at:end] = pattern.steps
                    s = pattern.segment
                    self.segments.append(Segment(at, end, s.program, s.cost, s.exact, s.extra, s.missing, rivals=s.rivals))
                    at = end
                    break
            else:
                break
        self.settled_to = at
        return at

    def advance(self, at: int, active: dict[State, float]) -> dict[State, float]:
        """One launch further: the hypotheses after launch `at`, dear ones dropped."""
        token, trace = self.codes[at], _Trace()
        begin, go_on = self.to_begin[at], self.to_go_on[at]
        new: dict[State, float] = {}
        came = trace.came
        for state, cost in active.items():
            if state == OUTSIDE:
                self.offer(new, came, OUTSIDE, cost + NOBODYS, (OUTSIDE, -1, NOBODYS, 0, 0))
                if not self.inside[at]:
                    options = self.cutter.starts(token) + (self.cutter.resumptions(token) if at == 0 else ())
                    for target, extra, exact, missing in options:
                        self.offer(new, came, target, cost + begin + extra, (OUTSIDE, target[1], begin + extra, exact, missing))
                continue
            program, step = state
            for target_step, extra, missing, exact in self.automata[program].moves(step, token):
                self.offer(new, came, (program, target_step), cost + go_on + extra, (state, target_step, go_on + extra, exact, missing))
            self.offer(new, came, state, cost + go_on + TOO_MANY, (state, -1, go_on + TOO_MANY, 0, 0))
        self.end_executions(at, new, trace)
        best = min(new.values())
        limit = best + MARGIN
        if trace.ended is not None and new[OUTSIDE] <= best + 1e-9:
            limit = best + SETTLED
        kept = {s: c for s, c in new.items() if c <= limit}
        self.traces.append(trace)
        return kept

    @staticmethod
    def offer(new: dict[State, float], came: dict[State, tuple[State, int, float, int, int]], state: State, cost: float, how: tuple[State, int, float, int, int]) -> None:
        if cost < new.get(state, float("inf")):
            new[state] = cost
            came[state] = how

    def end_executions(self, at: int, new: dict[State, float], trace: _Trace) -> None:
        """Lets hypotheses that have come to their end stand outside, the cheapest of them."""
        if self.inside[at + 1]:
            return
        ends: list[tuple[float, State, float, int]] = []
        for state, cost in new.items():
            if state != OUTSIDE and (trace.came[state][1] >= 0 or self.inside[at]):
                price, missing = self.automata[state[0]].finish(state[1])
                if price != float("inf"):
                    ends.append((cost + price, state, price, missing))
        if not ends:
            return
        # of programs that explain as well the one compiled last is named, the others are its rivals
        ends.sort(key=lambda e: (round(e[0], 6), -self.automata[e[1][0]].schedule.number))
        cost, state, price, missing = ends[0]
        if cost < new.get(OUTSIDE, float("inf")):
            new[OUTSIDE] = cost
            rivals: dict[int, float] = {}
            for other, rival, _, _ in ends[1:]:
                if rival[0] != state[0]:
                    rivals.setdefault(rival[0], other - cost)
            trace.ended = (state, price, missing, tuple(rivals.items())[:8])

    def settle(self, to: int, state: State) -> None:
        """Reads the history of the surviving hypothesis back to where the last one was settled."""
        start, at = self.settled_to, to
        found: list[Segment] = []
        open_end: int | None = None
        rivals: tuple[tuple[int, float], ...] = ()
        cost = 0.0
        exact = extra = missing = 0
        cut_end = False
        if state != OUTSIDE:
            open_end, cut_end = to, True
        while at > start:
            trace = self.traces[at - 1 - start]
            if state == OUTSIDE and trace.ended is not None:
                state, cost, missing, rivals = trace.ended
                open_end, exact, extra, cut_end = at, 0, 0, False
            before, step, price, is_exact, skipped = trace.came[state]
            at -= 1
            if state == OUTSIDE:
                continue
            self.steps[at] = step
            cost += price
            exact += is_exact
            missing += skipped
            extra += step < 0
            if before == OUTSIDE:
                assert open_end is not None
                resumed = at == 0 and abs(price - BEGIN - CUT_OFF) < 1e-9 and step > 0
                found.append(Segment(at, open_end, state[0], cost, exact, extra, missing, resumed, cut_end, rivals))
                cost, exact, extra, missing, rivals, cut_end = 0.0, 0, 0, 0, (), False
            state = before
        found.reverse()
        self.remember(found, start, to)
        self.segments += found
        self.traces.clear()
        self.settled_to = to

    def remember(self, found: list[Segment], start: int, to: int) -> None:
        if len(found) != 1 or found[0].start != start or found[0].end != to or found[0].cut_start or found[0].cut_end:
            return
        codes = self.buffer[4 * start + 4 : 4 * to]
        known = self.cutter.patterns.setdefault(self.codes[start], [])
        if all(p.codes != codes for p in known):
            known.append(_Pattern(codes, to - start, found[0], self.steps[start:to].copy()))
            known.sort(key=lambda p: -p.length)
