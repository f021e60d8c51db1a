"""From the analysis of captures to the report: every choice of what to show, in which order, and what to say beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.fact import Fact
from nsys_report.findings.explained import explained
from nsys_report.reports import budget_page, capture_sections, counters_page, notices, program_details, programs, rollup_page, what_if_page
from nsys_report.reports.model import Part, Report, Section, Table
from nsys_report.reports.present import Record, of_few
from nsys_report.units import count, duration, share, size, things

if TYPE_CHECKING:
    from nsys_report.analysis.roofline.ceilings import Ceilings
    from nsys_report.session import Session

LEAST_SHARE = 0.1
"""Share of the programs' busy time from which a program gets a section of its own: initialisation runs many small ones."""
LEAST_SECTIONS, MOST_SECTIONS = 1, 6
COPIES_COUNT = 1.02
"""Classes that take so much more than the kernels hold copies on the device too: their sum is then what all of them take."""
SUMMED = (
    "launches_per_execution",
    "bytes_accessed",
    "floor_measured_ns",
    "floor_nominal_ns",
    "weight_bytes",
    "kv_read_bytes",
    "kv_write_bytes",
    "wasted_bytes",
    "flops",
)
"""Figures of classes that add up over them."""
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
    yield Section("modules", "Programs", lines, tables=(programs.modules_table(modules, top),))
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
    classes, instructions = (programs.of_module(t, record) for t in (results.classes, results.instructions))
    tables: list[Table] = [programs.times_table(record)]
    facts, lines = _floor(record, classes)
    step_facts, step_lines = budget_page.step_facts(results, record)
    joined = classes["kernel_class"].null_count < len(classes) or (bool(session.narrowed) and not len(classes))
    if joined:
        tables += [
            programs.classes_table(classes, _total(record, classes, results.ceilings)),
            programs.details_table(programs.of_module(results.details, record)),
            programs.phases_table(programs.of_module(results.phases, record)),
            *rollup_page.rollup_tables(results, record, top, rollup),
            programs.instructions_table(instructions, top),
        ]
    elif len(kernels := programs.of_module(results.kernels, record)):
        tables.append(capture_sections.kernels_table(kernels, "Kernels by time", top))
    layer_lines, layers = program_details.layer_tables(results, record, top)
    tables[1:1] = [
        *budget_page.budget_tables(results, record, session.causes),
        *what_if_page.what_if_tables(results, session.predictions, record),
    ]
    tables += layers
    copies = programs.of_module(results.copies, record)
    if len(copies):
        tables.append(capture_sections.copies_table(copies))
    tables += program_details.full_tables(results, record)
    if joined and not len(classes):
        lines = (*lines, f"Nothing in it is of {session.narrowed}.")
    text = (*lines, *step_lines, *program_details.repeat_lines(results, record), *layer_lines)
    title = programs.title_of(record)
    return Section(
        f"program:{title}",
        title,
        text,
        (*facts, *step_facts, *_explained(session, record)),
        tuple(of_few(t, record["complete_executions"], OVER_LAUNCHES) for t in tables if t.rows),
        module=title,
    )


def _explained(session: Session, record: Record) -> Iterable[Fact]:
    """How much of the step the findings account for."""
    for one in explained(session.causes, session.results):
        if (one.hlo_module, one.program_id) == (record["hlo_module"], record["program_id"]):
            yield Fact("explained_ns", "explained by findings", one.explained_ns, "ns")
            yield Fact("explained_share", "of the step above its floor", one.share, "ratio")
            yield Fact("not_recorded_ns", "not recorded", one.not_recorded_ns, "ns")


def _total(record: Record, classes: pa.Table, ceilings: Ceilings) -> dict[str, Any] | None:
    """The classes' last row, None where only some are shown. Its bandwidth stands only where no kernel's bytes are unknown."""
    if (pc.sum(classes["time_share"]).as_py() or 0) < 0.999:
        return None
    total: dict[str, Any] = {name: pc.sum(classes[name]).as_py() for name in SUMMED}
    total |= {"kernel_class": "all", "time_share": 1.0, "time_per_execution_ns": record["kernel_time_ns"]}
    total |= {f"time_per_execution_{p}_ns": record[f"kernel_time_{p}_ns"] for p in ("p10", "p90")}
    if (summed := pc.sum(classes["time_per_execution_ns"]).as_py()) > COPIES_COUNT * (record["kernel_time_ns"] or 0):
        total |= {"time_per_execution_ns": summed, "time_per_execution_p10_ns": None, "time_per_execution_p90_ns": None}
    unknown = pc.max(pc.fill_null(classes["unknown_bytes_time_share"], 1.0)).as_py()
    if unknown == 0 and total["time_per_execution_ns"] and total["bytes_accessed"]:
        rate = total["bytes_accessed"] * 1e9 / total["time_per_execution_ns"]
        total["bytes_per_s"] = rate
        total["share_of_measured"] = rate / ceilings.measured.value if ceilings.measured else None
        total["share_of_nominal"] = rate / ceilings.nominal.value if ceilings.nominal else None
    return total


def _floor(record: Record, classes: pa.Table) -> tuple[tuple[Fact, ...], tuple[str, ...]]:
    """How far an execution's kernels are from the fewest bytes it needs."""
    runs, whole_runs = record["executions"], record["complete_executions"]
    text = things(runs, "execution") + (f", {count(whole_runs)} of them complete" if whole_runs != runs else "")
    if record["kernels_per_execution"]:
        text += f", {things(record['kernels_per_execution'], 'kernel')} and {duration(record['kernel_time_ns'])} of kernel time each."
    elif record["busy_time_ns"] is not None:
        text += f", {duration(record['busy_time_ns'])} of GPU work each, and no kernel on record."
    facts = [
        Fact("program_kind", "kind of program", record["program_kind"]),
        Fact("executions", "executions", runs, "count"),
        Fact("kernel_time_ns", "kernel time", record["kernel_time_ns"], "ns"),
    ]
    needed = pc.sum(classes["floor_bytes"]).as_py()
    lines = [text]
    if needed and record["kernel_time_ns"]:
        parts = [f"It must move at least {size(needed)} an execution{_needed_for(classes, needed)}"]
        facts.append(Fact("floor_bytes", "floor bytes", needed, "bytes"))
        for name in ("measured", "nominal"):
            floor = pc.sum(classes[f"floor_{name}_ns"]).as_py()
            if floor:
                ratio = floor / record["kernel_time_ns"]
                parts.append(f"{duration(floor)} at the {name} ceiling, {share(ratio)} of its kernel time")
                facts += [
                    Fact(f"floor_{name}_ns", f"byte floor {name}", floor, "ns"),
                    Fact(f"of_floor_{name}", f"byte floor {name} of kernel time", ratio, "ratio"),
                ]
        lines.append(": ".join((parts[0], "; ".join(parts[1:]))) + "." if len(parts) > 1 else parts[0] + ".")
    return tuple(facts), tuple(lines)


def _needed_for(classes: pa.Table, needed: int) -> str:
    """What the fewest bytes hold, in words."""
    weights, read, written = (pc.sum(classes[name]).as_py() or 0 for name in ("weight_bytes", "kv_read_bytes", "kv_write_bytes"))
    held = {"weights": weights, "KV caches": read + written, "optimizer state": needed - weights - read - written}
    names = [name for name, held_bytes in held.items() if held_bytes > 0]
    return f" ({', '.join(names)})" if names else ""
