"""A schedule bound to a capture's tokens: from any step, which steps can launch the next token, and at what cost.

Costs are the penalties of a least-cost alignment. Nothing is paid where a launch is the expected one; the figures below say what each
deviation is worth. They were set so that one missing or extra kernel leaves an execution recognized, while a run of misfits is cheaper
to explain as no execution of this program at all.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import accumulate

from hlo_mapping.kernel_kinds import is_usual, launches_several, tells_otherwise
from hlo_mapping.matching.names import (
    AUTOTUNER,
    COPY_KERNEL,
    HELPER,
    LEADING,
    SECONDARY,
    XLA_EMITTED,
    base_name,
    kernel_name,
    product_type,
)
from hlo_mapping.matching.schedule import COPY, KERNEL, LIBRARY, MEMSET, READBACK, SKIP_COST, VIRTUAL, ExpectedLaunch, Schedule
from hlo_mapping.matching.scheduled_hlo import PASS_SUFFIX
from hlo_mapping.matching.segments import MOST_MISSING
from hlo_mapping.matching.tokens import Token

FIRST_MISSING, NEXT_MISSING = 2.5, 0.5
"""The first expected kernel that is missing in a row, and each further one."""

OTHER_DIMENSIONS = 1.2
"""A kernel of the right name with other launch dimensions: another version of the program, most likely."""

OTHER_SIZE = 0.8
"""A copy or memset of another size than the instruction's result."""

STRANGE_LIBRARY = 2.0
"""A library call launching a kernel that the program itself emits under that name."""

UNUSUAL_LIBRARY = 1.2
"""A library call launching a kernel that kernels of such calls are not called like."""

READY_MADE = 0.1
"""A kernel of the right launch dimensions in the place of one that XLA did not emit, whose name it does not tell."""

BEGINS_WITH_HELPER = 0.8
"""A library call that begins with what usually follows its first kernel."""

BUDGET = 12.0
"""Most that may be skipped at once; dearer gaps are not looked for."""

Move = tuple[int, float, int, int]
"""(step, cost, expected kernels skipped on the way, 1 if the token is exactly what the step launches)."""


class Automaton:
    """One program's schedule over one alphabet. Answers are remembered, so asking again is a dictionary look-up."""

    def __init__(self, schedule: Schedule, tokens: Sequence[Token]) -> None:
        self.schedule = schedule
        self.tokens = tokens
        self._moves: dict[tuple[int, int], tuple[Move, ...]] = {}
        self._finish: dict[int, tuple[float, int]] = {}
        self._accepted: dict[tuple[int, int], tuple[float, int] | None] = {}
        self._places: dict[int, tuple[int, ...]] = {}
        self._hopeless: dict[int, bool] = {}
        self._kernels = [0, *accumulate(s.kind == KERNEL for s in schedule.steps)]
        self._class_of, self._members = _classes(schedule.steps)
        # which classes a kernel of a given name can be of: those of that name, and those that are not told by a name
        self._named: dict[str, list[int]] = {}
        self._unnamed: list[int] = []
        for number, members in enumerate(self._members):
            step = schedule.steps[members[0]]
            if step.kind == KERNEL and step.grid is not None and all(map(XLA_EMITTED.search, step.names)):
                for name in step.names:
                    self._named.setdefault(name, []).append(number)
            else:
                self._unnamed.append(number)

    def moves(self, state: int, token: int) -> tuple[Move, ...]:
        """The steps that may launch `token` next after step `state` (-1 before the first)."""
        key = (state, token)
        found = self._moves.get(key)
        if found is None:
            found = self._moves[key] = () if self.is_hopeless(token) else self._search(state, token)
        return found

    def finish(self, state: int) -> tuple[float, int]:
        """The cost of ending after step `state` and the expected kernels that are then missing; infinite beyond the budget."""
        found = self._finish.get(state)
        if found is None:
            ends = [m for m in self._walk(state, None) if m[0] == self.schedule.end]
            found = self._finish[state] = min(((m[1], m[2]) for m in ends), default=(float("inf"), 0))
        return found

    def places(self, token: int) -> tuple[int, ...]:
        """The steps anywhere in the program that launch exactly this token: where an execution cut off at its start may resume."""
        found = self._places.get(token)
        if found is None:
            exact = [c for c in self._candidates(token) if self.accept(self._members[c][0], token) == (0.0, 1)]
            found = self._places[token] = tuple(sorted(s for c in exact for s in self._members[c]))
        return found

    def is_hopeless(self, token: int) -> bool:
        """Whether no step of the program can launch this token."""
        found = self._hopeless.get(token)
        if found is None:
            found = all(self.accept(self._members[c][0], token) is None for c in self._candidates(token))
            self._hopeless[token] = found
        return found

    def kernels_between(self, step: int, later: int) -> int:
        """Kernels of the program after step `step` and before `later`, in the order written."""
        return self._kernels[later] - self._kernels[step + 1]

    def further_down(self, state: int, token: int) -> Iterator[tuple[int, int]]:
        """The steps after `state` that launch exactly this token, where records between were lost: each with the kernels between, of
        which no more than MOST_MISSING count."""
        return ((step, min(MOST_MISSING, self.kernels_between(state, step))) for step in self.places(token) if step > state)

    def accept(self, step: int, token: int) -> tuple[float, int] | None:
        """(cost, 1 if exact) of step `step` launching `token`; None if it cannot."""
        key = (self._class_of[step], token)
        if key not in self._accepted:
            self._accepted[key] = self._judge(self.schedule.steps[step], self.tokens[token])
        return self._accepted[key]

    def _candidates(self, token: int) -> Sequence[int]:
        """Classes of steps that may launch a token."""
        launch = self.tokens[token]
        return [*self._named.get(launch.name, ()), *self._unnamed] if launch.kind == "kernel" else range(len(self._members))

    def _judge(self, step: ExpectedLaunch, token: Token) -> tuple[float, int] | None:
        if step.kind == KERNEL:
            return self._judge_kernel(step, token)
        if step.kind == LIBRARY:
            return self._judge_library(step, token)
        if step.kind in (READBACK, VIRTUAL) and token.kind == "kernel":
            return (0.0, 1) if HELPER.search(token.name) else None
        if step.kind == READBACK:
            return (0.0, 1) if token.kind == "readback" and (step.byte_count is None or step.byte_count == token.byte_count) else None
        if step.kind == VIRTUAL:
            return None
        if token.kind == "kernel":
            return (0.0, 1) if COPY_KERNEL.search(token.name) else None
        kind = {COPY: "copy", MEMSET: "memset"}[step.kind]
        if token.kind == kind:
            return (0.0, 1) if step.byte_count in (None, token.byte_count) else (OTHER_SIZE, 0)
        return None

    def _judge_kernel(self, step: ExpectedLaunch, token: Token) -> tuple[float, int] | None:
        if token.kind == "copy":
            return (0.0, 1) if step.byte_count is not None and step.byte_count == token.byte_count else None
        if token.kind != "kernel":
            return None
        same = (step.grid in (None, token.grid)) and (step.block in (None, token.block))
        if token.name in step.names:
            return (0.0, 1) if same else (OTHER_DIMENSIONS, 0)
        emitted = XLA_EMITTED.search(token.name)
        if step.grid is None:
            alike = emitted and any(base_name(token.name) == base_name(n) for n in step.names)
            return (OTHER_DIMENSIONS, 0) if alike else None
        # a kernel that XLA ships ready-made goes by a name of its own in the thunk sequence
        ready_made = same and not emitted and token.name not in self.schedule.own_names and not any(map(XLA_EMITTED.search, step.names))
        return (READY_MADE, 1) if ready_made and not AUTOTUNER.search(token.name) else None

    def _judge_library(self, step: ExpectedLaunch, token: Token) -> tuple[float, int] | None:
        if token.kind != "kernel":
            return (0.1, 0) if token.kind in ("memset", "copy") or "kCustomCall" in step.call else None
        if step.instruction is not None and token.name == kernel_name(step.instruction):
            return (0.0, 1)
        if step.thunk_kind == "kSort" and token.name.startswith("sort"):
            return (0.0, 1) if PASS_SUFFIX.sub("", token.name) in step.names else (0.3, 0)
        if token.name in self.schedule.own_names or XLA_EMITTED.search(token.name):
            return (STRANGE_LIBRARY, 0) if step.thunk_kind == "kCustomCall" else None
        if AUTOTUNER.search(token.name):
            return None
        odd = not (is_usual(step.call, token.name) or SECONDARY.search(token.name) or LEADING.search(token.name))
        odd |= bool(step.types) and product_type(token.name) not in (None, *step.types)
        return (UNUSUAL_LIBRARY, 0) if odd or tells_otherwise(step.call, token.name) else (0.0, 0)

    def call_price(self, step: int, state: int, token: int) -> float:
        """What it costs that a library call begins with this launch, or goes on with it."""
        launch, call = self.tokens[token], self.schedule.steps[step]
        helps = launch.kind != "kernel" or bool(SECONDARY.search(launch.name))
        if step != state:
            return BEGINS_WITH_HELPER if helps and launch.kind in ("kernel", "readback") else 0.0
        return 0.0 if helps else 0.02 if launches_several(call.call) else 0.5

    def _search(self, state: int, token: int) -> tuple[Move, ...]:
        found: dict[int, Move] = {}
        for step, cost, skipped, _ in self._walk(state, token):
            accepted = self.accept(step, token) if step < self.schedule.end else None
            if accepted is None:
                continue
            extra = self.call_price(step, state, token) if self.schedule.steps[step].kind == LIBRARY else 0.0
            move = (step, cost + accepted[0] + extra, skipped, accepted[1])
            if step not in found or move[1] < found[step][1]:
                found[step] = move
        best = min((m[1] for m in found.values()), default=0.0)
        return tuple(m for m in found.values() if m[1] <= best + 6.0)

    def _walk(self, state: int, token: int | None) -> list[Move]:
        """Steps reachable from `state` within the budget by skipping others: (step, cost, kernels skipped, 0), cheapest first."""
        steps, follow = self.schedule.steps, self.schedule.follow
        queue = [(cost, 0, target) for target, cost in follow[state + 1]]
        heapq.heapify(queue)
        seen: dict[tuple[int, bool], float] = {}
        reached: list[Move] = []
        exact_at: float | None = None
        while queue:
            cost, skipped, step = heapq.heappop(queue)
            if cost > BUDGET or (step, skipped > 0) in seen or (exact_at is not None and cost > exact_at + 6.0):
                continue
            seen[step, skipped > 0] = cost
            reached.append((step, cost, skipped, 0))
            if step == self.schedule.end:
                continue
            if token is not None and exact_at is None and self.accept(step, token) == (0.0, 1):
                exact_at = cost
            kind = steps[step].kind
            skip = steps[step].skip if kind == LIBRARY else SKIP_COST.get(kind, NEXT_MISSING if skipped else FIRST_MISSING)
            for target, edge in follow[step + 1]:
                if target != step:
                    heapq.heappush(queue, (cost + edge + skip, skipped + (kind == KERNEL), target))
        return reached


def _classes(steps: Sequence[ExpectedLaunch]) -> tuple[list[int], list[list[int]]]:
    """Steps that launch the same: for each step its class, and for each class its steps. Loops unrolled have few classes."""
    numbers: dict[object, int] = {}
    of: list[int] = []
    members: list[list[int]] = []
    for at, step in enumerate(steps):
        own = step.instruction if step.kind == LIBRARY else None
        key = (step.kind, step.names, step.grid, step.block, step.byte_count, step.thunk_kind, step.call, step.types, own)
        number = numbers.setdefault(key, len(numbers))
        if number == len(members):
            members.append([])
        of.append(number)
        members[number].append(at)
    return of, members
