"""Findings about how collectives were combined, each on a run made on paper."""

from __future__ import annotations

import pytest

from nsys_report.findings.model import Finding
from nsys_report.ranks.combining import combining_findings
from nsys_report.ranks.run import analyze_run
from tests.nsys_report.made_ranks import MOVING, Made


def found(made: Made) -> dict[str, Finding]:
    return {finding.slug: finding for finding in reversed(list(combining_findings(analyze_run(made.captures()))))}


def test_a_scalar_among_gradients_arrives_with_all_of_them() -> None:
    finding = found(Made(arrays=5))["scalar-in-collective"]
    assert finding.title.startswith("A scalar rides in all-reduce.0, an all-reduce of 10.0 MB")
    assert finding.gain_ns is None and "xla_gpu_all_reduce_combine_threshold_bytes" in finding.remedy
    assert "scalar-in-collective" not in found(Made())


def test_a_combined_collective_that_nothing_hides_could_begin_with_its_first_array() -> None:
    finding = found(Made(arrays=5, scatter=1))["combined-collective-exposed"]
    assert finding.gain_ns == pytest.approx(2 * MOVING * 4 / 5)  # two collectives of five arrays
    assert finding.explained_ns == 0  # its time is the exposed collectives'


def test_small_collectives_that_need_each_other_cannot_be_one() -> None:
    finding = found(Made(collectives=6, size=4096, scatter=1))["small-collectives"]
    assert finding.gain_ns == pytest.approx(5 * MOVING) and finding.value("collectives") == 6
    chained = frozenset(f"all-reduce.{n}" for n in range(6))
    assert "small-collectives" not in found(Made(collectives=6, size=4096, tied=chained))
    assert "small-collectives" not in found(Made(collectives=6))  # 10 MB each
