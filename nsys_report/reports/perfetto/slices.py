"""What a trace shows of an analyzed capture: the marks of its timeline as slices on tracks, executions, waits, arrows, and counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nsys_report.reports.arrays import NONE, codes, ints
from nsys_report.reports.lanes import lanes
from nsys_report.reports.perfetto.counters import Counter, counters, sampled
from nsys_report.reports.programs import title_of
from nsys_report.reports.timeline.build import step_timeline
from nsys_report.reports.timeline.device import group_name
from nsys_report.reports.timeline.looks import Looks
from nsys_report.reports.timeline.model import Look, MarkRow, StepTimeline

if TYPE_CHECKING:
    from nsys_report.session import Session

Ints = NDArray[np.int64]
MOST_MARKS = 2_000_000
"""Marks in a trace, of which a GPU activity makes three or four with its call and ranges; of a longer capture the first so many."""
PROGRAMS = "Programs"
WAITS = "Synchronizations"


@dataclass(frozen=True, slots=True)
class Track:
    """A line of the trace: its name under its group's, and where it stands among the group's."""

    group: str
    name: str
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Slices:
    """Slices by column: times in ns, `track` and `look` indices, the id of an execution or NONE.

    `flow` joins the slice of an API call (`is_source`) to that of the first activity that it launched; NONE for slices without.
    """

    start: Ints
    end: Ints
    track: Ints
    look: Ints
    execution: Ints
    flow: Ints
    is_source: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class TraceContent:
    """Slices, the tracks and looks that they point at, counters, and what was left out."""

    slices: Slices
    tracks: tuple[Track, ...]
    looks: tuple[Look, ...]
    counters: tuple[Counter, ...] = ()
    notes: tuple[str, ...] = ()


def picture(session: Session, most: int = MOST_MARKS, title: str = "") -> TraceContent:
    """Programs, streams, layers, idle time by cause, host threads and waits of a capture, as slices; bandwidth and load as counters."""
    records = session.results.modules.to_pylist()
    titles = {(record["hlo_module"], record["program_id"]): title_of(record) for record in records}
    timeline = step_timeline(session, titles, (), most)
    if timeline is None:
        return TraceContent(_stacked([]), (), ())
    looks = Looks()
    for look in timeline.looks:
        looks.number(look)
    end = timeline.origin_ns + max((high for _, high in timeline.windows), default=timeline.span_ns)
    rows = [
        *_execution_rows(session, looks, end),
        *(_absolute(row, timeline.origin_ns) for row in timeline.rows),
        *_waits(session, looks, end),
    ]
    before = f"{title}: " if title else ""
    return TraceContent(
        _stacked([*_with_executions(session, rows)]),
        tuple(Track(before + row.group, row.name, rank) for rank, row in enumerate(rows)),
        looks.all(),
        (*counters(session, before), *sampled(session, before)),
        _notes(timeline),
    )


def _notes(timeline: StepTimeline) -> tuple[str, ...]:
    """What the trace leaves out; --execution and --module choose other parts."""
    return tuple(f"{note} --execution and --module show others." for note in timeline.notes)


def _absolute(row: MarkRow, origin: int) -> MarkRow:
    return MarkRow(row.group, row.name, row.kind, row.start_ns + origin, row.duration_ns, row.look)


def _execution_rows(session: Session, looks: Looks, until: int) -> Iterator[MarkRow]:
    """The executions of programs, a row for each device."""
    view, table = session.results.view, session.joined.executions
    runs = view.executions
    names = [key.hlo_module or "unknown program" for key in view.modules]
    look = np.array([looks.number(Look(name, f"p-{name}")) for name in names] or [0], np.int64)
    for device in range(len(view.devices)):
        at = np.flatnonzero((runs.device == device) & (runs.start < until)) if len(table) else np.empty(0, np.int64)
        if len(at):
            yield from _laned(PROGRAMS, group_name(view, device), "execution", runs.start[at], runs.end[at], look[runs.module[at]])


def _waits(session: Session, looks: Looks, until: int) -> Iterator[MarkRow]:
    """What waited for the device, and what on the device waited for an event, by kind."""
    table = session.joined.capture.synchronizations
    if not len(table):
        return
    kind, kinds = codes(table, "kind")
    start, end, stream = (ints(table, name) for name in ("start_ns", "end_ns", "stream_id"))
    for number, name in enumerate(kinds):
        at = np.flatnonzero((kind == number) & (start < until) & (end >= start)) if name != "event_query" else np.empty(0, np.int64)
        if not len(at):
            continue
        streams, code = np.unique(stream[at], return_inverse=True)
        shown = name.replace("_", " ")
        told = [looks.number(Look(shown, "h-wait", facts=(("stream", str(n)),) if n != NONE else ())) for n in streams.tolist()]
        yield from _laned(WAITS, shown, "wait", start[at], end[at], np.array(told, np.int64)[code.reshape(-1)])


def _laned(group: str, name: str, kind: str, start: Ints, end: Ints, look: Ints) -> Iterator[MarkRow]:
    """Rows of marks that do not overlap."""
    end = np.maximum(end, start)
    lane = lanes(start, end, np.zeros(len(start), np.int64))
    for place in range(int(lane.max()) + 1):
        mine = lane == place
        yield MarkRow(group, name, kind, start[mine], (end - start)[mine], look[mine])


def _with_executions(session: Session, rows: Iterable[MarkRow]) -> Iterator[Slices]:
    """Each row as slices, with the executions and the arrows of those that have them."""
    launches = _Launches(session)
    ids = dict(zip(session.results.view.executions.start.tolist(), session.results.view.executions.id.tolist(), strict=True))
    for number, row in enumerate(rows):
        none = np.full(len(row), NONE, np.int64)
        execution = np.array([ids.get(s, NONE) for s in row.start_ns.tolist()], np.int64) if row.kind == "execution" else none
        if row.kind in ("stream", "copies"):
            execution = launches.executions(row)
        flow = launches.calls(row) if row.kind == "call" else launches.activities(row) if row.kind in ("stream", "copies") else none
        is_source = np.full(len(row), row.kind == "call")
        yield Slices(row.start_ns, row.start_ns + row.duration_ns, none * 0 + number, row.look, execution, flow, is_source)


class _Launches:
    """The first activity of each call that launched something, found again among the marks by their times."""

    def __init__(self, session: Session) -> None:
        table = session.results.view.joined.activities
        start, begin, end = (ints(table, name) for name in ("start_ns", "launch_start_ns", "launch_end_ns"))
        known = np.flatnonzero(begin >= 0)
        _, first = np.unique(begin[known], return_index=True)
        rows = known[first]
        self._call = begin[rows], np.maximum(end[rows], begin[rows]) - begin[rows]
        self._activity = start[rows]
        self._number = np.arange(len(rows)) + 1
        order = np.argsort(start, kind="stable")
        self._starts, self._executions = start[order], ints(table, "execution_id")[order]

    def calls(self, row: MarkRow) -> Ints:
        """The arrow that begins at each call; NONE for a call that launched nothing."""
        if not len(self._number):
            return _none(row)
        start, duration = self._call
        at = np.minimum(np.searchsorted(start, row.start_ns), len(start) - 1)
        return self._found(at, (start[at] == row.start_ns) & (duration[at] == row.duration_ns))

    def activities(self, row: MarkRow) -> Ints:
        """The arrow that ends at each activity; NONE for those that the call before launched too."""
        if not len(self._number):
            return _none(row)
        order = np.argsort(self._activity, kind="stable")
        at = order[np.minimum(np.searchsorted(self._activity[order], row.start_ns), len(order) - 1)]
        return self._found(at, self._activity[at] == row.start_ns)

    def executions(self, row: MarkRow) -> Ints:
        """The execution that each activity belongs to."""
        at = np.minimum(np.searchsorted(self._starts, row.start_ns), len(self._starts) - 1)
        return np.where(self._starts[at] == row.start_ns, self._executions[at], NONE)

    def _found(self, at: Ints, there: NDArray[np.bool_]) -> Ints:
        return np.where(there, self._number[at], NONE)


def _none(row: MarkRow) -> Ints:
    return np.full(len(row), NONE, np.int64)


def _stacked(parts: list[Slices]) -> Slices:
    fields = Slices.__dataclass_fields__
    if not parts:
        return Slices(*(np.empty(0, bool if name == "is_source" else np.int64) for name in fields))
    return Slices(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))
