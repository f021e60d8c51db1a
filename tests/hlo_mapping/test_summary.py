"""What a program is in figures, on the decoder's dump: sizes from the model's shapes, on paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hlo_mapping.dump.index import index_dump
from hlo_mapping.dump.program import Program
from hlo_mapping.skeleton import skeleton
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
    found = {(d.kind, d.lhs, d.rhs, d.accumulation, d.result): number for d, number in decode.dots}
    assert found == {("dot", "bf16", "bf16", "f32", "f32"): 12, ("dot", "bf16", "bf16", "f32", "bf16"): 13}


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
    assert (small.shapes, large.shapes) == (("f32[8]",) * 3, ("f32[1024]",) * 3)


def test_the_skeleton_is_of_the_program_as_written_where_the_dump_has_it(tmp_path: Path) -> None:
    """The compiler fuses the two sizes differently; what was written is the same but for one dimension."""
    written = """HloModule jit_add, entry_computation_layout={{(f32[{n},4]{{1,0}})->f32[{n}]{{0}}}}

ENTRY main.1 {{
  a.1 = f32[{n},4]{{1,0}} parameter(0), metadata={{op_name="a[{n}]"}}
  s.2 = (f32[{n}]{{0}}, /*index=1*/s32[]) custom-call(a.1), custom_call_target="x"
  ROOT r.3 = f32[{n}]{{0}} get-tuple-element(s.2), index=0
}}
"""
    digests = set()
    for n, op in ((8, "add"), (1024, "multiply")):
        path = tmp_path / f"{n}.txt"
        path.write_text(written.format(n=n))
        compiled = program(ADD.format(n=n, op=op))
        digests.add(skeleton(replace(compiled, files={"before_optimizations.txt": path})))
        digests.add(skeleton(replace(compiled, files={"before_optimizations.txt": path}, name="jit_other")))
    assert len(digests) == 2, "one for each name"


def test_library_calls_are_products_with_types(fixture_path: Callable[..., Path]) -> None:
    """cuBLAS takes the projections of the prefill: bf16 operands, sums in f32."""
    dump = index_dump(fixture_path("serve", "xla_dump"))
    (number,) = (n for n in dump.numbers if dump.name(n) == "jit_prefill_chunk")
    found = summarize(dump.load(number))
    assert found is not None
    assert {(d.lhs, d.rhs, d.accumulation) for d, _ in found.dots if d.kind == "library"} <= {("bf16", "bf16", "f32")}
    assert sum(n for d, n in found.dots if d.kind == "library") == dict(found.kinds).get("call __cublas$lt$matmul", 0)


def test_weights_sliced_out_of_a_stack_are_written_again(fixture_path: Callable[..., Path]) -> None:
    """The scan over layers slices each layer's gate, up and down projection, 2048 × 6144 bf16, out of its stack."""
    dump = index_dump(fixture_path("decode_scan_nocb", "xla_dump"))
    (number,) = (n for n in dump.numbers if dump.name(n) == "jit_decode_step")
    found = summarize(dump.load(number))
    assert found is not None
    large = [w for w in found.staged if w.bytes_written == 2048 * 6144 * 2]
    assert {w.detail for w in large} == {"slice"}
    assert len(large) == 3
    assert {w.source for w in large} == {"bf16[6,2048,6144]", "bf16[6,6144,2048]"}


CONVERT = """HloModule jit_widen, is_scheduled=true

%fused (p: s8[512,256]) -> bf16[512,256] {
  %p = s8[512,256]{1,0} parameter(0)
  ROOT %c = bf16[512,256]{1,0} convert(%p)
}

ENTRY %main (x: bf16[4,512], w: s8[512,256]) -> bf16[4,256] {
  %x = bf16[4,512]{1,0} parameter(0)
  %w = s8[512,256]{1,0} parameter(1)
  %widened = bf16[512,256]{1,0} fusion(%w), kind=kLoop, calls=%fused
  ROOT %dot.1 = bf16[4,256]{1,0} dot(%x, %widened), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def test_a_weight_widened_into_its_own_buffer_is_listed() -> None:
    summary = summarize(program(CONVERT))
    assert summary is not None
    (staged,) = summary.staged
    assert (staged.instruction, staged.detail, staged.source, staged.result) == ("widened", "convert", "s8[512,256]", "bf16[512,256]")
    assert (staged.bytes_read, staged.bytes_written) == (512 * 256, 2 * 512 * 256)


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
    ((dot, number),) = summary.dots
    assert (dot.lhs, dot.rhs, dot.result, dot.precision, dot.algorithm, number) == ("f32", "f32", "f32", "highest", "", 1)


def test_a_program_that_cannot_be_read_has_no_summary() -> None:
    assert summarize(Program(1, "jit_x", None, (), False, False, ("missing",), Path("."))) is None
