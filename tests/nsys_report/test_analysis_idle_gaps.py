"""Gaps found block by block are those found in one go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nsys_report.analysis.arrays.view import make_view
from nsys_report.analysis.idle import gaps
from nsys_report.analysis.idle.causes import CAUSES
from nsys_report.analysis.idle.idle_times import idle_times
from nsys_report.pipeline import analyze
from tests.nsys_report.joined_samples import joined, kernel


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


def test_a_condition_in_no_execution_is_a_conditional_nodes_pause() -> None:
    """Without a dump nothing may be cut into executions; graphs with conditions are idle after them all the same."""
    condition = kernel(0, 10, None, name="set_while_condition(int)", launch_start_ns=0, launch_end_ns=1)
    made = joined([condition, kernel(30, 40, None, name="k", launch_start_ns=0, launch_end_ns=1)])
    (idle,) = idle_times(make_view(made))
    assert {CAUSES[n].key: (r.starts.tolist(), r.ends.tolist()) for n, r in enumerate(idle.by_cause) if len(r.starts)} == {
        "conditional_nodes": ([10], [30])
    }
