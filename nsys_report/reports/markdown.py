"""A report as Markdown for an issue or a pull request: the short page, in GitHub's dialect, with names that stay text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nsys_report.findings.model import Finding
from nsys_report.reports.model import Column, Notice, Part, Report, Row, Section, Table
from nsys_report.units import SHORTENED, UNKNOWN, shorten, visible

LONGEST_NAME = 60
"""Characters of a name in a cell; longer ones lose their middle."""
LAST_RANK = 6
"""Columns of this model.Column.drop_rank and more are left out: a page of an issue is about 100 characters wide."""
FULL_FINDINGS = 3
"""Findings in full; the others are one line each."""
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
    """The whole report, ending in a newline."""
    return "\n".join(_report(report)) + "\n"


def _report(report: Report) -> Iterator[str]:
    if report.summary is not None:
        yield from _titled(report.summary, "##")
    for part in report.parts:
        yield from _part(part)
    if report.made_by:
        yield f"<sub>{text(report.made_by)}</sub>"


def _part(part: Part) -> Iterator[str]:
    yield f"## {text(part.name)}"
    yield ""
    yield f"**{text(part.headline)}**"
    yield ""
    for line in part.lines:
        yield from (text(line), "")
    yield from _notices(part.notices)
    if part.findings:
        yield from ("### Findings", "")
        for number, finding in enumerate(part.findings, 1):
            yield from _finding(finding, number)
    for section in part.sections:
        yield from _section(section)


def _finding(finding: Finding, number: int) -> Iterator[str]:
    """The first findings in full, the rest as one line each."""
    gains = ", ".join(f"{gain.words} {gain.label}" for gain in finding.gains)
    about = "; ".join(text(part) for part in (gains, finding.confidence) if part)
    where = f"; {code(finding.module)}" if finding.module else ""
    yield f"{number}. **{text(finding.title)}** ({about}{where})"
    if number <= FULL_FINDINGS:
        yield from ("", f"   {text(finding.why)}", "", f"   → {text(finding.remedy)}")
        if finding.places:
            names = [code(place.hlo_instruction) for place in finding.places[:MOST_PLACES]]
            more = len(finding.places) - len(names)
            yield from ("", f"   <sub>in {', '.join(names)}{f' and {more:,} more' if more else ''}</sub>")
        if finding.to_capture:
            yield from ("", f"   <sub>to decide it: {text(finding.to_capture)}</sub>")
    yield ""


def _section(section: Section) -> Iterator[str]:
    tables = [table for table in section.tables if not table.in_full]
    if not (tables or section.lines or section.facts or section.notices):
        return
    yield f"### {text(section.title) if section.module is None else code(section.title)}"
    yield ""
    for line in section.lines:
        yield from (text(line), "")
    if section.facts and not section.lines:
        yield from (" · ".join(text(f"{fact.label} {fact.words}") for fact in section.facts), "")
    yield from _notices(section.notices)
    for table in tables:
        yield from _titled(table, "####") if table.title != section.title else _table(table)


def _notices(notices: tuple[Notice, ...]) -> Iterator[str]:
    for notice in notices:
        yield f"> {SEVERITIES[notice.severity]} {text(notice.message)}" + (f" *{text(notice.hint)}*" if notice.hint else "")
        yield ""


def _titled(table: Table, level: str) -> Iterator[str]:
    yield f"{level} {text(table.title)}"
    yield ""
    yield from _table(table)


def _table(table: Table) -> Iterator[str]:
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
