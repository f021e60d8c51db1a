"""Branches that the dump holds and the capture has no record of."""

from __future__ import annotations

import pytest

from nsys_report.analysis.arrays.view import make_view
from nsys_report.analysis.structure.branches import unrecorded_branches
from tests.nsys_report.findings_samples import run

REBUILD = """HloModule jit_run, is_scheduled=true
%keep (k: f32[8]) -> f32[8] {
  ROOT %k = f32[8] parameter(0)
}
%rebuild (r: f32[8]) -> f32[8] {
  %r = f32[8] parameter(0)
  %once = f32[8] negate(%r)
  ROOT %twice = f32[8] exponential(%once)
}
ENTRY %e (p: pred[], x: f32[8]) -> f32[8] {
  %p = pred[] parameter(0)
  %x = f32[8] parameter(1)
  %before = f32[8] tanh(%x)
  ROOT %c = f32[8] conditional(%p, %before, %before), true_computation=%rebuild, false_computation=%keep, METADATA
}
""".replace("METADATA", 'metadata={op_name="jit(run)/cond" source_file="/home/me/neighbors.py" source_line=12}')


@pytest.mark.parametrize(("times", "unrecorded"), [({"before": 100}, 1), ({"before": 100, "once": 100, "twice": 100}, 0)])
def test_a_branch_of_which_nothing_was_recorded_is_named(times: dict[str, int], unrecorded: int) -> None:
    """Of two branches one launches two kernels, the other none."""
    found = unrecorded_branches(make_view(run(REBUILD, times)))
    assert len(found) == unrecorded
    for one in found:
        assert (one.hlo_module, one.conditional, one.source, one.launches) == ("jit_run", "c", "neighbors.py:12", 2)
        assert one.description == "c (neighbors.py:12) in jit_run, a branch of which launches 2"
