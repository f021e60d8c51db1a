"""What short pages (terminal, Markdown) do alike: bars of text, notices of one kind folded, the program that the page opens with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from nsys_report.findings.model import Finding
from nsys_report.reports.model import Column, Notice, Part, Section, Table
from nsys_report.units import Value, duration, share

MOST_FINDINGS = 3
"""Findings that a short page opens with."""
BAR_WIDTH = 20
PART_OF = {"step": "of a step", "execution": "of an execution"}
EIGHTHS = " ▏▎▍▌▋▊▉"
MOST_OF_A_KIND = 2
"""Notices of one kind that are said one by one."""


def bar(ratio: float, width: int = BAR_WIDTH) -> str:
    """A share of a whole as a bar of so many characters at most; what is more than nothing shows."""
    eighths = round(max(min(ratio, 1.0), 0.0) * width * 8)
    eighths = max(eighths, 1) if ratio > 0 else 0
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip()


def with_bars(table: Table, key: str = "share") -> Table:
    """A table with a bar beside each of its shares; totals have none."""
    at = next((i for i, column in enumerate(table.columns) if column.key == key), None)
    if at is None:
        return table
    columns = (*table.columns[: at + 1], Column("bar", "", "text"), *table.columns[at + 1 :])
    rows = (
        replace(row, values=(*row.values[: at + 1], None if row.is_total else _bar(row.values[at]), *row.values[at + 1 :]))
        for row in table.rows
    )
    return replace(table, columns=columns, rows=tuple(replace(row, labels=(*row.labels, *_blank(row.is_total))) for row in rows))


def _bar(value: Value) -> str:
    return bar(float(value)) if isinstance(value, (int, float)) else ""


def _blank(is_total: bool) -> tuple[tuple[str, str], ...]:
    return (("bar", ""),) if is_total else ()


def folded(notices: Iterable[Notice]) -> Iterator[Notice]:
    """Notices, those of one kind and hint as one where they are many."""
    kinds: dict[tuple[str, str], list[Notice]] = {}
    for notice in notices:
        kinds.setdefault((notice.slug, notice.hint), []).append(notice)
    for same in kinds.values():
        if len(same) <= MOST_OF_A_KIND:
            yield from same
        else:
            yield replace(same[0], message=f"{same[0].message} {len(same) - 1} more of this kind.")


def opening_section(part: Part) -> Section | None:
    """The section of the program that the page opens with: the first that has a budget."""
    return next((s for s in part.sections if s.module is not None and budget_of(s) is not None), None)


def budget_of(section: Section) -> Table | None:
    """Where a step of a program goes."""
    return next((table for table in section.tables if table.key == "budget"), None)


def answer(section: Section) -> str:
    """Where most of a program's step goes, in one line."""
    table = budget_of(section)
    rows = [] if table is None else [dict(zip((c.key for c in table.columns), r.values, strict=True)) for r in table.rows if not r.is_total]
    facts = {fact.key: fact.value for fact in section.facts}
    step = facts.get("step_ns")
    if not rows or not isinstance(step, (int, float)):
        return section.title
    largest = max(rows, key=lambda r: float(r["typical_ns"] or 0))
    whole = "an execution" if "idle_ns" not in facts else "a step"  # one that nothing of the program follows has no time after it
    text = f"{duration(step)} {whole} of {section.title}: {share(float(largest['share'] or 0))} {largest['category']}"
    floor = next((r for r in rows if r["category"] == "floor" and r is not largest), None)
    return text if floor is None else f"{text}, {share(float(floor['share'] or 0))} floor"


def gains_of(finding: Finding) -> str:
    """What a finding's remedy would give back, in a phrase."""
    if finding.gain_ns is None or not finding.gain_ns:
        return "gain unknown" if finding.gain_ns is None and finding.to_capture else ""
    return f"{duration(finding.gain_ns)} to gain" + (f", {share(finding.share)} {PART_OF[finding.share_of]}" if finding.share else "")


def first_clause(text: str, least: int = 60) -> str:
    """The first clause of a remedy that says enough to act on; the rest stands on the full page."""
    depth = outside = 0
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        outside += depth == 0
        if depth == 0 and letter in ";." and outside >= least and text[at + 1 : at + 2] in (" ", ""):
            return text[:at] + "."
    return text
