"""A program's step budget: where the time from one execution's start to the next goes, in rows that add up to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nsys_report.analysis.program_rows import of_program
from nsys_report.findings.explained import findings_by_row
from nsys_report.reports.model import Column, Row, Table
from nsys_report.reports.present import Record, Show, present
from nsys_report.units import Value, duration, things

if TYPE_CHECKING:
    from nsys_report.analysis.results import AnalysisResults
    from nsys_report.findings.model import Finding

CATEGORIES = {
    "floor": "floor",
    "traffic": "traffic above the floor",
    "below_roof": "kernels below the roof",
    "kernels": "kernels of unknown bytes",
    "not_recorded": "not recorded",
    "other_executions": "other executions",
    "copies": "copies",
    "idle": "pauses inside",
    "launch": "launching",
    "host": "waiting for the host",
    "compile": "compiling",
    "profiler": "the profiler",
}
"""The budget's categories in the words of the page."""
PARTS_IN_WORDS = {
    "host_work": "other host code",
    "before_fetch": "before fetching the result",
    "xla_dispatch": "XLA's dispatch",
    "synchronising": "synchronizing",
    "to_device": "to the device",
    "to_host": "to the host",
    "on_device": "on the device",
    "copies_in": "issuing copies in",
    "copies_out": "issuing copies out",
    "copies_on_device": "issuing copies on the device",
    "pageable_copy": "staging pageable copies",
    "between_activities": "between two activities",
    "launch_call": "launch calls",
    "graph_launch": "graph launches",
    "kv_cache": "KV cache",
}
"""Parts whose keys do not say it well; every other part is called by its key."""
LEAST_OF_ROW = 0.02
"""Of the largest share of a row, for a finding to be named with it."""
FINDINGS = Column("findings", "findings", "text", "ids of the findings that account for it, most first", drop_rank=9)
COLUMNS = (
    Column("category", "where a step goes", "text"),
    Column("typical_ns", "time", "ns"),
    Column("share", "share", "ratio"),
    Column("tokens_per_s_gain", "tokens won", "per_s", "tokens a second won if this took no time", drop_rank=6),
    Column("parts", "mostly", "name", "its largest parts", drop_rank=1),
    FINDINGS,
)
PARTS = (
    Show("category", "where a step goes"),
    Show("part", "part", unit="name"),
    Show("typical_ns", "time"),
    Show("share", "share"),
    Show("time_p10_ns", "p10"),
    Show("time_p90_ns", "p90"),
    Show("mean_ns", "mean"),
    Show("total_ns", "in all"),
    Show("tokens_per_s_gain", "tokens won", unit="per_s"),
)
GAPS = (
    Show("about", "before an execution", unit="name"),
    Show("category", "part of the budget"),
    Show("mean_ns", "mean"),
    Show("share", "share"),
    Show("time_ns", "median"),
    Show("time_p10_ns", "p10"),
    Show("time_p90_ns", "p90"),
    Show("executions_with_cause", "executions"),
)


def budget_tables(results: AnalysisResults, record: Record, findings: Iterable[Finding] = ()) -> Iterable[Table]:
    """The budget by category, then in full by part, then why the GPU waited before an execution; rows name their findings."""
    steps = of_program(results.steps, record).to_pylist()
    parts = of_program(results.budget, record)
    if not steps or not len(parts):
        return
    by_row = findings_by_row(findings, record["hlo_module"], record["program_id"])
    yield _categories(steps[0], parts.to_pylist(), by_row, record["complete_executions"])
    words = {"category": _category, "part": _part}
    in_full = present(parts, PARTS, "budget_parts", "Step budget by part", words=words, in_full=True)
    yield _with_findings(in_full, [by_row.get((row["category"], row["part"]), []) for row in parts.to_pylist()])
    gaps = of_program(results.host_gaps, record)
    if len(gaps):
        yield present(gaps, GAPS, "host_gaps", "Why the GPU waited before an execution", words={"category": _category}, in_full=True)


def _with_findings(made: Table, found: Sequence[Sequence[tuple[str, float]]]) -> Table:
    """A table with a last column that names the findings behind each row."""
    rows = tuple(replace(row, values=(*row.values, _ids(mine))) for row, mine in zip(made.rows, found, strict=True))
    return replace(made, columns=(*made.columns, FINDINGS), rows=rows)


def _ids(found: Iterable[tuple[str, float]]) -> str | None:
    """The findings' ids, most time first; those of next to nothing are left out."""
    times: dict[str, float] = {}
    for slug, ns in found:
        times[slug] = times.get(slug, 0.0) + ns
    least = LEAST_OF_ROW * max(times.values(), default=0.0)
    return ", ".join(sorted((slug for slug, ns in times.items() if ns > least), key=lambda slug: -times[slug])) or None


def _categories(step: Record, parts: list[dict[str, Any]], by_row: Mapping[tuple[str, str], list[tuple[str, float]]], runs: int) -> Table:
    """One row a category, in the budget's order, and the step that they add up to."""
    rows = []
    for category in CATEGORIES:
        mine = [p for p in parts if p["category"] == category]
        time = sum(p["typical_ns"] for p in mine)
        found = [one for p in mine for one in by_row.get((p["category"], p["part"]), [])]
        if time > 0:
            rows.append(Row((CATEGORIES[category], time, time / step["typical_ns"], _gain(step, time), _largest(mine), _ids(found))))
    rows.append(
        Row(("a typical step" if not step["is_alone"] else "a typical execution", step["typical_ns"], 1.0, None, "", None), is_total=True)
    )
    if step["is_alone"]:
        note = f"mean over the middle half of {things(runs, 'execution')}, without the time between them"
    else:
        note = f"mean over the middle half of {things(step['steps'], 'step')}, from one start to the next"
    notes = (note,)
    return Table("budget", "Step budget", COLUMNS, tuple(rows), notes)


def _gain(step: Record, time: float) -> float | None:
    """Tokens a second that a step without this time would make more."""
    tokens, whole = step["tokens_per_execution"], step["typical_ns"]
    return float(tokens * 1e9 / (whole - time) - tokens * 1e9 / whole) if tokens and 0 < time < whole else None


def _largest(parts: list[dict[str, Any]], most: int = 2) -> str:
    ordered = sorted(parts, key=lambda p: -p["typical_ns"])[:most]
    return ", ".join(f"{_part(p)} {duration(p['typical_ns'])}" for p in ordered if p["typical_ns"] > 0)


def _category(record: Record) -> Value:
    return CATEGORIES.get(record["category"], record["category"])


def _part(record: Record) -> Value:
    part = str(record["part"])
    return PARTS_IN_WORDS.get(part, part.replace("_", " "))
