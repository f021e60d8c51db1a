"""The small drawing of a finding: stretches worked out by hand, and of a real capture as much of a step as the finding says."""

from __future__ import annotations

import numpy as np
import pytest

from nsys_report.reports.finding_strip import CELLS, FindingStrip, finding_strip, runs_of, strip_words
from tests.nsys_report.pages import analyzed


def test_stretches() -> None:
    """A step of 6,000 ns: a cell is 10 ns. Ranges that touch or overlap are one; one that is cut off ends with the step."""
    starts, ends = np.array([0, 105, 110, 5_990, 7_000]), np.array([10, 112, 125, 9_000, 8_000])
    assert runs_of([(starts, ends)], 0, 6_000) == ((0, 1), (10, 3), (599, 1))
    assert runs_of([], 0, 6_000) == ()


def test_words() -> None:
    said = strip_words(FindingStrip(7, 2_000_000, (), ((0, CELLS // 4),)))
    assert said == "The step of execution 7, 2.00 ms long and nearest to the typical one: what the finding is about shows in 25.0 % of it."


def test_a_captured_step() -> None:
    """Waiting for the host takes about what the finding says of the step; split products lie among the kernels."""
    session = analyzed("decode")
    found = {cause.slug: (cause, finding_strip(session, cause)) for cause in session.causes}
    cause, strip = found["waiting-for-host"]
    assert strip is not None
    drawn = sum(cells for _, cells in strip.mine) / CELLS
    assert drawn == pytest.approx(cause.explained_ns / strip.step_ns, abs=0.06)
    _, products = found["split-product"]
    assert products is not None
    working = {cell for first, cells in products.work for cell in range(first, first + cells)}
    assert {cell for first, cells in products.mine for cell in range(first, first + cells)} <= working
    assert found["helper-programs"][1] is None  # about no part of a step
