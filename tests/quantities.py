"""Whether one idea is one number on every surface, parts add up to their wholes, and counts are counts.

    python -m tests.quantities DIR...      DIR is a folder with a capture, or a folder of such folders

Each line that is printed is a contradiction; the exit code is 3 where there is one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hlo_mapping import HloError
from nsys_report.analysis.budget.table import typical_executions
from nsys_report.analysis.program_rows import of_program
from nsys_report.assertions.names import names_of
from nsys_report.errors import ReportError
from nsys_report.history.figures import capture_record
from nsys_report.quantities import QUANTITIES
from nsys_report.reports.model import Section, Table
from nsys_report.reports.pictures.build import build_pictures
from nsys_report.reports.programs import title_of
from nsys_report.units import duration
from tests.surfaces import Surfaces, llm_lines, serves, surfaces_of

NEAR = 1e-6
"""Relative difference that rounding of sums explains."""
UNITS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}
TIME = r"(\d[\d,.]*) (ns|µs|ms|s)"
THINGS = (
    "kernels?|cop(?:y|ies)|arguments?|executions?|launch(?:es)?|programs?|iterations?|layers?|read-backs?|steps?|products?|collectives?"
)


def problems(surfaces: Surfaces) -> list[str]:
    """Every contradiction that is found in one capture's report, in a sentence each."""
    return [f"{check.__name__.strip('_')}: {text}" for check in CHECKS for text in check(surfaces)]


def _near(one: float | None, other: float | None, within: float = NEAR) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= within * max(abs(one), abs(other), 1.0)


def _programs(surfaces: Surfaces) -> Iterator[tuple[str, dict[str, Any], Section, dict[str, Any]]]:
    """Each program that has a section and a step: its title, row, section and step."""
    results = surfaces.analysis.results
    for record in results.modules.to_pylist():
        section = next((s for s in surfaces.report.parts[0].sections if s.key == f"program:{title_of(record)}"), None)
        steps = of_program(results.steps, record).to_pylist()
        if section is not None and steps:
            yield title_of(record), record, section, steps[0]


def _table(section: Section, key: str) -> Table | None:
    return next((t for t in section.tables if t.key == key), None)


def _column(table: Table, key: str, total: bool = False) -> list[float]:
    at = next(i for i, c in enumerate(table.columns) if c.key == key)
    return [float(v) for row in table.rows if row.is_total is total and isinstance(v := row.values[at], (int, float))]


def one_value(surfaces: Surfaces) -> Iterator[str]:
    """A quantity of a program has the same value as fact, in tables, in assertions, in pictures and in the history."""
    named = {p.label: p for p in names_of(surfaces.analysis).programs}
    pictures = {p.program: p for p in build_pictures(surfaces.analysis).programs}
    record = capture_record("case", [surfaces.analysis], {}).figures if named and any(True for _ in _programs(surfaces)) else {}
    for title, row, section, step in _programs(surfaces):
        facts = {f.key: f.value for f in section.facts}
        truth = {"step_ns": step["typical_ns"], "typical_kernel_time_ns": step["typical_kernel_time_ns"], "floor_ns": step["floor_ns"]}
        truth |= {} if step["is_alone"] else {"idle_ns": step["idle_ns"]}
        found: list[tuple[str, str, Any]] = [("facts", key, facts.get(key)) for key in truth]
        found += [("check", key, named[title].figures.get(key)) for key in truth]
        found += [("programs", key, value) for key, value in _of_programs(surfaces, row) if key in truth and not step["is_alone"]]
        found += [
            (f"table {t.key}", "step_ns", v) for t in section.tables if t.key == "budget" for v in _column(t, "typical_ns", total=True)
        ]
        picture = pictures.get(title)
        found += [("picture", "step_ns", picture.budget.step_ns)] if picture is not None and picture.budget is not None else []
        found += [
            ("history", "step_ns", value)
            for key, value in record.items()
            if key == f"{row['hlo_module']}:step_ns" and row["program_id"] == _first(surfaces, row)
        ]
        yield from (f"{title}: {key} is {truth[key]} and {value} in {where}" for where, key, value in found if not _near(truth[key], value))


def _first(surfaces: Surfaces, row: dict[str, Any]) -> int | None:
    """The least number of the programs of a name, which the history calls by the name alone."""
    same = [
        r["program_id"] or 0
        for r in surfaces.analysis.results.modules.to_pylist()
        if r["hlo_module"] == row["hlo_module"] and r["complete_executions"]
    ]
    return min(same) if same else None


def _of_programs(surfaces: Surfaces, row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    section = surfaces.report.parts[0].section("modules")
    for record in section.tables[0].records() if section is not None else ():
        if (record["hlo_module"], record["program_id"]) == (row["hlo_module"], row["program_id"]):
            yield from record.items()


def parts_add_up(surfaces: Surfaces) -> Iterator[str]:
    """Rows add up to their totals, and shares to one."""
    for title, _, section, step in _programs(surfaces):
        whole = {"budget": step["typical_ns"], "budget_parts": step["typical_ns"]}
        classes = _table(section, "classes")
        kernels = sum(_column(classes, "typical_ns")) if classes is not None else None
        for key in ("classes", "details", "phases", "instructions"):
            whole |= {key: kernels} if kernels is not None else {}
        for key, total in whole.items():
            table = _table(section, key)
            if table is None:
                continue
            times = _column(table, "typical_ns")
            if key == "instructions":  # copies that cross the host are no part of the program's own time
                times = [t for t, s in zip(_all(table, "typical_ns"), _all(table, "typical_share"), strict=True) if s is not None]
            if not _near(sum(times), total, 1e-5):
                yield f"{title}: {key} adds up to {sum(times)}, its whole is {total}"
            shares = _column(table, "share" if key.startswith("budget") else "typical_share")
            if times and sum(times) and not _near(sum(shares), 1.0, 1e-5):
                yield f"{title}: shares of {key} add up to {sum(shares)}"
            yield from (
                f"{title}: {key}: {t} is {t / total} of the whole and called {s}"
                for t, s in zip(times, shares, strict=False)
                if total and not _near(t / total, s, 1e-5)
            )
        yield from (f"{title}: {t.key} ends in {last}, its rows add up to {sum(_column(t, 'time_ns'))}" for t in section.tables
                    if t.key.startswith("rollup_") and t.key != "rollup_parameter" for last in _column(t, "time_ns", total=True)
                    if not _near(sum(v for r, v in _depths(t)), last, 1e-5))  # fmt: skip
        facts = {f.key: f.value for f in section.facts}
        above = step["typical_ns"] - (step["floor_ns"] or 0)
        if float(facts.get("explained_ns") or 0) > above * (1 + 1e-6) + 1:
            yield f"{title}: {facts['explained_ns']} explained of {above}"


def _all(table: Table, key: str) -> list[Any]:
    at = next(i for i, c in enumerate(table.columns) if c.key == key)
    return [row.values[at] for row in table.rows if not row.is_total]


def _depths(table: Table) -> Iterator[tuple[Any, float]]:
    depth = next((i for i, c in enumerate(table.columns) if c.key == "depth"), None)
    time = next(i for i, c in enumerate(table.columns) if c.key == "time_ns")
    for row in table.rows:
        if not row.is_total and (depth is None or row.values[depth] == 0):
            yield depth, float(row.values[time] or 0)


def kernels_in_budget(surfaces: Surfaces) -> Iterator[str]:
    """The budget's time of kernels is theirs but for what ran at the same time, and idle and busy time make the step."""
    results = surfaces.analysis.results
    for title, record, _, step in _programs(surfaces):
        rows = of_program(results.budget, record).to_pylist()
        own = sum(r["typical_ns"] for r in rows if r["category"] in ("floor", "traffic", "below_roof", "kernels") and r["part"] != "graphs")
        classes = sum(r["typical_ns"] or 0 for r in of_program(results.classes, record).to_pylist())
        if classes and own > classes * (1 + 1e-5) + 1:
            yield f"{title}: kernels take {own} in the budget and {classes} by class"
        if step["idle_ns"] > step["typical_ns"]:
            yield f"{title}: idle for {step['idle_ns']} of {step['typical_ns']}"


def gains(surfaces: Surfaces) -> Iterator[str]:
    """A finding's gain and what it explains are parts of its program's step or execution, and its share says of which."""
    steps = {title_of(r): r["typical_ns"] for r in surfaces.analysis.results.steps.to_pylist()}
    spans = {title_of(r): r["span_ns"] for r in surfaces.analysis.results.modules.to_pylist()}
    for finding in surfaces.report.parts[0].findings:
        if finding.share is None or not finding.gain_ns or finding.module not in steps:
            continue
        whole = steps[finding.module] if finding.share_of == "step" else spans[finding.module]
        if not _near(finding.share * whole, finding.gain_ns, 1e-5):
            yield f"{finding.slug}: {finding.gain_ns} is called {finding.share} of {whole} ({finding.share_of})"
        if finding.share > 1:
            yield f"{finding.slug}: gains {finding.share} of a {finding.share_of}"


def between_calls(surfaces: Surfaces) -> Iterator[str]:
    """What is said to lie between two calls lies outside of the executions."""
    steps, spans = {title_of(r): r["typical_ns"] for r in surfaces.analysis.results.steps.to_pylist()}, _typical_spans(surfaces)
    for finding in surfaces.report.parts[0].findings:
        if finding.slug == "waiting-for-host" and finding.module in steps:
            idle, within = (float(finding.value(key) or 0) for key in ("idle_ns", "within_ns"))
            idle, outside = idle - within, steps[finding.module] - spans[finding.module]
            if idle > outside * 1.05:
                yield f"{finding.module}: idle {idle} between calls, where executions leave {outside}"


def _typical_spans(surfaces: Surfaces) -> dict[str, float]:
    """How long the executions of each program's typical steps are, on average."""
    view, budgets = surfaces.analysis.results.view, surfaces.analysis.results.budgets
    usual, runs = typical_executions(view, budgets.wall), view.executions
    rows = [
        (title_of({"hlo_module": k.hlo_module, "program_id": k.program_id}), usual & (runs.module == n)) for n, k in enumerate(view.modules)
    ]
    return {title: float((runs.end - runs.start)[mine].mean()) for title, mine in rows if mine.any()}


def steps_in_words(surfaces: Surfaces) -> Iterator[str]:
    """Every step and execution that a sentence names by its length is one, and holds what is said to be part of it."""
    results = surfaces.analysis.results
    steps = {duration(r["typical_ns"]) for r in results.steps.to_pylist()}
    spans = {duration(r["span_ns"]) for r in results.modules.to_pylist() if r["span_ns"] is not None}
    for surface, text in surfaces.texts():
        for found in re.finditer(rf"each {TIME} (step|execution)", text):
            if f"{found[1]} {found[2]}" not in (steps if found[3] == "step" else steps | spans):
                yield f"{surface}: no {found[3]} of {found[1]} {found[2]}"
        for found in re.finditer(rf"{TIME} of each {TIME} (?:step|execution)", text):
            if _ns(found[1], found[2]) > _ns(found[3], found[4]) * 1.006:
                yield f"{surface}: {found[0]}"
        for found in re.finditer(rf"(?:typical step takes|step of) {TIME}|{TIME} a step of", text):
            said = " ".join(word for word in found.groups() if word)
            if said not in steps:
                yield f"{surface}: no step of {said}"


def _ns(number: str, unit: str) -> float:
    return float(number.replace(",", "")) * UNITS[unit]


def counts_are_counts(surfaces: Surfaces) -> Iterator[str]:
    """Of so many there are never more, things are whole in sentences, and no share of a whole is more than all of it."""
    sentences = [line for section in surfaces.report.parts[0].sections for line in section.lines]
    sentences += [text for f in surfaces.report.parts[0].findings for text in (f.title, f.why)]
    for text in sentences:
        for found in re.finditer(rf"\b(\d[\d,]*) of (\d[\d,]*) (?:{THINGS})\b", text):
            if _ns(found[1], "ns") > _ns(found[2], "ns"):
                yield found[0]
        yield from (found[0] for found in re.finditer(rf"(?<![\d,])\d[\d,]*\.\d+ (?:{THINGS})\b(?! an iteration)", text))
        for found in re.finditer(r"(\d[\d,]*\.\d) % of (?:it|its|the|a|each) ", text):
            if _ns(found[1], "ns") > 100.0 and "ceiling" not in text and "roof" not in text:
                yield f"{found[0]}in {text!r}"


def names_are_defined(surfaces: Surfaces) -> Iterator[str]:
    """A quantity is called by its name wherever it is a fact or a column."""
    for section in surfaces.report.parts[0].sections:
        if section.module is None and section.key != "modules":
            continue
        named = [(f.key, f.label) for f in section.facts]
        named += [
            (c.key, c.heading) for t in section.tables for c in t.columns if not t.key.startswith(("rollup_", "layer", "what_if", "budget"))
        ]
        yield from (f"{section.key}: {key} is called {said!r}" for key, said in named if key in QUANTITIES and said != QUANTITIES[key].name)


def language_model_words(surfaces: Surfaces) -> Iterator[str]:
    """No word of language models stands in the report on programs that are none."""
    if not serves(surfaces.analysis):
        yield from (f"{surface}: {line}" for surface, line in llm_lines(surfaces))


def short_pages(surfaces: Surfaces) -> Iterator[str]:
    """The first 25 lines of the terminal hold the budget and a remedy, and Markdown fits into a comment."""
    top = surfaces.terminal.splitlines()[:25]
    stepping = bool(surfaces.report.parts[0].findings) and any(step["steps"] for _, _, _, step in _programs(surfaces))
    if stepping and not all(any(sign in line for line in top) for sign in ("a typical", "→")):
        yield "the first 25 lines do not answer"
    if len(surfaces.markdown) > 65_000:
        yield f"{len(surfaces.markdown)} characters of Markdown"


CHECKS: tuple[Callable[[Surfaces], Iterable[str]], ...] = (
    one_value,
    parts_add_up,
    kernels_in_budget,
    gains,
    between_calls,
    steps_in_words,
    counts_are_counts,
    names_are_defined,
    language_model_words,
    short_pages,
)


def main(arguments: list[str]) -> int:
    """Checks every capture below the folders given."""
    given = [Path(name) for name in arguments]
    folders = [
        f
        for path in given
        for f in ([path] if (path / "capture.sqlite").exists() else sorted(path.iterdir()))
        if (f / "capture.sqlite").exists()
    ]
    number = 0
    for folder in folders:
        try:
            found = problems(surfaces_of(folder))
        except (ReportError, HloError) as error:  # a capture that no report can be made of has no surfaces
            print(f"{folder.name}: left out: {error}")
            continue
        number += len(found)
        print(f"{folder.name}: {len(found) or 'nothing'}", *found, sep="\n    ", flush=True)
    print(f"{len(folders)} captures, {number} contradictions")
    return 3 if number else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
