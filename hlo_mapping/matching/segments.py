"""The prices of explaining launches, and what a search for the cheapest explanation is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

NOBODYS = 2.0
"""A launch that belongs to no execution."""

TOO_MANY = 3.0
"""A launch within an execution that the program does not have."""

BEGIN = 0.3
"""Every execution: fewer explain better."""

CUT_OFF = 1.0
"""An execution whose start lies before the capture, or whose end lies after it."""

ANNOTATED_CUT_OFF = 4.0
"""The same of an annotated execution, at either end: XLA's range says that it is one, so that must be evident."""

UNSIGNALLED = 1.0
"""An execution that begins where the host saw none end, or goes on where it saw one end, if its thread tells where executions end."""

MARGIN = 10.0
"""How much dearer than the best a hypothesis may be and live on."""

SETTLED = 2.4
"""Where an execution can end, alternatives dearer by this much are given up: less than one launch too many or missing."""

TROUBLE = 1.9
"""Where a launch makes the best explanation dearer by more than this, records may have been lost before it."""

GAP, GIVEN_UP, RESUMED = 4.0, 6.0, 3.2
"""Lost records: an execution goes on further down its program, breaks off, or is met in the middle."""

END_SEEN = 5.0
"""How much less it costs that an execution broke off, if the host saw one end."""

MOST_MISSING = 5
"""Kernels that one loss of records counts for: it says nothing against what is there."""

PATIENCE, PATIENCE_REGAINED = 6.0, 0.1
"""Troubles in a row that are looked into, and how much of that each launch without trouble restores."""

WIDEST = 200
"""Most hypotheses that live on at once."""

INFINITE = float("inf")

OUTSIDE = (-1, -1)

State = tuple[int, int]
"""(program, step after which it stands); OUTSIDE between executions."""

How = tuple[State, int, float, int, int, bool]
"""(state before, step or -1, price, 1 if exact, kernels missing before, whether an execution is met in its middle)."""

Option = tuple[State, float, int, int, bool]
"""A hypothesis that an execution begins: (state, cost, 1 if exact, kernels missing, whether it is met in its middle)."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One execution: launches `start` to `end` of the stream, by program `program` (an index), at what cost.

    `alternatives` are programs that explain the same launches nearly as well, with how much dearer. `exact` counts the launches that are
    just what was expected, `extra` those that nobody expected, `missing` the expected kernels that did not come. `seen` tells
    whether the host saw one end right before it and one with it; None where the host does not tell.
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
    alternatives: tuple[tuple[int, float], ...] = ()
    seen: bool | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """The segments of a stream in order, and for each launch the step of its program (-1 for none)."""

    segments: tuple[Segment, ...]
    steps: np.ndarray


@dataclass(slots=True)
class Pattern:
    """A stretch of launches already settled as one execution."""

    codes: bytes
    length: int
    segment: Segment
    steps: np.ndarray
    told: bool
    """Whether the host's signals helped to settle it."""


@dataclass(slots=True)
class Ending:
    """The hypothesis that ended at a launch to stand outside: its state, the price, the kernels then missing, and whether it broke off."""

    state: State
    price: float
    missing: int
    alternatives: tuple[tuple[int, float], ...] = ()
    broke_off: bool = False


@dataclass(slots=True)
class Trace:
    """How the hypotheses at one launch came about."""

    came: dict[State, How] = field(default_factory=dict)
    ended: Ending | None = None
