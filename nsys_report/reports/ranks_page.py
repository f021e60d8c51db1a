"""What the report says of a run of many ranks: one part for all of them, with one rank's own report behind it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from nsys_report.analysis.roofline.ceilings import Ceilings
from nsys_report.fact import Fact
from nsys_report.findings.model import Finding
from nsys_report.ranks.combining import combining_findings
from nsys_report.ranks.findings import run_findings, waiting_share, without_waiting
from nsys_report.ranks.run import Run
from nsys_report.ranks.words import cause_of, how_often
from nsys_report.reports.model import Part, Section
from nsys_report.reports.rank_notices import run_notices
from nsys_report.reports.rank_tables import arrivals_table, collectives_table, late_table, ranks_table, steps_table
from nsys_report.units import duration, share, things


def run_part(run: Run, part: Part, shown: int, ceilings: Ceilings | None = None) -> Part:
    """The part of a run, made from the part of the rank that is `shown` in detail."""
    findings = run_findings(run, shown)
    number = run.ranks[shown].number
    return Part(
        name=f"run of {things(len(run.ranks), 'rank')}",
        headline=_headline(run),
        lines=(*part.lines, *((f"Programs, classes and instructions below are those of rank {number}.",) if len(run.captures) > 1 else ())),
        facts=part.facts,
        notices=(*part.notices, *run_notices(run)),
        findings=(*findings, *_among(without_waiting(part.findings, findings), combining_findings(run))),
        sections=(ranks_section(run, ceilings), *part.sections),
    )


def with_ranks(part: Part, run: Run, ceilings: Ceilings | None = None) -> Part:
    """One capture's part, its devices being ranks of a run."""
    findings = run_findings(run, 0)
    return replace(
        part,
        notices=(*part.notices, *run_notices(run)),
        findings=(*findings, *_among(without_waiting(part.findings, findings), combining_findings(run))),
        sections=(ranks_section(run, ceilings), *part.sections),
    )


def _among(own: tuple[Finding, ...], more: Iterable[Finding]) -> list[Finding]:
    """A rank's own findings with more of the run in their places by what they give back."""
    found = list(own)
    for finding in more:
        place = next((n for n, other in enumerate(found) if not other.damage and other.total_gain_ns < finding.total_gain_ns), len(found))
        found.insert(place, finding)
    return found


def _headline(run: Run) -> str:
    if not run.grids:
        return f"{things(len(run.ranks), 'rank')} that meet in no collective"
    seen = run.grids[0]
    waits = waiting_share(run)
    text = f"{run.programs[seen.program].name}, {things(seen.late.shape[1], 'step')}"
    return text + (f"; a rank waits for others {share(waits)} of its time" if waits is not None else "")


def ranks_section(run: Run, ceilings: Ceilings | None = None) -> Section:
    """The section `ranks`: tables of ranks, late ones, steps, collectives and every arrival."""
    waits = waiting_share(run)
    facts = (
        Fact("ranks", "ranks", len(run.ranks), "count"),
        Fact("steps", "steps", run.grids[0].late.shape[1] if run.grids else 0, "count"),
        Fact("step_ns", "median step of all ranks", run.grids[0].step_ns if run.grids else None, "ns"),
        Fact("waiting_share", "waiting for other ranks", waits, "ratio"),
        Fact("clock_error_ns", "largest error of a clock", _largest_error(run), "ns"),
    )
    tables = (ranks_table(run), late_table(run), steps_table(run), collectives_table(run, ceilings), arrivals_table(run))
    return Section("ranks", "Ranks", (_sentence(run),), facts, tuple(t for t in tables if t.rows or t.key in ("ranks", "late", "arrivals")))


def _largest_error(run: Run) -> float | None:
    known = run.clocks.error_ns[np.isfinite(run.clocks.error_ns)]
    return float(known.max()) if len(known) else None


def _sentence(run: Run) -> str:
    if not run.grids:
        return "No collective that several ranks run was found, so nothing says who waits for whom."
    error = _largest_error(run)
    text = f"{things(len(run.meetings), 'collective')} of {things(run.grids[0].late.shape[1], 'step')} align the clocks"
    text += f" to {duration(error)}" if error is not None else ""
    if not run.late:
        return f"{text}. No rank comes late."
    worst = run.late[0]
    cause = cause_of(worst, float(run.kernel_ratio[worst.rank]), bool(run.is_uniform[worst.rank]))
    because = f": {cause}" if cause else ""
    return f"{text}. Rank {run.ranks[worst.rank].number} comes {duration(worst.median_ns)} late {how_often(worst)}{because}."
