"""From the analysis of captures to the report: every choice of what to show, in which order, and what to say beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from nsys_report.analysis.program_rows import of_program
from nsys_report.reports import (
    budget_page,
    capture_sections,
    counters_page,
    memory_page,
    notices,
    program_details,
    programs,
    rollup_page,
    what_if_page,
)
from nsys_report.reports.model import Part, Report, Section, Table
from nsys_report.reports.present import Record, of_few
from nsys_report.reports.program_facts import classes_total, opening
from nsys_report.units import things

if TYPE_CHECKING:
    from nsys_report.session import Session

LEAST_SHARE = 0.1
"""Share of the programs' busy time from which a program gets a section of its own: initialization runs many small ones."""
LEAST_SECTIONS, MOST_SECTIONS = 1, 6
OVER_LAUNCHES = ("duration_p10_ns", "duration_p90_ns")
"""Percentiles over a kernel's launches, which are many where executions are few."""
TOP = 12
"""Rows of long tables on short pages, where the reader does not say."""


def build_report(sessions: Sequence[Session], made_by: str, top: int | None = TOP, rollup: str = rollup_page.DEFAULT) -> Report:
    """The report on one or several captures; `top` rows of long tables stand on short pages, None for all.

    `rollup` is the dimension (analysis.rollup.dimensions) by which short pages sum up what runs.
    """
    summary = capture_sections.summary(sessions) if len(sessions) > 1 else None
    return Report(tuple(build_part(s, top, rollup) for s in sessions), summary, made_by)


def build_part(session: Session, top: int | None = TOP, rollup: str = rollup_page.DEFAULT) -> Part:
    """What the report says of one capture."""
    sections = [
        *_program_sections(session, top, rollup),
        *capture_sections.kernel_sections(session, top),
        *counters_page.counters_sections(session.counters, top),
        *capture_sections.coverage_sections(session),
        capture_sections.ceilings_section(session),
    ]
    facts = capture_sections.facts(session)
    lines = (capture_sections.ceilings_line(session.results.ceilings), *((f"Narrowed to {session.narrowed}.",) if session.narrowed else ()))
    return Part(
        session.name,
        capture_sections.headline(session),
        lines,
        facts,
        notices=tuple(notices.all_notices(session)),
        findings=session.causes,
        sections=tuple(sections),
    )


def _program_sections(session: Session, top: int | None, rollup: str) -> Iterable[Section]:
    modules = session.results.modules
    if not len(modules):
        return
    shown, hidden = worth_a_section(session)
    lines = (f"{things(hidden, 'more program')} without a section of their own (--module NAME gives one).",) if hidden else ()
    yield Section("modules", "Programs", lines, tables=(programs.modules_table(modules, session.results.steps, top),))
    for record in shown:
        yield _program(session, record, top, rollup)


def worth_a_section(session: Session) -> tuple[list[dict[str, Any]], int]:
    """The programs that take a fair share of the busy time, most first, and how many others there are.

    A program that only copies gets none, unless the reader asked for it.
    """
    records = session.results.modules.to_pylist()
    times = [programs.total_busy(r) if r["total_kernel_time_ns"] != 0 else 0.0 for r in records]
    if session.narrowed and not any(times):
        times = [programs.total_busy(r) for r in records]
    total = sum(times) or 1.0
    worth = [r for r, time in zip(records, times, strict=True) if time > 0 and r["complete_executions"]]
    large = sum(time / total >= LEAST_SHARE for time in times)
    shown = worth[: min(max(large, LEAST_SECTIONS), MOST_SECTIONS)]
    return shown, len(records) - len(shown)


def _program(session: Session, record: Record, top: int | None, rollup: str) -> Section:
    """One program: its times, its classes, its instructions."""
    results = session.results
    classes, instructions = (of_program(t, record) for t in (results.classes, results.instructions))
    tables: list[Table] = [programs.times_table(record)]
    facts, lines = opening(session, record, classes)
    joined = classes["kernel_class"].null_count < len(classes) or (bool(session.narrowed) and not len(classes))
    if joined:
        tables += [
            programs.classes_table(classes, classes_total(session, record, classes)),
            programs.details_table(of_program(results.details, record)),
            programs.phases_table(of_program(results.phases, record)),
            *rollup_page.rollup_tables(results, record, top, rollup),
            programs.instructions_table(instructions, top, record["complete_executions"]),
        ]
    elif len(kernels := of_program(results.kernels, record)):
        tables.append(capture_sections.kernels_table(kernels, "Kernels by time", top))
    layer_lines, layers = program_details.layer_tables(results, record, top)
    tables[1:1] = [
        *budget_page.budget_tables(results, record, session.causes),
        *what_if_page.what_if_tables(results, session.predictions, record),
    ]
    tables += layers
    copies = of_program(results.copies, record)
    if len(copies):
        tables.append(capture_sections.copies_table(copies))
    if (memory := memory_page.memory_of(session, record)) is not None:
        tables += memory_page.memory_tables(memory, instructions)
        facts, lines = (*facts, *memory_page.memory_facts(memory)), (*lines, *memory_page.memory_lines(memory))
    tables += program_details.full_tables(results, record)
    if joined and not len(classes):
        lines = (*lines, f"Nothing in it is of {session.narrowed}.")
    text = (*lines, *program_details.repeat_lines(results, record), *layer_lines)
    title = programs.title_of(record)
    return Section(
        f"program:{title}",
        title,
        text,
        facts,
        tuple(of_few(t, record["complete_executions"], OVER_LAUNCHES) for t in tables if t.rows),
        module=title,
    )
