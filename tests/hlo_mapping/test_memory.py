"""The memory of programs: ranges and sums worked out by hand, and XLA's own of every era of its dumps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlo_mapping.dump.buffers import parse_buffer_assignment
from hlo_mapping.memory.liveness import schedule
from hlo_mapping.memory.usage import memory_of
from hlo_mapping.text.parser import parse_module

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"


def report_of(path: Path) -> Path:
    """The memory report beside a buffer assignment."""
    return path.with_name(path.name.replace("-buffer-assignment", "-memory-usage-report"))


CHAIN = """HloModule jit_f, is_scheduled=true

ENTRY main {
  x = f32[100]{0} parameter(0)
  y = f32[100]{0} parameter(1)
  a = f32[100]{0} tanh(x)
  b = f32[50]{0} slice(a), slice={[0:50]}
  c = (f32[100]{0}, f32[10]{0}) custom-call(a, b), custom_call_target="two"
  first = f32[100]{0} get-tuple-element(c), index=0
  view = f32[10,10]{1,0} bitcast(first)
  ROOT out = f32[10,10]{1,0} exponential(view)
}
"""
CHAIN_BUFFERS = """BufferAssignment:
allocation 0: size 400, parameter 0, shape |f32[100]| at ShapeIndex {}:
 value: <0 x @0> (size=400,offset=0): f32[100]{0}
allocation 1: size 400, parameter 1, shape |f32[100]| at ShapeIndex {}:
 value: <1 y @0> (size=400,offset=0): f32[100]{0}
allocation 2: size 400, output shape is |f32[10,10]|, maybe-live-out:
 value: <9 out @0> (size=400,offset=0): f32[10,10]{1,0}
allocation 3: size 4, thread-local:
 value: <7 add.1 @0> (size=4,offset=0): f32[]
allocation 4: size 1100, preallocated-temp:
 value: <2 a @0> (size=400,offset=0): f32[100]{0}
 value: <3 b @0> (size=200,offset=400): f32[50]{0}
 value: <4 c{} @0> (size=16,offset=1084): (f32[100], f32[10])
 value: <5 c{0} @0> (size=400,offset=640): f32[100]{0}
 value: <6 c{1} @0> (size=40,offset=600): f32[10]{0}

Total bytes used: 2304 (2.2KiB)
"""
LOOP = """HloModule jit_g, is_scheduled=true

body {
  p = (s32[], f32[100]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[100]{0} get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  w = f32[100]{0} tanh(v)
  ROOT r = (s32[], f32[100]{0}) tuple(next, w)
}

condition {
  q = (s32[], f32[100]{0}) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  n = s32[] constant(4)
  ROOT less = pred[] compare(j, n), direction=LT
}

ENTRY main {
  x = f32[100]{0} parameter(0)
  zero = s32[] constant(0)
  start = f32[100]{0} exponential(x)
  t = (s32[], f32[100]{0}) tuple(zero, start)
  loop = (s32[], f32[100]{0}) while(t), condition=condition, body=body
  done = f32[100]{0} get-tuple-element(loop), index=1
  ROOT out = f32[100]{0} negate(done)
}
"""


def test_ranges_of_a_chain() -> None:
    """Through a get-tuple-element and a bitcast; the other half of the tuple is needed no longer than it takes to make it."""
    found = schedule(parse_module(CHAIN))
    assert found.order == ("x", "y", "a", "b", "c", "first", "view", "out")
    assert found.ranges[("x", ())] == found.ranges[("y", ())] == (0, 7)  # the caller's
    assert found.ranges[("a", ())] == (2, 4)
    assert found.ranges[("b", ())] == (3, 4)
    assert found.ranges[("c", (0,))] == (4, 7)
    assert found.ranges[("c", (1,))] == (4, 4)
    assert found.ranges[("c", ())] == (4, 5)  # the table of pointers


def test_a_loop_keeps_what_it_carries() -> None:
    """Called computations stand before their caller; what enters is alive until the result was used."""
    found = schedule(parse_module(LOOP))
    at = {name: place for place, name in enumerate(found.order)}
    assert found.order[4:8] == ("q", "j", "n", "less")
    assert at["w"] < at["loop"] < at["out"]
    assert found.ranges[("start", ())] == (at["start"], at["out"])
    assert found.ranges[("w", ())] == (at["w"], at["out"])


def test_sums_and_peak_worked_out() -> None:
    """At c there are a (400), b (200), and both halves of c (440) with their table (16): 1,056 of 1,100 bytes."""
    memory = memory_of(parse_module(CHAIN), parse_buffer_assignment(CHAIN_BUFFERS))
    assert (memory.arguments, memory.donated, memory.results, memory.temporaries, memory.total) == (800, 0, 400, 1100, 2304)
    assert memory.live == ((2, 400), (3, 600), (4, 1056), (5, 416), (6, 400), (8, 0))
    assert memory.peak == (4, 1056)
    assert memory.fragmentation == pytest.approx(44 / 1100)
    assert [v.instruction for v in memory.alive_at(4)][:3] == ["a", "c", "b"]
    assert memory.unplaced == 0


def test_what_donating_would_save() -> None:
    """One result of the shape of two arguments that nobody donated: one of them could give it room."""
    buffers = CHAIN_BUFFERS.replace("f32[10,10]{1,0}\nallocation 3", "f32[100]{0}\nallocation 3")
    memory = memory_of(parse_module(CHAIN), parse_buffer_assignment(buffers))
    assert [(d.parameter, d.size) for d in memory.donations] == [(0, 400)]
    given = buffers.replace(
        "parameter 0, shape |f32[100]| at ShapeIndex {}:", "parameter 0, shape |f32[100]| at ShapeIndex {}, maybe-live-out:"
    )
    assert [d.parameter for d in memory_of(parse_module(CHAIN), parse_buffer_assignment(given)).donations] == [1]


def test_values_that_the_text_does_not_place_are_said() -> None:
    buffers = CHAIN_BUFFERS.replace("<3 b @0>", "<3 gone @0>")
    assert memory_of(parse_module(CHAIN), parse_buffer_assignment(buffers)).unplaced == 200


ASSIGNMENTS = sorted(FIXTURES.glob("*/xla_dump/*buffer-assignment.txt"), key=lambda p: p.stat().st_size)[-6:]


@pytest.mark.parametrize("path", ASSIGNMENTS, ids=lambda p: p.parent.parent.name + "-" + p.name[:12])
def test_captured_programs_fit_their_block(path: Path) -> None:
    """XLA packs temporaries tightly: what our ranges say is in use at once fits the block that XLA made, and nearly fills it."""
    module = parse_module(path.with_name(path.name.replace("-buffer-assignment", "")).read_text())
    memory = memory_of(module, parse_buffer_assignment(path.read_text()))
    assert memory.unplaced == 0
    assert memory.total > memory.arguments > 0
    if memory.temporaries:
        assert 0.9 * memory.temporaries < memory.peak[1] <= memory.temporaries


TOTAL = re.compile(r"Total bytes(?: used)?: (\d+)")
REPORTED = [path for path in sorted(FIXTURES.rglob("*buffer-assignment.txt")) if TOTAL.search(path.read_text()) or report_of(path).exists()]


@pytest.mark.parametrize("path", REPORTED, ids=lambda p: f"{p.parent.parent.name}-{p.parent.name}-{p.name[:12]}")
def test_the_total_is_xlas_own(path: Path) -> None:
    """Of every era: the sum below the allocations, or the one in the memory report."""
    text = path.read_text()
    said = TOTAL.search(text) or TOTAL.search(report_of(path).read_text())
    assert said is not None
    module = parse_module(path.with_name(path.name.replace("-buffer-assignment", "")).read_text())
    assert memory_of(module, parse_buffer_assignment(text)).total == int(said[1])


@pytest.mark.parametrize("path", [p for p in REPORTED if "dialects" in p.parts], ids=lambda p: p.parent.name)
def test_the_order_is_xlas_own(path: Path) -> None:
    """Where the text holds every get-tuple-element (before 0.11), instructions stand where HloLiveRange has them."""
    own = re.findall(r"^    \d+:(\S+)$", path.read_text().partition("BufferLiveRange")[0], re.MULTILINE)
    module = parse_module(path.with_name(path.name.replace("-buffer-assignment", "")).read_text())
    assert list(schedule(module).order) == own
