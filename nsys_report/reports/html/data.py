"""The page's data for its script: timelines, rooflines, details of instructions. Texts are made visible here, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from nsys_report.reports.finding_page import places_table
from nsys_report.reports.html.content import Content, Page
from nsys_report.reports.html.rollup import rollup_data
from nsys_report.reports.html.roofline import roofline_data
from nsys_report.reports.html.timeline import timeline_data
from nsys_report.reports.markdown import issue
from nsys_report.reports.model import Row, Section, Table
from nsys_report.reports.pictures.model import ProgramPictures
from nsys_report.reports.rollup_tree import Rollups
from nsys_report.units import visible

FOLDED_FROM = 7
"""Columns of this model.Column.drop_rank and more stand in the details of a row, and not in the table."""

MOST_ROWS, MOST_FOLDED, LEAST_ROWS = 1_200, 400, 100
"""Rows of one table on a page of one program, of a folded one, and of one on a page of many programs, which share the room."""


def programs_of(page: Page) -> int:
    """How many programs share the page, at least one."""
    return max(sum(len(content.pictures.programs) for content in page.contents), 1)


def rows_shown(table: Table, programs: int) -> list[Row]:
    """The rows that the page shows: the first so many, and every total."""
    most = max((MOST_FOLDED if table.in_full else MOST_ROWS) // programs, LEAST_ROWS)
    body = [row for row in table.rows if not row.is_total][:most]
    return [*body, *(row for row in table.rows if row.is_total)]


def page_data(page: Page) -> dict[str, Any]:
    """Everything that the page's script reads."""
    programs = programs_of(page)
    return {
        "rooflines": {key: value for number, content in enumerate(page.contents) for key, value in _rooflines(content, f"p{number}")},
        "rollups": {key: value for number, content in enumerate(page.contents) for key, value in _rollups(content, f"p{number}")},
        "issues": {key: value for number, content in enumerate(page.contents) for key, value in _issues(content, f"p{number}")},
        "timelines": {key: value for number, content in enumerate(page.contents) for key, value in _timelines(content, f"p{number}")},
        "details": {key: value for number, content in enumerate(page.contents) for key, value in _details(content, f"p{number}", programs)},
        "hlo": {key: value for number, content in enumerate(page.contents) for key, value in _hlo(content, f"p{number}")},
    }


def json_markup(data: Any) -> Markup:
    """Data as JSON that can stand in a page: pure ASCII, without any sign of markup."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":  # after this nothing of markup is left in it
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _rooflines(content: Content, part: str) -> Iterator[tuple[str, Any]]:
    for number, program in enumerate(content.pictures.programs):
        if program.roofline is not None:
            yield f"{part}-g{number}-roofline", roofline_data(program.roofline, _section_of(content, part, program.program))


def _issues(content: Content, part: str) -> Iterator[tuple[str, str]]:
    """Each finding as the text of an issue, to be copied."""
    about = (content.part.headline, content.made_by)
    for number, finding in enumerate(content.part.findings):
        yield f"{part}-f{number}", issue(finding, filter(None, about))


def _rollups(content: Content, part: str) -> Iterator[tuple[str, Any]]:
    for number, section in enumerate(content.part.sections):
        if (found := rollup_of(content, section)) is not None:
            yield f"{part}-s{number}-rollup", rollup_data(found, f"{part}-s{number}")


def rollup_of(content: Content, section: Section) -> Rollups | None:
    """The roll-ups of a program's section; None of others."""
    return content.rollups.get(section.module or "")


def _timelines(content: Content, part: str) -> Iterator[tuple[str, Any]]:
    if content.timeline is not None:
        sections = {section.module: f"{part}-s{number}" for number, section in enumerate(content.part.sections) if section.module}
        yield f"{part}-time", timeline_data(content.timeline, content.pictures, sections)


def _details(content: Content, part: str, programs: int) -> Iterator[tuple[str, Any]]:
    """What a row of a table says when it is opened: the columns that have no room in it, and the text of its instruction."""
    for number, section in enumerate(content.part.sections):
        for place, table in enumerate(section.tables):
            if any(column.key == "hlo_instruction" for column in table.columns):
                yield f"{part}-s{number}-t{place}", table_details(table, f"{part}-s{number}", programs)
    for number, finding in enumerate(content.part.findings):
        places = places_table(finding)
        if places is not None:
            yield f"{part}-f{number}-places", table_details(places, _section_of(content, part, finding.module), programs)


def _section_of(content: Content, part: str, module: str | None) -> str:
    """The id of a program's section on the page; "" where it has none."""
    return next((f"{part}-s{n}" for n, section in enumerate(content.part.sections) if module and section.module == module), "")


def table_details(table: Table, section: str, programs: int = 1) -> dict[str, Any]:
    """The details of each row that the page shows of a table of instructions; their text stands once under the section's id."""
    places = {column.key: i for i, column in enumerate(table.columns)}
    source = [places[key] for key in ("source_file", "source_line") if key in places]
    hidden = [i for i in table.telling() if table.columns[i].drop_rank >= FOLDED_FROM and i not in source]
    labels = [visible(table.columns[i].title) for i in hidden] + ["source"] * bool(source)
    rows = []
    shown = rows_shown(table, programs)
    for row in shown if labels else ():
        texts = table.texts(row)
        line = ":".join(str(row.values[i]) for i in source if row.values[i] is not None)
        rows.append([*(texts[i] for i in hidden), *([visible(line)] if source else [])])
    names = [visible(str(row.values[places["hlo_instruction"]] or "")) for row in shown]
    return {"labels": labels, "rows": rows, "names": names, "section": section}


def _hlo(content: Content, part: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The text of instructions, by section and name."""
    for number, section in enumerate(content.part.sections):
        texts = content.hlo.get(section.module or "")
        if texts:
            yield f"{part}-s{number}", {visible(k): "\n".join(map(visible, v.split("\n"))) for k, v in texts.items()}


def program_pictures(content: Content, section: Section) -> tuple[int, ProgramPictures] | None:
    """The pictures of a program's section, with their number."""
    return next(((n, p) for n, p in enumerate(content.pictures.programs) if p.program == section.module), None)
