"""A server's calls laid over a capture: which executions each made, and into which parts a row's latency falls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nsys_report.capture.session import SessionStart
from nsys_report.errors import InputError
from nsys_report.intervals import union, union_length, within
from nsys_report.serving.timeline import Call, CallLog

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CallParts:
    """One call in the capture's time (ns from the session's start), and where its time goes.

    Batching (from the first arrival to the last), queueing (from there to the start), before the device (from the start to the first
    activity of its executions), device (the union of its executions' spans), between (the rest until the last activity), after (from
    there to the finish) add up to the latency of its first row; then comes what the device idles until its next activity.
    """

    call: Call
    started_ns: int
    finished_ns: int
    executions: tuple[int, ...]
    """Ids of the executions that began within it; empty where the capture holds none."""
    batching_ns: int | None
    """None, as all that needs an arrival, where the log names none."""
    queueing_ns: int | None
    before_ns: int | None
    device_ns: int | None
    between_ns: int | None
    after_ns: int | None
    idle_after_ns: int | None

    @property
    def arrived_ns(self) -> int | None:
        """When its first row arrived."""
        if self.batching_ns is None or self.queueing_ns is None:
            return None
        return self.started_ns - self.queueing_ns - self.batching_ns

    @property
    def latency_ns(self) -> int | None:
        """Of its first row, from arrival to finish."""
        return None if self.arrived_ns is None else self.finished_ns - self.arrived_ns

    @property
    def row_batching_ns(self) -> list[int]:
        """Of each row whose arrival the log names, from there to the last row's."""
        if self.batching_ns is None:
            return []
        earliest = min(self.call.arrived_ns)
        return [max(self.batching_ns - (time - earliest), 0) for time in self.call.arrived_ns]


@dataclass(frozen=True, slots=True)
class JoinedCalls:
    """Every call that the capture's window holds whole. `error_ns` is by how far the two clocks may be apart at most.

    It is half the room that the executions leave: none may begin before its call has started or end after it has finished.
    `shift_ns` was added to the log's times beyond the session's start to fall into that room.
    """

    calls: tuple[CallParts, ...]
    outside: int
    """Calls before or after the capture's window."""
    shared: int
    """Executions that began within several calls at once, and are counted with each."""
    shift_ns: int
    error_ns: float | None


def join_calls(timeline: CallLog, executions: pa.Table, session: SessionStart) -> JoinedCalls:
    """Lays calls over executions (nsys_report.columns.EXECUTION_TABLE). Raises InputError where the capture names no session start."""
    zero = session.realtime_ns if timeline.clock == "realtime" else session.monotonic_ns
    if zero is None:
        hint = f"the log goes by the {timeline.clock} clock, and the capture does not say when its session started by that"
        raise InputError("the log cannot be laid over the capture", hint, slug="timeline-untied")
    starts, ends, ids = (executions[name].to_numpy() for name in ("start_ns", "end_ns", "execution_id"))
    order = np.argsort(starts, kind="stable")
    starts, ends, ids = starts[order], ends[order], ids[order]
    if not len(starts):
        return JoinedCalls((), len(timeline.calls), 0, 0, None)
    started = np.array([c.started_ns for c in timeline.calls], np.int64) - zero
    finished = np.array([c.finished_ns for c in timeline.calls], np.int64) - zero
    shift, error = _tie(started, finished, starts, ends)
    inside = (finished + shift >= starts[0]) & (started + shift <= ends.max())
    parts = [
        _parts(call, int(a + shift), int(b + shift), zero - shift, starts, ends, ids)
        for call, a, b, there in zip(timeline.calls, started, finished, inside, strict=True)
        if there
    ]
    shared = _depth(started + shift, finished + shift, starts) > 1
    return JoinedCalls(tuple(parts), int((~inside).sum()), int(shared.sum()), shift, error)


def _depth(started: Ints, finished: Ints, times: Ints) -> Ints:
    """In how many calls each time lies."""
    return np.searchsorted(np.sort(started), times, side="right") - np.searchsorted(np.sort(finished), times, side="right")


def _tie(started: Ints, finished: Ints, starts: Ints, ends: Ints) -> tuple[int, float | None]:
    """The smallest shift of the calls that lets each hold the executions that lie mostly within it, and half the room it has."""
    middle = (starts + ends) // 2
    mine = np.searchsorted(started, middle, side="right") - 1
    held = (mine >= 0) & (middle <= finished[np.maximum(mine, 0)])
    if not held.any():
        return 0, None
    mine = mine[held]
    low, high = int((ends[held] - finished[mine]).max()), int((starts[held] - started[mine]).min())
    if low > high:  # executions outlast their calls, as where a call returns before its work is done: nothing to hold it to
        return 0, None
    return int(np.clip(0, low, high)), (high - low) / 2


def _parts(call: Call, started: int, finished: int, zero: int, starts: Ints, ends: Ints, ids: Ints) -> CallParts:
    first, last = (int(np.searchsorted(starts, t, side="left")) for t in (started, finished))
    arrivals = [min(t - zero, started) for t in call.arrived_ns]
    before = device = between = after = idle = None
    if last > first:
        end = int(ends[first:last].max())
        within_call = np.minimum(ends[first:last], finished)
        before, after = int(starts[first]) - started, max(finished - end, 0)
        device = union_length(starts[first:last], within_call)
        between = finished - int(starts[first]) - device - after
        idle = max(int(starts[last]) - end, 0) if last < len(starts) else None
    return CallParts(
        call,
        started,
        finished,
        tuple(ids[first:last].tolist()),
        batching_ns=max(arrivals) - min(arrivals) if arrivals else None,
        queueing_ns=started - max(arrivals) if arrivals else None,
        before_ns=before,
        device_ns=device,
        between_ns=between,
        after_ns=after,
        idle_after_ns=idle,
    )


def wait_behind(calls: Sequence[CallParts]) -> dict[str, int]:
    """By program, the rows' time in the queue while a call of that program ran: for each other program's rows. ns in all."""
    if not calls:
        return {}
    programs = np.array([call.call.program for call in calls])
    spans = [(call.started_ns, call.finished_ns, call.queueing_ns or 0, call.call.rows) for call in calls]
    started, finished, queueing, rows = np.array(spans, np.int64).T
    found = {}
    for program in dict.fromkeys(programs.tolist()):
        is_it = programs == program
        others = ~is_it
        running = union(started[is_it], finished[is_it])
        waited = within(running, (started - queueing)[others], started[others])
        found[program] = int((waited * rows[others]).sum())
    return {program: ns for program, ns in found.items() if ns}
