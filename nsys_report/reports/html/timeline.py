"""A capture's timeline as the page's script reads it: columns of whole numbers, short as text. Texts are made visible here, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nsys_report.reports.pictures.model import Pictures, Runs
from nsys_report.reports.pictures.timeline import not_typical
from nsys_report.reports.timeline.model import Look, MarkRow, StepTimeline
from nsys_report.units import count, duration, visible


def timeline_data(timeline: StepTimeline, pictures: Pictures, sections: Mapping[str, str]) -> dict[str, Any]:
    """Everything that the page draws of a capture's timeline. `sections` holds the ids of programs' sections by title."""
    return {
        "span": timeline.span_ns,
        "windows": [list(window) for window in timeline.windows],
        "rows": [_row(row) for row in timeline.rows],
        "looks": [_look(look, sections) for look in timeline.looks],
        "strips": [
            {"group": visible(s.group), "bin": s.bin_ns, "colors": s.colors, "names": s.names, "percent": s.percent.tolist()}
            for s in timeline.strips
        ],
        "runs": _runs(pictures.runs, timeline.origin_ns) if pictures.runs is not None else None,
        "picks": list(picks(timeline, pictures)),
    }


def picks(timeline: StepTimeline, pictures: Pictures) -> Iterator[dict[str, Any]]:
    """The executions that can be picked by name: what each is, and what to see of the axis then."""
    views = {step.execution_id: [step.low_ns, step.high_ns] for step in timeline.steps}
    for program in pictures.programs:
        for one in sorted(program.timelines, key=not_typical):
            if one.execution_id in views:
                name = f"{visible(program.name)} {one.execution_id}" + (f" ({one.role})" if one.role else "")
                yield {"id": one.execution_id, "name": name, "title": visible(one.title), "view": views[one.execution_id]}


def summary_of(picture: Runs) -> str:
    """The executions in a sentence, for who does not see the timeline."""
    counts = np.bincount(picture.lane, weights=picture.count, minlength=len(picture.lanes))
    parts = [f"{count(float(n))} of {visible(name)}" for n, name in zip(counts, picture.lanes, strict=True)]
    return f"Executions over {duration(float(picture.end_ns.max()))}: {', '.join(parts)}."


def _row(row: MarkRow) -> dict[str, Any]:
    return {
        "group": visible(row.group),
        "name": visible(row.name),
        "kind": row.kind,
        "start": np.diff(row.start_ns, prepend=0).tolist(),
        "length": row.duration_ns.tolist(),
        "look": row.look.tolist(),
    }


def _look(look: Look, sections: Mapping[str, str]) -> list[Any]:
    """Name, color, id of its program's section, instruction, labels with values in turns, and what a person calls it."""
    facts = [visible(text) for fact in look.facts for text in fact]
    return [
        visible(look.name),
        look.color,
        sections.get(look.program or "", ""),
        visible(look.instruction or ""),
        facts,
        visible(look.label),
    ]


def _runs(runs: Runs, origin: int) -> dict[str, Any]:
    shift = runs.origin_ns - origin
    return {
        "lanes": [visible(name) for name in runs.lanes],
        "lane": runs.lane.tolist(),
        "start": (runs.start_ns + shift).tolist(),
        "end": (runs.end_ns + shift).tolist(),
        "kernels": runs.kernel_time_ns.astype(np.int64).tolist(),
        "gap": runs.gap_ns.astype(np.int64).tolist(),
        "slowest": runs.slowest_ns.tolist(),
        "id": runs.execution_id.tolist(),
        "count": runs.count.tolist(),
        "complete": runs.is_complete.astype(np.int64).tolist(),
    }
