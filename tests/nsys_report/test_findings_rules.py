"""Each rule on a program of a few lines whose figures can be worked out on paper: where it speaks, and where it must not.

A kB takes a nanosecond on the made-up GPU. Rules that real captures show are in test_findings_readings.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from hlo_mapping.facts import module_facts
from hlo_mapping.text.parser import parse_module
from nsys_report.analysis import compute_results, find_ceilings
from nsys_report.capture.health_items import HealthItem
from nsys_report.findings.rules import compiling, devices, host, launches, transfers
from nsys_report.findings.rules.apply import find
from nsys_report.findings.step import Context, Step, make_context
from nsys_report.joined import Joined
from tests.hlo_mapping.hlo_samples import text
from tests.nsys_report.findings_samples import analysis, copy, fact, findings, found, health, joined, kernel, program, run, with_info

PRODUCT = """HloModule jit_step, is_scheduled=true
{bodies}
ENTRY %main (x: f32[64,1024], w: {types}) -> f32[64,1024] {{
  %x = f32[64,1024]{{1,0}} parameter(0)
{staging}
  ROOT %dot.1 = f32[64,1024]{{1,0}} dot(%x, %staged), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{more}
}}
"""


def product(staging: str, types: str = "f32[1024,1024]", bodies: str = "", more: str = "") -> str:
    """A product of x with what `staging` makes of the weights."""
    return PRODUCT.format(staging=staging, types=types, bodies=bodies, more=more)


CONVERTED = product(
    "  %w = bf16[1024,1024]{1,0} parameter(1)\n  %staged = f32[1024,1024]{1,0} fusion(%w), kind=kLoop, calls=%fused",
    "bf16[1024,1024]",
    "%fused (p: bf16[1024,1024]) -> f32[1024,1024] {\n  %p = bf16[1024,1024]{1,0} parameter(0)\n"
    "  ROOT %c = f32[1024,1024]{1,0} convert(%p)\n}\n",
)
TRANSPOSED = product(
    "  %w = f32[1024,1024]{1,0} parameter(1)\n  %staged = f32[1024,1024]{1,0} fusion(%w), kind=kInput, calls=%fused",
    bodies="%fused (p: f32[1024,1024]) -> f32[1024,1024] {\n  %p = f32[1024,1024]{1,0} parameter(0)\n"
    "  ROOT %t = f32[1024,1024]{1,0} transpose(%p), dimensions={1,0}\n}\n",
)
MERGED_TYPES = product(
    "  %w = bf16[1024,512]{1,0} parameter(1)\n  %v = f32[1024,512]{1,0} parameter(2)\n"
    "  %staged = f32[1024,1024]{1,0} fusion(%w, %v), kind=kLoop, calls=%fused",
    "bf16[1024,512], v: f32[1024,512]",
    "%fused (p: bf16[1024,512], q: f32[1024,512]) -> f32[1024,1024] {\n  %p = bf16[1024,512]{1,0} parameter(0)\n"
    "  %q = f32[1024,512]{1,0} parameter(1)\n  %c = f32[1024,512]{1,0} convert(%p)\n"
    "  ROOT %m = f32[1024,1024]{1,0} concatenate(%c, %q), dimensions={1}\n}\n",
)
PLAIN = product("  %staged = f32[1024,1024]{1,0} parameter(1)")
EXACT = product("  %staged = f32[1024,1024]{1,0} parameter(1)", more=", operand_precision={highest,highest}")


@pytest.mark.parametrize(
    ("text", "slug", "read", "written"),
    [
        (CONVERTED, "weights-converted", 1 << 21, 1 << 22),
        (TRANSPOSED, "weights-laid-out", 1 << 22, 1 << 22),
        (MERGED_TYPES, "weights-merged-types", 3 << 20, 1 << 22),
    ],
)
def test_weights_staged_in_every_step(text: str, slug: str, read: int, written: int) -> None:
    finding = found(run(text, {"staged": 7000, "dot.1": 9000}, between=1000))[slug]
    assert (finding.value("read_bytes"), finding.value("written_bytes")) == (read, written)
    assert finding.gain_ns == 7000
    assert finding.share == 7000 / 17_000
    assert [place.hlo_instruction for place in finding.places] == ["staged"]


def test_weights_used_where_they_are() -> None:
    assert not [slug for slug in found(run(PLAIN, {"dot.1": 5000}, between=1000)) if slug.startswith("weights")]


def test_a_conversion_too_small_to_matter() -> None:
    assert "weights-converted" not in found(run(CONVERTED, {"staged": 80, "dot.1": 9000}, between=1000))


CACHE = """HloModule jit_step, is_scheduled=true{aliases}

%update (c: bf16[1024,16,128], k: bf16[1,16,128], i: s32[]) -> bf16[1024,16,128] {{
  %c = bf16[1024,16,128]{{2,1,0}} parameter(0)
  %k = bf16[1,16,128]{{2,1,0}} parameter(1)
  %i = s32[] parameter(2)
  %z = s32[] constant(0)
  ROOT %dus = bf16[1024,16,128]{{2,1,0}} dynamic-update-slice(%c, %k, %i, %z, %z)
}}

%larger (a: bf16[], b: bf16[]) -> bf16[] {{
  %a = bf16[] parameter(0)
  %b = bf16[] parameter(1)
  ROOT %max = bf16[] maximum(%a, %b)
}}

%soften (s: bf16[16,1024]) -> bf16[16,1024] {{
  %s = bf16[16,1024]{{1,0}} parameter(0)
  %low = bf16[] constant(-inf)
  %top = bf16[16]{{0}} reduce(%s, %low), dimensions={{1}}, to_apply=%larger
  %spread = bf16[16,1024]{{1,0}} broadcast(%top), dimensions={{0}}
  %less = bf16[16,1024]{{1,0}} subtract(%s, %spread)
  ROOT %weights = bf16[16,1024]{{1,0}} exponential(%less)
}}

ENTRY %main (q: bf16[16,128], k: bf16[1,16,128], cache: bf16[1024,16,128], i: s32[]) -> (bf16[16,128], bf16[1024,16,128]) {{
  %q = bf16[16,128]{{1,0}} parameter(0)
  %k = bf16[1,16,128]{{2,1,0}} parameter(1)
  %cache = bf16[1024,16,128]{{2,1,0}} parameter(2)
  %i = s32[] parameter(3)
{copy}
  %write = bf16[1024,16,128]{{2,1,0}} fusion(%{source}, %k, %i), kind=kLoop, calls=%update
  %dot.1 = bf16[16,1024]{{1,0}} dot(%q, %write), lhs_batch_dims={{0}}, lhs_contracting_dims={{1}}, rhs_batch_dims={{1}}, rhs_contracting_dims={{2}}
  %soft = bf16[16,1024]{{1,0}} fusion(%dot.1), kind=kLoop, calls=%soften
  %dot.2 = bf16[16,128]{{1,0}} dot(%soft, %write), lhs_batch_dims={{0}}, lhs_contracting_dims={{1}}, rhs_batch_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT %tuple.1 = (bf16[16,128]{{1,0}}, bf16[1024,16,128]{{2,1,0}}) tuple(%dot.2, %write)
}}
"""  # noqa: E501


def test_a_cache_that_is_not_donated_is_copied() -> None:
    text = CACHE.format(aliases="", copy="  %copy.1 = bf16[1024,16,128]{2,1,0} copy(%cache)", source="copy.1")
    finding = found(run(text, {"copy.1": 9000, "write": 1000, "dot.1": 5000}, between=1000))["cache-copied"]
    cache, entry = 1024 * 16 * 128 * 2, 16 * 128 * 2
    assert finding.value("copy_bytes") == 2 * cache
    assert finding.value("entry_bytes") == entry
    assert finding.gain_ns == pytest.approx(9000 * (1 - entry / cache))
    assert finding.value("cause") == "is not updated in place" and "donate_argnums" in finding.remedy


def test_a_donated_cache_is_updated_in_place() -> None:
    text = CACHE.format(aliases=", input_output_alias={ {1}: (2, {}, may-alias) }", copy="", source="cache")
    assert "cache-copied" not in found(run(text, {"write": 1000, "dot.1": 5000}, between=1000))


def test_precision_that_keeps_products_off_the_tensor_cores() -> None:
    flops = 2 * 64 * 1024 * 1024
    moved = 4 * (64 * 1024 + 1024 * 1024 + 64 * 1024)
    ceilings = {"tf32": 400.0, "f32": 40.0}
    finding = found(run(EXACT, {"dot.1": 20_000}, between=1000), None, **ceilings)["slow-cores"]
    assert finding.value("flops") == flops
    assert finding.value("possible_ns") == pytest.approx(max(3 * flops / 400e12 * 1e9, moved / 1000))
    assert finding.gain_ns == pytest.approx(20_000 - moved / 1000 / 0.9)
    assert "slow-cores" not in found(run(PLAIN, {"dot.1": 20_000}, between=1000), None, **ceilings)


def test_products_below_the_roof_and_at_it() -> None:
    moved = 4 * (64 * 1024 + 1024 * 1024 + 64 * 1024)
    finding = found(run(PLAIN, {"dot.1": 10_000}, between=1000))["product-below-roof"]
    assert finding.value("roof_ns") == pytest.approx(moved / 1000)
    assert finding.gain_ns == pytest.approx(10_000 - moved / 1000 / 0.9)
    assert finding.title.startswith("1 product reaches 47.2 % of its roof")
    assert "product-below-roof" not in found(run(PLAIN, {"dot.1": 5000}, between=1000))


@pytest.mark.parametrize(("kind", "reachable"), [("measured", 0.9), ("nominal", 0.75)])
def test_a_nominal_compute_ceiling_promises_less(kind: str, reachable: float) -> None:
    """Of a figure of a data sheet, which nobody has measured, three quarters are taken as within reach."""
    made, known = analysis("train"), find_ceilings("NVIDIA H200")
    results = compute_results(made.joined, replace(known, compute=tuple((name, replace(c, kind=kind)) for name, c in known.compute)))
    finding = next(f for f in find(made.joined, results) if f.slug == "library-below-roof")
    assert finding.gain_ns == pytest.approx(float(finding.value("time_ns")) - float(finding.value("roof_ns")) / reachable)
    assert "bf16 operands halve the arithmetic" in finding.remedy


@pytest.mark.parametrize(("number", "speaks"), [(8, True), (7, False)])
def test_small_kernels(number: int, speaks: bool) -> None:
    facts = [fact(f"add.{i}", kernel_class="other", class_detail="norm", bytes_accessed=1000) for i in range(number)]
    large = fact("large", kernel_class="other", class_detail="norm", bytes_accessed=4_000_000)
    times = {f"add.{i}": 900 + 100 * (i == 0) for i in range(number)} | {"large": 4000}
    made = found(run(None, times, facts=[*facts, large], between=1000))
    assert ("small-kernels" in made) == speaks
    if speaks:
        finding = made["small-kernels"]
        assert finding.value("kernels") == number and finding.value("least_ns") == 900
        assert finding.gain_ns == pytest.approx(number / 2 * 900), "each fused with a neighbor leaves half of the launches"


def test_kernels_of_unknown_bytes_are_not_called_small() -> None:
    facts = [fact(f"call.{i}", kernel_class="other", class_detail="library") for i in range(9)]
    assert "small-kernels" not in found(run(None, {f"call.{i}": 900 for i in range(9)}, facts=facts, between=1000))


def test_large_inputs_that_nothing_hides() -> None:
    up = ({"offset": 500, "kind": "HtoD", "bytes": 2_000_000, "time": 3000},)
    finding = found(run(PLAIN, {"dot.1": 10_000}, between=5000, copies=up))["inputs-not-hidden"]
    assert finding.value("up_bytes") == 2_000_000 and finding.value("copies") == 1
    assert finding.gain_ns == 3000
    small = ({"offset": 500, "kind": "HtoD", "bytes": 900_000, "time": 3000},)
    assert "inputs-not-hidden" not in found(run(PLAIN, {"dot.1": 10_000}, between=5000, copies=small))


OFFLOADED = product("  %w = f32[1024,1024]{1,0:S(5)} parameter(1)\n  %staged = f32[1024,1024]{1,0} copy(%w)")


def _brought_in(text: str) -> Joined:
    """Three steps of 8 µs: 5 µs of a copy of 4.19 MB to the device, within the execution, and 3 µs of a product."""
    rows = module_facts(parse_module(text), 1).to_pylist()
    (dot,) = (i for i, row in enumerate(rows) if row["hlo_instruction"] == "dot.1")
    activities = []
    for step in range(4):
        at = step * 9000
        activities += [copy(at, at + 5000, "HtoD", 1 << 22, step), kernel(at + 5000, at + 8000, step, dot)]
    return replace(joined(activities, rows), programs={1: program(text)})


def test_weights_in_host_memory_cross_in_every_step() -> None:
    finding = found(_brought_in(OFFLOADED))["arguments-in-host-memory"]
    assert finding.value("up_bytes") == finding.value("argument_bytes") == 1 << 22
    assert finding.value("time_ns") == finding.value("exposed_ns") == finding.gain_ns == 5000
    assert "839 GB a second" in finding.why


def test_copies_within_executions_whose_arguments_are_on_the_device() -> None:
    assert "arguments-in-host-memory" not in found(_brought_in(PLAIN))


def test_beams_caches_put_in_another_order() -> None:
    times = {"loop_gather_fusion": 4000, "copy.4": 2000, "copy.5": 2000, "input_reduce_fusion": 9000}
    made = found(run(text("beam"), times, between=1000))
    finding = made["cache-reordered"]
    cache = 4 * 256 * 8 * 64 * 2  # four beams, 256 places, 8 heads of 64 in bf16; keys and values
    assert finding.value("bytes") == pytest.approx(2 * (2 * cache) + 2 * (2 * cache), rel=1e-4)
    assert finding.value("copy_bytes") == 2 * 2 * cache
    assert finding.gain_ns == 8000
    assert not {"cache-copied", "context-gathered"} & set(made)


def _context(made: Joined) -> tuple[Context, Step]:
    context = make_context(made, compute_results(made, find_ceilings("made up", None, {"measured": 1000.0})), health())
    return context, context.steps[0]


def test_the_wait_for_the_host_leaves_out_what_is_named_elsewhere() -> None:
    up = ({"offset": 500, "kind": "HtoD", "bytes": 2_000_000, "time": 3000},)
    context, step = _context(run(PLAIN, {"dot.1": 10_000}, between=5000, copies=up))
    step = replace(step, typical={("copies", "to_device"): 3000.0, ("host", "host_work"): 1500.0})
    (inputs,), (waiting,) = transfers.uploaded_inputs(context, step), host.waiting_for_host(context, step)
    assert (inputs.gain_ns, waiting.gain_ns) == (3000, 1500)
    assert not list(host.waiting_for_host(context, replace(step, typical={("host", "host_work"): 700.0}))), "under 5 % of the step"


def test_idle_time_that_nobody_can_explain_is_not_put_down_to_the_host() -> None:
    """A capture without API calls: the device pauses a third of the time, and nothing says why."""
    assert "waiting-for-host" not in found(run(PLAIN, {"dot.1": 10_000}, between=5000))


def test_many_arguments_are_named_with_the_dispatch() -> None:
    few, step = _context(run(PLAIN, {"dot.1": 1000}, between=9000))
    typical = {("host", "xla_dispatch"): 3000.0, ("launch", "first_kernel_latency"): 500.0}
    (finding,) = launches.dispatch(few, replace(step, typical=typical))
    assert finding.gain_ns == 3500 and "arguments to handle" not in finding.why
    names = ", ".join(f"p{i}: f32[64]" for i in range(300))
    lines = "\n".join(f"  %p{i} = f32[64]{{0}} parameter({i})" for i in range(300))
    head = f"HloModule jit_step, is_scheduled=true\n\nENTRY %main ({names}) -> f32[64] {{\n"
    text = f"{head}{lines}\n  ROOT %add.1 = f32[64]{{0}} add(%p0, %p1)\n}}\n"
    many, step = _context(run(text, {"add.1": 1000}, between=9000))
    (finding,) = launches.dispatch(many, replace(step, typical=typical))
    assert "300 arguments to handle" in finding.why
    assert not list(launches.dispatch(few, replace(step, typical={("host", "xla_dispatch"): 100.0}))), "1 % of the step"


def test_single_launches_of_few_kernels_do_not_matter() -> None:
    context, step = _context(run(PLAIN, {"dot.1": 1000}, between=9000))
    typical = {("launch", "launch_call"): 8000.0, ("launch", "launch_latency"): 2000.0}
    assert not list(launches.launches(context, replace(step, typical=typical)))
    (finding,) = launches.launches(context, replace(step, typical=typical, kernels=20))
    assert finding.slug == "launch-bound"
    assert finding.gain_ns == pytest.approx(10_000 - 20 * 360), "a graph's launch of as many nodes stays"


def test_kernels_inside_graphs_are_not_launched_one_by_one() -> None:
    context, step = _context(run(PLAIN, {"dot.1": 1000}, between=9000))
    typical = {("launch", "launch_latency"): 8000.0}
    nodes = pa.array([7] * context.joined.activities.num_rows, pa.int64())
    at = context.joined.activities.column_names.index("graph_node_id")
    context = replace(context, joined=replace(context.joined, activities=context.joined.activities.set_column(at, "graph_node_id", nodes)))
    (finding,) = launches.launches(context, replace(step, typical=typical, kernels=21))
    assert finding.title.startswith("20 kernels are launched one by one") and finding.remedy.startswith("1 more run")
    assert not list(launches.launches(context, replace(step, typical=typical, kernels=16))), "15 of them are not enough"


TRANSFORM = """HloModule jit_step, is_scheduled=true

ENTRY %main (a: c64[1024,1024]) -> c64[1024,1024] {
  %a = c64[1024,1024]{1,0} parameter(0)
  ROOT %fft.1 = c64[1024,1024]{1,0} fft(%a), fft_type=FFT, fft_length={1024}
}
"""


def test_a_transform_is_no_product() -> None:
    assert not {"product-below-roof", "library-below-roof"} & set(found(run(TRANSFORM, {"fft.1": 90_000}, between=1000)))


SOLVED = """HloModule jit_step, is_scheduled=true

ENTRY %main (a: f32[64,64]) -> (f32[64,64], f32[64], s32[]) {
  %a = f32[64,64]{1,0} parameter(0)
  %copy.1 = f32[64,64]{0,1} copy(%a)
  ROOT %eigh.0 = (f32[64,64]{0,1}, f32[64]{0}, s32[]) custom-call(%copy.1), custom_call_target="cusolver_syevd_ffi"
}
"""


def test_a_library_that_launches_and_reads_back_is_no_loop() -> None:
    rows = module_facts(parse_module(SOLVED), 1).to_pylist()
    numbers = {row["hlo_instruction"]: i for i, row in enumerate(rows)}
    activities = []
    for number in range(4):
        at = number * 100_000
        activities.append(kernel(at, at + 1000, number, numbers["copy.1"]))
        activities += [kernel(at + 2000 * i, at + 2000 * i + 500, number, numbers["eigh.0"]) for i in range(1, 21)]
        activities += [copy(at + 2000 * i + 600, at + 2000 * i + 700, "DtoH", 4, number) for i in range(1, 4)]
    context, step = _context(replace(joined(activities, rows), programs={1: program(SOLVED)}))
    typical = {("launch", "launch_latency"): 20_000.0, ("idle", "loop_readback"): 3000.0}
    (finding,) = launches.launches(context, replace(step, typical=typical))
    assert finding.slug == "library-launches"
    assert (finding.gain_ns, {f.key: f.value for f in finding.facts}["kernels"]) == (23_000, 20)
    assert "cusolver_syevd_ffi runs its algorithm" in finding.why and "3 small results" in finding.why


def test_small_results_of_a_program_without_a_loop_are_no_loops() -> None:
    back = tuple({"offset": -50 * i, "kind": "DtoH", "bytes": 4, "time": 10} for i in range(1, 4))
    made = run(PLAIN, {"dot.1": 10_000}, between=5000, copies=back)
    context, step = _context(made)
    assert not list(launches.launches(context, replace(step, typical={("idle", "loop_readback"): 3000.0})))


def test_graph_updates_are_counted_by_execution() -> None:
    assert "graph-updates" not in findings("decode_nocb"), "no graphs, no updates"
    finding = findings("decode")["graph-updates"]  # in 2 of its steps alone: their price, of which a typical step shows too little
    assert finding.value("executions") == 2
    steps = finding.executions - 1  # the last execution is followed by none
    assert finding.value("each_ns") == pytest.approx(float(finding.value("mean_ns")) * steps / 2)


def test_graph_updates_of_most_steps_take_the_time_that_the_budget_shows() -> None:
    """Updates in both steps that are followed by another: 800 ns of a step of 2000, whatever their mean over all steps is."""
    part = ("launch", "graph_updates")
    context, step = _context(run(PLAIN, {"dot.1": 10_000}, between=5000))
    often = np.array([700, 1700])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launches, "_updates", lambda context, step: often)
        (finding,) = launches.graph_updates(context, replace(step, wall_ns=2000.0, typical={part: 800.0}, mean={part: 1200.0}))
        assert (finding.gain_ns, finding.value("typical_ns"), finding.value("each_ns")) == (800.0, 800.0, 1200.0)
        assert "in 2 of 2 steps, 800 ns in a typical step" in finding.title
        often = np.array([2400, 0, 0])
        (finding,) = launches.graph_updates(context, replace(step, wall_ns=2000.0, typical={}, mean={part: 800.0}))
        assert (finding.gain_ns, finding.value("mean_ns"), finding.value("each_ns")) == (800.0, 800.0, 2400.0)
        assert "in 1 of 3 steps, 2.40 µs each" in finding.title


def test_state_below_its_share_does_not_cross() -> None:
    """Two MB each way, of a program with 4.5 MB of arguments: something else is going to and fro."""
    both = (
        {"offset": 100, "kind": "HtoD", "bytes": 2_000_000, "time": 400},
        {"offset": 600, "kind": "DtoH", "bytes": 2_000_000, "time": 400},
    )
    context, step = _context(run(PLAIN, {"dot.1": 10_000}, between=5000, copies=both))
    assert transfers.copied(context, step, "HtoD") == (1, 2_000_000)
    assert not list(transfers.crossing_state(context, step))
    whole = tuple(one | {"bytes": 4_500_000} for one in both)
    context, step = _context(run(PLAIN, {"dot.1": 10_000}, between=5000, copies=whole))
    (finding,) = transfers.crossing_state(context, step)
    assert [figure.value for figure in finding.facts[:2]] == [4_500_000, 4_500_000]


def _two_threads(launched: int) -> Joined:
    """Executions of 1000 ns on two threads in turn, each launched so long before its start."""
    activities, executions = [], {}
    for number in range(8):
        start = 1000 * number
        thread = 11 + number % 2
        activities.append(kernel(start, start + 1000, number, 0, launch_thread=thread, launch_end_ns=start - launched))
        name, program_id = (("jit_left", 1), ("jit_right", 2))[number % 2]
        executions[number] = {"launch_thread": thread, "hlo_module": name, "program_id": program_id}
    return joined(activities, [fact("add.1", kernel_class="other", bytes_accessed=100)], executions)


def test_executions_that_wait_for_another_thread() -> None:
    context = make_context(_two_threads(600), compute_results(_two_threads(600), find_ceilings("made up")), health())
    right = next(step for step in context.steps if step.name == "jit_right")
    (finding,) = devices.other_threads(context, right)
    assert finding.gain_ns == 600 and finding.facts[1].value == 4
    context = make_context(_two_threads(0), compute_results(_two_threads(0), find_ceilings("made up")), health())
    assert not [d for step in context.steps for d in devices.other_threads(context, step)]


def test_idle_time_of_steps_that_overlap_counts_once() -> None:
    context = make_context(_two_threads(0), compute_results(_two_threads(0), find_ceilings("made up")), health())
    # Each program's steps cover 7000 ns (its last execution ends them), both together 8000.
    assert context.shared == pytest.approx(8000 / (7000 + 7000))


def _compiled(*ranges: tuple[int, int]) -> Joined:
    nvtx = [{"start_ns": a, "end_ns": b, "thread": 7 + i, "text": "XlaCompile:#module=jit_step#"} for i, (a, b) in enumerate(ranges)]
    return with_info(run(PLAIN, {"dot.1": 10_000}, between=1000, nvtx=nvtx), span_ns=(0, 100_000))


def test_programs_compiled_inside_the_window() -> None:
    finding = found(_compiled((0, 20_000), (10_000, 30_000)))["compiled-inside"]
    assert finding.value("compilations") == 2 and finding.value("time_ns") == 30_000, "by union"
    assert finding.value("costliest_1_ns") == 40_000, "both compilations of the one program"
    assert finding.gain_ns is None
    assert "compiled-in-parallel" not in found(_compiled((0, 20_000), (10_000, 30_000)))
    assert "compiled-inside" not in found(_compiled((0, 900)))


def test_programs_compiled_at_the_same_time() -> None:
    finding = found(_compiled(*((i, 20_000 + i) for i in range(5))))["compiled-in-parallel"]
    assert finding.value("together") == 5 and finding.value("total_ns") == 100_000
    assert "one after another" in finding.to_capture


def _lengths(*lengths: int) -> Joined:
    made = run(PLAIN, {"dot.1": 10_000}, between=1000)
    programs = {i: program(PLAIN.replace("[64,", f"[{n},"), i) for i, n in enumerate(lengths, 1)}
    return replace(made, programs=programs)


def test_programs_that_differ_only_in_shape() -> None:
    context, _ = _context(_lengths(64, 96, 128))
    (finding,) = compiling.shape_variants(context)
    assert finding.facts[0].value == 3 and finding.gain_ns is None
    context, _ = _context(_lengths(64, 96))
    assert not list(compiling.shape_variants(context))


def test_a_damaged_capture_silences_every_other_rule() -> None:
    made = run(CONVERTED, {"staged": 7000, "dot.1": 9000}, between=1000)
    broken = health(HealthItem("lost-records", "fatal", "records were lost", "capture fewer steps"))
    assert list(found(made, broken)) == ["damaged-lost-records"]
    warned = health(HealthItem("overhead", "warning", "the profiler took its time"))
    assert "weights-converted" in found(made, warned)


def test_autotuning_inside_the_window() -> None:
    made = run(PLAIN, {"dot.1": 10_000}, between=1000)
    assert "autotuning-inside" not in found(made)
    rows = [kernel(0, 10_000, 0, 0), kernel(20_000, 21_000, None, match_method="autotuning")]
    finding = found(joined(rows, [fact("add.1", kernel_class="other", bytes_accessed=100)]))["autotuning-inside"]
    assert finding.value("kernels") == 1 and finding.value("time_ns") == 1000


def looped(began: int, returned: int) -> Joined:
    """Four steps of ten iterations, 1,000 ns apart: three kernels of 100 ns, launched as a graph so long before the first of them."""
    rows = []
    for at in (20_000 * step + 1000 * n for step in range(4) for n in range(10)):
        graph = {"launch_start_ns": at - began, "launch_end_ns": at - returned, "launch_api": "cuGraphLaunch", "launch_thread": 11}
        rows += [kernel(at + 100 * i, at + 100 * i + 100, at // 20_000, i, name="abc"[i], **graph) for i in range(3)]
    return joined(rows, [fact(name, bytes_accessed=10) for name in "abc"])


def test_iterations_of_a_loop_that_are_launched_as_a_graph_each() -> None:
    """Of each pause of 700 ns the host spends 50 before it calls, 620 in the call, and 30 pass until the first kernel starts."""
    finding = found(looped(650, 30))["iterations-launched"]
    assert (finding.value("iterations"), finding.value("launches"), finding.value("kernels")) == (10, 1, 3)
    assert (finding.value("period_ns"), finding.value("kernel_ns"), finding.value("idle_per_iteration_ns")) == (1000, 300, 700)
    assert finding.value("idle_ns") == 9 * (620 + 30)
    assert finding.gain_ns == 9 * 650 * 7 / 8


def test_iterations_that_are_launched_ahead_cost_nothing() -> None:
    assert not {"iterations-launched", "graphs-apart"} & found(looped(5000, 4500)).keys()


def test_graphs_of_an_execution_that_are_no_loop() -> None:
    """Four steps of six graphs 1,000 ns apart, of instructions of their own: five pauses of which the host takes 650 ns."""
    rows, facts = [], [fact(f"{n}{i}", bytes_accessed=10) for n in range(6) for i in range(2 + n % 2)]
    at_of = [sum(2 + m % 2 for m in range(n)) for n in range(6)]
    for step in range(4):
        for n in range(6):
            at = 20_000 * step + 1000 * n
            graph = {"launch_start_ns": at - 650, "launch_end_ns": at - 50, "launch_api": "cuGraphLaunch", "launch_thread": 11}
            rows += [kernel(at + 100 * i, at + 100 * i + 100, step, at_of[n] + i, **graph) for i in range(2 + n % 2)]
    made = found(joined(rows, facts))
    assert made["graphs-apart"].value("graphs") == 6 and "iterations-launched" not in made
    assert made["graphs-apart"].value("idle_ns") == 5 * 650 == made["graphs-apart"].explained_ns
    assert made["dispatch"].value("graph_launch_ns") == pytest.approx(600), "the first one's is dispatch"


def test_kernels_side_by_side_share_their_time() -> None:
    """Two kernels of 1,000 ns, the second from the middle of the first on: 1,500 ns together, of which the second's own are 500."""
    rows = [kernel(10_000 * n + start, 10_000 * n + start + 1000, n, i) for n in range(3) for i, start in enumerate((0, 500))]
    made = joined(rows, [fact("a", bytes_accessed=10), fact("b", bytes_accessed=10)])
    step = make_context(made, compute_results(made, find_ceilings("NVIDIA H200", 4_800_000_000_000)), health()).steps[0]
    assert [(step.running(r), step.spent(r)) for r in sorted(step.instructions, key=lambda r: r["instruction_id"])] == [
        (1000, 1000),
        (1000, 500),
    ]
    assert (step.kernel_ns, step.busy_ns) == (2000, 1500)


def uneven(slow: int = 0, late: int = 0) -> Joined:
    """Twelve steps of 10,000 ns with kernels a (1,000 ns) and b (1,000); in every third b takes longer, or the step begins later."""
    rows, at = [], 0
    for step in range(12):
        third = step % 3 == 2
        at += late * third
        launch = {"launch_start_ns": at - 100, "launch_end_ns": at - 50, "launch_api": "cuLaunchKernel", "launch_thread": 11}
        rows += [kernel(at, at + 1000, step, 0, **launch), kernel(at + 1000, at + 2000 + slow * third, step, 1, **launch)]
        at += 10_000
    return joined(rows, [fact("a", bytes_accessed=10), fact("b", bytes_accessed=10)])


def test_slow_executions_and_the_instruction_that_is_slow_in_them() -> None:
    finding = found(uneven(slow=5000))["slow-executions"]
    assert (finding.value("executions"), finding.value("every"), finding.value("each_ns")) == (4, 3, 5000)
    assert (finding.value("instruction"), [place.hlo_instruction for place in finding.places]) == ("b", ["b"])
    assert (finding.gain_ns, finding.stake_ns, finding.explained_ns) == (None, 4 * 5000, 0)


def test_late_executions_and_why_they_are_late() -> None:
    """Steps 2, 5, 8 and 11 begin 5,000 ns later; the host does nothing in that time that the capture shows."""
    finding = found(uneven(late=5000))["late-executions"]
    assert (finding.value("executions"), finding.value("every"), finding.value("each_ns")) == (4, 3, 5000)
    assert (finding.value("cause"), finding.stake_ns) == ("host_work", 4 * 5000)


def test_executions_that_are_alike_are_not_slow() -> None:
    assert not {"slow-executions", "late-executions"} & found(uneven()).keys()


def test_a_library_that_runs_a_recurrence_is_given_no_advice_on_eigenvalues() -> None:
    from nsys_report.findings.rules.launches import library_remedy

    recurrent = library_remedy(["cudnn_rnn_bwd_ffi", "cudnn_rnn_ffi"])
    assert "sequences" in recurrent and "svd" not in recurrent
    assert "svd by QR" in library_remedy(["cusolver_gesvd_ffi"])
    assert "svd" not in library_remedy([]) and "svd" not in library_remedy(["somebody_elses"])
