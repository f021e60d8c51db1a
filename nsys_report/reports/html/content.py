"""What the page shows of one capture: its part of the report, its pictures, its programs' text, its limits, how it was made."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nsys_report.fact import Fact
from nsys_report.reports.build import worth_a_section
from nsys_report.reports.finding_strip import FindingStrip, finding_strip
from nsys_report.reports.html.hlo_text import hlo_texts
from nsys_report.reports.memory_page import Curve, memory_curve, memory_of
from nsys_report.reports.model import Notice, Part, Report
from nsys_report.reports.notices import health_notices
from nsys_report.reports.pictures.build import build_pictures, chosen_executions
from nsys_report.reports.pictures.model import HeatMap, Pictures, ProgramPictures
from nsys_report.reports.pictures.runs import MOST_MARKS
from nsys_report.reports.pictures.timeline import ExecutionCutter, not_typical
from nsys_report.reports.programs import title_of
from nsys_report.reports.rollup_tree import Rollups, rollup_trees
from nsys_report.reports.timeline.build import MOST_STEPS, step_timeline
from nsys_report.reports.timeline.windows import MOST_MARKS as MOST_TIMELINE_MARKS
from nsys_report.units import phrase

if TYPE_CHECKING:
    from nsys_report.analysis.roofline.ceilings import Ceiling
    from nsys_report.reports.timeline.model import StepTimeline
    from nsys_report.session import Session

MOST_ALONE = 10_000
"""Marks of a timeline by itself: a notebook keeps what its cells show."""
MOST_TEXT = 700_000
"""Characters of HLO text on a page; the instructions with most time come first."""


@dataclass(frozen=True, slots=True)
class Content:
    """One capture on the page."""

    part: Part
    pictures: Pictures
    timeline: StepTimeline | None = None
    rollups: Mapping[str, Rollups] = field(default_factory=dict, repr=False)
    """By the title of a program's section."""
    memory: Mapping[str, Curve] = field(default_factory=dict, repr=False)
    """Temporaries over the order of each program, by the title of its section."""
    hlo: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """HLO text by the title of a program's section and by instruction."""
    strips: Mapping[int, FindingStrip] = field(default_factory=dict, repr=False)
    """What findings mean on the timeline, by their place."""
    made_by: str = ""
    """Name and version of the program."""
    limits: tuple[Notice, ...] = ()
    """What the capture can and cannot answer, what is well too."""
    made: tuple[Fact, ...] = ()
    """How it was made: versions, command, ceilings and where they come from."""
    heat: HeatMap | None = None
    """Of ranks of one run: who is late when."""


@dataclass(frozen=True, slots=True)
class Page:
    """The whole page: the report, and what it shows of each of its parts."""

    report: Report
    contents: tuple[Content, ...]


def build_page(report: Report, sessions: Sequence[Session], heats: Mapping[str, HeatMap | None] | None = None) -> Page:
    """The page of a report on these captures, given in the order of its parts, which share the room that a page has; `heats` are the maps
    of those that are runs of several ranks, by the part's name.
    """
    count = max(len(sessions), 1)
    contents = [_content(part, session, count, report.made_by) for part, session in zip(report.parts, sessions, strict=True)]
    return Page(report, tuple(replace(c, heat=(heats or {}).get(c.part.name)) for c in contents))


def _content(part: Part, session: Session, parts: int, made_by: str) -> Content:
    pictures = build_pictures(session, 0, MOST_MARKS // parts, MOST_STEPS)
    said = {(notice.message, notice.hint) for notice in part.notices}
    limits = [n for n in health_notices(session.health.items, everything=True) if n.severity == "ok" or (n.message, n.hint) not in said]
    texts = dict(hlo_texts(session, MOST_TEXT // parts))
    timeline = _timeline(session, MOST_TIMELINE_MARKS // parts)
    rollups, memory, made = _rollups(session, parts), _memory(session), tuple(_made(session, made_by))
    return Content(
        part, replace(pictures, name=part.name), timeline, rollups, memory, texts, _strips(session), made_by, tuple(limits), made
    )


def _rollups(session: Session, parts: int) -> dict[str, Rollups]:
    records = worth_a_section(session)[0] if len(session.results.modules) else []
    made = {title_of(record): rollup_trees(session, record, parts * len(records)) for record in records}
    return {title: found for title, found in made.items() if found is not None}


def timeline_page(session: Session, execution: int | None, made_by: str) -> Page:
    """A page of nothing but a capture's timeline, which opens on one execution (row of the executions table); on a median one for None.

    Empty where nothing ran on a device.
    """
    pictures = build_pictures(session, 0, MOST_MARKS, 1)
    if execution is None:
        timeline = _timeline(session, MOST_ALONE)
    else:
        records = session.results.modules.to_pylist()
        titles = {(record["hlo_module"], record["program_id"]): title_of(record) for record in records}
        timeline = step_timeline(session, titles, [[execution]], MOST_ALONE)
        name = session.joined.executions["hlo_module"][execution].as_py() or "unknown program"
        one = ExecutionCutter(session.joined).timeline(execution, name)
        pictures = replace(pictures, programs=(ProgramPictures(name, name, None, None, None, (one,)),))
    part = Part(session.name, "")
    report = Report((part,), made_by=made_by)
    return Page(report, (Content(part, pictures, timeline),) if timeline is not None else ())


def _strips(session: Session) -> dict[int, FindingStrip]:
    drawn = ((number, finding_strip(session, finding)) for number, finding in enumerate(session.causes))
    return {number: strip for number, strip in drawn if strip is not None}


def _memory(session: Session) -> dict[str, Curve]:
    records = worth_a_section(session)[0] if len(session.results.modules) else []
    known = {title_of(record): memory for record in records if (memory := memory_of(session, record)) is not None}
    return {title: curve for title, memory in known.items() if (curve := memory_curve(memory)) is not None}


def _timeline(session: Session, most: int) -> StepTimeline | None:
    """The timeline of one capture, with the executions of the programs that have a section."""
    records = worth_a_section(session)[0] if len(session.results.modules) else []
    titles = {(record["hlo_module"], record["program_id"]): title_of(record) for record in records}
    steps = [[chosen.row for chosen in sorted(chosen_executions(session, record), key=not_typical)] for record in records]
    return step_timeline(session, titles, steps, most)


def _made(session: Session, made_by: str) -> Iterable[Fact]:
    """How the report was made; names and no paths, for what is passed on says nothing of whose machine it was."""
    info, ceilings = session.joined.capture.info, session.results.ceilings
    dump = ["--xla-dump", session.xla_dump.name] if session.xla_dump is not None else []
    yield Fact("made_by", "made by", made_by)
    yield Fact("command", "command", shlex.join(["nsys-report", session.joined.capture.path.name, *dump, "--html", "FILE"]))
    if session.narrowed:
        yield Fact("narrowed", "narrowed to", session.narrowed)
    yield Fact("nsys", "recorded by nsys", info.nsys_version)
    yield Fact("schema", "schema of the export", info.schema_version)
    yield Fact("graph_trace", "CUDA graph trace", info.graph_trace_mode)
    for name, ceiling in (("measured", ceilings.measured), ("nominal", ceilings.nominal)):
        yield Fact(f"ceiling_{name}", f"{name} ceiling", _origin(ceiling, "bytes_per_s"))


def _origin(ceiling: Ceiling | None, unit: str) -> str | None:
    if ceiling is None:
        return None
    ends = f" ({phrase(unit, ceiling.low)} to {phrase(unit, ceiling.high)})" if ceiling.low != ceiling.high else ""
    date = f", {ceiling.date}" if ceiling.date and ceiling.date not in ceiling.origin else ""
    return f"{phrase(unit, ceiling.value)}{ends}: {ceiling.origin}{date}"
