"""Cuts a stream of launches into executions of programs: the cheapest explanation of every launch, found in one pass.

At each launch the search holds a few hypotheses: outside any execution, or after some step of some program. Each next launch is a step
of its program, one launch too many, the first of another execution, or nobody's. Hypotheses that cost too much more than the best are
dropped; where one stands alone, what lies behind it is settled. A stretch that was settled as one whole execution is remembered, and
where the same launches come again the answer is copied, so that the work is done once for each distinct sequence.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hlo_mapping.matching.automaton import Automaton
from hlo_mapping.matching.segments import (
    BEGIN,
    CUT_OFF,
    END_SEEN,
    GAP,
    GIVEN_UP,
    INFINITE,
    MARGIN,
    MOST_MISSING,
    NOBODYS,
    OUTSIDE,
    PATIENCE,
    PATIENCE_REGAINED,
    RESUMED,
    SETTLED,
    TOO_MANY,
    TROUBLE,
    UNSIGNALLED,
    WIDEST,
    Cut,
    Ending,
    How,
    Option,
    Pattern,
    Segment,
    State,
    Trace,
)


class StreamCutter:
    """Cuts streams over one alphabet into executions of the given programs. Remembers patterns across streams."""

    def __init__(self, automata: Sequence[Automaton]) -> None:
        self.automata = automata
        self.patterns: dict[int, list[Pattern]] = {}
        self._starts: dict[int, tuple[Option, ...]] = {}

    def cut(self, codes: np.ndarray, inside: np.ndarray, fresh: np.ndarray | None = None) -> Cut:
        """Cuts one stream: token codes, whether a launch continues the graph launch before it, and whether the host saw an execution end
        before it (None where it never does)."""
        return _Pass(self, codes, inside, fresh).run()

    def starts(self, token: int) -> tuple[Option, ...]:
        """Hypotheses that an execution begins with this token."""
        found = self._starts.get(token)
        if found is None:
            options = [
                ((p, step), BEGIN + cost, exact, missing, False)
                for p, a in enumerate(self.automata)
                for step, cost, missing, exact in a.moves(-1, token)
            ]
            # a program that would start with a misfit is only worth a thought where no program starts right
            best = min((o[1] for o in options), default=0.0)
            found = self._starts[token] = tuple(o for o in options if o[1] <= min(best + 4.0, 6.0))
        return found

    def resumptions(self, token: int, cost: float, missing: int) -> tuple[Option, ...]:
        """Hypotheses that the stream meets an execution in its middle."""
        return tuple(
            ((p, step), BEGIN + cost, 1, missing, True) for p, a in enumerate(self.automata) for step in a.places(token) if step > 0
        )


class _Pass:
    """One stream on its way through the cutter."""

    def __init__(self, cutter: StreamCutter, codes: np.ndarray, inside: np.ndarray, fresh: np.ndarray | None) -> None:
        self.cutter = cutter
        self.automata = cutter.automata
        self.codes = codes.tolist()
        self.inside = [*inside.tolist(), False]
        # what it costs to begin or to go on at each launch, by what the host saw
        told = np.full(len(codes), fresh is not None)
        told[:1] = False
        signal = fresh if fresh is not None else np.zeros(len(codes), bool)
        self.to_begin = [*np.where(told & ~signal, UNSIGNALLED, 0.0).tolist(), 0.0]
        self.to_go_on = [*np.where(told & signal, UNSIGNALLED, 0.0).tolist(), 0.0]
        self.told = fresh is not None
        # a pattern must fit its graph launches and signals too, so the flags are part of what is compared
        self.buffer = (codes.astype(np.int32) * 4 + inside * 2 + signal).astype(np.int32).tobytes()
        self.steps = np.full(len(codes), -1, np.int32)
        self.segments: list[Segment] = []
        self.traces: list[Trace] = []
        self.settled_to = 0
        self.patience = PATIENCE

    def run(self) -> Cut:
        active: dict[State, float] = {OUTSIDE: 0.0}
        at, count = 0, len(self.codes)
        while at < count:
            if len(active) == 1 and OUTSIDE in active and at:
                jumped = self.jump(at)
                if jumped != at:
                    at = jumped
                    continue
            new = self.advance(at, active)
            if at and self.is_trouble(active, new):
                new = self.after_loss(at, active)
            active = new
            at += 1
            if len(active) == 1 and OUTSIDE in active:
                self.settle(at, OUTSIDE)
                active = {OUTSIDE: 0.0}
        if self.traces:
            self.settle(count, min(active, key=lambda s: active[s] + (0.0 if s == OUTSIDE else CUT_OFF)))
        return Cut(tuple(self.segments), self.steps)

    def is_trouble(self, active: dict[State, float], new: dict[State, float]) -> bool:
        """Whether records may have been lost before a launch. Where nothing fits for long, that is not the reason: patience wears out."""
        if min(new.values()) <= min(active.values()) + TROUBLE:
            self.patience = min(PATIENCE, self.patience + PATIENCE_REGAINED)
            return False
        self.patience = max(0.0, self.patience - 1.0)
        return self.patience > 0.0

    def jump(self, at: int) -> int:
        """Copies settled answers as long as known patterns follow each other; returns where they end."""
        count = len(self.codes)
        while at < count:
            for pattern in self.cutter.patterns.get(self.codes[at], ()):
                end = at + pattern.length
                if end > count or self.inside[at] or self.inside[end] or (self.to_begin[end] and end < count) or pattern.told > self.told:
                    continue
                if self.buffer[4 * at + 4 : 4 * end] == pattern.codes:
                    self.steps[at:end] = pattern.steps
                    self.segments.append(replace(pattern.segment, start=at, end=end, seen=self.is_seen(at, end)))
                    at = end
                    break
            else:
                break
        self.settled_to = at
        return at

    def advance(self, at: int, active: dict[State, float], lost: bool = False) -> dict[State, float]:
        """One launch further: the hypotheses after launch `at`, dear ones dropped. `lost`: records may be missing before it."""
        token, trace = self.codes[at], Trace()
        begin, go_on = self.to_begin[at], self.to_go_on[at]
        new: dict[State, float] = {}
        came = trace.came
        for state, cost in active.items():
            if state == OUTSIDE:
                offer(new, came, OUTSIDE, cost, (OUTSIDE, -1, NOBODYS, 0, 0, False))
                for target, price, exact, missing, middle in self.options(at, lost):
                    offer(new, came, target, cost, (OUTSIDE, target[1], begin + price, exact, missing, middle))
                continue
            program, step = state
            expected = False
            for target_step, price, missing, exact in self.automata[program].moves(step, token):
                price += go_on
                expected |= price == 0.0
                target, total = (program, target_step), cost + price
                if total < new.get(target, INFINITE):
                    new[target] = total
                    came[target] = (state, target_step, price, exact, missing, False)
            if not expected:
                # of a launch that comes once too often, the later one is taken to be too many
                offer(new, came, state, cost, (state, -1, go_on + TOO_MANY, 0, 0, False))
        if lost:
            self.skip_ahead(token, active, new, came, go_on)
        self.end_executions(at, new, trace)
        best = min(new.values())
        self.traces.append(trace)
        if trace.ended is not None and new[OUTSIDE] <= best + 1e-9:
            return self.after_end(at, new, trace.ended, best + SETTLED)
        kept = {s: c for s, c in new.items() if c <= best + MARGIN}
        return kept if len(kept) <= WIDEST else dict(heapq.nsmallest(WIDEST, kept.items(), key=lambda item: item[1]))

    def after_end(self, at: int, new: dict[State, float], ended: Ending, limit: float) -> dict[State, float]:
        """Where the best hypothesis is that an execution ended with launch `at`: what lives on."""
        if self.to_go_on[at + 1]:
            return {OUTSIDE: new[OUTSIDE]}  # the host saw it end, too
        program, step = ended.state
        spent = ended.price == 0.0 and all(
            s == self.automata[program].schedule.end for s, _ in self.automata[program].schedule.follow[step + 1]
        )
        return {s: c for s, c in new.items() if c <= limit and not (spent and s == ended.state)}

    def options(self, at: int, lost: bool) -> tuple[Option, ...]:
        """How an execution may begin with launch `at`."""
        if self.inside[at]:
            return ()
        found = self.cutter.starts(self.codes[at])
        if at == 0:
            return found + self.cutter.resumptions(self.codes[at], CUT_OFF, 0)
        return found + self.cutter.resumptions(self.codes[at], RESUMED, MOST_MISSING) if lost else found

    def skip_ahead(self, token: int, active: dict[State, float], new: dict[State, float], came: dict[State, How], go_on: float) -> None:
        """Offers that the best hypotheses go on anywhere further down their programs: what lay between was lost."""
        best = min(active.values())
        for state, cost in active.items():
            if state == OUTSIDE or cost > best + TROUBLE:
                continue
            for step, missing in self.automata[state[0]].further_down(state[1], token):
                offer(new, came, (state[0], step), cost, (state, step, go_on + GAP, 1, missing, False))

    def after_loss(self, at: int, active: dict[State, float]) -> dict[State, float]:
        """Launch `at` once more, on the assumption that records before it were lost: executions may break off, go on further down, or
        be met in the middle."""
        self.traces.pop()
        state = min(active, key=lambda s: active[s])
        price = GIVEN_UP - (END_SEEN if self.to_go_on[at] else 0.0)
        given_up = active[state] + price
        if state != OUTSIDE and not self.inside[at] and given_up < active.get(OUTSIDE, INFINITE) and not self.nearly_ended(state):
            active = {**active, OUTSIDE: given_up}
            self.traces[-1].ended = Ending(state, price, MOST_MISSING, broke_off=True)
        return self.advance(at, active, lost=True)

    def nearly_ended(self, state: State) -> bool:
        """Whether no more than the last kernels are missing: then an execution has ended, not broken off."""
        price, missing = self.automata[state[0]].finish(state[1])
        return price != INFINITE and missing <= 2

    def end_executions(self, at: int, new: dict[State, float], trace: Trace) -> None:
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
        # of programs that explain as well the one compiled last is named, the others are its alternatives
        ends.sort(key=lambda e: (round(e[0], 6), -self.automata[e[1][0]].schedule.number))
        cost, state, price, missing = ends[0]
        if cost < new.get(OUTSIDE, float("inf")):
            new[OUTSIDE] = cost
            alternatives: dict[int, float] = {}
            for other, alternative, _, _ in ends[1:]:
                if alternative[0] != state[0]:
                    alternatives.setdefault(alternative[0], other - cost)
            trace.ended = Ending(state, price, missing, tuple(alternatives.items())[:8])

    def settle(self, to: int, state: State) -> None:
        """Reads the history of the surviving hypothesis back to where the last one was settled."""
        found: list[Segment] = []
        open_: Segment | None = Segment(to, to, state[0], 0.0, 0, 0, 0, cut_end=True) if state != OUTSIDE else None
        for at in range(to - 1, self.settled_to - 1, -1):
            trace = self.traces[at - self.settled_to]
            if state == OUTSIDE and trace.ended is not None:
                end = trace.ended
                state = end.state
                open_ = Segment(at + 1, at + 1, state[0], end.price, 0, 0, end.missing, False, end.broke_off, end.alternatives)
            before, step, price, exact, skipped, middle = trace.came[state]
            if state == OUTSIDE or open_ is None:
                continue
            self.steps[at] = step
            open_ = replace(
                open_, start=at, cost=open_.cost + price, exact=open_.exact + exact, extra=open_.extra + (step < 0),
                missing=open_.missing + skipped, cut_start=middle,
            )  # fmt: skip
            if before == OUTSIDE:
                found.append(replace(open_, seen=self.is_seen(at, open_.end)))
                open_ = None
            state = before
        found.reverse()
        self.remember(found, self.settled_to, to)
        self.segments += found
        self.traces.clear()
        self.settled_to = to

    def is_seen(self, start: int, end: int) -> bool | None:
        """Whether the host saw an execution end right before launch `start` and before launch `end`; None where it does not tell."""
        if not self.told:
            return None
        return self.to_begin[start] == 0.0 and (end == len(self.codes) or self.to_go_on[end] > 0.0)

    def remember(self, found: list[Segment], start: int, to: int) -> None:
        if len(found) != 1 or found[0].start != start or found[0].end != to or found[0].cut_start or found[0].cut_end:
            return
        codes = self.buffer[4 * start + 4 : 4 * to]
        known = self.cutter.patterns.setdefault(self.codes[start], [])
        if all(p.codes != codes for p in known):
            known.append(Pattern(codes, to - start, found[0], self.steps[start:to].copy(), self.told))
            known.sort(key=lambda p: -p.length)


def offer(new: dict[State, float], came: dict[State, How], state: State, cost: float, how: How) -> None:
    """Keeps the cheapest way to a state: `cost` before the move plus the move's own price."""
    total = cost + how[2]
    if total < new.get(state, float("inf")):
        new[state] = total
        came[state] = how
