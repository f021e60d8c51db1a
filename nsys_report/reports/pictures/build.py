"""From the analysis of a capture to its pictures: every choice of what is drawn, and the finding that each title says."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nsys_report.analysis.arrays.view import ModuleKey
from nsys_report.analysis.idle.host_phases import typical_pair
from nsys_report.analysis.program_rows import of_program
from nsys_report.reports import budget_page
from nsys_report.reports.arrays import ints, plain_words
from nsys_report.reports.build import worth_a_section
from nsys_report.reports.pictures.model import (
    BudgetBar,
    BudgetPart,
    ClassRate,
    ClassRates,
    Pictures,
    Point,
    ProgramPictures,
    Roof,
    Roofline,
)
from nsys_report.reports.pictures.runs import MOST_MARKS, runs_picture
from nsys_report.reports.pictures.timeline import MOST_BARS, Chosen, ExecutionCutter, choose, stretch
from nsys_report.reports.present import Record
from nsys_report.reports.programs import title_of
from nsys_report.units import duration, phrase, share, things

if TYPE_CHECKING:
    from nsys_report.analysis.roofline.ceilings import Ceilings
    from nsys_report.reports.pictures.model import Ints, Timeline
    from nsys_report.session import Session

MOST_TIMELINES = 60
"""Executions of a program whose timelines a page holds, where there is room."""


def build_pictures(
    session: Session, most_bars: int = MOST_BARS, most_marks: int = MOST_MARKS, most_timelines: int = MOST_TIMELINES
) -> Pictures:
    """The pictures of one capture.

    `most_bars` is shared among the timelines of all programs: each program's median, slowest and first execution are always there,
    others as far as there is room, at most `most_timelines` of a program.
    """
    results, joined = session.results, session.joined
    titles = short_names(results.modules.to_pylist())
    shown = worth_a_section(session)[0] if len(results.modules) else []
    cutter = ExecutionCutter(joined) if shown else None
    programs = []
    for record in shown:
        assert cutter is not None
        name = titles[record["hlo_module"], record["program_id"]]
        timelines = _timelines(session, cutter, record, name, most_bars // len(shown), most_timelines)
        programs.append(_program(session, record, name, timelines))
    first = shown[0] if shown else next(iter(results.modules.to_pylist()), None)
    steps = of_program(results.steps, first).to_pylist() if first is not None else []
    runs = runs_picture(joined, titles, first, steps[0] if steps else None, most_marks)
    return Pictures(session.name, runs, tuple(programs), stretch(joined) if runs is None else None)


def budget_bars(session: Session) -> tuple[BudgetBar, ...]:
    """Where a step of each program that the report is about goes, those with most time first."""
    if not len(session.results.modules):
        return ()
    titles = short_names(session.results.modules.to_pylist())
    bars = (_budget(session, record, titles[record["hlo_module"], record["program_id"]]) for record in worth_a_section(session)[0])
    return tuple(bar for bar in bars if bar is not None)


def short_names(records: list[dict[str, Any]]) -> dict[tuple[str | None, int | None], str]:
    """What titles call each program: its name alone where no other has it."""
    names = Counter(r["hlo_module"] for r in records)
    return {
        (r["hlo_module"], r["program_id"]): title_of(r) if names[r["hlo_module"]] > 1 else str(r["hlo_module"] or "unknown program")
        for r in records
    }


def _program(session: Session, record: Record, name: str, timelines: tuple[Timeline, ...]) -> ProgramPictures:
    budget, rates, roofline = _budget(session, record, name), _rates(session, record, name), _roofline(session, record, name)
    return ProgramPictures(title_of(record), name, budget, rates, roofline, timelines)


def _timelines(session: Session, cutter: ExecutionCutter, record: Record, name: str, room: int, most: int) -> tuple[Timeline, ...]:
    """The executions of a program that are shown in detail."""
    made: list[Timeline] = []
    for chosen in chosen_executions(session, record):
        room -= cutter.count(chosen.row)
        if not chosen.role and (room < 0 or len(made) >= most):
            break
        made.append(cutter.timeline(chosen.row, name, chosen.role))
    return tuple(made)


def chosen_executions(session: Session, record: Record) -> list[Chosen]:
    """The executions of a program that are worth showing."""
    view = session.results.view
    key = ModuleKey(record["hlo_module"], record["program_id"])
    pair = typical_pair(view, view.modules.index(key)) if key in view.modules else None
    rows = rows_of(session.joined.executions, record)
    if pair is None:
        return choose(session.joined, rows)
    typical = np.flatnonzero(ints(session.joined.executions, "execution_id") == view.executions.id[pair[0]])  # none where it is left out
    return choose(session.joined, rows, int(typical[0]) if len(typical) else None)


def rows_of(executions: pa.Table, record: Record) -> Ints:
    """The rows of a program's complete executions, in order of start."""
    names = np.array([name == record["hlo_module"] for name in plain_words(executions, "hlo_module")], bool)
    number = -1 if record["program_id"] is None else record["program_id"]
    complete = np.asarray(executions["is_complete"].fill_null(True).to_numpy(), bool)
    rows = np.flatnonzero(names & (ints(executions, "program_id") == number) & complete)
    return rows[np.argsort(ints(executions, "start_ns")[rows], kind="stable")]


def _budget(session: Session, record: Record, name: str) -> BudgetBar | None:
    """The step budget by category, as the report's table has it."""
    table = next(iter(budget_page.budget_tables(session.results, record)), None)
    if table is None:
        return None
    keys = {label: key for key, label in budget_page.CATEGORIES.items()}
    rows = [(row, dict(zip((c.key for c in table.columns), row.values, strict=True))) for row in table.rows]
    parts = tuple(
        BudgetPart(keys[str(r["category"])], str(r["category"]), float(r["typical_ns"] or 0), float(r["share"] or 0), str(r["parts"] or ""))
        for row, r in rows
        if not row.is_total and str(r["category"]) in keys
    )
    step = next(float(r["typical_ns"] or 0) for row, r in rows if row.is_total)
    steps = of_program(session.results.steps, record).to_pylist()
    title = _budget_title(name, step, "an execution" if steps[0]["is_alone"] else "a step", parts) if parts else ""
    return BudgetBar(title, name, step, parts, table.notes) if parts and step else None


def _budget_title(program: str, step: float, whole: str, parts: tuple[BudgetPart, ...]) -> str:
    """The time of the whole, a step or an execution, its largest part, and its floor."""
    largest = max(parts, key=lambda part: part.ns)
    floor = next((part for part in parts if part.key == "floor"), None)
    text = f"{duration(step)} {whole} of {program}: {share(largest.share)} {largest.label}"
    return text if floor is None or floor is largest else f"{text}, {share(floor.share)} floor"


def _rates(session: Session, record: Record, name: str) -> ClassRates | None:
    """The classes whose bandwidth is known, most time first."""
    ceilings = session.results.ceilings
    records = of_program(session.results.classes, record).to_pylist()
    rows = tuple(
        ClassRate(
            r["kernel_class"] or "unknown",
            r["bytes_per_s"],
            r["typical_ns"],
            r["typical_share"],
            r["share_of_measured"],
            r["share_of_nominal"],
            bool(r["above_measured"]),
        )
        for r in records
    )
    if not any(row.bytes_per_s for row in rows):
        return None
    unknown = [row.kernel_class for row in rows if row.bytes_per_s is None]
    notes = (f"Not drawn, as its bytes are unknown: {', '.join(unknown)}.",) if unknown else ()
    if any(row.is_above for row in rows):
        notes = (*notes, "▲ above the measured ceiling: a cache (L2) served it, or its bytes are counted wrong.")
    measured, nominal = _value(ceilings, "measured"), _value(ceilings, "nominal")
    return ClassRates(_rates_title(name, rows), name, rows, measured, nominal, notes)


def _value(ceilings: Ceilings, name: str) -> float | None:
    ceiling = getattr(ceilings, name)
    return float(ceiling.value) if ceiling is not None else None


def _rates_title(program: str, rows: tuple[ClassRate, ...]) -> str:
    """How close the class with most time comes to the ceiling."""
    top = next(row for row in rows if row.bytes_per_s)
    ratio, name = (top.share_of_measured, "measured") if top.share_of_measured is not None else (top.share_of_nominal, "nominal")
    text = f"{program}: {top.kernel_class} ({share(top.time_share)} of the time)"
    if ratio is None:
        return f"{text} at {phrase('bytes_per_s', top.bytes_per_s)}"
    if top.is_above:
        return f"{text} above the measured ceiling ({share(ratio)}): from a cache, or miscounted"
    return f"{text} at {share(ratio)} of the {name} ceiling"


def _roofline(session: Session, record: Record, name: str) -> Roofline | None:
    """The instructions that compute, against the roofs of their types."""
    rows = [r for r in of_program(session.results.roofline, record).to_pylist() if r["level"] == "instruction"]
    placed = [r for r in rows if r["flops_per_byte"] and r["flops_per_s"] and r["time_ns"]]
    if not placed:
        return None
    steps = of_program(session.results.steps, record)["typical_kernel_time_ns"].to_pylist()
    total = (steps[0] if steps else None) or sum(r["time_ns"] for r in rows)
    points = tuple(
        Point(
            r["hlo_instruction"] or "not joined",
            r["kernel_class"] or "unknown",
            r["flops_per_byte"],
            r["flops_per_s"],
            r["time_ns"],
            r["time_ns"] / total,
            r["share_of_roof"],
        )
        for r in sorted(placed, key=lambda r: -r["time_ns"])
    )
    ceilings = session.results.ceilings
    roofs = [Roof(name, v, True) for name in ("measured", "nominal") if (v := _value(ceilings, name))]
    used = dict.fromkeys(r["compute_type"] for r in placed if r["compute_type"])
    roofs += [Roof(name, limit.value, False) for name in used if (limit := ceilings.flops_per_s(name)) is not None]
    without = len(rows) - len(placed)
    notes = (f"{things(without, 'instruction')} without arithmetic that counts as such {'have' if without != 1 else 'has'} no place here.",)
    return Roofline(_roofline_title(name, placed, total), name, points, tuple(roofs), notes if without else ())


def _roofline_title(program: str, rows: list[dict[str, Any]], total: float) -> str:
    """What limits the instructions that compute, and how much of the time is at the roof."""
    time = sum(r["time_ns"] for r in rows)
    memory = sum(r["time_ns"] for r in rows if r["roof"] == "memory") / time
    limit = "bandwidth" if memory >= 0.5 else "arithmetic"
    at = sum(r["time_ns"] for r in rows if r["at_roof"]) / total
    text = f"{program}: {limit} limits its products"
    text += "" if memory in (0, 1) else f" for {share(max(memory, 1 - memory))} of their time"
    return f"{text}; {share(at)} of the kernel time is at the roof" if at else f"{text}; nothing is at the roof"
