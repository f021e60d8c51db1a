"""A report as text for a terminal: as wide as the terminal, coloured only for people, plain when piped."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable, Iterator

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from nsys_report.findings.model import Finding
from nsys_report.reports.model import Column, Notice, Part, Report, Row, Section, Table
from nsys_report.units import SHORTENED, shorten, visible

LEAST_NAME, LEAST_OTHER = 28, 14
"""Characters that a name keeps before whole columns are left out: in the first column, and in others."""
LEAST_WIDTH = 40
BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|(?:ns|µs|ms|s|B|kB|MB|GB|TB|GB/s)\b)")
"""A space that no line ends at."""
NOT_MISSED = 7
"""Columns of this rank and more are left out without a word: they are in the page and the documents."""
FULL_FINDINGS, MOST_PLACES = 3, 3
GAP = "  "
LISTED = "parts"
"""The column that lists things, the largest first: where it is narrow the last are left out."""
HEADING, QUIET, STRONG, SIGN = "bold cyan", "dim", "bold", "yellow"
SEVERITIES = {"ok": ("✓", "green"), "info": ("·", "default"), "warning": ("!", "yellow"), "error": ("✗", "bold red")}


def render(report: Report, width: int = 120, color: bool = False) -> str:
    """The whole report, ending in a newline; without `color` it holds no escape sequence."""
    width = max(width, LEAST_WIDTH)
    return _printed(_report(report, width), width, color)


def render_sections(sections: Iterable[Section], width: int = 120, color: bool = False) -> str:
    """Sections that are no report, such as what a check or a listing prints; like render."""
    width = max(width, LEAST_WIDTH)
    lines = [line for section in sections for line in (Text(), *_section(section, width))]
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


def _report(report: Report, width: int) -> Iterator[Text]:
    if report.summary is not None:
        yield from table_lines(report.summary, width)
    for number, part in enumerate(report.parts):
        if number or report.summary is not None:
            yield Text()
        yield from _part(part, width)


def _part(part: Part, width: int) -> Iterator[Text]:
    yield from _wrapped(f"{part.name}: {part.headline}", width, STRONG)
    for line in part.lines:
        yield from _wrapped(line, width)
    for notice in part.notices:
        yield from _notice(notice, width)
    if part.findings:
        yield Text()
        yield from _findings(part.findings, width)
    for section in part.sections:
        if section.lines or section.facts or section.notices or any(not table.in_full for table in section.tables):
            yield Text()
            yield from _section(section, width)


def _findings(findings: tuple[Finding, ...], width: int) -> Iterator[Text]:
    """The first findings in full, the rest as one line each."""
    yield Text("FINDINGS", style=HEADING)
    for number, finding in enumerate(findings, 1):
        gain = ", ".join(f"{fact.words} {fact.label}" for fact in finding.gains)
        about = "; ".join(filter(None, (finding.module, gain, finding.confidence)))
        style = STRONG if number <= FULL_FINDINGS else ""
        yield from _wrapped(f"{finding.title} ({about})", width, style, first=f"{number}. ", rest="   ")
        if number > FULL_FINDINGS:
            continue
        yield from _wrapped(finding.why, width, first="   ", rest="   ")
        if finding.places:
            shown = ", ".join(place.words for place in finding.places[:MOST_PLACES])
            more = len(finding.places) - MOST_PLACES
            yield from _wrapped(f"in {shown}" + (f" and {more:,} more" if more > 0 else ""), width, QUIET, first="   ", rest="   ")
        yield from _wrapped(finding.remedy, width, first="   → ", rest="     ")
        if finding.to_capture:
            yield from _wrapped(finding.to_capture, width, QUIET, first="   to decide it: ", rest="     ")


def _section(section: Section, width: int) -> Iterator[Text]:
    yield Text(visible(section.title).upper() if section.module is None else visible(section.title), style=HEADING)
    for line in section.lines:
        yield from _wrapped(line, width)
    if section.facts and not section.lines:  # the lines say the same in a sentence
        yield from _wrapped(" · ".join(f"{fact.label} {fact.words}" for fact in section.facts), width)
    for notice in section.notices:
        yield from _notice(notice, width)
    for number, table in enumerate(t for t in section.tables if not t.in_full):
        if number or section.lines or section.facts or section.notices:
            yield Text()
        yield from table_lines(table, width, titled=table.title != section.title)


def _notice(notice: Notice, width: int) -> Iterator[Text]:
    sign, style = SEVERITIES[notice.severity]
    yield from _wrapped(notice.message, width, style, first=f"{sign} ", rest="  ")
    if notice.hint:
        yield from _wrapped(notice.hint, width, QUIET, first="  → ", rest="    ")


def _wrapped(text: str, width: int, style: str = "", first: str = "", rest: str = "") -> Iterator[Text]:
    kept = BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", visible(text))
    for line in textwrap.wrap(kept, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False):
        yield Text(line.replace("\N{NO-BREAK SPACE}", " "), style=style)


def table_lines(table: Table, width: int, titled: bool = True) -> Iterator[Text]:
    """A table in at most `width` characters: names shortened in the middle first, then columns left out by their rank."""
    if titled:
        yield Text(visible(table.title), style=STRONG)
    rows = table.shown()
    cells = _cells(table, rows)
    kept, widths = _fit(table, rows, cells, width)
    yield from _head([table.columns[i] for i in kept], widths)
    for row, texts in zip(rows, cells, strict=True):
        line = GAP.join(_aligned(texts[i], table.columns[i], w) for i, w in zip(kept, widths, strict=True)).rstrip()
        styled = Text(line, style=STRONG if row.is_total else "")
        if row.marks:
            styled.highlight_words({mark.sign for mark in row.marks}, style=SIGN)
        yield styled
    yield from _below(table, rows, kept, width)


def _below(table: Table, rows: tuple[Row, ...], kept: list[int], width: int) -> Iterator[Text]:
    """What a reader of the table must still know."""
    columns = {table.columns[i].key for i in kept}
    for remark in table.remarks(rows):
        yield from _wrapped(remark, width, SIGN, rest="  ")
    hidden = len(table.rows) - len(rows)
    if hidden:
        yield from _wrapped(f"… {hidden:,} more of {len(table.rows):,} rows (--top)", width, QUIET)
    known = {table.columns[i].key for i in table.telling(rows)}
    gone = [c.heading for c in table.columns if c.key in known - columns and c.drop_rank < NOT_MISSED]
    if gone:
        yield from _wrapped(f"no room for: {', '.join(gone)}", width, QUIET)
    for note in table.notes:
        yield from _wrapped(note, width, QUIET)


def _cells(table: Table, rows: tuple[Row, ...]) -> list[tuple[str, ...]]:
    """The words of each row; where a column has marks, unmarked figures keep the room of one, so that digits stay aligned."""
    marked = {mark.column: cell_len(mark.sign) + 1 for row in rows for mark in row.marks}
    texts = []
    for row in rows:
        own = {mark.column for mark in row.marks}
        room = [marked[c.key] if c.key in marked and c.key not in own and c.is_number else 0 for c in table.columns]
        texts.append(tuple(text + " " * n for text, n in zip(table.texts(row), room, strict=True)))
    return texts


def _fit(table: Table, rows: tuple[Row, ...], cells: list[tuple[str, ...]], width: int) -> tuple[list[int], list[int]]:
    """The columns that fit, by position, and their widths."""
    columns, telling = table.columns, set(table.telling(rows))
    natural = [max([_head_width(c), *(cell_len(row[i]) for row in cells)]) for i, c in enumerate(columns)]
    floor = [LEAST_OTHER if i else LEAST_NAME for i in range(len(columns))]
    least = [min(n, max(f, _head_width(c))) if c.unit in SHORTENED else n for n, f, c in zip(natural, floor, columns, strict=True)]
    kept = [i for i, c in enumerate(columns) if not c.drop_rank or i in telling]
    while len(kept) > 1 and sum(least[i] for i in kept) + len(GAP) * (len(kept) - 1) > width:
        last = max(columns[i].drop_rank for i in kept[1:])
        kept = [i for i in kept if i == kept[0] or columns[i].drop_rank < last] if last else kept[:-1]
    if sum(least[i] for i in kept) + len(GAP) * (len(kept) - 1) > width:  # one column alone that is still too wide
        least[kept[0]] = width - sum(least[i] for i in kept[1:]) - len(GAP) * (len(kept) - 1)
    spare = width - sum(least[i] for i in kept) - len(GAP) * (len(kept) - 1)
    widths = []
    for i in kept:
        extra = min(max(spare, 0), natural[i] - least[i])
        spare -= extra
        widths.append(least[i] + extra)
    return kept, widths


def _head_width(column: Column) -> int:
    return max(map(cell_len, column.title.split()), default=0)


def _head(columns: Iterable[Column], widths: list[int]) -> Iterator[Text]:
    """The headings, each wrapped into its column's width, standing on a common base line."""
    wrapped = [textwrap.wrap(c.title, w, break_on_hyphens=False) or [""] for c, w in zip(columns, widths, strict=True)]
    height = max(map(len, wrapped), default=0)
    for level in range(height):
        words = [lines[level - height + len(lines)] if level >= height - len(lines) else "" for lines in wrapped]
        line = GAP.join(_aligned(text, c, w) for text, c, w in zip(words, columns, widths, strict=True))
        yield Text(line.rstrip(), style=QUIET)


def _aligned(text: str, column: Column, width: int) -> str:
    while column.key == LISTED and cell_len(text) > width and ", " in text:
        text = text.rpartition(", ")[0]  # one thing whole says more than the ends of two
    if cell_len(text) > width:
        text = shorten(text, width)
    text = set_cell_size(text, width) if cell_len(text) > width else text
    room = " " * (width - cell_len(text))
    return room + text if column.is_number else text + room
