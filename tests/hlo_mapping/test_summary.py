"""What a program is in figures, on the decoder's dump: sizes from the model's shapes, on paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_mapping.dump.index import index_dump
from hlo_mapping.dump.program import Program
from hlo_mapping.summary import ProgramSummary, summarize
from hlo_mapping.text.parser import parse_module

LAYER = 2048 * 2048 * 2 + 2 * 2048 * 1024 + 3 * 2048 * 6144
"""Values in the projections of one layer: q and o, k and v, gate, up and down."""
NORMS = 13 * 2048
VOCABULARY = 2048 * 32000


@pytest.fixture(scope="module")
def decode(fixture_path: Callable[..., Path]) -> ProgramSummary:
    summary = summarize(index_dump(fixture_path("decode", "xla_dump")).load(21184))
    assert summary is not None
    return summary


def test_parameters_by_role(decode: ProgramSummary) -> None:
    """bf16: six layers, the embedding and the head, the norms; six caches of keys and of values, 1024 pages of 16 × 8 × 128."""
    assert decode.bytes_of("weight") == 2 * (6 * LAYER + 2 * VOCABULARY + NORMS)
    assert decode.bytes_of("kv_cache") == decode.donated_bytes == 6 * 2 * 1024 * 16 * 8 * 128 * 2
    assert decode.bytes_of("state") == 0


def test_work_by_kind(decode: ProgramSummary) -> None:
    assert decode.instructions == decode.fusions == 162
    assert decode.calls == 0
    assert {(d.opcode, d.types) for d in decode.dots} == {("dot", "bf16,bf16->f32"), ("dot", "bf16,bf16->bf16")}


def test_scratch_memory(decode: ProgramSummary) -> None:
    assert decode.temporary_bytes is not None
    assert max(t.bytes for t in decode.temporaries) == decode.temporaries[0].bytes <= decode.temporary_bytes


def program(text: str) -> Program:
    module = parse_module(text)
    return Program(1, module.name, module, (), False, False, (), Path("."))


ADD = """HloModule jit_add, is_scheduled=true

ENTRY %main (a: f32[{n}], b: f32[{n}]) -> f32[{n}] {{
  %a = f32[{n}]{{0}} parameter(0)
  %b = f32[{n}]{{0}} parameter(1)
  ROOT %add.1 = f32[{n}]{{0}} {op}(%a, %b)
}}
"""


def test_programs_that_differ_in_shape_alone_have_one_skeleton() -> None:
    small, large, other = (summarize(program(ADD.format(n=n, op=op))) for n, op in ((8, "add"), (1024, "add"), (8, "multiply")))
    assert small is not None and large is not None and other is not None
    assert small.skeleton == large.skeleton != other.skeleton
    assert small.kinds == (("add", 1),)
    assert small.temporary_bytes is None, "no buffer assignment, so nobody knows"


def test_precision_and_algorithm_of_a_dot() -> None:
    text = """HloModule jit_dot, is_scheduled=true

ENTRY %main (a: f32[8,8], b: f32[8,8]) -> f32[8,8] {
  %a = f32[8,8]{1,0} parameter(0)
  %b = f32[8,8]{1,0} parameter(1)
  ROOT %dot.1 = f32[8,8]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}
}
"""
    summary = summarize(program(text))
    assert summary is not None
    (dot,) = summary.dots
    assert (dot.types, dot.precision, dot.algorithm, dot.count) == ("f32,f32->f32", "highest,highest", "", 1)


def test_a_program_that_cannot_be_read_has_no_summary() -> None:
    assert summarize(Program(1, "jit_x", None, (), False, False, ("missing",), Path("."))) is None
