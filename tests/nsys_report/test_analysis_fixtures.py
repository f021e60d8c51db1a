"""The analysis of real captures: sums that are exact, and figures that follow from the programs' shapes on paper."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nsys_report.analysis.idle.causes import CAUSES
from nsys_report.analysis.results import AnalysisResults
from nsys_report.analysis.whatif import parse_scenarios, what_if
from nsys_report.joined import Joined
from nsys_report.pipeline import analyze

FIXTURES = Path(__file__).parents[2] / "fixtures"
NAMES = sorted(p.parent.name for p in FIXTURES.glob("*/capture.sqlite"))
MEASURED = 4300.0
"""Bytes a nanosecond on the H200."""


@cache
def analyzed(name: str) -> tuple[Joined, AnalysisResults]:
    dump = FIXTURES / name / "xla_dump"
    made = analyze(FIXTURES / name / "capture.sqlite", dump if dump.is_dir() else None)
    return made.joined, made.results


def budget_of(name: str, module: str) -> dict[str, float]:
    """The typical step of a program, by category and part."""
    rows = [r for r in analyzed(name)[1].budget.to_pylist() if r["hlo_module"] == module]
    return {f"{r['category']}: {r['part']}": r["typical_ns"] for r in rows}


def step_of(name: str, module: str) -> dict[str, float]:
    (step,) = [s for s in analyzed(name)[1].steps.to_pylist() if s["hlo_module"] == module]
    return step


@pytest.mark.parametrize("name", NAMES)
def test_every_nanosecond_of_every_execution_is_accounted_for(name: str) -> None:
    joined, results = analyzed(name)
    assert len(results.budgets.wall) == len(joined.executions)
    assert results.budgets.ns.sum(axis=1).tolist() == results.budgets.wall.tolist()
    assert np.all(results.budgets.ns >= 0)
    for row in results.gap_parts.to_pylist():
        if row["host_gap_ns"] is not None:
            assert sum(row[f"{c.key}_ns"] for c in CAUSES) == row["host_gap_ns"]


@pytest.mark.parametrize("name", NAMES)
def test_tables_add_up(name: str) -> None:
    joined, results = analyzed(name)
    kernels = [a for a in joined.activities.select(["activity", "start_ns", "end_ns"]).to_pylist() if a["activity"] == "kernel"]
    time = sum(a["end_ns"] - a["start_ns"] for a in kernels)
    assert sum(results.kernels["total_time_ns"].to_pylist()) == time
    scopes = results.coverage.to_pylist()
    assert sum(r["kernel_time_ns"] for r in scopes if r["scope"] == "total") == time
    assert sum(r["kernel_time_ns"] for r in scopes if r["scope"] != "total") == time
    for step in results.steps.to_pylist():
        key = (step["hlo_module"], step["program_id"])
        mine = [r for r in results.budget.to_pylist() if (r["hlo_module"], r["program_id"]) == key]
        assert sum(r["total_ns"] for r in mine) == step["total_ns"]
        assert sum(r["typical_ns"] for r in mine) == pytest.approx(step["typical_ns"])
        shares = [r["time_share"] for r in results.classes.to_pylist() if (r["hlo_module"], r["program_id"]) == key]
        assert not shares or sum(shares) == pytest.approx(1)


@pytest.mark.parametrize("name", ["decode", "decode_nocb", "decode_scan_nocb"])
def test_the_floor_of_a_decode_step(name: str) -> None:
    """735,051,776 bytes of matrices, 53,248 of norms, a row of 4,096; a cache of 12,582,912 bytes read and 24,576 written."""
    parts = budget_of(name, "jit_decode_step")
    assert parts["floor: weights"] == pytest.approx((735_051_776 + 53_248 + 4_096) / MEASURED, rel=1e-3)
    assert parts["floor: kv_cache"] == pytest.approx((12_582_912 + 24_576) / MEASURED, rel=5e-3)
    step = step_of(name, "jit_decode_step")
    assert (step["tokens_per_execution"], step["cache_type"]) == (1, "bf16")
    assert step["floor_tokens_per_s"] == pytest.approx(1e9 / step["floor_ns"])


def test_half_of_what_a_decode_step_moves_nobody_needed() -> None:
    """XLA's own count for the program is 1,467,943,168 bytes; ours, which counts what is touched, lies below it and above the floor."""
    classes = [r for r in analyzed("decode")[1].classes.to_pylist() if r["hlo_module"] == "jit_decode_step"]
    moved = sum(r["bytes_accessed"] for r in classes)
    assert 1.0e9 < moved < 1.468e9
    assert sum(r["wasted_bytes"] for r in classes) == moved - sum(r["floor_bytes"] for r in classes)


def test_scanned_layers_copy_weights_and_pools() -> None:
    """Each layer's slice of the stacked weights is copied into a buffer of its own; the pools are rewritten whole."""
    parts = budget_of("decode_scan_nocb", "jit_decode_step")
    assert parts["traffic: weights: slice"] > 100_000
    assert parts["traffic: kv_write: update"] > 150_000
    rows = [r for r in analyzed("decode_scan_nocb")[1].instructions.to_pylist() if r["class_detail"] == "slice"]
    assert {r["activity"] for r in rows if r["kernel_class"] == "weights"} == {"memcpy"}


def test_a_loop_condition_comes_back_thirteen_times() -> None:
    parts = budget_of("while_decode_nocb", "jit_generate")
    assert parts["idle: loop_readback"] > 100_000
    assert parts["launch: launch_call"] > parts["idle: between_activities"]
    assert step_of("while_decode_nocb", "jit_generate")["tokens_per_execution"] == 12


def test_state_that_crosses_the_host_is_copies() -> None:
    """The kernels take 0.4 ms of a step of some 70 ms, the rest is copies and what the host does between them."""
    step, parts = step_of("train_host", "jit_train_step"), budget_of("train_host", "jit_train_step")
    copies = sum(ns for name, ns in parts.items() if name.startswith("copies"))
    assert copies > 0.9 * step["typical_ns"]
    assert parts["copies: to_device"] > 3e6 and parts["copies: to_host"] > 3e6


def test_executions_of_two_threads_share_the_device() -> None:
    for module in ("jit_left", "jit_right"):
        assert budget_of("threads", module)["other_executions: kernels"] > 0


def test_graphs_without_kernels_are_whole() -> None:
    parts = budget_of("graph_2025", "jit_decode_step")
    assert 500_000 < parts["kernels: graphs"] < 700_000
    assert not any(name.startswith(("floor", "traffic")) for name in parts)


def test_layers_of_a_decoder() -> None:
    """Six layers, of which the first is fused with the embedding and stands apart."""
    (row,) = [r for r in analyzed("decode")[1].layers.to_pylist() if r["hlo_module"] == "jit_decode_step"]
    assert (row["layers"], row["ragged_layers"], row["kernels_per_layer"]) == (5, 1, 26)
    assert row["layer_time_max_ns"] < 1.3 * row["layer_time_min_ns"]


@pytest.mark.parametrize(
    ("name", "module", "iterations"), [("decode_scan_nocb", "jit_decode_step", 6), ("while_decode_nocb", "jit_generate", 12)]
)
def test_iterations_of_a_loop(name: str, module: str, iterations: int) -> None:
    """A scan over six layers, and a loop that makes twelve tokens."""
    (row,) = [r for r in analyzed(name)[1].loops.to_pylist() if r["hlo_module"] == module]
    assert row["iterations"] == iterations


def test_what_weights_of_8_bits_would_save() -> None:
    """Half of 735 MB at 4,300 GB/s is 85.5 µs; int8 weights have nothing to gain."""
    scenario = parse_scenarios(["weights=int8"])
    (row,) = [r for r in what_if(analyzed("decode")[1], scenario).to_pylist() if r["hlo_module"] == "jit_decode_step"]
    assert row["saved_ns"] == pytest.approx(735_051_776 / 2 / MEASURED, rel=1e-3)
    assert all(r["saved_ns"] < 10 for r in what_if(analyzed("int8")[1], scenario).to_pylist())


def test_precision_of_products() -> None:
    rows = analyzed("train")[1].precision.to_pylist()
    library = [r for r in rows if r["kind"] == "library"]
    assert library and {(r["lhs_type"], r["compute_type"], r["precision"]) for r in library} == {("f32", "tf32", "default")}
    decode = analyzed("decode")[1].precision.to_pylist()
    assert {r["kind"] for r in decode} == {"dot", "split"}
    assert {(r["lhs_type"], r["rhs_type"]) for r in decode if r["kind"] == "dot"} == {("bf16", "bf16")}


def test_the_floor_of_training_holds_no_gradients() -> None:
    """AdamW renews a parameter and two moments, 67,141,632 bytes each: read and written once they are six times that, not seven."""
    steps = {(r["hlo_module"], r["category"], r["part"]): r["typical_ns"] for r in analyzed("train")[1].budget.to_pylist()}
    assert steps["jit_train_step", "floor", "optimizer"] <= 6 * 67_141_632 / MEASURED * 1.001


def test_a_prefill_makes_no_tokens_a_second() -> None:
    """Each chunk writes 256 positions and samples one token at its end; a decode step beside it makes one."""
    chunk, step = step_of("serve", "jit_prefill_chunk"), step_of("serve", "jit_decode_step")
    assert (chunk["tokens_per_execution"], chunk["tokens_per_s"], chunk["floor_tokens_per_s"]) == (None, None, None)
    assert step["tokens_per_execution"] == 1
