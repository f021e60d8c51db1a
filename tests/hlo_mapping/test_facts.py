"""Whole programs: the bytes of a step, from the programs' shapes on paper."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from hlo_mapping.columns import FACTS
from hlo_mapping.dump.index import index_dump
from hlo_mapping.dump.program import Program
from hlo_mapping.errors import HloError
from hlo_mapping.facts import _array, analyze, instruction_facts
from hlo_mapping.text.parser import parse_module
from tests.hlo_mapping.hlo_samples import FIXTURES, captured, captured_rows, module, program_rows, rows, total

LAYER = 2 * 2048 * 2048 + 2 * 2048 * 1024 + 3 * 2048 * 6144
"""Values of a layer's matrices: q and o, k and v, gate, up and down."""
STEP_WEIGHTS = (6 * LAYER + 2048 * 32000) * 2 + 13 * 2048 * 2 + 2048 * 2
"""Bytes of a decode step's matrices and head, norms, and one row of the embedding."""


def test_the_paper_agrees_with_itself() -> None:
    assert STEP_WEIGHTS == 735_109_120


@pytest.mark.parametrize("capture", ["decode", "serve", "cublas_nocb", "while_decode_nocb"])
def test_a_decode_step_reads_its_weights_once(capture: str) -> None:
    name = "jit_generate" if capture == "while_decode_nocb" else "jit_decode_step"
    found = captured_rows(capture, name)
    assert total(found, "weight_bytes") == pytest.approx(STEP_WEIGHTS, rel=1e-3)
    assert total(found, "weight_bytes", kernel_class="weights") >= 735_051_776
    # what is beyond the paper is the embedding's row, which launches read again
    assert (total(found, "weight_bytes") - STEP_WEIGHTS) % 4096 == 0


@pytest.mark.parametrize("capture", ["decode", "while_decode_nocb"])
def test_a_decode_step_writes_one_entry_and_gathers_its_context(capture: str) -> None:
    found = captured_rows(capture, "jit_generate" if capture == "while_decode_nocb" else "jit_decode_step")
    assert total(found, "kv_write_bytes") == 6 * 2 * 8 * 128 * 2 == 24_576
    assert total(found, "kv_read_bytes", kernel_class="kv_gather") == 6 * 2 * 32 * 16 * 8 * 128 * 2 == 12_582_912
    assert total(found, "kv_read_bytes") == pytest.approx(12_582_912, rel=5e-3)
    # beside the gathers only the entries that are about to be overwritten
    assert total(found, "kv_read_bytes") - 12_582_912 == 24_576


@pytest.mark.parametrize("capture", ["serve", "cublas_nocb"])
def test_a_larger_context_gathers_more(capture: str) -> None:
    found = captured_rows(capture, "jit_decode_step")
    assert total(found, "kv_read_bytes", kernel_class="kv_gather") == 4 * 12_582_912 == 50_331_648
    assert total(found, "kv_write_bytes") == 24_576


def test_a_chunk_of_a_prompt_writes_all_its_entries() -> None:
    found = captured_rows("serve", "jit_prefill_chunk")
    assert total(found, "kv_write_bytes") == 256 * 24_576
    assert total(found, "kv_read_bytes") == 50_331_648


def test_a_large_model() -> None:
    found = program_rows("big_decode")
    layer = 2 * 4096 * 2048 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    paper = (24 * layer + 4096 * 32000) * 2 + 49 * 4096 * 2 + 4096 * 2
    assert paper == 9_926_230_016
    assert total(found, "weight_bytes") == pytest.approx(paper, rel=1e-3)
    assert total(found, "kv_write_bytes") == 98_304
    assert total(found, "kv_read_bytes", kernel_class="kv_gather") == 50_331_648


def test_layers_in_a_loop_read_the_same_weights() -> None:
    program = analyze(captured("decode_scan_nocb", "jit_decode_step"))
    times = {k.instruction.name: 6 if k.loop >= 0 else 1 for k in program.graph.kernels}
    found = captured_rows("decode_scan_nocb", "jit_decode_step")
    assert program.graph.loops[0].trip_count == 6
    assert sum(times[n] * row["weight_bytes"] for n, row in found.items()) == STEP_WEIGHTS
    gathered = sum(times[n] * row["kv_read_bytes"] for n, row in found.items())
    assert gathered == pytest.approx(12_582_912, rel=5e-3)
    assert sum(times[n] * row["kv_write_bytes"] for n, row in found.items()) == 24_576
    # the pools are filled, rewritten layer by layer, and copied: traffic, but no entries
    copies = total(found, "bytes_accessed", class_detail="copy")
    assert copies == 2 * 2 * (6 * 1024 * 16 * 8 * 128 * 2)


def test_training_reads_and_writes_parameters_and_moments_as_adam_does() -> None:
    for capture in ("train", "train_host"):
        found = captured_rows(capture, "jit_train_step")
        parameters = 4 * (2048 * 2048 + 2048) * 4
        # parameter, two moments and gradient read; parameter and moments written
        assert total(found, "bytes_accessed", class_detail="optimizer") == 7 * parameters == 469_991_424
        assert total(found, "weight_bytes", class_detail="optimizer") == parameters == 67_141_632
        batch = 2 * 512 * 2048 * 2048
        assert total(found, "flops", kernel_class="weights") == 7 * batch  # four layers forward, three backward
        assert total(found, "flops", class_detail="gradient") == 4 * batch
        assert total(found, "kv_read_bytes") == total(found, "kv_write_bytes") == 0


def test_weights_in_eight_bits_are_read_in_eight_bits() -> None:
    found = captured_rows("int8", "jit_quantized_mlp")
    assert total(found, "weight_bytes") == 8 * (4096 * 4096 + 4096 * 2)
    assert {r["dot_type"] for r in found.values() if r["dot_type"]} == {"s8,bf16->f32"}
    assert total(found, "flops") == 8 * 2 * 4 * 4096 * 4096


def test_experts_that_are_multiplied_whole_are_read_whole() -> None:
    found = captured_rows("moe", "jit_moe_layer")
    assert total(found, "weight_bytes") == (1024 * 8 + 2 * 8 * 1024 * 4096) * 2
    assert {r["class_detail"] for r in found.values()} >= {"product", "sort", "scatter"}


def test_a_share_of_a_parallel_layer() -> None:
    found = captured_rows("sharded_nocb", "jit_tp_mlp")
    assert total(found, "weight_bytes") == 12 * 4096 * 4096 * 2
    assert total(found, "flops", kernel_class="weights") == 12 * 2 * 64 * 4096 * 4096
    assert total(found, "bytes_accessed", class_detail="collective") == 6 * 2 * 64 * 4096 * 2


def test_products_have_the_operations_of_their_matrices_however_they_are_computed() -> None:
    # a step of one token: two operations for each weight of two bytes
    for capture in ("decode", "serve", "cublas_nocb"):
        assert total(captured_rows(capture, "jit_decode_step"), "flops", kernel_class="weights") == 735_051_776


@pytest.mark.parametrize("capture", ["decode", "decode_scan_nocb", "train", "sharded_nocb"])
def test_parts_are_parts_of_the_whole(capture: str) -> None:
    index = index_dump(FIXTURES / capture / "xla_dump")
    for number in index.numbers:
        for row in instruction_facts(index.load(number)).to_pylist():
            parts = row["weight_bytes"] + row["kv_read_bytes"] + row["kv_write_bytes"]
            assert 0 <= parts <= row["bytes_accessed"]
            assert row["bytes_upper"] is None or row["bytes_upper"] > row["bytes_accessed"]
            assert (row["bytes_upper"] is None) or row["bytes_note"]


def test_the_table_has_the_promised_columns() -> None:
    index = index_dump(FIXTURES / "decode" / "xla_dump")
    number = next(n for n in index.numbers if index.name(n) == "jit_decode_step")
    table = instruction_facts(index.load(number))
    assert table.schema.equals(FACTS)
    assert table.num_rows == 162
    assert set(table["program_id"].to_pylist()) == {number}
    row = next(r for r in table.to_pylist() if r["hlo_instruction"] == "loop_gather_fusion")
    assert row["op_name"] == "jit(decode_step)/kv_gather/gather"
    assert row["source_file"].endswith("workloads.py")
    assert row["source_line"] > 0


def test_a_program_without_a_module_has_no_facts(tmp_path: Path) -> None:
    empty = Program(7, "jit_f", None, (), False, False, ("no module",), tmp_path)
    assert instruction_facts(empty).equals(pa.table({f.name: pa.array([], f.type) for f in FACTS}, schema=FACTS))


KEPT = """%cond (c: (s32[], bf16[8,64], bf16[64,64])) -> pred[] {
  %c = (s32[], bf16[8,64], bf16[64,64]) parameter(0)
  %limit = s32[] constant(4)
  ROOT %less = pred[] compare(%c#0, %limit), direction=LT
}
%body (t: (s32[], bf16[8,64], bf16[64,64])) -> (s32[], bf16[8,64], bf16[64,64]) {
  %t = (s32[], bf16[8,64], bf16[64,64]) parameter(0)
  %one = s32[] constant(1)
  %next = s32[] add(%t#0, %one)
  %dot = bf16[8,64] dot(%t#1, %t#2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %r = (s32[], bf16[8,64], bf16[64,64]) tuple(%next, %dot, %t#2)
}"""


def test_weights_converted_before_a_loop_count_as_stored_in_every_iteration() -> None:
    found = rows(
        module(
            """%x = bf16[8,64] parameter(0)
            %q = s8[64,64] parameter(1)
            %w = bf16[64,64] convert(%q)
            %zero = s32[] constant(0)
            %start = (s32[], bf16[8,64], bf16[64,64]) tuple(%zero, %x, %w)
            ROOT %loop = (s32[], bf16[8,64], bf16[64,64]) while(%start), condition=%cond, body=%body""",
            KEPT,
        )
    )
    assert (found["w"]["kernel_class"], found["w"]["weight_bytes"]) == ("weights", 64 * 64)
    assert found["dot"]["bytes_accessed"] == 2 * 8 * 64 * 2 + 64 * 64 * 2
    assert found["dot"]["weight_bytes"] == 64 * 64


def test_a_module_that_is_not_whole_is_said_to_be() -> None:
    with pytest.raises(HloError, match="the module is not whole"):
        rows(module("%x = (f32[8], f32[8]) parameter(0)\nROOT %k = f32[8] negate(%x#7)"))


def test_large_modules_take_seconds() -> None:
    layers = 4000
    lines = ["%x = f32[8,64] parameter(0)", "%w = f32[64,64] parameter(1)", "%v0 = f32[8,64] negate(%x)"]
    for i in range(layers):
        lines.append(f"%d{i} = f32[8,64] dot(%v{i}, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
        lines.append(f"%a{i} = f32[8,64] add(%d{i}, %v{i})")
        lines.append(f"%v{i + 1} = f32[8,64] tanh(%a{i})")
    body = "\n  ".join(lines[:-1]) + "\n  ROOT " + lines[-1]
    found = parse_module(f"HloModule m\n\nENTRY %main {{\n  {body}\n}}\n")
    start = time.process_time()
    table = instruction_facts(Program(1, "m", found, (), False, False, (), Path()))
    assert time.process_time() - start < 5
    assert table.num_rows == 3 * layers + 1


def test_numbers_that_no_64_bits_hold_are_unknown() -> None:
    found = _array([1, 2**63, None, -(2**63) - 1, 2**63 - 1], pa.int64())
    assert found.to_pylist() == [1, None, None, None, 2**63 - 1]
