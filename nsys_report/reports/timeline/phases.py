"""What the host does in one step of median length of each program, in words, where it did it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from nsys_report.analysis.idle.host_phases import typical_pair
from nsys_report.analysis.program_rows import rows_of_program
from nsys_report.reports.timeline.device import Programs
from nsys_report.reports.timeline.looks import Looks
from nsys_report.reports.timeline.model import Look, MarkRow
from nsys_report.units import duration

if TYPE_CHECKING:
    from nsys_report.session import Session

GROUP = "the host in a step of median length, in words"
COLORS = {"fetch": "b-copies", "upload": "b-copies", "program": "b-other_executions", "launch": "b-launch"}
"""Of phases that are no work of the host alone the part of the budget that they are nearest to."""

MOST_CALLS = 3
"""Calls of the operating system, longest first, that a phase names."""


def phase_rows(session: Session, programs: Programs, looks: Looks) -> Iterator[MarkRow]:
    """A row for each of these programs whose step has phases: one after another from an execution's end to the next one's start."""
    view = session.results.view
    for module, key in enumerate(view.modules):
        mine = rows_of_program(session.results.host_phases, key.hlo_module, key.program_id).to_pylist()
        pair = typical_pair(view, module) if mine and (key.hlo_module, key.program_id) in programs else None
        if pair is not None:
            start = int(view.executions.end[pair[0]]) + np.array([r["start_ns"] for r in mine], np.int64)
            length = np.array([r["duration_ns"] for r in mine], np.int64)
            look = np.array([looks.number(_look(r)) for r in mine], np.int64)
            yield MarkRow(GROUP, key.hlo_module or "unknown program", "range", start, length, look)


def _look(record: dict[str, Any]) -> Look:
    called = ", ".join(f"{name} {duration(ns)}" for name, ns in (record["os_calls"] or ())[:MOST_CALLS])
    told = (
        ("phase", record["about"]),
        ("which", record["name"]),
        ("in the program's range", record["user_range"]),
        ("calls of the operating system", called or None),
    )
    facts = tuple((label, str(value)) for label, value in told if value is not None)
    return Look(record["phase"].replace("_", " "), COLORS.get(record["phase"], "b-host"), facts=facts)
