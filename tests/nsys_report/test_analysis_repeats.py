"""Spread, slow executions, drift and two levels, from series whose answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nsys_report.analysis.arrays.trends import drift, two_levels
from nsys_report.analysis.arrays.view import make_view
from nsys_report.analysis.roofline.instructions import group_by_instruction
from nsys_report.analysis.structure.repeats import repeats_table, slow, slow_table
from tests.nsys_report.joined_samples import fact, joined, kernel

FACTS = [fact("dot.1", bytes_accessed=10), fact("norm.2", bytes_accessed=10)]


def steps(times: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Executions 10 µs apart, each a dot and a norm of these durations."""
    rows = []
    for e, (dot, norm) in enumerate(times):
        rows += [kernel(e * 10_000, e * 10_000 + dot, e, 0), kernel(e * 10_000 + dot, e * 10_000 + dot + norm, e, 1)]
    return rows


def test_a_slow_execution_and_what_in_it_was_slow() -> None:
    view = make_view(joined(steps([(100, 50)] * 9 + [(100, 250)]), FACTS))
    rows = slow_table(view, group_by_instruction(view)).to_pylist()
    named = [r for r in rows if r["measure"] == "kernel_time_ns"]
    assert [(r["execution_id"], r["time_ns"], r["excess_ns"], r["hlo_instruction"], r["instruction_excess_ns"]) for r in named] == [
        (9, 350, 200.0, "norm.2", 200.0)
    ]
    row = next(r for r in repeats_table(view).to_pylist() if r["measure"] == "kernel_time_ns")
    assert (row["executions"], row["min_ns"], row["median_ns"], row["max_ns"]) == (10, 150, 150.0, 350)
    assert (row["slow_executions"], row["slow_excess_ns"], row["mad_ns"]) == (1, 200, 0.0)


def test_even_executions_have_nothing_slow() -> None:
    view = make_view(joined(steps([(100, 50), (101, 50), (99, 50)] * 6), FACTS))
    assert len(slow_table(view, group_by_instruction(view))) == 0
    assert not slow(np.array([100, 101, 99, 104])).any()


def test_drift_of_a_decode_step_that_grows_with_its_context() -> None:
    """20 ns more each execution, with one execution far out."""
    times = [(1000 + 20 * e, 50) for e in range(24)]
    times[7] = (9000, 50)
    row = next(r for r in repeats_table(make_view(joined(steps(times), FACTS))).to_pylist() if r["measure"] == "kernel_time_ns")
    assert row["drift_ns_per_execution"] == pytest.approx(20, rel=0.01)
    assert row["drift_low_ns"] <= 20 <= row["drift_high_ns"]
    assert row["drifts"] is True


def test_noise_does_not_drift() -> None:
    rng = np.random.default_rng(1)
    found = drift(np.arange(60), rng.integers(9_900, 10_100, 60))
    assert found is not None and found.low < 0 < found.high
    assert drift(np.arange(7), np.arange(7)) is None


def test_long_series_are_fitted_in_bins() -> None:
    number = np.arange(50_000)
    found = drift(number, 1000 + 3 * number)
    assert found is not None and found.slope == pytest.approx(3, rel=1e-3)


def test_two_levels() -> None:
    rng = np.random.default_rng(2)
    fast, slower = rng.normal(10_000, 50, 30).astype(np.int64), rng.normal(12_000, 50, 10).astype(np.int64)
    found = two_levels(np.concatenate([fast, slower]))
    assert found is not None
    assert found.upper_share == 0.25
    assert found.lower == pytest.approx(10_000, rel=0.01) and found.upper == pytest.approx(12_000, rel=0.01)


@pytest.mark.parametrize("seed", range(20))
def test_one_level_stays_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert two_levels(rng.normal(10_000, 200, 40).astype(np.int64)) is None
    assert two_levels(rng.integers(9_000, 11_000, 40)) is None
    assert two_levels(np.full(40, 10_000)) is None


def test_a_level_needs_a_tenth_of_the_executions() -> None:
    assert two_levels(np.array([100] * 39 + [900])) is None
    assert two_levels(np.array([1, 2])) is None
