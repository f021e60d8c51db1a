"""What the host does between two calls of a program: the phases of one typical step, in order, between what the capture shows.

From the device's end of one execution to the first activity of the next, the calls that launch copies and small programs, and the call of
the program itself, are fixed points; what lies between two of them is named after both. The step is a real one: that of median length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hlo_mapping import WORD, column
from nsys_report.analysis.arrays.schemas import MODULE_KEY
from nsys_report.analysis.arrays.tables import module_columns, table
from nsys_report.analysis.arrays.view import Flags, Ints, View, coded, executions_by_module, ints, once_per_view
from nsys_report.analysis.idle.causes import EXECUTE_RANGE
from nsys_report.analysis.idle.os_calls import OsCalls, os_calls
from nsys_report.analysis.idle.user_ranges import UserRanges, user_ranges
from nsys_report.analysis.times.attribution import windows
from nsys_report.analysis.times.modules import intervals_to_next

PHASES = {
    "before_fetch": "the device has finished, and the host has not begun to fetch the result",
    "fetch": "the result is copied to the host",
    "after_result": "the result is on the host, and nothing has been given to the device yet",
    "upload": "an argument is copied to the device",
    "program": "a small program runs, or is launched",
    "between_arguments": "between two arguments or small programs",
    "before_call": "the arguments are on the device, and XLA has not taken the call yet",
    "between_calls": "nothing is copied: the host has not called again yet",
    "dispatch": "XLA has taken the call and launches nothing yet",
    "launch": "the first launch is under way, or the device has not begun",
}
"""The phases in words, by key."""

MOST_BETWEEN = 64
"""Executions of other programs between two of a program up to which they are small programs that prepare a call: a training step or a
decoding loop has a handful. A program with more between its calls is called now and then, and its steps are those of others.
"""

HOST_PHASES = pa.schema(
    [
        *MODULE_KEY,
        column("position", pa.int64(), "place in the step, from 0"),
        column("phase", WORD, "key of nsys_report.analysis.idle.host_phases.PHASES"),
        column("about", pa.string(), "the phase in words"),
        column("name", pa.string(), "the small program, or the bytes copied; null for others"),
        column("start_ns", pa.int64(), "from the end of the device's work for the execution before"),
        column("duration_ns", pa.int64(), "length; the phases of a program add up to the time until its next execution's first activity"),
        column("thread", pa.int64(), "the thread that made the call at its end (global thread id); null where none was recorded"),
        column("thread_name", pa.string(), "that thread's name; null where the capture has none"),
        column(
            "user_range",
            pa.string(),
            "the innermost NVTX range of the program's own around most of the phase; null for none",
        ),
        column(
            "os_calls",
            pa.map_(pa.string(), pa.int64()),
            "the thread's time in each call of the operating system's runtime, ns, longest first, without calls within calls; null where "
            "none was traced",
        ),
    ]
)
"""A row per phase of one typical step of each program that is called again and again."""


Row = tuple[str, str | None, int, int, int]
"""A phase: its key, its name, its start from the device's end and its length, ns, and the thread."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that the host gives to the device between two executions: when the call begins, and when the device or the call is done."""

    kind: str
    name: str | None
    begin: int
    end: int
    thread: int


def host_phases(view: View) -> pa.Table:
    """Schema HOST_PHASES, in the order of the programs."""
    taken, ranges, calls = _execution_ranges(view), user_ranges(view), os_calls(view)
    found = [HOST_PHASES.empty_table()]
    for module in range(len(view.modules)):
        pair = typical_pair(view, module)
        if pair is not None and _calls_between(view, *pair) <= MOST_BETWEEN:
            done, events = _between(view, *pair)
            rows = list(_phases(done, events, _call(view, pair[1], taken)))
            found.append(_table(view, module, rows, _named(ranges, done, rows), _called(calls, done, rows)))
    return pa.concat_tables(found)


def _named(ranges: UserRanges, done: int, rows: list[Row]) -> list[str | None]:
    """What people named each phase; a range around the whole step names none of them."""
    whole = done, done + sum(length for _, _, _, length, _ in rows)
    return [ranges.naming(done + start, done + start + length, thread, whole) for _, _, start, length, thread in rows]


def _called(calls: OsCalls, done: int, rows: list[Row]) -> list[dict[str, int] | None]:
    """The time in calls of the operating system's runtime within each phase, by name."""
    return [calls.within(done + start, done + start + length, thread) or None for _, _, start, length, thread in rows]


def _table(view: View, module: int, rows: list[Row], named: list[str | None], called: list[dict[str, int] | None]) -> pa.Table:
    names = view.joined.capture.thread_names
    columns = {
        **module_columns([view.modules[module]] * len(rows)),
        "position": list(range(len(rows))),
        "phase": [row[0] for row in rows],
        "about": [PHASES[row[0]] for row in rows],
        "name": [row[1] for row in rows],
        "start_ns": [row[2] for row in rows],
        "duration_ns": [row[3] for row in rows],
        "thread": pa.array([row[4] if row[4] >= 0 else None for row in rows], pa.int64()),
        "thread_name": pa.array([names.get(row[4]) for row in rows], pa.string()),
        "user_range": pa.array(named, pa.string()),
        "os_calls": pa.array([list(times.items()) if times else None for times in called], HOST_PHASES.field("os_calls").type),
    }
    return table(HOST_PHASES, columns)


def typical_pair(view: View, module: int) -> tuple[int, int] | None:
    """An execution of a program whose step has the median length, and the one that follows it on its device; None where none does."""
    followed = intervals_to_next(view)[1]
    runs, span = view.executions, windows(view)
    mine = executions_by_module(view)[module]
    steps = mine[runs.complete[mine] & followed[mine]]
    if not len(steps):
        return None
    chosen = int(steps[np.argsort(span.wall[steps], kind="stable")[len(steps) // 2]])
    later = mine[(runs.device[mine] == runs.device[chosen]) & (runs.start[mine] == span.end[chosen])]
    return (chosen, int(later[0])) if len(later) else None


def _calls_between(view: View, one: int, following: int) -> int:
    """How many executions of other programs the device begins between two of a program."""
    runs = view.executions
    low, high = np.searchsorted(runs.start, (runs.end[one], runs.start[following]))
    return int((runs.device[low:high] == runs.device[one]).sum())


def _between(view: View, one: int, following: int) -> tuple[int, list[Event]]:
    """The device's end of an execution, and the events from then to the next one's first activity, in the order of their calls."""
    runs, launches = view.executions, _launches(view)
    done, until = int(runs.end[one]), int(runs.start[following])
    low, high = np.searchsorted(view.start, (done - _EARLIEST_NS, until))
    rows = np.arange(low, high)
    rows = rows[(view.device[rows] == runs.device[one]) & ~np.isin(view.execution[rows], (one, following)) & (view.end[rows] > done)]
    called = np.where(launches.known[rows], launches.start[rows], view.start[rows])
    ends, thread = launches.end[rows], launches.thread[rows]
    kind = view.column("copy_kind").take(rows)
    size = view.cost("bytes")[0][rows]
    events = []
    for at in np.argsort(called, kind="stable").tolist():
        word = kind.words[kind.codes[at]] if kind.codes[at] >= 0 else ""
        run = view.execution[rows[at]]
        if word == "DtoH":
            events.append(Event("fetch", f"{size[at]} B", int(called[at]), int(view.end[rows[at]]), int(thread[at])))
        elif run >= 0:
            name = view.modules[runs.module[run]].hlo_module
            events.append(Event("program", name, int(called[at]), int(ends[at]), int(thread[at])))
        elif word == "HtoD":
            events.append(Event("upload", f"{size[at]} B", int(called[at]), int(ends[at]), int(thread[at])))
        else:
            events.append(Event("program", None, int(called[at]), int(ends[at]), int(thread[at])))
    return done, events


_EARLIEST_NS = 10_000_000
"""A copy that still runs when an execution has ended began at most so long before."""


@dataclass(frozen=True, slots=True)
class _Launches:
    """When the call of each activity began and returned, and its thread; whether one was recorded."""

    start: Ints
    known: Flags
    end: Ints
    thread: Ints


@once_per_view
def _launches(view: View) -> _Launches:
    table = view.joined.activities
    start, known = ints(table, "launch_start_ns")
    return _Launches(start, known, ints(table, "launch_end_ns")[0], ints(table, "launch_thread", missing=-1)[0])


@dataclass(frozen=True, slots=True)
class NextCall:
    """The call of the next execution: when XLA took it, when the first launch began, and when the device did."""

    taken: int | None
    launched: int
    started: int
    thread: int


def _call(view: View, run: int, taken: tuple[Ints, Ints, Ints]) -> NextCall:
    low, high = np.searchsorted(view.start, (view.executions.start[run], view.executions.end[run] + 1))
    first = low + int(np.argmax(view.execution[low:high] == run))
    launches = _launches(view)
    thread = int(launches.thread[first])
    launched = int(launches.start[first]) if launches.known[first] else int(view.start[first])
    begins, ends, owners = taken
    around = np.flatnonzero((begins <= launched) & (ends >= launched) & (owners == thread))
    return NextCall(int(begins[around].min()) if len(around) else None, launched, int(view.start[first]), thread)


def _execution_ranges(view: View) -> tuple[Ints, Ints, Ints]:
    """Start, end and thread of XLA's ranges around executions."""
    nvtx = view.joined.capture.nvtx
    if nvtx is None or not len(nvtx):
        return (np.empty(0, np.int64),) * 3
    text = coded(nvtx, "text")
    chosen = text.isin(frozenset(w for w in text.words if w is not None and w.startswith(EXECUTE_RANGE)))
    end, closed = ints(nvtx, "end_ns")
    chosen &= closed
    return ints(nvtx, "start_ns")[0][chosen], end[chosen], ints(nvtx, "thread")[0][chosen]


def _phases(done: int, events: list[Event], call: NextCall) -> Iterator[Row]:
    """The phases in order: key, name, start from `done`, length, thread. What one event covers of another's time is the earlier one's."""
    cursor, last = done, ""
    for event in events:
        if event.begin > cursor:
            yield _wait(last, event.kind), None, cursor - done, event.begin - cursor, event.thread
            cursor = event.begin
        until = min(event.end, call.started)
        if until > cursor:
            yield event.kind, event.name, cursor - done, until - cursor, event.thread
            cursor = until
        last = event.kind
    for key, until in ((_wait(last, "call"), call.taken or call.launched), ("dispatch", call.launched), ("launch", call.started)):
        if until > cursor:
            yield key, None, cursor - done, until - cursor, call.thread
            cursor = until


def _wait(last: str, following: str) -> str:
    """The phase between two events: what the host does after one and before the next."""
    if following == "fetch":
        return "before_fetch" if not last else "between_arguments"
    if last == "fetch":
        return "after_result"
    if following == "call":
        return "before_call" if last else "between_calls"
    return "between_arguments" if last else "between_calls"
