"""The course of figures over a history: a table of levels, and one page with a chart of each figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nsys_report.history.trend import Level, Trend
from nsys_report.reports.history_page import SHOWN, in_words
from nsys_report.reports.model import Column, Row, Section, Table
from nsys_report.units import change_share, things

WIDTH, HEIGHT, PAD = 1000.0, 130.0, 8.0


def main_series(series: Sequence[Trend], in_full: bool) -> tuple[Trend, ...]:
    """Steps, kernel time and host gaps, and whatever changed its level; in full all."""
    return tuple(s for s in series if in_full or s.figure.rpartition(":")[2] in SHOWN or s.changes)


def trend_section(series: Sequence[Trend]) -> Section:
    """A row for each figure: its last level, and when that began."""
    columns = (
        Column("case", "case", "name"),
        Column("figure", "figure", "name"),
        Column("gpu", "GPU", "text", "", 3),
        Column("records", "records", "count"),
        Column("first", "first level", "text"),
        Column("last", "last level", "text"),
        Column("change", "last change", "change_ratio"),
        Column("since", "within", "text", "the commits, or times, between which the last level began"),
    )
    rows = tuple(_row(s) for s in series if s.values)
    changed = sum(bool(s.changes) for s in series)
    line = f"{things(len(rows), 'figure')}, {changed} with a change of level."
    return Section("trend", "Trend", (line,), tables=(Table("trend", "Levels", columns, rows),))


def _row(s: Trend) -> Row:
    first, last = s.levels[0], s.levels[-1]
    since = s.since(last) if s.changes else None
    words = [in_words(s.figure, level.median) for level in (first, last)]
    return Row((s.case, s.figure, s.gpu, len(s.values), *words, last.change, since))


@dataclass(frozen=True, slots=True)
class Chart:
    """A series as points and levels in a box of WIDTH by HEIGHT, with what is said of it."""

    title: str
    summary: str
    points: tuple[tuple[float, float, str], ...]
    levels: tuple[tuple[float, float, float], ...]
    """Start, end and height of each level's line."""
    marks: tuple[tuple[float, str], ...]
    """Where the level changed, and how."""
    top: str


def chart(s: Trend) -> Chart:
    """A series to draw; the scale starts at 0."""
    most = max(s.values) * 1.08 or 1.0
    step = (WIDTH - 2 * PAD) / max(len(s.values) - 1, 1)

    def x(place: float) -> float:
        return PAD + place * step

    def y(value: float) -> float:
        return HEIGHT - PAD - value / most * (HEIGHT - 2 * PAD)

    points = tuple((x(n), y(v), _point(s, n)) for n, v in enumerate(s.values))
    lines = tuple((x(level.first), x(level.last), y(level.median)) for level in s.levels)
    marks = tuple((x(level.first - 0.5), _mark(s, level)) for level in s.changes)
    said = f"{things(len(s.values), 'record')}, last {in_words(s.figure, s.values[-1])}"
    return Chart(f"{s.case}: {s.figure}" + (f" on {s.gpu}" if s.gpu else ""), said, points, lines, marks, in_words(s.figure, most) or "")


def _point(s: Trend, place: int) -> str:
    r = s.records[place]
    told = ", ".join(f"{k} {v}" for k, v in r.environment.items())
    return f"{in_words(s.figure, s.values[place])}, {r.recorded_at}" + (f", {told}" if told else "")


def _mark(s: Trend, level: Level) -> str:
    return f"{change_share(level.change or 0.0)} to {in_words(s.figure, level.median)}, within {s.since(level)}"
