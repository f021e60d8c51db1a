"""A table as lines of text of a given width."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from nsys_report.reports.model import Column, Row, Table
from nsys_report.units import SHORTENED, shorten, visible

LEAST_NAME, LEAST_OTHER = 28, 14
"""Characters that a name keeps before whole columns are left out: in the first column, and in others."""
BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|(?:ns|µs|ms|s|B|kB|MB|GB|TB|GB/s)\b)")
"""A space that no line ends at."""
NOT_MISSED = 7
"""Columns of this rank and more (model.Column.drop_rank) are left out without a word: they are in the page and the documents."""
GAP = "  "
LISTED = "parts"
"""The column that lists things, the largest first: where it is narrow the last are left out."""
QUIET, STRONG, SIGN = "dim", "bold", "yellow"


def wrapped(text: str, width: int, style: str = "", first: str = "", rest: str = "") -> Iterator[Text]:
    """Running text, with `first` before its first line and `rest` before the others."""
    kept = BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", visible(text))
    for line in textwrap.wrap(kept, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False):
        yield Text(line.replace("\N{NO-BREAK SPACE}", " "), style=style)


def table_lines(table: Table, width: int, titled: bool = True, last_rank: int | None = None) -> Iterator[Text]:
    """A table in at most `width` characters: names shortened in the middle first, then columns left out by their rank.

    Columns of `last_rank` and more (model.Column.drop_rank) are left out however wide it is.
    """
    if titled:
        yield Text(visible(table.title), style=STRONG)
    rows = table.shown()
    cells = _cells(table, rows)
    kept, widths = _fit(table, rows, cells, width, last_rank)
    yield from _head([table.columns[i] for i in kept], widths)
    for row, texts in zip(rows, cells, strict=True):
        line = GAP.join(_aligned(texts[i], table.columns[i], w) for i, w in zip(kept, widths, strict=True)).rstrip()
        styled = Text(line, style=STRONG if row.is_total else "")
        if row.marks:
            styled.highlight_words({mark.sign for mark in row.marks}, style=SIGN)
        yield styled
    yield from _below(table, rows, kept, width, NOT_MISSED if last_rank is None else last_rank)


def _below(table: Table, rows: tuple[Row, ...], kept: list[int], width: int, not_missed: int) -> Iterator[Text]:
    """What a reader of the table must still know."""
    columns = {table.columns[i].key for i in kept}
    for remark in table.remarks(rows):
        yield from wrapped(remark, width, SIGN, rest="  ")
    hidden = len(table.rows) - len(rows)
    if hidden:
        yield from wrapped(f"… {hidden:,} more of {len(table.rows):,} rows (--top)", width, QUIET)
    known = {table.columns[i].key for i in table.telling(rows)}
    gone = [c.heading for c in table.columns if c.heading and c.key in known - columns and c.drop_rank < not_missed]
    if gone:
        yield from wrapped(f"no room for: {', '.join(gone)}", width, QUIET)
    for note in table.notes:
        yield from wrapped(note, width, QUIET)


def _cells(table: Table, rows: tuple[Row, ...]) -> list[tuple[str, ...]]:
    """The words of each row; where a column has marks, unmarked figures keep the room of one, so that digits stay aligned."""
    marked = {mark.column: cell_len(mark.sign) + 1 for row in rows for mark in row.marks}
    texts = []
    for row in rows:
        own = {mark.column for mark in row.marks}
        room = [marked[c.key] if c.key in marked and c.key not in own and c.is_number else 0 for c in table.columns]
        texts.append(tuple(text + " " * n for text, n in zip(table.texts(row), room, strict=True)))
    return texts


def _fit(
    table: Table, rows: tuple[Row, ...], cells: list[tuple[str, ...]], width: int, last_rank: int | None
) -> tuple[list[int], list[int]]:
    """The columns that fit, by position, and their widths."""
    columns, telling = table.columns, set(table.telling(rows))
    natural = [max([_head_width(c), *(cell_len(row[i]) for row in cells)]) for i, c in enumerate(columns)]
    floor = [LEAST_OTHER if i else LEAST_NAME for i in range(len(columns))]
    least = [min(n, max(f, _head_width(c))) if c.unit in SHORTENED else n for n, f, c in zip(natural, floor, columns, strict=True)]
    kept = [i for i, c in enumerate(columns) if (not c.drop_rank or i in telling) and (last_rank is None or c.drop_rank < last_rank)]
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
