"""Gaps found block by block are those found in one go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nsys_report.analysis.idle import gaps
from nsys_report.pipeline import analyze


@pytest.mark.parametrize("name", ["decode", "threads", "while_decode_nocb"])
def test_blocks_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch, fixture_path: Callable[..., Path]) -> None:
    view = analyze(fixture_path(name, "capture.sqlite")).results.view
    calls = gaps.LaunchTimes.of(view)
    whole = [gaps.device_gaps(view, calls, device) for device in range(len(view.devices))]
    assert sum(len(found.plain.starts) + len(found.others.previous) for found in whole)
    monkeypatch.setattr(gaps, "BLOCK", 7)
    for device, found in enumerate(whole):
        again = gaps.device_gaps(view, calls, device)
        for one, other in ((found.plain, again.plain), (found.others.ranges, again.others.ranges)):
            assert np.array_equal(one.starts, other.starts) and np.array_equal(one.ends, other.ends)
        for around, others in ((found.others, again.others), (found.conditional, again.conditional)):
            assert np.array_equal(around.previous, others.previous) and np.array_equal(around.following, others.following)
