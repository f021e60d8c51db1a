"""Rules that ask of any program: kernels far below their roof, arrays written and read back, work that does not need its loop."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import nsys_report.findings
from hlo_mapping.dataflow import build_graph
from hlo_mapping.text.parser import parse_module
from nsys_report.analysis import compute_results, find_ceilings
from nsys_report.findings.flow import Flow
from nsys_report.findings.model import Finding
from nsys_report.findings.rules import graphs
from nsys_report.findings.rules.slow import FAMILIES
from nsys_report.findings.slugs import SLUGS
from nsys_report.findings.step import make_context
from nsys_report.findings.tried import Pair, judged, pairs
from tests.nsys_report.findings_samples import found, health, run

SCATTER = """\
HloModule jit_step, is_scheduled=true

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%fused (p0: f32[2,64], p1: s32[4096,1], p2: f32[4096,64]) -> f32[2,64] {
  %p0 = f32[2,64]{1,0} parameter(0)
  %p1 = s32[4096,1]{1,0} parameter(1)
  %p2 = f32[4096,64]{1,0} parameter(2)
  ROOT %s = f32[2,64]{1,0} scatter(%p0, %p1, %p2), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, \
index_vector_dim=1, to_apply=%add
}

ENTRY %main (t: f32[2,64], ids: s32[4096,1], u: f32[4096,64]) -> f32[2,64] {
  %t = f32[2,64]{1,0} parameter(0)
  %ids = s32[4096,1]{1,0} parameter(1)
  %u = f32[4096,64]{1,0} parameter(2)
  ROOT %input_scatter_fusion = f32[2,64]{1,0} fusion(%t, %ids, %u), kind=kInput, calls=%fused, \
metadata={op_name="jit(step)/embed/scatter-add"}
}
"""

CHAIN = """\
HloModule jit_step, is_scheduled=true

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%spread (p: f32[1024]) -> f32[1024,1024] {
  %p = f32[1024]{0} parameter(0)
  %wide = f32[1024,1024]{1,0} broadcast(%p), dimensions={0}
  ROOT %e = f32[1024,1024]{1,0} exponential(%wide)
}

%summed (q: f32[1024,1024]) -> f32[1024] {
  %q = f32[1024,1024]{1,0} parameter(0)
  %zero = f32[] constant(0)
  ROOT %r = f32[1024]{0} reduce(%q, %zero), dimensions={1}, to_apply=%add
}

ENTRY %main (x: f32[1024]) -> f32[1024] {
  %x = f32[1024]{0} parameter(0)
  %writer = f32[1024,1024]{1,0} fusion(%x), kind=kLoop, calls=%spread
  ROOT %reader = f32[1024]{0} fusion(%writer), kind=kInput, calls=%summed
}
"""

LOOP = """\
HloModule jit_loop, is_scheduled=true

%square (p: f32[64,64]) -> f32[64,64] {
  %p = f32[64,64]{1,0} parameter(0)
  ROOT %m = f32[64,64]{1,0} multiply(%p, %p)
}

%plus (p: f32[64,64], q: f32[64,64]) -> f32[64,64] {
  %p.1 = f32[64,64]{1,0} parameter(0)
  %q.1 = f32[64,64]{1,0} parameter(1)
  ROOT %s = f32[64,64]{1,0} add(%p.1, %q.1)
}

%row (i: s32[], xs: f32[10,64,64]) -> f32[64,64] {
  %i.1 = s32[] parameter(0)
  %xs.1 = f32[10,64,64]{2,1,0} parameter(1)
  %z = s32[] constant(0)
  %d = f32[1,64,64]{2,1,0} dynamic-slice(%xs.1, %i.1, %z, %z), dynamic_slice_sizes={1,64,64}
  ROOT %b = f32[64,64]{1,0} bitcast(%d)
}

%body (t: (s32[], f32[64,64], f32[64,64], f32[10,64,64])) -> (s32[], f32[64,64], f32[64,64], f32[10,64,64]) {
  %t = (s32[], f32[64,64], f32[64,64], f32[10,64,64]) parameter(0)
  %n = s32[] get-tuple-element(%t), index=0
  %state = f32[64,64]{1,0} get-tuple-element(%t), index=1
  %fixed = f32[64,64]{1,0} get-tuple-element(%t), index=2
  %all = f32[10,64,64]{2,1,0} get-tuple-element(%t), index=3
  %one = s32[] constant(1)
  %next = s32[] add(%n, %one)
  %same = f32[64,64]{1,0} fusion(%fixed), kind=kLoop, calls=%square
  %taken = f32[64,64]{1,0} fusion(%n, %all), kind=kLoop, calls=%row
  %sum.1 = f32[64,64]{1,0} fusion(%same, %taken), kind=kLoop, calls=%plus
  %new = f32[64,64]{1,0} fusion(%state, %sum.1), kind=kLoop, calls=%plus
  ROOT %back = (s32[], f32[64,64], f32[64,64], f32[10,64,64]) tuple(%next, %new, %fixed, %all)
}

%cond (c: (s32[], f32[64,64], f32[64,64], f32[10,64,64])) -> pred[] {
  %c = (s32[], f32[64,64], f32[64,64], f32[10,64,64]) parameter(0)
  %k = s32[] get-tuple-element(%c), index=0
  %ten = s32[] constant(10)
  ROOT %less = pred[] compare(%k, %ten), direction=LT
}

ENTRY %main (a: f32[64,64], f: f32[64,64], xs.0: f32[10,64,64]) -> f32[64,64] {
  %a = f32[64,64]{1,0} parameter(0)
  %f = f32[64,64]{1,0} parameter(1)
  %xs.0 = f32[10,64,64]{2,1,0} parameter(2)
  %zero.1 = s32[] constant(0)
  %start = (s32[], f32[64,64], f32[64,64], f32[10,64,64]) tuple(%zero.1, %a, %f, %xs.0)
  %loop = (s32[], f32[64,64], f32[64,64], f32[10,64,64]) while(%start), condition=%cond, body=%body, \
backend_config={"known_trip_count":{"n":"10"}}
  ROOT %result = f32[64,64]{1,0} get-tuple-element(%loop), index=1
}
"""


def test_a_scatter_into_few_places_says_how_many_updates_meet_there() -> None:
    """4,096 updates of 64 floats into 2 rows: 1 MB, about a microsecond at the roof of 1 TB/s; it takes 30."""
    finding = found(run(SCATTER, {"input_scatter_fusion": 30_000}, between=1000))["scatter-collisions"]
    assert finding.value("updates_1") == "4,096 into 2"
    assert "one-hot" in finding.remedy and "segment_sum" in finding.remedy
    assert finding.value("time_ns") == 30_000
    assert finding.gain_ns == pytest.approx(30_000 - float(str(finding.value("roof_ns"))) / 0.9)
    assert [place.op_name for place in finding.places] == ["jit(step)/embed/scatter-add"]


def test_an_array_that_is_written_and_read_back() -> None:
    """4,194,304 bytes once each way: 8.4 µs at 1 TB/s; kernels of 5 and 6 µs do nothing else, and are accounted for whole."""
    finding = found(run(CHAIN, {"writer": 5000, "reader": 6000}, between=1000))["intermediates-written"]
    array = 1024 * 1024 * 4
    assert finding.value("bytes") == 2 * array and finding.value("arrays") == 1
    assert finding.value("array_1") == "writer writes it; reader read it"
    assert finding.explained_ns == pytest.approx(11_000, rel=0.01)


def test_what_a_loops_work_needs_of_its_iteration() -> None:
    flow = Flow(build_graph(parse_module(LOOP, "made up")))
    assert {name: flow.dependence(name) for name in ("same", "taken", "sum.1", "new")} == {
        "same": "nothing",
        "taken": "counter",
        "sum.1": "counter",
        "new": "state",
    }
    assert flow.trip_count("same") == 10 and flow.is_in_loop("new")
    passed = {p.writer: p.readers for p in flow.passed}
    assert passed == {"next": ("less", "taken"), "same": ("sum.1",), "taken": ("sum.1",), "sum.1": ("new",)}


def test_what_can_run_beside_an_instruction() -> None:
    """same and taken need nothing of each other; sum.1 needs both, and new needs it and what it made before."""
    flow = Flow(build_graph(parse_module(LOOP, "made up")))
    assert "taken" not in flow.tied("same") and "same" not in flow.tied("taken")
    assert {"same", "taken", "new"} <= flow.tied("sum.1")
    assert flow.tied("no such instruction") == set(flow.kernels), "unknown: as if everything hung on it"


def test_conditional_nodes_that_hold_the_device_up() -> None:
    made = run(CHAIN, {"writer": 5000, "reader": 6000}, between=1000)
    context = make_context(made, compute_results(made, find_ceilings("made up", None, {"measured": 1000.0})), health())
    step = replace(context.steps[0], typical={("idle", "conditional_nodes"): 2000.0})
    (finding,) = graphs.conditional_nodes(context, step)
    assert finding.gain_ns == 2000 and finding.claims == {("part", "idle", "conditional_nodes"): 1.0}


def test_a_promise_that_nobody_tried_is_a_possibility() -> None:
    finding = Finding("no-such-rule", "Title", "Why.", "Remedy.", "sure", "Basis", gain_ns=10.0)
    assert (judged(finding).confidence, judged(finding).tried) == ("possible", "untried")


def test_a_promise_that_was_not_kept_is_a_possibility() -> None:
    assert not Pair("a", "b", 100.0, 49.0, "GPU", "XLA", "").came
    assert Pair("a", "b", 100.0, -5.0, "GPU", "XLA", "").outcome == "tried: nothing of 100 ns came (GPU, XLA)"
    kept = {pair.slug for pair in pairs()} - {pair.slug for pair in pairs() if not pair.came}
    for pair in pairs():
        finding = judged(Finding(pair.slug, "Title", "Why.", "Remedy.", "sure", "Basis", gain_ns=10.0))
        assert finding.confidence == ("sure" if pair.slug in kept else "possible") and finding.tried.startswith("tried: ")


def test_every_kind_of_finding_can_be_asked_for_by_its_slug() -> None:
    folder = Path(nsys_report.findings.__file__).parent
    text = "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if path.name != "slugs.py")
    named = set(re.findall(r'slug="([a-z-]+)"', text)) | {family.slug for family in FAMILIES}
    assert len(named) > 30 and named <= SLUGS
