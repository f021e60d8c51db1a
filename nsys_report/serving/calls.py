"""A server's calls laid over a capture: which executions each made, and into which parts a row's latency falls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nsys_report.capture.session import SessionStart
from nsys_report.errors import InputError
from nsys_report.serving.timeline import Call, Timeline

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CallParts:
    """One call in the capture's time (ns from the session's start), and where its time goes.

    For its last row: queueing (from the arrival of the last row to the start), batching (from the first arrival to the last), before
    the device (from the start to the first activity of its executions), device (the union of its executions' spans), after (from the
    last activity to the finish), and what the device idles until its next activity.
    """

    call: Call
    started_ns: int
    finished_ns: int
    executions: tuple[int, ...]
    """Ids of the executions that began within it; empty where the capture holds none."""
    batching_ns: int
    queueing_ns: int
    before_ns: int | None
    device_ns: int | None
    after_ns: int | None
    idle_after_ns: int | None

    @property
    def arrived_ns(self) -> int:
        """When its first row arrived."""
        return self.started_ns - self.queueing_ns - self.batching_ns

    @property
    def latency_ns(self) -> int:
        """Of its first row, from arrival to finish."""
        return self.batching_ns + self.queueing_ns + self.finished_ns - self.started_ns


@dataclass(frozen=True, slots=True)
class Joined:
    """Every call that the capture's window holds whole. `error_ns` is by how far the two clocks may be apart at most.

    It is half the room that the executions leave: none may begin before its call has started or end after it has finished.
    `shift_ns` was added to the log's times beyond the session's start to fall into that room.
    """

    calls: tuple[CallParts, ...]
    outside: int
    """Calls before or after the capture's window."""
    shift_ns: int
    error_ns: float | None


def join_calls(timeline: Timeline, executions: pa.Table, session: SessionStart) -> Joined:
    """Lays calls over executions (nsys_report.columns.EXECUTION_TABLE). Raises InputError where the capture names no session start."""
    zero = session.realtime_ns if timeline.clock == "realtime" else session.monotonic_ns
    if zero is None:
        hint = f"the log goes by the {timeline.clock} clock, and the capture does not say when its session started by that"
        raise InputError("the log cannot be laid over the capture", hint, slug="timeline-untied")
    starts, ends, ids = (executions[name].to_numpy() for name in ("start_ns", "end_ns", "execution_id"))
    order = np.argsort(starts, kind="stable")
    starts, ends, ids = starts[order], ends[order], ids[order]
    if not len(starts):
        return Joined((), len(timeline.calls), 0, None)
    started = np.array([c.started_ns for c in timeline.calls], np.int64) - zero
    finished = np.array([c.finished_ns for c in timeline.calls], np.int64) - zero
    shift, error = _tie(started, finished, starts, ends)
    inside = (finished + shift >= starts[0]) & (started + shift <= ends.max())
    parts = [
        _parts(call, int(a + shift), int(b + shift), zero - shift, starts, ends, ids)
        for call, a, b, there in zip(timeline.calls, started, finished, inside, strict=True)
        if there
    ]
    return Joined(tuple(parts), int((~inside).sum()), shift, error)


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
    arrivals = [t - zero for t in call.arrived_ns] or [started]
    earliest, latest = min(arrivals), max(arrivals)
    before = device = after = idle = None
    if last > first:
        end = int(ends[first:last].max())
        before, after = int(starts[first]) - started, finished - end
        device = _union(starts[first:last], ends[first:last])
        idle = max(int(starts[last]) - end, 0) if last < len(starts) else None
    return CallParts(
        call, started, finished, tuple(ids[first:last].tolist()), latest - earliest, max(started - latest, 0), before, device, after, idle
    )


def _union(starts: Ints, ends: Ints) -> int:
    reach = np.maximum.accumulate(ends)
    return int(ends[0] - starts[0] + np.maximum(ends[1:] - np.maximum(starts[1:], reach[:-1]), 0).sum())


def wait_behind(calls: Sequence[CallParts]) -> dict[str, int]:
    """By program, the rows' time in the queue while a call of that program ran: for each other program's rows. ns in all."""
    found: dict[str, int] = {}
    for waiting in calls:
        since = waiting.started_ns - waiting.queueing_ns
        for other in calls:
            if other.call.program != waiting.call.program:
                shared = min(waiting.started_ns, other.finished_ns) - max(since, other.started_ns)
                if shared > 0:
                    found[other.call.program] = found.get(other.call.program, 0) + shared * waiting.call.rows
    return found
