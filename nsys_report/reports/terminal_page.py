"""A report as text for a terminal: as wide as the terminal, colored only for people, plain when piped.

The first screen answers: where a step goes, and the three things to do. The full page has every finding, table and column.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text

from nsys_report.findings.model import Finding
from nsys_report.reports.model import Notice, Part, Report, Section, Table
from nsys_report.reports.short import MOST_FINDINGS, answer, budget_of, first_clause, folded, gains_of, opening_section, with_bars
from nsys_report.reports.terminal_table import QUIET, STRONG, table_lines, wrapped
from nsys_report.units import visible

LEAST_WIDTH = 40
MOST_PLACES = 3
LAST_RANK = 5
"""Columns of this rank and more (model.Column.drop_rank) are left to the full page."""
LEFT_OUT = frozenset({"layer", "copies", "coverage"})
"""Tables that are left to the full page."""
HEADING = "bold cyan"
SEVERITIES = {"ok": ("✓", "green"), "info": ("·", "default"), "warning": ("!", "yellow"), "error": ("✗", "bold red")}


def render(report: Report, width: int = 120, color: bool = False, full: bool = False) -> str:
    """The report, ending in a newline; without `color` it holds no escape sequence. `full` shows every finding, table and column."""
    width = max(width, LEAST_WIDTH)
    return _printed(_report(report, width, full), width, color)


def render_sections(sections: Iterable[Section], width: int = 120, color: bool = False) -> str:
    """Sections that are no report, such as what a check or a listing prints; like render."""
    width = max(width, LEAST_WIDTH)
    lines = [line for section in sections for line in (Text(), *_section(section, width, full=True))]
    return _printed(lines[1:], width, color)


def _printed(lines: Iterable[Text], width: int, color: bool) -> str:
    out = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for line in lines:
        out.print(line, soft_wrap=True)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def _report(report: Report, width: int, full: bool) -> Iterator[Text]:
    if report.summary is not None:
        yield from table_lines(report.summary, width, last_rank=None if full else LAST_RANK)
    for number, part in enumerate(report.parts):
        if number or report.summary is not None:
            yield Text()
        yield from _part(part, width, full)


def _part(part: Part, width: int, full: bool) -> Iterator[Text]:
    yield from wrapped(f"{part.name}: {part.headline}", width, STRONG)
    if full:
        yield from (line for text in part.lines for line in wrapped(text, width))
    for notice in part.notices if full else folded(part.notices):
        yield from _notice(notice, width)
    opened = opening_section(part)
    if opened is not None:
        yield from _answer(opened, width, full)
    if part.findings:
        yield Text()
        yield from _findings(part.findings, width) if full else _first_findings(part.findings, width)
    for section in part.sections:
        tables = _shown(section, full, without_budget=section is opened)
        if section.lines or section.facts or section.notices or tables:
            yield Text()
            yield from _section(section, width, full, tables)
    if not full:
        yield Text()
        yield from (line for text in part.lines for line in wrapped(text, width, QUIET))
        yield from wrapped("--full shows every finding, table and column; --html FILE all of it as a page.", width, QUIET)


def _answer(section: Section, width: int, full: bool) -> Iterator[Text]:
    """Where a step of the first program goes."""
    table = budget_of(section)
    if table is not None:
        yield Text()
        yield from wrapped(answer(section), width, STRONG)
        yield from table_lines(with_bars(table), width, titled=False, last_rank=None if full else LAST_RANK)


def _first_findings(findings: tuple[Finding, ...], width: int) -> Iterator[Text]:
    """The first findings with what to do, the others by their ids."""
    yield Text("WHAT TO DO", style=HEADING)
    for number, finding in enumerate(findings[:MOST_FINDINGS], 1):
        about = "; ".join(filter(None, (gains_of(finding), finding.confidence, finding.module)))
        yield from wrapped(f"{finding.title} ({about})", width, STRONG, first=f"{number}. ", rest="   ")
        yield from wrapped(first_clause(finding.remedy), width, first="   → ", rest="     ")
        if finding.places:
            more = max(finding.place_count, len(finding.places)) - 1
            text = f"in {finding.places[0].with_origin}" + (f" and {more:,} more" if more > 0 else "")
            yield from wrapped(text, width, QUIET, first="   ", rest="   ")
    rest = [" ".join(filter(None, (f.slug, gains_of(f).partition(" to gain")[0] if f.gain_ns else ""))) for f in findings[MOST_FINDINGS:]]
    if rest:
        yield from wrapped(f"{len(rest)} more: {', '.join(rest)}", width, QUIET, first="   ", rest="   ")


def _findings(findings: tuple[Finding, ...], width: int) -> Iterator[Text]:
    """Every finding in full."""
    yield Text("WHAT TO DO", style=HEADING)
    for number, finding in enumerate(findings, 1):
        gain = ", ".join(f"{fact.text} {fact.label}" for fact in finding.gains)
        about = "; ".join(filter(None, (finding.module, gain, finding.confidence)))
        yield from wrapped(f"{finding.title} ({about})", width, STRONG, first=f"{number}. ", rest="   ")
        yield from wrapped(finding.why, width, first="   ", rest="   ")
        if finding.places:
            shown = ", ".join(place.with_origin for place in finding.places[:MOST_PLACES])
            more = max(finding.place_count, len(finding.places)) - MOST_PLACES
            yield from wrapped(f"in {shown}" + (f" and {more:,} more" if more > 0 else ""), width, QUIET, first="   ", rest="   ")
        yield from wrapped(finding.remedy, width, first="   → ", rest="     ")
        if finding.to_capture:
            yield from wrapped(finding.to_capture, width, QUIET, first="   to decide it: ", rest="     ")


def _shown(section: Section, full: bool, without_budget: bool = False) -> tuple[Table, ...]:
    """The tables of a section that this page shows, the budget with bars."""
    tables = (t for t in section.tables if not t.in_full and (full or t.key not in LEFT_OUT) and not (without_budget and t.key == "budget"))
    return tuple(with_bars(t) if t.key == "budget" else t for t in tables)


def _section(section: Section, width: int, full: bool, tables: tuple[Table, ...] | None = None) -> Iterator[Text]:
    yield Text(visible(section.title).upper() if section.module is None else visible(section.title), style=HEADING)
    for line in section.lines:
        yield from wrapped(line, width)
    if section.facts and not section.lines:  # the lines say the same in a sentence
        yield from wrapped(" · ".join(f"{fact.label} {fact.text}" for fact in section.facts), width)
    for notice in section.notices:
        yield from _notice(notice, width)
    for number, table in enumerate(_shown(section, full) if tables is None else tables):
        if number or section.lines or section.facts or section.notices:
            yield Text()
        yield from table_lines(table, width, titled=table.title != section.title, last_rank=None if full else LAST_RANK)


def _notice(notice: Notice, width: int) -> Iterator[Text]:
    sign, style = SEVERITIES[notice.severity]
    yield from wrapped(notice.message, width, style, first=f"{sign} ", rest="  ")
    if notice.hint:
        yield from wrapped(notice.hint, width, QUIET, first="  → ", rest="    ")
