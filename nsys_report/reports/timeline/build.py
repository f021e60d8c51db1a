"""From an analyzed capture to its timeline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from nsys_report.analysis.times import attribution
from nsys_report.intervals import Ranges
from nsys_report.reports.arrays import ints
from nsys_report.reports.timeline.device import Instructions, Programs, block_rows, idle_row, stream_rows
from nsys_report.reports.timeline.host import host_rows
from nsys_report.reports.timeline.looks import Looks
from nsys_report.reports.timeline.model import MarkRow, StepTimeline, StepView
from nsys_report.reports.timeline.phases import phase_rows
from nsys_report.reports.timeline.strip import MOST_BINS, strips
from nsys_report.reports.timeline.windows import MOST_MARKS, in_turns, step_windows, windows
from nsys_report.units import share, things

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_report.analysis.arrays.view import View
    from nsys_report.session import Session


def step_timeline(session: Session, programs: Programs, steps: Sequence[Sequence[int]], most: int = MOST_MARKS) -> StepTimeline | None:
    """The timeline of one capture; None where nothing ran on a device.

    `programs` names the sections of programs; `steps` holds for each program the executions worth showing (rows of the executions table),
    the most important first. Of a longer capture those are shown as far as `most` marks allow. What a session was narrowed to decides on
    these, and what runs around them is there too.
    """
    view = session.results.view
    if not len(view.start):
        return None
    span, steps = _span(session), [_rows_of_view(session, rows) for rows in steps]
    shown = windows(_starts(session), span, in_turns(_steps(view, rows) for rows in steps if len(rows)), int(most * ROOM))
    looks = Looks()
    phases = list(phase_rows(session, programs, looks))
    rows, notes = host_rows(session.joined.capture, shown, looks)
    rows = [*phases, *rows]
    about = _instructions(session)
    for device in range(len(view.devices)):
        rows += block_rows(view, device, session.results.block_spans, shown, looks)
        rows += stream_rows(view.joined, view, device, shown, looks, programs, about)
        idle = idle_row(view, session.results.idle[device], shown, looks)
        rows += [idle] if idle is not None else []
    rows, left_out = _longest(rows, most)
    origin = span[0]
    return StepTimeline(
        origin_ns=origin,
        span_ns=span[1] - origin,
        windows=tuple((int(low) - origin, int(high) - origin) for low, high in zip(*shown, strict=True)),
        rows=tuple(_from(row, origin) for row in rows),
        looks=looks.all(),
        steps=tuple(_step(view, row, origin) for own in steps for row in own[:MOST_STEPS]),
        strips=strips(view, session.results.idle, span, max(MOST_BINS // max(len(view.devices), 1), 100)),
        notes=(*notes, *left_out, *_held(session, shown, span)),
    )


def _rows_of_view(session: Session, rows: Sequence[int]) -> list[int]:
    """Rows of the session's executions as rows of its view, which has all of the capture's where the session was narrowed."""
    ids = session.joined.executions["execution_id"].to_pylist()
    place = {number: row for row, number in enumerate(session.results.view.executions.id.tolist())}
    return [place[ids[row]] for row in rows if ids[row] in place]


ROOM = 0.9
"""Share of the marks that windows are chosen for: layers, and what reaches into a window, are not counted before."""
MOST_STEPS = 4
"""Steps of a program that can be picked by name."""


def _step(view: View, row: int, origin: int) -> StepView:
    """An execution with the one before it and the one after it, where they are not far."""
    spans = attribution.windows(view)
    low, high = int(spans.start[row]), int(max(spans.end[row], view.executions.end[row]))
    around_low, around_high = next(_steps(view, [row]))
    wide = high - low
    return StepView(int(view.executions.id[row]), max(around_low, low - wide) - origin, min(around_high, high + wide) - origin)


def _span(session: Session) -> tuple[int, int]:
    """From the first record of the capture to its last, ns."""
    view, info = session.results.view, session.joined.capture.info
    low, high = int(view.start.min()), int(view.end.max())
    return (min(low, info.span_ns[0]), max(high, info.span_ns[1])) if info.span_ns and not session.narrowed else (low, high)


def _starts(session: Session) -> list[Any]:
    """The starts of all that would be marks; between two activities there may be an idle stretch, which is one too."""
    capture, view = session.joined.capture, session.results.view
    host = [ints(table, "start_ns") for table in (capture.runtime, capture.nvtx) if table is not None and len(table)]
    return [view.start, view.start, *host]


def _steps(view: View, rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The windows of a program's executions: each with the ones before and after it on its device."""
    runs = view.executions
    for row in rows:
        mine = np.flatnonzero((runs.module == runs.module[row]) & (runs.device == runs.device[row]))
        mine = mine[np.argsort(runs.start[mine], kind="stable")]
        yield from step_windows(runs.start[mine], runs.end[mine], [int(np.flatnonzero(mine == row)[0])])


SAID = ("phase", "label", "parameters")


def _instructions(session: Session) -> Instructions:
    """What the report knows of each instruction: where it was written, and how close to its roof it runs."""
    roofs = {
        (r["hlo_module"], r["program_id"], r["hlo_instruction"]): {"share_of_roof": r["share_of_roof"], "roof": r["roof"]}
        for r in session.results.roofline.select(["hlo_module", "program_id", "hlo_instruction", "share_of_roof", "roof"]).to_pylist()
    }
    columns = ["hlo_module", "program_id", "hlo_instruction", "op_name", "source_file", "source_line", *SAID]
    found = {}
    for r in session.results.instructions.select(columns).to_pylist():
        key = (r["hlo_module"], r["program_id"], r["hlo_instruction"])
        source = ":".join(str(r[name]) for name in ("source_file", "source_line") if r[name] is not None)
        found[key] = {**roofs.get(key, {}), "op_name": r["op_name"], "source": source} | {name: r[name] for name in SAID}
    return found


def _longest(rows: list[MarkRow], most: int) -> tuple[list[MarkRow], tuple[str, ...]]:
    """At most so many marks, the longest of them, and what is left out, in words: one execution may have more than a page can hold."""
    total = sum(map(len, rows))
    if total <= most:
        return rows, ()
    every = np.concatenate([row.duration_ns for row in rows])
    least = int(np.partition(every, -most)[-most])
    kept = [_some(row, row.duration_ns > least) for row in rows]
    part = sum(int(row.duration_ns.sum()) for row in kept) / max(int(every.sum()), 1)
    said = f"The {sum(map(len, kept)):,} longest of {total:,} marks are shown: {share(part)} of their time."
    return [row for row in kept if len(row)], (said,)


def _some(row: MarkRow, chosen: np.ndarray) -> MarkRow:
    return MarkRow(row.group, row.name, row.kind, row.start_ns[chosen], row.duration_ns[chosen], row.look[chosen])


def _from(row: MarkRow, origin: int) -> MarkRow:
    return MarkRow(row.group, row.name, row.kind, row.start_ns - origin, row.duration_ns, row.look)


def _held(session: Session, shown: Ranges, span: tuple[int, int]) -> tuple[str, ...]:
    """How much of the capture is there in detail, where that is not all."""
    if len(shown.starts) == 1 and shown.starts[0] <= span[0] and shown.ends[0] >= span[1]:
        return ()
    runs = session.results.view.executions
    at = np.minimum(np.searchsorted(shown.ends, runs.start), len(shown.starts) - 1)
    held = int(((runs.start >= shown.starts[at]) & (runs.end <= shown.ends[at])).sum())
    part = things(len(shown.starts), "part")
    return (f"In detail: {part} with {held:,} of {len(runs):,} executions (the median, the slowest, the first of each program, and what is "
            "around them); the strips are of the whole capture.",)  # fmt: skip
