"""What an expert reads in each fixture's HLO and timeline, on paper, against what is found.

The decoder of decode, decode_nocb, serve, decode_scan_nocb, while_decode_nocb and cublas_nocb has 6 layers of width 2048, 16 heads and
8 KV heads of 128, a feed-forward of 6144, 32,000 tokens, bf16. Sizes below follow from that; times were read off the timeline.
"""

from __future__ import annotations

import math

import pytest

from nsys_report.findings.model import Finding
from tests.nsys_report.findings_samples import analysis, findings

LAYERS = 6
QKVO = 2 * (2048 * 2048 + 2 * 2048 * 1024 + 2048 * 2048)
"""Bytes of one layer's q, k, v and o projections: 25,165,824."""
POOL = LAYERS * 1024 * 16 * 8 * 128 * 2
"""Bytes of all key pages, or of all value pages: 201,326,592."""
ENTRIES = LAYERS * 2 * 8 * 128 * 2
"""Bytes of one token's keys and values: 24,576."""

FIRST = {
    # Read back 128 kB of logits, argmax on the host, three arguments put up by a program each: 1.1 of 2.1 ms. q, k, v, o split in two
    # kernels. Then XLA's dispatch and the graph's launch, with the profiler's part of it taken off.
    "decode": ("waiting-for-host", "split-product", "dispatch"),
    # The same, with 162 launches in place of one.
    "decode_nocb": ("waiting-for-host", "launch-bound", "dispatch"),
    # Most steps decode; the four prefill chunks pass 256 x 2048 scores of 16 heads through memory six times, in f32. Each of the 28
    # calls is dispatched while the device waits.
    "serve": ("waiting-for-host", "scores-written", "dispatch"),
    # Pools go in as xs and come out as ys: filled, written a whole layer at a time, copied back.
    "decode_scan_nocb": ("waiting-for-host", "cache-copied", "launch-bound"),
    # 13 read-backs and 2,005 launches; then the split products, 12 tokens' worth; then norms, rotary embedding and the like.
    "while_decode_nocb": ("loop-readback", "split-product", "small-kernels"),
    # 210 MB up, 201 MB down, each array by itself, while the kernels take 0.4 ms; the batch would still go up.
    "train_host": ("state-crosses-host", "inputs-not-hidden"),
    # The loss is fetched each step, and the batch goes up before each step. The kernels: cuBLAS with TF32, the optimizer at the roof.
    "train": ("waiting-for-host", "inputs-not-hidden"),
    # Every call waited for; the profiler flushed in these first calls; dispatch as long as the kernels. Converted inside the products.
    "int8": ("waiting-for-host", "dispatch"),
    # Every call waited for; dispatch; ragged_dot as one dense product over all experts.
    "moe": ("waiting-for-host", "dispatch", "experts-dense"),
    # Each thread waits for its own result; dispatch; in these first calls the graphs' nodes are set anew again and again.
    "threads": ("waiting-for-host", "dispatch", "graph-updates"),
    # One all-reduce a layer, and nothing to do meanwhile.
    "sharded_nocb": ("waiting-for-host", "collectives-exposed"),
    # No command buffers either; each prefill chunk and step merges gate and up projection first.
    "cublas_nocb": ("waiting-for-host", "launch-bound", "dispatch"),
}


@pytest.mark.parametrize("name", FIRST)
def test_the_first_findings_are_those_of_the_paper(name: str) -> None:
    assert tuple(findings(name))[: len(FIRST[name])] == FIRST[name]


@pytest.mark.parametrize("name", ["train", "train_host", "sharded_nocb", "threads"])
def test_nothing_is_said_of_caches_and_attention_where_there_are_none(name: str) -> None:
    assert not {"cache-copied", "cache-reordered", "context-gathered", "scores-written", "logits-to-host"} & set(findings(name))


@pytest.mark.parametrize("name", ["decode", "decode_nocb", "serve", "decode_scan_nocb", "cublas_nocb"])
def test_split_products_are_the_four_projections_of_every_layer(name: str) -> None:
    found = findings(name)["split-product"]
    assert found.value("needed_bytes") == LAYERS * QKVO == 150_994_944
    assert found.value("written_bytes") == LAYERS * QKVO, "every product as wide as the weight, in bf16"
    assert found.value("types") == "bf16"
    # q, o and k with v: three multiplies a layer; k and v each have a reduce of their own.
    assert found.value("kernels") == LAYERS * (3 + 4)
    rate = float(found.value("rate"))
    assert found.gain_ns == pytest.approx(float(found.value("time_ns")) - LAYERS * QKVO / rate * 1e9)


def test_split_products_cost_a_third_of_a_decode_step() -> None:
    found = findings("decode")["split-product"]
    # 12 multiplies of 6.0 µs and 6 of 4.8, 12 reduces of 6.5 and 12 of 3.9; whole products reach 3.3 TB/s.
    assert found.value("time_ns") == pytest.approx(226_000, rel=0.02)
    assert found.gain_ns == pytest.approx(226_000 - 45_700, rel=0.02)
    assert found.places[0].source.startswith("workloads.py:")
    assert "fusion(%loop_multiply_fusion" in found.places[0].hlo
    assert found.place_count == 42


def test_the_tokens_that_a_decode_step_would_win() -> None:
    found = findings("decode")["split-product"]
    step = found.gain_ns / found.share
    assert found.tokens_per_s == pytest.approx(1e9 / (step - found.gain_ns) - 1e9 / step)


def test_a_decode_step_waits_for_a_result_and_three_arguments() -> None:
    found = findings("decode")["waiting-for-host"]
    assert found.value("copies_out") == 1 and found.value("bytes_out") == 4 * 32_000
    assert found.value("copies_in") == 3 and found.value("bytes_in") == 4 + 4 + 32 * 4
    assert found.value("helper_executions") == 3
    logits = findings("decode")["logits-to-host"]
    assert logits.value("down_bytes") == 128_000


def test_tracing_of_nodes_is_taken_off_the_graph_launch() -> None:
    found = findings("decode")["dispatch"]
    assert found.value("node_tracing_ns") == pytest.approx(162 * 1000, rel=1e-3)  # whole nanoseconds a gap
    parts = ("xla_ns", "graph_launch_ns", "first_kernel_ns")
    assert found.gain_ns == pytest.approx(sum(float(found.value(part)) for part in parts))
    assert "--cuda-graph-trace=graph" in found.to_capture


def test_the_context_bucket_is_gathered_whole() -> None:
    found = findings("decode")["context-gathered"]
    assert found.value("read_bytes") == LAYERS * 2 * 32 * 16 * 8 * 128 * 2 == 12_582_912
    assert found.value("kernels") == LAYERS
    assert "positions" in found.to_capture
    assert findings("serve")["context-gathered"].value("read_bytes") == 4 * 12_582_912


def test_scores_of_prefill_pass_through_memory() -> None:
    found = findings("serve")["scores-written"]
    scores = 8 * 2048 * 256 * 2  # KV heads x context x rows x heads of each
    # Read and written as f32 by the mask, read and written by the exponential, read by its sum, read as f32 and written as bf16.
    assert found.value("bytes") == pytest.approx(LAYERS * scores * (8 + 8 + 4 + 4 + 2), rel=0.01)
    assert found.hlo_module == "jit_prefill_chunk"


def test_pools_that_pass_through_a_scan() -> None:
    found = findings("decode_scan_nocb")["cache-copied"]
    assert found.value("fill_bytes") == 2 * POOL, "new buffers, filled with zeros"
    assert found.value("rewrite_bytes") == pytest.approx(2 * 2 * POOL, rel=0.001), "each layer's pool read and written"
    assert found.value("copy_bytes") == 2 * 2 * POOL, "copied back, read and written"
    assert found.value("entry_bytes") == ENTRIES == 24_576
    # 119 µs of filling, 6 x 2 rewrites of 22 µs, two copies of 93 µs, which nothing else runs beside.
    assert found.gain_ns == pytest.approx(569_000, rel=0.02)
    assert found.value("cause") == "passes through a loop"


def test_weights_sliced_out_of_their_stack() -> None:
    found = findings("decode_scan_nocb")["weights-sliced"]
    sliced = LAYERS * 3 * 2048 * 6144 * 2
    assert found.value("read_bytes") == sliced == 452_984_832
    assert found.gain_ns < float(found.value("time_ns")), "part of the copies runs beside kernels"


def test_a_loop_run_from_the_host() -> None:
    found = findings("while_decode_nocb")["loop-readback"]
    assert found.value("readbacks") == 13, "12 iterations and the last look at the condition"
    assert found.value("kernels") == 2005
    assert found.value("loop") == "while.18"
    assert 0.4 < float(found.value("idle_share")) < 0.6
    split = findings("while_decode_nocb")["split-product"]
    assert split.value("needed_bytes") == 12 * LAYERS * QKVO
    assert split.confidence == "possible" and "launches set this program's pace" in split.basis


def test_where_launches_set_the_pace_shorter_kernels_are_no_sure_gain() -> None:
    """Without graphs the GPU waits longer for launches than its kernels take; with one launch a step it does not."""
    pace = "launches set this program's pace"
    assert pace in findings("decode_nocb")["split-product"].basis
    assert pace not in findings("decode_scan_nocb")["split-product"].basis, "1.0 ms of kernels, 0.5 ms waiting for launches"
    assert pace not in findings("decode")["split-product"].basis


def test_all_training_state_crosses_the_host() -> None:
    found = findings("train_host")["state-crosses-host"]
    parameters = 4 * (2048 * 2048 + 2048) * 4
    batch = 2 * 512 * 2048 * 4
    assert found.value("down_bytes") == 3 * parameters + 4 == 201_424_900, "parameters, two moments, and the loss"
    assert found.value("up_bytes") == found.value("argument_bytes") == 3 * parameters + batch == 209_813_504
    assert found.share > 0.95
    assert float(found.value("kernel_ns")) == pytest.approx(400_000, rel=0.02)
    assert findings("train_host")["inputs-not-hidden"].value("up_bytes") == pytest.approx(batch, abs=4)


def test_int8_weights_are_converted_inside_the_products() -> None:
    found = findings("int8")
    assert not any(slug.startswith("weights-") for slug in found)
    slow = found["product-below-roof"]
    assert slow.value("kernels") == 8
    # int8 weights, f32 partial sums of 8 slices, the input: 17.3 MB each.
    assert slow.value("bytes") == pytest.approx(8 * (4096 * 4096 + 8 * 4 * 4096 * 4), rel=0.01)
    assert slow.value("share_of_roof") == pytest.approx(0.52, abs=0.03)


def test_every_expert_for_every_token() -> None:
    found = findings("moe")["experts-dense"]
    rows = 64 * 2
    assert found.value("experts") == 8
    assert found.value("flops") == 2 * (2 * rows * 8 * 1024 * 4096) == 17_179_869_184
    assert found.value("needed_flops") == 17_179_869_184 / 8


def test_collectives_wait_for_the_later_device() -> None:
    found = findings("sharded_nocb")["collectives-exposed"]
    assert found.value("collectives") == 6
    assert found.value("bytes") == 6 * 2 * 64 * 4096 * 2
    assert found.value("alone_ns") == pytest.approx(float(found.value("time_ns")))
    assert 0 < float(found.value("waiting_ns")) < float(found.value("time_ns"))


def test_gate_and_up_projection_are_merged_in_every_step() -> None:
    found = findings("cublas_nocb")["weights-merged"]
    decoding = next(other for other in found.also if other.hlo_module == "jit_decode_step") if found.also else None
    merged = LAYERS * 2 * 2048 * 6144 * 2
    if found.hlo_module == "jit_decode_step":
        assert found.value("read_bytes") == found.value("written_bytes") == merged == 301_989_888
    else:  # prefill merges q, k and v as well
        assert found.value("read_bytes") == found.value("written_bytes") == merged + LAYERS * 2 * 2048 * 4096
        assert decoding is not None and decoding.gain_ns == pytest.approx(137_000, rel=0.05)


def test_one_library_call_of_attention_is_far_below_its_roof() -> None:
    found = findings("cublas_nocb")["library-below-roof"]
    assert found.hlo_module == "jit_decode_step"
    # The weighted sum of values takes 16.4 µs for 4.3 MB, a microsecond's worth, in each layer: most of the gain.
    assert [place.time_ns for place in found.places] == pytest.approx([16_400] * 5, rel=0.02)
    assert all(place.bytes_accessed < 5_000_000 for place in found.places)
    assert found.gain_ns > 6 * 15_000


def test_damaged_captures_are_judged_no_further() -> None:
    graphs = findings("decode_graph")
    assert list(graphs) == ["damaged-graphs"]
    assert graphs["damaged-graphs"].severity == "error" and graphs["damaged-graphs"].gain_ns is None
    lost = findings("shapes")
    assert next(iter(lost)) == "damaged-lost-records"
    assert lost["compiled-inside"].value("most_compiled") == "jit_encode"


def test_whole_graphs_say_what_they_cannot_show() -> None:
    found = findings("graph_2025")
    assert found["graphs-whole"].to_capture
    assert {"waiting-for-host", "dispatch"} <= set(found)
    assert not found["dispatch"].value("node_tracing_ns"), "no nodes were traced"


def test_a_capture_without_xla() -> None:
    found = findings("torch_mlp")
    assert list(found) == ["device-idle"]
    assert 0.9 < float(found["device-idle"].value("idle_ns")) / float(found["device-idle"].value("span_ns")) < 0.95


def _all() -> list[tuple[str, Finding]]:
    names = [*FIRST, "cutoff_nocb", "decode_graph", "graph_2025", "shapes", "torch_mlp"]
    return [(name, finding) for name in names for finding in analysis(name).causes]


def test_no_figure_is_impossible() -> None:
    for name, finding in _all():
        assert finding.title and finding.why and finding.remedy and finding.basis, (name, finding.slug)
        assert "{" not in finding.title + finding.why + finding.remedy + finding.basis, (name, finding.slug)
        assert finding.gain_ns is None or finding.gain_ns >= 0, (name, finding.slug)
        assert finding.share is None or 0 <= finding.share < 1, (name, finding.slug)
        numbers = [f.value for f in finding.facts if isinstance(f.value, float)]
        assert all(math.isfinite(n) and n >= 0 for n in numbers), (name, finding.slug)


@pytest.mark.parametrize("name", FIRST)
def test_savings_together_are_less_than_the_step(name: str) -> None:
    shares: dict[str | None, float] = {}
    for finding in analysis(name).causes:
        shares[finding.hlo_module] = shares.get(finding.hlo_module, 0.0) + (finding.share or 0.0)
    assert all(total < 1 for total in shares.values())


@pytest.mark.parametrize("name", FIRST)
def test_savings_over_the_capture_are_less_than_it_lasts(name: str) -> None:
    made = analysis(name)
    first, last = made.joined.capture.info.span_ns
    total = sum(finding.total_gain_ns for finding in made.causes)
    assert 0 < total < (last - first) * len(made.results.devices)


@pytest.mark.parametrize("name", FIRST)
def test_the_order_is_by_what_is_at_stake_over_the_capture(name: str) -> None:
    stakes = [finding.total_gain_ns if finding.gain_ns is not None else finding.stake_ns for finding in analysis(name).causes]
    assert stakes == sorted(stakes, reverse=True)


def test_places_are_instructions_of_the_module() -> None:
    for name, finding in _all():
        programs = analysis(name).joined.programs
        for place in finding.places:
            module = programs[finding.program_id].module
            assert module is not None and module.instruction(place.hlo_instruction) is not None, (name, finding.slug)
            assert place.hlo.removeprefix("ROOT ").startswith(f"%{place.hlo_instruction} = ")
            assert "metadata=" not in place.hlo
