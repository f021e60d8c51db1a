"""What an assistant may ask of captures, and the answers: plain values, each of bounded size, nothing that changes anything."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nsys_report.agents.filters import chosen, shown_columns
from nsys_report.errors import UsageError
from nsys_report.reports.export import document

if TYPE_CHECKING:
    from nsys_report.notebook import Analysis
    from nsys_report.reports.document import CaptureDocument, FindingDocument, SectionDocument, TableDocument

MOST_ROWS = 100
"""Rows of one answer; `offset` gives the next."""
MOST_CHARACTERS = 20_000
"""Of the rows of one answer."""
MOST_TEXT = 6_000
"""Characters of one text."""
MOST_FINDINGS = 20
DIGITS = 5
"""Significant digits of a figure: those of the report's own words and two more."""


class Captured:
    """One capture: analyzed when it is first asked for, and then kept."""

    def __init__(self, name: str, read: Callable[[], Analysis]) -> None:
        self.name = name
        self._read = read

    @cached_property
    def analysis(self) -> Analysis:
        return self._read().named(self.name)

    @cached_property
    def document(self) -> CaptureDocument:
        """What `--json` writes of it."""
        return document(self.analysis.report(None))["captures"][0]


class Answers:
    """Questions about some captures. Every method raises UsageError, with what there is, for a name that is not there."""

    def __init__(self, captures: Sequence[Captured]) -> None:
        self.captures = {captured.name: captured for captured in captures}

    def summary(self, capture: str = "") -> dict[str, Any]:
        """What a capture is of, its programs with their step budgets, its first findings, and the tables that there are."""
        found = self._capture(capture).document
        return {
            "captures": list(self.captures),
            "capture": found["name"],
            "headline": found["headline"],
            "lines": [_cut(line) for line in found["lines"]],
            "notices": [f"{n['severity']}: {n['message']}" for n in found["notices"] if n["severity"] in ("warning", "error")],
            "programs": [_program(section) for section in found["sections"] if section["module"]],
            "findings": [_brief(finding) for finding in found["findings"][:MOST_FINDINGS]],
            "tables": {f"{section['key']}/{key}": len(table["rows"]) for section, key, table in _tables(found)},
        }

    def findings(self, capture: str = "", program: str = "", slug: str = "", limit: int = 5) -> dict[str, Any]:
        """Causes of lost time, most to be gained first, with reasons, remedies and the instructions that they rest on."""
        found = self._capture(capture).document["findings"]
        mine = [f for f in found if program in ("", f["module"], (f["module"] or "").split("#")[0]) and slug in ("", f["slug"])]
        if not mine and (program or slug):
            raise UsageError("no such finding", f"there are {', '.join(dict.fromkeys(f['slug'] for f in found)) or 'none'}")
        shown = mine[: _limit(limit, MOST_FINDINGS)]
        return {"total": len(mine), "findings": [_full(finding) for finding in shown]}

    def table(
        self,
        table: str,
        capture: str = "",
        columns: Sequence[str] = (),
        where: Sequence[str] = (),
        sort: str | None = None,
        descending: bool = True,
        limit: int = 20,
        offset: int = 0,
    ) -> dict[str, Any]:
        """Rows of one table of the report, raw figures with units in the columns' names."""
        found = _one_table(self._capture(capture).document, table)
        known = [column["key"] for column in found["columns"]]
        shown = shown_columns(known, columns)
        rows = chosen(found["rows"], known, where, sort, descending)
        page = rows[max(offset, 0) : max(offset, 0) + _limit(limit, MOST_ROWS)]
        values = list(_within([[_figure(row[key]) for key in shown] for row in page], MOST_CHARACTERS))
        behind = max(offset, 0) + len(values)
        about = {c["key"]: _column(c["heading"], c["unit"], c["about"]) for c in found["columns"] if c["key"] in shown}
        return {
            "title": found["title"],
            "total": len(rows),
            "offset": max(offset, 0),
            "columns": about,
            "rows": values,
            "next_offset": behind if behind < len(rows) else None,
            "notes": found["notes"],
        }

    def instruction(self, name: str, capture: str = "", program: str = "") -> dict[str, Any]:
        """One HLO instruction: its time, class, cost and source, its HLO with what it calls, and what it was before XLA's passes."""
        from nsys_report.reports.html.hlo_text import text_of

        captured = self._capture(capture)
        rows = captured.analysis.results.instructions.to_pylist()
        mine = [r for r in rows if program in ("", r["hlo_module"], f"{r['hlo_module']}#{r['program_id']}")]
        found = [r for r in mine if r["hlo_instruction"] == name]
        if not found:
            close = difflib.get_close_matches(name, {r["hlo_instruction"] for r in mine if r["hlo_instruction"]}, 5)
            raise UsageError(f"no instruction {name!r} ran", f"did you mean {', '.join(close)}?" if close else "see the table instructions")
        row = max(found, key=lambda r: r["time_per_execution_ns"] or 0.0)
        known = captured.analysis.joined.programs.get(row["program_id"])
        text = text_of(known, name) if known is not None else None
        figures = {key: _figure(value) for key, value in row.items() if value is not None}
        return {"figures": figures, "hlo": _cut(text) if text else None, "also_in": [_key(r) for r in found if r is not row]}

    def diff(self, before: str, after: str, limit: int = 10) -> dict[str, Any]:
        """Whether the second capture is slower than the first, where, and whether that is more than noise."""
        from nsys_report.diffing import diff

        made = diff(self._capture(before).analysis, self._capture(after).analysis, names=([before], [after])).document()
        changed = sorted(made["instructions"], key=lambda i: -abs(i["quantities"]["time_ns"]["difference"] or 0.0))
        return {
            "verdict": made["verdict"],
            "setup": made["setup"][:MOST_FINDINGS],
            "notes": made["notes"],
            "programs": [_changed_program(p) for p in made["programs"][:MOST_FINDINGS]],
            "instructions": [_changed_instruction(i) for i in changed[: _limit(limit, MOST_ROWS)]],
            "total_instructions": len(changed),
        }

    def _capture(self, name: str) -> Captured:
        if not name:
            return next(iter(self.captures.values()))
        if name not in self.captures:
            raise UsageError(f"no capture {name!r}", f"there are {', '.join(self.captures)}")
        return self.captures[name]


def _limit(asked: int, most: int) -> int:
    return min(max(asked, 1), most)


def _within(rows: Iterable[list[Any]], most: int) -> Iterator[list[Any]]:
    """The first rows, one at least, whose text is together no longer than that."""
    used = 0
    for row in rows:
        used += sum(len(str(value)) + len(",") for value in row)
        if used > most and used > len(str(row)):
            return
        yield row


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]} … ({len(text) - MOST_TEXT:,} more characters)"


def _figure(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if value == value and value not in (float("inf"), float("-inf")) else None
    return _cut(value) if isinstance(value, str) else value


def _column(heading: str, unit: str, about: str) -> str:
    return f"{heading} ({unit})" + (f": {about}" if about else "")


def _key(row: Mapping[str, Any]) -> str:
    return f"{row['hlo_module']}#{row['program_id']}"


def _tables(found: CaptureDocument) -> Iterable[tuple[SectionDocument, str, TableDocument]]:
    for section in found["sections"]:
        for key, table in section["tables"].items():
            yield section, key, table


def _one_table(found: CaptureDocument, name: str) -> TableDocument:
    """A table by its own key, or section/key; of several of one key the first, which is the program's with most time."""
    ways = [(f"{section['key']}/{key}", key, table) for section, key, table in _tables(found)]
    for full, key, table in ways:
        if name in (full, key):
            return table
    names = list(dict.fromkeys([full for full, _, _ in ways] + [key for _, key, _ in ways]))
    close = difflib.get_close_matches(name, names, 3) or names[:30]
    raise UsageError(f"no table {name!r}", f"there are {', '.join(close)}")


def _program(section: SectionDocument) -> dict[str, Any]:
    budget = section["tables"].get("budget")
    return {
        "program": section["module"],
        "lines": [_cut(line) for line in section["lines"]],
        "facts": {key: _figure(fact["value"]) for key, fact in section["facts"].items() if fact["value"] is not None},
        "budget": [[_figure(row.get(key)) for key in ("category", "typical_ns", "share")] for row in (budget["rows"] if budget else ())],
    }


def _brief(finding: FindingDocument) -> dict[str, Any]:
    return {"slug": finding["slug"], "title": finding["title"], "program": finding["module"], "gain_ns": _figure(finding["gain_ns"])}


def _full(finding: FindingDocument) -> dict[str, Any]:
    places = finding["places"]["rows"] if finding["places"] is not None else []
    return {
        **_brief(finding),
        "why": _cut(finding["why"]),
        "remedy": _cut(finding["remedy"]),
        "confidence": finding["confidence"],
        "basis": finding["basis"],
        "tried": finding["tried"],
        "to_capture": finding["to_capture"] or None,
        "facts": {key: fact["text"] for key, fact in finding["facts"].items()},
        "places": [{key: _figure(value) for key, value in place.items() if value is not None} for place in places[:MOST_FINDINGS]],
    }


def _changed_program(program: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("before", "after", "difference", "relative", "verdict")
    return {
        "before": program["before"],
        "after": program["after"],
        "verdict": program["verdict"],
        "setup": program["setup"][:MOST_FINDINGS],
        "quantities": {name: {key: _figure(q[key]) for key in keys} for name, q in program["quantities"].items()},
        "rollups": [{key: _figure(value) for key, value in r.items()} for r in program["rollups"][:MOST_FINDINGS]],
    }


def _changed_instruction(change: Mapping[str, Any]) -> dict[str, Any]:
    time = change["quantities"]["time_ns"]
    places = [place for side in change["places"].values() for place in side]
    return {
        **{key: change[key] for key in ("before", "after", "change", "became", "identical")},
        **{f"time_ns_{key}": _figure(time[key]) for key in ("before", "after", "difference")},
        "verdict": time["verdict"],
        "op_name": next((p["op_name"] for p in places if p["op_name"]), None),
        "source": next((p["source"] for p in places if p["source"]), None),
    }
