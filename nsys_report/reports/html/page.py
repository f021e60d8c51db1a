"""A report as one page that opens anywhere: nothing is fetched, every name is text, only the page's own scripts run."""

from __future__ import annotations

import base64
import hashlib
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from nsys_report.quantities import QUANTITIES
from nsys_report.reports.export import write_whole
from nsys_report.reports.finding_page import places_table, telling_places
from nsys_report.reports.finding_strip import strip_words
from nsys_report.reports.html import data
from nsys_report.reports.html.content import Content, Page
from nsys_report.reports.html.glossary import CERTAINTY, PARTS, prose, terms_of
from nsys_report.reports.html.heat import heat_drawing
from nsys_report.reports.html.memory import area, curve_words, peak_at
from nsys_report.reports.html.rollup import rollup_words
from nsys_report.reports.html.timeline import picks, summary_of
from nsys_report.reports.model import Column, Part, Row, Section, Table
from nsys_report.reports.palette import BUDGET, CLASSES, HOST, PHASES, PROGRAMS
from nsys_report.reports.pictures.model import BudgetBar, ClassRate, ProgramPictures
from nsys_report.units import count, duration, phrase, share, visible

TEMPLATES = Path(__file__).parent.parent / "templates"
SCRIPTS = (
    "core.js",
    "address.js",
    "tables.js",
    "roofline.js",
    "rollup.js",
    "issues.js",
    "timeline_rows.js",
    "timeline_draw.js",
    "timeline_keys.js",
    "timeline.js",
    "search.js",
    "sections.js",
    "start.js",
)
"""The page's scripts, in the order in which they run: core.js makes the `report` that the others take."""
MOST_FINDINGS = 3
"""Findings in full at the top of the page; the others are folded."""


def render(page: Page) -> str:
    """The page as HTML; the same report gives the same text."""
    return _rendered(page, "page.html")


def render_timeline(page: Page) -> str:
    """The timeline of the page's one capture as a page of its own."""
    return _rendered(page, "timeline.html")


def _rendered(page: Page, template: str) -> str:
    scripts = [_asset(name, _read(f"scripts/{name}")) for name in SCRIPTS]
    return (
        _environment(page)
        .get_template(template)
        .render(
            page=page,
            title=_title(page),
            policy=policy(scripts),
            scripts=scripts,
            style=_asset("page.css", _read("page.css") + colors_css()),
            data=data.json_markup(data.page_data(page)),
        )
    )


def write_html(page: Page, path: Path) -> None:
    """Writes the page. Raises InputError where it cannot be written."""
    text = render(page)
    write_whole(path, lambda out: out.write(text.encode("utf-8", "backslashreplace")))


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def policy(scripts: list[Markup]) -> str:
    """What the page may do: run these scripts, be styled by itself, show its own pictures; nothing else, and no network at all."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def _asset(name: str, text: str) -> Markup:
    """A file of this program, to stand in the page as it is."""
    if "</script" in text.lower() or "</style" in text.lower():
        raise ValueError(f"{name} would end its own element")
    return Markup(text)


def colors_css() -> str:
    """The colors of classes, parts of a step, host work and programs, for light and for dark ground."""
    kinds = {"c": CLASSES, "b": BUDGET, "h": HOST, "p": {str(n): c for n, c in enumerate(PROGRAMS)}, "f": PHASES}
    names = {f"{kind}-{name}": color for kind, colors in kinds.items() for name, color in colors.items()}
    light = "".join(f"--{name}:{c.light};--{name}-ink:{c.ink()};" for name, c in names.items())
    dark = "".join(f"--{name}:{c.dark};--{name}-ink:{c.ink(True)};" for name, c in names.items())
    rules = "".join(f".{name}{{background:var(--{name});color:var(--{name}-ink)}}" for name in names)
    return (
        f":root{{{light}}}:root[data-theme=dark]{{{dark}}}@media screen and (prefers-color-scheme:dark)"
        f"{{:root:not([data-theme=light]){{{dark}}}}}{rules}\n"
    )


def page_environment() -> Environment:
    """Where the templates of whole pages are rendered: every text escaped and made visible, an unknown name an error."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=as_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _environment(page: Page) -> Environment:
    environment = page_environment()
    environment.filters.update(
        duration=duration, share=share, count=count, prose=prose, places_table=places_table, lines=_lines, telling_places=telling_places
    )
    environment.globals.update(
        phrase=phrase,
        columns=_columns,
        cells=_cells,
        sort_value=_sort_value,
        rows=partial(data.rows_shown, programs=data.programs_of(page)),
        fold=_fold,
        open_section=_open_section,
        pictures_of=data.program_pictures,
        class_of=_class_of,
        part_key=_part_key,
        rate_bar=rate_bar,
        bar_words=bar_words,
        MOST_FINDINGS=MOST_FINDINGS,
        tiles=_tiles,
        capture_tiles=_capture_tiles,
        TERMS=terms_of(page.report),
        PARTS=PARTS,
        PHASES=PHASES,
        CERTAINTY=CERTAINTY,
        runs_words=summary_of,
        timeline_key=timeline_key,
        picks=picks,
        rollup_of=data.rollup_of,
        heat_drawing=heat_drawing,
        rollup_words=rollup_words,
        area=area,
        strip_words=strip_words,
        peak_at=peak_at,
        curve_words=curve_words,
    )
    return environment


def _lines(block: str) -> Markup:
    """A block of code line by line, each made visible, none cut off."""
    return Markup("\n").join(visible(line) for line in block.split("\n"))


def as_shown(value: Any) -> Any:
    """Every text of the page as one that hides nothing; what is trusted passes as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _title(page: Page) -> str:
    """What the page is about: the program with most time and the GPU, or the captures."""
    if len(page.contents) != 1:
        return f"{len(page.contents)} captures"
    content = page.contents[0]
    facts = {fact.key: fact.value for fact in content.part.facts}
    gpu, devices = facts.get("gpu"), facts.get("devices")
    gpu = f"{devices} × {gpu}" if gpu and "," not in str(gpu) and isinstance(devices, int) and devices > 1 else gpu
    names = [p.name for p in content.pictures.programs]
    name = " and ".join(names) if len(names) < 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"
    return f"{name or content.part.name}{f' on {gpu}' if gpu else ''}"


def _columns(table: Table) -> list[tuple[int, Column, bool]]:
    """The columns that stand in the table: their place, and whether they are shown only when asked for.

    Columns that say nothing are left out; those that go first in a table whose rows can be opened stand in the opened row.
    """
    known = [(i, table.columns[i]) for i in table.telling()]
    extra = {i: i > 0 and c.drop_rank >= data.FOLDED_FROM for i, c in known}
    return [(i, c, extra[i]) for i, c in known if not (extra[i] and _has_details(table))]


def _has_details(table: Table) -> bool:
    return any(column.key == "hlo_instruction" for column in table.columns)


def _cells(table: Table, row: Row) -> tuple[str, ...]:
    return table.texts(row)


def _sort_value(column: Column, row: Row, place: int) -> str:
    """What a cell is sorted by: its raw figure; "" for what is unknown or no number."""
    value = row.values[place]
    if not column.is_number or value is None or isinstance(value, str):
        return ""
    return f"{float(value):.9g}"


def _fold(section: Section, table: Table) -> bool:
    """Whether a table is folded until somebody asks for it: what short pages leave out, unless it is all that its section has."""
    return table.in_full and len(section.tables) > 1


MOST_OPEN = 1
"""Programs of a capture whose sections are open; those that follow have less of the time."""


def _open_section(section: Section, part: Part) -> bool:
    """Whether a section is open when the page is: the programs with most time, and where there are none, everything."""
    programs = [s.module for s in part.sections if s.module]
    return section.module in programs[:MOST_OPEN] if section.module else not programs or section is part.sections[0]


def _class_of(column: Column, row: Row, place: int) -> str:
    """The class that a cell names, for its color; "" for other cells."""
    value = row.values[place]
    return str(value) if column.key == "kernel_class" and value in CLASSES else ""


def _part_key(pictures: ProgramPictures | None, column: Column, row: Row, place: int) -> str:
    """The part of a step that a cell names, for its color; "" for other cells."""
    if column.key != "category" or pictures is None or pictures.budget is None:
        return ""
    return next((part.key for part in pictures.budget.parts if part.label == row.values[place]), "")


def rate_bar(pictures: ProgramPictures | None, table: Table, row: Row) -> dict[str, Any] | None:
    """A class's bandwidth as shares of the bar's width, with both ceilings; None for rows and tables without."""
    if pictures is None or pictures.rates is None or table.key != "classes" or row.is_total:
        return None
    rates = pictures.rates
    found: ClassRate | None = next((r for r in rates.rows if r.kernel_class == row.values[0]), None)
    if found is None or not found.bytes_per_s:
        return None
    widest = max([r.bytes_per_s or 0 for r in rates.rows] + [rates.measured or 0, rates.nominal or 0]) * 1.02
    ceilings = [(name, v) for name, v in (("measured", rates.measured), ("nominal", rates.nominal)) if v]
    said = ", ".join(f"{name} {phrase('bytes_per_s', v)}" for name, v in ceilings)
    return {
        "class": found.kernel_class,
        "width": f"{found.bytes_per_s / widest * 100:.2f}",
        "lines": [(name, f"{v / widest * 100:.2f}") for name, v in ceilings],
        "is_above": found.is_above,
        "words": phrase("bytes_per_s", found.bytes_per_s) + (f"; ceilings: {said}" if said else ""),
    }


def bar_words(bar: BudgetBar) -> str:
    """A step's bar in words, for who does not see it."""
    return f"A step of {duration(bar.step_ns)}: " + ", ".join(f"{p.label} {duration(p.ns)} ({share(p.share)})" for p in bar.parts)


TILES = ("step_ns", "typical_kernel_time_ns", "idle_ns", "of_floor_measured", "tokens_per_s", "floor_tokens_per_s")
"""The figures of a program that the page opens on, in order."""
LABELS = {
    "step_ns": "a step",
    "typical_kernel_time_ns": "of kernels in it",
    "idle_ns": "of it the GPU is idle",
    "of_floor_measured": QUANTITIES["of_floor_measured"].name,
    "tokens_per_s": "tokens a second",
    "floor_tokens_per_s": "tokens a second at the floor",
}


def _tiles(section: Section) -> list[tuple[str, str]]:
    """The figures that a program's answer opens on, with what they are."""
    found = {fact.key: fact for fact in section.facts}
    return [(found[key].text.removesuffix(" /s"), LABELS[key]) for key in TILES if key in found and found[key].value]


def _capture_tiles(part: Part) -> list[tuple[str, str]]:
    """What the page opens on where no program is known: the capture's own figures."""
    labels = {
        "span_ns": "from first to last record",
        "kernels": "kernels",
        "kernel_time_ns": "of kernels",
        "busy_time_ns": "of the GPU busy",
    }
    found = {fact.key: fact for fact in part.facts}
    return [(found[key].text, label) for key, label in labels.items() if key in found and found[key].value]


def timeline_key(content: Content) -> list[tuple[str, str]]:
    """What a timeline's colors mean: their names with words; what ran first, then why nothing did, then what the host did."""
    if content.timeline is None:
        return []
    pairs = dict.fromkeys(pair for strip in content.timeline.strips for pair in zip(strip.colors, strip.names, strict=True))
    used = {look.color for look in content.timeline.looks}
    host = [(color, words) for color, words in HOST_WORDS.items() if color in used]
    return [*(p for p in pairs if p[0].startswith("c-")), *(p for p in pairs if p[0].startswith("b-")), *host]


HOST_WORDS = {
    "h-xla": "XLA",
    "h-thunk": "XLA's launches",
    "h-own": "ranges of the program and its libraries",
    "h-call": "calls that no device waits for",
    "h-block": "layers, iterations",
}
"""The colors of palette.HOST in words."""
