"""Roofs, the precision audit and what-if, from programs small enough to work out on paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hlo_mapping.dots import Dot, dot_from_words, dots_of
from hlo_mapping.dump.program import Program
from hlo_mapping.text.parser import parse_module
from nsys_report.analysis import AnalysisResults, compute_results, find_ceilings
from nsys_report.analysis.roofline.ceilings import Ceiling, override
from nsys_report.analysis.roofline.storage import weight_types
from nsys_report.analysis.whatif import parse_scenarios, what_if
from nsys_report.errors import UsageError
from tests.nsys_report.joined_samples import copy, fact, joined, kernel

MODULE = parse_module(
    """HloModule jit_step, is_scheduled=true

%body (p0: bf16[8,64], p1: bf16[64,32]) -> f32[8,32] {
  %p0 = bf16[8,64]{1,0} parameter(0)
  %p1 = bf16[64,32]{1,0} parameter(1)
  ROOT %dot.9 = f32[8,32]{1,0} dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%split (q0: bf16[64], q1: bf16[64,32]) -> bf16[64,32] {
  %q0 = bf16[64]{0} parameter(0)
  %q1 = bf16[64,32]{1,0} parameter(1)
  %broadcast.1 = bf16[64,32]{1,0} broadcast(%q0), dimensions={0}
  ROOT %multiply.1 = bf16[64,32]{1,0} multiply(%broadcast.1, %q1)
}

ENTRY %main (x: bf16[8,64], w: bf16[64,32], f: f32[64,32], q: s8[64,32], v: bf16[64], pool: f8e4m3fn[16,64]) -> f32[8,32] {
  %x = bf16[8,64]{1,0} parameter(0)
  %w = bf16[64,32]{1,0} parameter(1)
  %f = f32[64,32]{1,0} parameter(2)
  %q = s8[64,32]{1,0} parameter(3)
  %v = bf16[64]{0} parameter(4)
  %pool = f8e4m3fn[16,64]{1,0} parameter(5)
  %gemm = f32[8,32]{1,0} fusion(%x, %w), kind=kCustom, calls=%body
  %products = bf16[64,32]{1,0} fusion(%v, %w), kind=kLoop, calls=%split
  %exact = f32[64,64]{1,0} dot(%f, %f), lhs_contracting_dims={1}, rhs_contracting_dims={1}, operand_precision={highest,default}
  %named = f32[64,64]{1,0} dot(%f, %f), lhs_contracting_dims={1}, rhs_contracting_dims={1}, algorithm=dot_tf32_tf32_f32
  %plain = f32[64,64]{1,0} dot(%f, %f), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  %small = s32[64,64]{1,0} dot(%q, %q), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  %library = (bf16[8,32]{1,0}, s8[128]{0}) custom-call(%x, %w), custom_call_target="__cublas$lt$matmul", \
backend_config={"gemm_backend_config":{"precision_config":{"algorithm":"ALG_UNSET","operand_precision":["DEFAULT","HIGH"]},\
"selected_algorithm":"5"}}
  ROOT %copy.1 = f32[8,32]{1,0} copy(%gemm)
}
""",
    "module",
)
PROGRAM = Program(1, "jit_step", MODULE, (), False, False, (), Path())


@pytest.mark.parametrize(
    ("name", "kind", "types", "accumulation", "compute"),
    [
        ("gemm", "dot", ("bf16", "bf16", "f32"), "f32", "bf16"),
        ("exact", "dot", ("f32", "f32", "f32"), "f32", "f32"),
        ("named", "dot", ("f32", "f32", "f32"), "f32", "tf32"),
        ("plain", "dot", ("f32", "f32", "f32"), "f32", "tf32"),  # XLA lets f32 products of default precision run as TF32
        ("small", "dot", ("s8", "s8", "s32"), "s32", "int8"),
        ("library", "library", ("bf16", "bf16", "bf16"), "f32", "bf16"),
    ],
)
def test_products_as_the_dump_writes_them(name: str, kind: str, types: tuple[str, ...], accumulation: str, compute: str) -> None:
    (dot,) = dots_of(MODULE, name)
    assert (dot.kind, (dot.lhs, dot.rhs, dot.result), dot.accumulation, dot.compute_type) == (kind, types, accumulation, compute)


def test_precision_and_algorithms() -> None:
    assert [dots_of(MODULE, n)[0].precision for n in ("exact", "plain", "library")] == ["highest", "default", "high"]
    assert (dots_of(MODULE, "library")[0].library_algorithm, dots_of(MODULE, "library")[0].algorithm) == ("5", "")
    assert dots_of(MODULE, "products") == dots_of(MODULE, "no such") == ()
    assert dot_from_words("f8e4m3fn,f8e5m2->bf16").compute_type == "fp8"
    assert Dot("dot", "f64", "f64", "f64", "default", "").compute_type is None
    assert Dot("dot", "f32", "f32", "f32", "default", "dot_bf16_bf16_f32_x3").compute_type == "bf16"


def step(at: int, execution: int) -> list[dict[str, Any]]:
    return [
        kernel(at, at + 2_000, execution, 0),
        kernel(at + 2_000, at + 2_100, execution, 1),
        kernel(at + 2_100, at + 2_200, execution, 2),
        copy(at + 2_300, at + 2_400, "DtoD", 64, execution, instruction_id=3, match_method="sequence", match_confidence=1.0),
    ]


NONE = {"kv_read_bytes": 0, "kv_write_bytes": 0}
FACTS = [
    fact("gemm", kernel_class="weights", class_detail="product", bytes_accessed=4400, weight_bytes=4096, flops=32768, **NONE),
    fact("plain", kernel_class="other", bytes_accessed=20, weight_bytes=0, flops=60_000, **NONE),
    fact("write", kernel_class="kv_gather", bytes_accessed=100, weight_bytes=0, kv_read_bytes=40, kv_write_bytes=10),
    fact("copy.1", kernel_class="other", class_detail="copy", bytes_accessed=128, weight_bytes=0, **NONE),
]
CEILINGS = override(find_ceilings("none"), {"measured": 2.3, "bf16": 0.02, "tf32": 0.5})  # 2.3 bytes, 20 and 500 flops a nanosecond


@pytest.fixture(scope="module")
def results() -> AnalysisResults:
    value = joined(step(0, 0) + step(10_000, 1), FACTS)
    return compute_results(replace(value, programs={1: PROGRAM}), CEILINGS)


def test_roofs_of_instructions(results: AnalysisResults) -> None:
    rows = {r["hlo_instruction"]: r for r in results.roofline.to_pylist() if r["level"] == "instruction"}
    gemm = rows["gemm"]
    assert (gemm["roof"], gemm["compute_type"]) == ("memory", "bf16")  # 4400 / 2.3 = 1913 ns against 32768 / 20 = 1638
    assert gemm["roof_time_ns"] == pytest.approx(4400 / 2.3)
    assert gemm["share_of_roof"] == pytest.approx(4400 / 2.3 / 2000)
    assert gemm["at_roof"] is True and gemm["above_roof"] is False
    assert gemm["flops_per_byte"] == pytest.approx(32768 / 4400)
    assert gemm["ridge_flops_per_byte"] == pytest.approx(20 / 2.3)
    plain = rows["plain"]
    assert (plain["roof"], plain["compute_type"], plain["roof_time_ns"]) == ("compute", "tf32", pytest.approx(120))
    assert plain["above_roof"] is True and plain["at_roof"] is False and plain["headroom_ns"] == 0
    assert rows["copy.1"]["at_roof"] is False


def test_roofs_of_classes_add_up_their_instructions(results: AnalysisResults) -> None:
    rows = {r["kernel_class"]: r for r in results.roofline.to_pylist() if r["level"] == "class"}
    assert rows["other"]["roof_time_ns"] == pytest.approx(120 + 128 / 2.3)
    assert (rows["other"]["roof"], rows["other"]["time_ns"]) == ("compute", 200)
    assert rows["weights"]["share_of_roof"] == pytest.approx(4400 / 2.3 / 2000)


def test_nobody_is_at_a_roof_that_was_not_measured() -> None:
    ceilings = replace(CEILINGS, measured=None, nominal=Ceiling(2.3e9, 2.3e9, 2.3e9, "nominal", "data sheet"))
    rows = compute_results(joined(step(0, 0), FACTS), ceilings).roofline.to_pylist()
    assert {r["at_roof"] for r in rows if r["roof"] == "memory"} == {None}
    assert len(compute_results(joined(step(0, 0), FACTS), find_ceilings("none")).roofline) == 0


def test_precision_audit(results: AnalysisResults) -> None:
    gemm, plain = results.precision.to_pylist()
    assert (gemm["hlo_instruction"], gemm["lhs_type"], gemm["result_type"], gemm["accumulation_type"]) == ("gemm", "bf16", "f32", "f32")
    assert (gemm["weight_type"], gemm["narrower_type"], gemm["saved_bytes"]) == ("bf16", "8 bits", 2048)
    assert gemm["saved_ns"] == pytest.approx(2048 / 2.3)
    assert gemm["saved_at_its_rate_ns"] == pytest.approx(2048 / 2.2)
    assert (plain["weight_type"], plain["saved_bytes"], plain["precision"]) == (None, None, "default")


def test_a_split_product_is_named_one() -> None:
    facts = [fact("products", kernel_class="weights", bytes_accessed=8000, weight_bytes=4096, flops=2048, **NONE)]
    value = replace(joined([kernel(0, 100, 0, 0)], facts), programs={1: PROGRAM})
    (row,) = compute_results(value, CEILINGS).precision.to_pylist()
    assert (row["kind"], row["products"], row["lhs_type"], row["compute_type"], row["weight_type"]) == ("split", 1, None, "f32", "bf16")


def test_weights_read_in_part_have_the_type_of_the_operand_that_holds_them() -> None:
    facts = [fact("gemm", weight_bytes=64), fact("products", weight_bytes=4096), fact("exact", weight_bytes=20_000), fact("gemm")]
    assert weight_types(replace(joined([], facts), programs={1: PROGRAM})) == ["bf16", "bf16", "f32", None]
    unread = [fact("gemm", weight_bytes=64, dot_type="bf16,s8->f32"), fact("gemm", weight_bytes=64)]
    assert weight_types(joined([], unread)) == ["s8", None]


def test_the_program_s_own_copies_are_work(results: AnalysisResults) -> None:
    other = next(r for r in results.classes.to_pylist() if r["kernel_class"] == "other")
    assert (other["time_per_execution_ns"], other["bytes_accessed"], other["launches_per_execution"]) == (200, 148, 2)
    assert {r["part"] for r in results.budget.to_pylist() if r["category"] == "copies"} == set()
    row = next(r for r in results.instructions.to_pylist() if r["hlo_instruction"] == "copy.1")
    assert (row["activity"], row["bytes_per_s"], row["time_share"]) == ("memcpy", 1.28e9, pytest.approx(100 / 2300))


def test_what_if(results: AnalysisResults) -> None:
    rows = {
        r["scenario"]: r
        for r in what_if(results, parse_scenarios(["weights=int8", "kv=fp8", "no-host-gap", "kv_gather=fused"])).to_pylist()
    }
    step_ns = 10_000
    assert rows["weights=int8"]["saved_ns"] == pytest.approx(2048 / 2.3)
    assert rows["weights=int8"]["best_ns"] == pytest.approx(step_ns - 2048 / 2.2)
    assert rows["kv=fp8"]["saved_ns"] == pytest.approx(25 / 2.3)
    assert rows["no-host-gap"]["saved_ns"] == 7700
    assert rows["kv_gather=fused"]["saved_ns"] == 100
    together = next(r for name, r in rows.items() if " + " in name)
    # The fused gather's kernel is gone: its cache bytes are not saved a second time.
    assert together["saved_ns"] == pytest.approx(2048 / 2.3 + 7700 + 100)
    assert all(r["assumptions"] for r in rows.values())


def test_scenarios_that_change_nothing_have_no_row(results: AnalysisResults) -> None:
    assert len(what_if(results, parse_scenarios(["weights=bf16", "kv=bf16"]))) == 0
    without = compute_results(joined(step(0, 0) + step(10_000, 1), FACTS), find_ceilings("none"))
    assert [r["scenario"] for r in what_if(without, parse_scenarios(["weights=int8", "no-host-gap"])).to_pylist()] == ["no-host-gap"]


@pytest.mark.parametrize(
    "texts", [["weights"], ["weights=int3"], ["no-host-gap=1"], ["kv_gather=split"], ["speed=2"], ["kv=fp8", "kv=int8"]]
)
def test_bad_scenarios_are_usage_errors(texts: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_scenarios(texts)
