"""How much of each program's step the findings account for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nsys_report.analysis.results import AnalysisResults
from nsys_report.findings.ledger import FLOOR, NOT_RECORDED, WHOLE_GRAPHS
from nsys_report.findings.model import Elsewhere, Finding, program_name


@dataclass(frozen=True, slots=True)
class Explained:
    """Of one program's typical step, ns: its length, its floor, what was not recorded, and what findings account for."""

    hlo_module: str | None
    program_id: int | None
    step_ns: float
    floor_ns: float
    not_recorded_ns: float
    explained_ns: float

    @property
    def module(self) -> str | None:
        """The program as name#number."""
        return program_name(self.hlo_module, self.program_id)

    @property
    def above_floor_ns(self) -> float:
        """What there is to explain."""
        return max(self.step_ns - self.floor_ns - self.not_recorded_ns, 0.0)

    @property
    def share(self) -> float | None:
        """The share of it that findings account for, 0 to 1; None where there is nothing to explain."""
        return self.explained_ns / self.above_floor_ns if self.above_floor_ns > 0 else None


def explained(findings: Iterable[Finding], results: AnalysisResults) -> tuple[Explained, ...]:
    """A value for each program that has a step, in the order of the table of steps; none of a damaged capture, which is not judged."""
    findings = tuple(findings)
    if any(finding.damage for finding in findings):
        return ()
    found: dict[tuple[str | None, int | None], float] = {}
    for finding in findings:
        about: tuple[Finding | Elsewhere, ...] = (finding, *finding.also)
        for one in about:
            key = one.hlo_module, one.program_id
            found[key] = found.get(key, 0.0) + one.explained_ns
    outside: dict[tuple[tuple[str | None, int | None], str], float] = {}
    for row in results.budget.select(["hlo_module", "program_id", "category", "part", "typical_ns"]).to_pylist():
        category = NOT_RECORDED if (row["category"], row["part"]) == WHOLE_GRAPHS else row["category"]
        if category in (FLOOR, NOT_RECORDED):
            at = (row["hlo_module"], row["program_id"]), category
            outside[at] = outside.get(at, 0.0) + row["typical_ns"]
    return tuple(
        Explained(*key, row["typical_ns"], outside.get((key, FLOOR), 0.0), outside.get((key, NOT_RECORDED), 0.0), found.get(key, 0.0))
        for row in results.steps.to_pylist()
        for key in [(row["hlo_module"], row["program_id"])]
    )


def findings_by_row(
    findings: Iterable[Finding], hlo_module: str | None, program_id: int | None
) -> dict[tuple[str, str], list[tuple[str, float]]]:
    """Which findings account for each row of a program's budget, and for how much of it, ns; most first."""
    found: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for finding in findings:
        about: tuple[Finding | Elsewhere, ...] = (finding, *finding.also)
        for one in about:
            if (one.hlo_module, one.program_id) == (hlo_module, program_id):
                for row, ns in one.explains.items():
                    found.setdefault(row, []).append((finding.slug, ns))
    return {row: sorted(mine, key=lambda m: -m[1]) for row, mine in found.items()}
