"""A device's rows: each stream's kernels and copies, the layers and iterations they belong to, and why nothing ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nsys_report.analysis.arrays.groups import distinct_rows
from nsys_report.analysis.idle.causes import CAUSES
from nsys_report.intervals import Ranges
from nsys_report.reports.arrays import NONE, codes, ints
from nsys_report.reports.budget_page import CATEGORIES, PARTS_IN_WORDS
from nsys_report.reports.lanes import lanes
from nsys_report.reports.timeline.looks import Looks, ProgramKey
from nsys_report.reports.timeline.model import Ints, Look, MarkRow
from nsys_report.reports.timeline.windows import overlapping
from nsys_report.units import cell_text, kernel, shorten

if TYPE_CHECKING:
    from nsys_report.analysis.arrays.view import View
    from nsys_report.analysis.idle.idle_times import IdleTime
    from nsys_report.analysis.structure.sequences import BlockSpans
    from nsys_report.joined import Joined

Programs = Mapping[ProgramKey, str]
"""The title of each program's section by module name and number."""
Instructions = Mapping[tuple[str | None, int | None, str], Mapping[str, Any]]
"""What the report knows of each instruction."""
Figures = tuple[tuple[str, int], ...]
_COLUMNS = ("activity", "name", "hlo_instruction", "kernel_class", "class_detail", "copy_kind", "hlo_module")
WHERE_FROM = (("label", "called"), ("parameters", "parameters"), ("op_name", "operation"), ("source", "source"), ("phase", "phase"))
OWN_COLORS = frozenset({"weights", "kv_gather", "kv_write", "attention", "other"})


def group_name(view: View, device: int) -> str:
    """What a device is called on the timeline."""
    process, ordinal = view.devices[device]
    processes = {p for p, _ in view.devices}
    return f"GPU {ordinal}" + (f" of process {process}" if len(processes) > 1 else "")


def stream_rows(
    joined: Joined, view: View, device: int, shown: Ranges, looks: Looks, programs: Programs, instructions: Instructions
) -> Iterator[MarkRow]:
    """The activities of a device by stream; what overlaps on one has rows of its own."""
    at = overlapping(view.start, view.end, shown)
    at = at[view.device[at] == device]
    if not len(at):
        return
    table = joined.complete(joined.activities.take(pa.array(at)))
    look = _activity_looks(table, looks, programs, instructions)
    start, end, (stream, names) = view.start[at], np.maximum(view.end[at], view.start[at]), _streams(table)
    lane = lanes(start, end, stream)
    for number, (name, kind) in enumerate(names):
        for place in np.unique(lane[stream == number]).tolist():
            mine = np.flatnonzero((stream == number) & (lane == place))
            yield MarkRow(group_name(view, device), name, kind, start[mine], end[mine] - start[mine], look[mine])


def _streams(table: pa.Table) -> tuple[Ints, list[tuple[str, str]]]:
    """The stream of each activity, numbered from 0, with the name and kind of each; streams that only copy are one."""
    numbers, stream = np.unique(ints(table, "stream_id"), return_inverse=True)
    stream = stream.reshape(-1)
    kind, kinds = codes(table, "activity")
    works = np.bincount(stream, weights=kind != (kinds.index("memcpy") if "memcpy" in kinds else -2), minlength=len(numbers)) > 0
    names = [(f"stream {n}", "stream") for n in numbers[works].tolist()]
    if works.all():
        return stream, names
    copying = numbers[~works].tolist()
    said = f"copies, stream{'s' * (len(copying) > 1)} {shorten(', '.join(map(str, copying)), 20)}"
    return np.where(works, np.cumsum(works) - 1, len(names))[stream], [*names, (said, "copies")]


def _activity_looks(table: pa.Table, looks: Looks, programs: Programs, instructions: Instructions) -> Ints:
    """The look of each activity; those that say the same share one."""
    coded = {name: codes(table, name) for name in _COLUMNS}
    moved = np.where(ints(table, "bytes_accessed") >= 0, ints(table, "bytes_accessed"), ints(table, "bytes"))
    columns = [*(code for code, _ in coded.values()), ints(table, "program_id"), ints(table, "flops"), moved]
    index, first = distinct_rows(columns)
    made = []
    for *parts, number, flops, size in zip(*(column[first].tolist() for column in columns), strict=True):
        said = {name: words_[code] if code >= 0 else None for code, (name, (_, words_)) in zip(parts, coded.items(), strict=True)}
        program = (said["hlo_module"], number if number != NONE else None)
        about = instructions.get((*program, said["hlo_instruction"])) if said["hlo_instruction"] else None
        figures = tuple((key, value) for key, value in (("bytes", size), ("flops", flops)) if value != NONE)
        made.append(looks.number(_activity_look(said, figures, programs.get(program), about or {})))
    return np.array(made, np.int64)[index]


def _activity_look(said: Mapping[str, str | None], figures: Figures, program: str | None, about: Mapping[str, Any]) -> Look:
    activity, name, label = said["activity"], said["name"] or "", about.get("label") or ""
    facts = [("bytes", cell_text("bytes", value)) for key, value in figures if key == "bytes"]
    if activity != "kernel":
        sort = {"memcpy": "copy", "graph": "graph"}.get(str(activity), "memset")
        shown = said["hlo_instruction"] or {"copy": f"copy {said['copy_kind'] or name}", "graph": name or "graph"}.get(sort, sort)
        facts = [("activity", str(activity)), *facts, *_origin(about)]
        return Look(shown, f"c-{sort}", program, said["hlo_instruction"], label, tuple(facts), figures)
    short, group = kernel(name), said["kernel_class"]
    color = group if group in OWN_COLORS else "kernel" if group is None else "other"
    told = [("kernel", short), ("class", " · ".join(filter(None, (group or "unknown", said["class_detail"]))))]
    return Look(
        said["hlo_instruction"] or short, f"c-{color}", program, said["hlo_instruction"], label, (*told, *facts, *_origin(about)), figures
    )


def _origin(about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """How close an instruction comes to its roof, and where it was written."""
    if about.get("share_of_roof") is not None:
        yield f"of its {about['roof']} roof", cell_text("ratio", about["share_of_roof"])
    yield from ((label, str(about[key])) for key, label in WHERE_FROM if about.get(key))


def idle_row(view: View, idle: IdleTime, shown: Ranges, looks: Looks) -> MarkRow | None:
    """Every idle stretch of a device by its cause, called as the budget calls its parts."""
    parts = []
    for cause, ranges in zip(CAUSES, idle.by_cause, strict=True):
        at = overlapping(ranges.starts, ranges.ends, shown)
        if len(at):
            label = CATEGORIES[cause.category]
            name = PARTS_IN_WORDS.get(cause.key, cause.key.replace("_", " "))
            facts = (("of the budget", label), ("idle because", cause.about))
            look = looks.number(Look(name, f"b-{cause.category}", label=label, facts=facts))
            parts.append((ranges.starts[at], ranges.ends[at], np.full(len(at), look)))
    if not parts:
        return None
    start, end, look_ = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(start, kind="stable")
    return MarkRow(group_name(view, idle.device), "idle, by cause", "idle", start[order], (end - start)[order], look_[order])


def block_rows(view: View, device: int, spans: tuple[BlockSpans, ...], shown: Ranges, looks: Looks) -> Iterator[MarkRow]:
    """The iterations and layers of programs on a device, numbered from 0."""
    for kind, name in (("iteration", "iterations"), ("layer", "layers"), ("block", "blocks")):
        parts = [_blocks(view, device, one, shown, looks) for one in spans if one.kind == kind]
        start, end, look = (np.concatenate(columns) for columns in zip(*parts, strict=True)) if parts else (np.empty(0, np.int64),) * 3
        if len(start):
            order = np.argsort(start, kind="stable")
            start, end, look = start[order], end[order], look[order]
            lane = lanes(start, end, np.zeros(len(start), np.int64))
            for place in np.unique(lane).tolist():
                mine = lane == place
                yield MarkRow(group_name(view, device), name, "block", start[mine], (end - start)[mine], look[mine])


def _blocks(view: View, device: int, spans: BlockSpans, shown: Ranges, looks: Looks) -> tuple[Ints, Ints, Ints]:
    here = view.executions.device[spans.execution] == device
    start, end = spans.start[here].ravel(), spans.end[here].ravel()
    at = overlapping(start, end, shown)
    module = view.modules[spans.module].hlo_module or "unknown program"
    number = [looks.number(Look(f"{spans.kind} {n}", "h-block", facts=(("of", module),))) for n in range(spans.start.shape[1])]
    return start[at], end[at], np.array(number, np.int64)[at % max(spans.start.shape[1], 1)]
