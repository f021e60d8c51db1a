"""A report as Markdown for an issue or a pull request: the short page, in GitHub's dialect, with names that stay text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from nsys_report.findings.model import Finding, Place
from nsys_report.reports.model import Column, Notice, Part, Report, Row, Section, Table
from nsys_report.reports.short import MOST_FINDINGS, answer, budget_of, folded, gains_of, opening_section, with_bars
from nsys_report.units import SHORTENED, UNKNOWN, duration, shorten, visible

LONGEST_NAME = 60
"""Characters of a name in a cell; longer ones lose their middle."""
LAST_RANK = 5
"""Columns of this rank and more (model.Column.drop_rank) are left out: a page of an issue is about 100 characters wide."""
MOST_LETTERS = 65_000
"""GitHub refuses a comment of more than 65,536 characters."""
FEWER_ROWS = (8, 3, 1, 0)
"""Rows of each table on a page that would be too long."""
CUT_OFF = "<sub>The rest does not fit into a comment: `--html FILE` holds all of it.</sub>\n"
OPEN = frozenset({"budget", "modules", "quantities", "verdicts"})
"""Tables that are not folded away."""
SMALL = 8
"""Rows up to which a table that is about no program is not folded away."""
MOST_PLACES = 4
"""Instructions named under a finding."""
SEVERITIES = {"ok": "✓", "info": "ℹ", "warning": "⚠", "error": "✗"}
_ACTIVE = re.compile(r"([\\`*\[\]|~$])|(?<!\w)(_)|(_)(?!\w)")
"""Signs of the dialect in running text; an underscore within a word is none."""
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_REFERENCE = re.compile(r"([@#])(?=\w)|(https?:|www)(?=[/.])", re.IGNORECASE)
"""What GitHub makes a link of, even behind a backslash: a mention, the number of an issue, an address."""
_LINE_START = re.compile(r"^(\d*)([-+=#](?=\s|$)|(?<=\d)[.)](?=\s|$))")


def render(report: Report) -> str:
    """The whole report, ending in a newline, at most MOST_LETTERS long: the longest tables lose rows first, then go."""
    made = ""
    for rows in (None, *FEWER_ROWS):
        made = "\n".join(_report(report, rows)) + "\n"
        if len(made) <= MOST_LETTERS:
            return made
    return _cut(made)


def _cut(made: str) -> str:
    """The beginning of a page that is too long however few rows its tables have: of many captures, the first ones."""
    kept = made[: MOST_LETTERS - len(CUT_OFF)].rsplit("\n\n", 1)[0]
    opened = kept.count("<details>") - kept.count("</details>")
    return kept + "\n\n" + "</details>\n\n" * opened + CUT_OFF


def _report(report: Report, rows: int | None) -> Iterator[str]:
    if report.summary is not None:
        yield from _titled(report.summary, "##", rows)
    for part in report.parts:
        yield from _part(part, rows)
    if report.made_by:
        yield f"<sub>{text(report.made_by)}</sub>"


def _part(part: Part, rows: int | None) -> Iterator[str]:
    opened = opening_section(part)
    yield f"## {text(part.name if opened is None else answer(opened))}"
    yield ""
    yield f"**{text(part.name if opened is not None else part.headline)}**" + (f" {text(part.headline)}" if opened is not None else "")
    yield ""
    yield from _notices(tuple(folded(part.notices)))
    budget = budget_of(opened) if opened is not None else None
    if budget is not None:
        yield from _table(with_bars(budget), None)
    if part.findings:
        yield from ("### What to do", "")
        for number, finding in enumerate(part.findings[:MOST_FINDINGS], 1):
            yield from _finding(finding, number)
        yield from _details(f"{len(part.findings) - MOST_FINDINGS} more", _short_findings(part.findings))
    for section in part.sections:
        yield from _section(section, rows, without_budget=section is opened)
    for line in part.lines:
        yield from (f"<sub>{text(line)}</sub>", "")


def _about(finding: Finding) -> str:
    about = "; ".join(text(part) for part in (gains_of(finding), finding.confidence) if part)
    where = f"; {code(finding.module)}" if finding.module else ""
    return f"**{text(finding.title)}** ({about}{where})"


def _finding(finding: Finding, number: int) -> Iterator[str]:
    """A finding in full."""
    yield f"{number}. {_about(finding)}"
    yield from ("", f"   {text(finding.why)}", "", f"   → {text(finding.remedy)}")
    if finding.places:
        names = [f"{code(place.hlo_instruction)} {text(_origin(place))}".strip() for place in finding.places[:MOST_PLACES]]
        more = max(finding.place_count, len(finding.places)) - len(names)
        yield from ("", f"   <sub>in {', '.join(names)}{f' and {more:,} more' if more else ''}</sub>")
    if finding.to_capture:
        yield from ("", f"   <sub>to decide it: {text(finding.to_capture)}</sub>")
    yield ""


def issue(finding: Finding, about: Iterable[str]) -> str:
    """One finding as the text of an issue: what it is, why, what to do, the lines and HLO that it rests on; `about` is what ran where."""
    return "\n".join([f"# {text(finding.title)}", "", *_issue(finding), *(f"- {text(line)}" for line in about), ""])


def _issue(finding: Finding) -> Iterator[str]:
    yield from (f"{_about(finding)}", "", text(finding.why), "", f"**To do:** {text(finding.remedy)}", "")
    if finding.to_capture:
        yield from (f"To decide it: {text(finding.to_capture)}", "")
    if finding.facts:
        yield from (*(f"- {text(fact.label)}: {text(fact.text)}" for fact in finding.facts if fact.value is not None), "")
    for place in finding.places[:MOST_PLACES]:
        yield f"{code(place.called)}: {duration(place.time_ns)} each time {text(_origin(place))}".rstrip()
        yield from ("", *fenced(place.snippet, "python"), *fenced(place.hlo, ""))
    if finding.basis:
        yield from (f"<sub>{text(finding.basis)}</sub>", "")


def fenced(block: str, language: str) -> tuple[str, ...]:
    """Lines as a block of code, whatever backticks are in them; none for none."""
    if not block:
        return ()
    longest = max((len(run) for run in re.findall(r"`+", block)), default=0)
    fence = "`" * max(3, longest + 1)
    return (f"{fence}{language}", *map(visible, block.split("\n")), fence, "")


def _origin(place: Place) -> str:
    """Where an instruction came from, in brackets; "" where nobody knows."""
    return f"({place.source})" if place.source else ""


def _short_findings(findings: tuple[Finding, ...]) -> list[str]:
    """The findings after the first ones, a line each."""
    return [f"{number}. {_about(finding)}" for number, finding in enumerate(findings, 1) if number > MOST_FINDINGS]


def _details(summary: str, lines: list[str]) -> Iterator[str]:
    """What is folded away until somebody opens it; nothing where there is nothing."""
    if lines:
        yield from (f"<details><summary>{text(summary)}</summary>", "", *lines, "", "</details>", "")


def _section(section: Section, rows: int | None, without_budget: bool = False) -> Iterator[str]:
    tables = [table for table in section.tables if not table.in_full and not (without_budget and table.key == "budget")]
    if not (tables or section.lines or section.facts or section.notices):
        return
    yield f"### {text(section.title) if section.module is None else code(section.title)}"
    yield ""
    for line in section.lines:
        yield from (text(line), "")
    if section.facts and not section.lines:
        yield from (" · ".join(text(f"{fact.label} {fact.text}") for fact in section.facts), "")
    yield from _notices(section.notices)
    for table in tables:
        if table.key in OPEN or (rows is None and section.module is None and len(table.shown()) <= SMALL):
            yield from _titled(table, "####", rows) if table.title != section.title else _table(table, rows)
        else:
            yield from _details(table.title, list(_table(table, rows)))


def _notices(notices: tuple[Notice, ...]) -> Iterator[str]:
    for notice in notices:
        yield f"> {SEVERITIES[notice.severity]} {text(notice.message)}" + (f" *{text(notice.hint)}*" if notice.hint else "")
        yield ""


def _titled(table: Table, level: str, most: int | None) -> Iterator[str]:
    yield f"{level} {text(table.title)}"
    yield ""
    yield from _table(table, most)


def _table(table: Table, most: int | None) -> Iterator[str]:
    """A table of at most so many rows, its totals beside them."""
    made = with_bars(table) if table.key == "budget" and "bar" not in [c.key for c in table.columns] else table
    table = made if most is None else replace(made, lead=min(most, len(made.rows) if made.lead is None else made.lead))
    rows = table.shown()
    kept = _kept(table, rows)
    yield _line(text(table.columns[i].title) for i in kept)
    yield _line("---:" if table.columns[i].is_number else "---" for i in kept)
    for row in rows:
        texts = table.texts(row)
        cells = (_cell(texts[i], table.columns[i]) for i in kept)
        yield _line(f"**{cell}**" if row.is_total and cell else cell for cell in cells)
    yield ""
    hidden = len(table.rows) - len(rows)
    below = [*table.remarks(rows), *([f"{hidden:,} more of {len(table.rows):,} rows"] if hidden else []), *table.notes]
    for remark in below:
        yield from (f"<sub>{text(remark)}</sub>", "")


def _kept(table: Table, rows: tuple[Row, ...]) -> list[int]:
    """The columns that are shown, by position; those that say nothing are left out, but for the first."""
    return [i for i in table.telling(rows) if table.columns[i].drop_rank < LAST_RANK]


def _line(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(words: str, column: Column) -> str:
    if column.is_number:
        return text(words).replace(" ", "\N{NO-BREAK SPACE}")  # narrow columns do not part a figure from its unit
    if column.unit not in SHORTENED or words == UNKNOWN:
        return text(words)
    short = shorten(words, LONGEST_NAME)
    return text(short) if " " in short else code(short)


def text(words: str) -> str:
    """Words that Markdown shows as they are, on one line: signs of the dialect escaped, mentions and addresses taken apart."""
    line = " ".join(visible(words).split())
    line = "".join(_MARKUP.get(letter, letter) for letter in line)
    line = _ACTIVE.sub(lambda found: f"\\{found[0]}", line)
    line = _REFERENCE.sub(lambda found: f"{found[0]}<span></span>", line)
    return _LINE_START.sub(r"\1\\\2", line)


def code(words: str) -> str:
    """A name as code, in a cell of a table: pipes escaped, and fenced by more backticks than it holds."""
    line = " ".join(visible(words).split()).replace("|", "\\|")
    if not line:
        return ""
    fence = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"
