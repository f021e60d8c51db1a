"""Promises against what came of them: captures of a program before and after the remedy that a finding named."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from nsys_report import Analysis, analyze
from nsys_report.findings.tried import pairs

REMEDIES = Path(__file__).parents[2] / "fixtures/remedies"


@cache
def analysis(name: str) -> Analysis:
    return analyze(REMEDIES / name / "capture.sqlite", REMEDIES / name / "xla_dump")


def step_ns(name: str) -> float:
    return max(row["typical_ns"] for row in analysis(name).results.steps.to_pylist())


def kernel_ns(name: str) -> float:
    return float(analysis(name).executions["kernel_time_ns"].median())


@pytest.mark.parametrize(
    ("pair", "rule", "measure", "came_ns"),
    [
        ("read_loss", "waiting-for-host", step_ns, 663_000),
        ("held_results", "graph-updates", step_ns, 382_000),
        ("scores_written", "scores-written", kernel_ns, 2_264_000),
        ("precision", "slow-cores", kernel_ns, 210_000),
    ],
)
def test_the_remedy_takes_the_finding_away_and_gives_what_was_measured(pair, rule, measure, came_ns) -> None:  # type: ignore[no-untyped-def]
    before = {finding.slug for finding in analysis(f"{pair}_before").causes}
    after = {finding.slug for finding in analysis(f"{pair}_after").causes}
    assert rule in before and rule not in after
    assert measure(f"{pair}_before") - measure(f"{pair}_after") == pytest.approx(came_ns, rel=0.02)


def test_at_least_half_of_the_promises_came_within_a_quarter() -> None:
    near = [abs(pair.measured_ns - pair.predicted_ns) <= 0.25 * pair.predicted_ns for pair in pairs()]
    assert sum(near) >= 0.5 * len(near) and len({pair.slug for pair in pairs()}) >= 12
