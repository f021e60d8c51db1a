"""HLO text of every dialect, read into values."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_mapping.ir import Alias, Instruction, Module, Operand
from hlo_mapping.shape import Layout, Shape
from hlo_mapping.text import slow_path
from hlo_mapping.text.attributes import mlir_attributes
from hlo_mapping.text.lexer import INSTRUCTION
from hlo_mapping.text.parser import parse_module
from hlo_mapping.text.source import SourceText

DIALECTS = Path(__file__).parents[2] / "fixtures" / "dialects"
FILES = sorted(DIALECTS.glob("*/*optimizations.txt"))


def read(path: Path) -> Module:
    return parse_module(path.read_text(encoding="utf-8", errors="backslashreplace"), str(path))


def find(directory: str, pattern: str) -> Module:
    return read(next((DIALECTS / directory).glob(f"module_{pattern}_gpu_after_optimizations.txt")))


def entry(body: str, before: str = "") -> Module:
    lines = "".join(f"  {line}\n" for line in body.splitlines())
    return parse_module(f"HloModule m\n\n{before}ENTRY %main (p: f32[8]) -> f32[8] {{\n{lines}}}\n")


def only(line: str) -> Instruction:
    """The instruction on a line, read with two parameters p and q before it."""
    return entry(f"%p = f32[8]{{0}} parameter(0)\n%q = (f32[8], s32[]) parameter(1)\n{line}").entry.instructions[-1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name[:24]}")
def test_every_instruction_of_every_release_is_read(path: Path) -> None:
    text = path.read_text(encoding="utf-8", errors="backslashreplace")
    module = read(path)
    lines = [line for line in text.splitlines() if line.startswith("  ") and " = " in line]
    instructions = [i for c in module.computations for i in c.instructions]
    assert len(instructions) == len(lines)
    assert [i.is_root for i in instructions] == [line.startswith("  ROOT ") for line in lines]
    assert len(module.home) == len(instructions)
    assert all(i.shape.has_known_size for i in instructions)
    assert module.is_scheduled == ("after_optimizations" in path.name)


@pytest.mark.parametrize("path", FILES[::5], ids=lambda path: f"{path.parent.name}-{path.name[:24]}")
def test_reading_step_by_step_finds_what_the_pattern_finds(path: Path) -> None:
    module = read(path)
    source = SourceText(module.text, "again")
    for instruction in (i for c in module.computations for i in c.instructions):
        head = slow_path.instruction_head(source, instruction.offset)
        found = INSTRUCTION.match(module.text, instruction.offset)
        assert found is not None
        assert (head.name, head.shape, head.opcode, head.arguments) == found.group("name", "shape", "opcode", "arguments")
        at, attributes = head.end, []
        while module.text.startswith(",", at):
            pair, at = slow_path.attribute(source, at)
            attributes.append(pair)
        assert tuple(attributes) == instruction.attributes


def test_short_text_without_percent_signs() -> None:
    module = find("odd-0.4.38", "0001.jit_tp_mlp.sm_9.0")
    assert module.name == "jit_tp_mlp"
    assert module.entry_name == "main.25_spmd"
    assert [c.name for c in module.computations] == ["fused_multiply", "add.clone", "async_computation", "main.25_spmd"]
    start = module.instruction("reduce-scatter-start")
    assert start is not None
    assert (start.opcode, start.called, start.operands) == ("async-start", ("async_computation",), (Operand("get-tuple-element.1.0"),))
    assert module.home["reduce-scatter.2"] == "async_computation"
    assert start.backend_config["collective_backend_config"]["is_sync"] is True
    gemm = module.instruction("custom-call.2.0")
    assert gemm is not None
    assert gemm.custom_call_target == "__cublas$gemm"
    assert gemm.shape.at((1,)) == Shape("s8", (786432,), Layout((0,)))
    assert gemm.metadata.source_line == 8


def test_parts_of_tuples_stand_in_operands() -> None:
    module = find("odd-0.12.0.1", "0001.jit_tp_mlp.sm_9.0a")
    call = module.instruction("custom-call.2")
    scatter = module.instruction("reduce-scatter.3")
    assert call is not None and scatter is not None
    assert call.operands == (Operand("cublas-lt-matmul.2", (0,)), Operand("param.2"))
    assert scatter.attribute("replica_groups") == "mesh['axis_0'=4] {'axis_0'}"
    assert scatter.called == ("add.clone",)


def test_lines_of_source_come_from_the_stack_frame_tables() -> None:
    module = find("odd-0.12.0.1", "0001.jit_tp_mlp.sm_9.0a")
    call = module.instruction("custom-call.2")
    assert call is not None
    assert (call.metadata.stack_frame_id, call.metadata.source_file, call.metadata.source_line) == (5, "t3.py", 9)
    assert call.metadata.scheduling_name == "custom-call.2"


def test_aliases_and_roles_of_parameters() -> None:
    module = find("layers-0.12.0.1", "0001.jit_decode_step.sm_9.0a")
    assert module.aliases == (Alias((1,), 9, ()), Alias((2,), 10, ()))
    parameters = module.entry.parameters
    assert [p.parameter_number for p in parameters] == list(range(13))
    assert parameters[9].metadata.op_name == "cache['k']"
    assert parameters[9].literal == "9"


def test_donors() -> None:
    module = parse_module("HloModule m, buffer_donor={ (3, {}), (4, {1, 0}) }\n\nENTRY e {\n  p = f32[] parameter(0)\n}\n")
    assert module.donors == ((3, ()), (4, (1, 0)))


def test_while_and_conditional_call_their_computations_in_order() -> None:
    module = find("odd-0.12.0.1", "6631.jit_eff.sm_9.0a")
    loop = module.instruction("while.9")
    assert loop is not None
    assert loop.called == ("region_1.2", "region_0.1")
    assert loop.backend_config["known_trip_count"] == {"n": "10"}
    branch = next(i for i in module.entry.instructions if i.opcode == "conditional")
    assert branch.called == ("region_4.5", "region_5.6", "region_6.7")


def test_binary_mlir_in_a_backend_config() -> None:
    module = find("odd-0.8.1", "11661.jit_pallas.sm_9.0a")
    call = module.entry.root
    assert call.custom_call_target == "__gpu$xla.gpu.triton"
    assert call.backend_config == {}
    settings = mlir_attributes(call.attribute("backend_config"))
    assert settings["name"] == "my_pallas_kernel"
    assert (settings["grid_x"], settings["debug"]) == ("1", "false")
    assert settings["ir"].startswith("ML\xefR")


def test_select_and_scatter_calls_both_its_computations() -> None:
    module = read(next((DIALECTS / "ops-0.12.0.1").glob("module_2655*before_optimizations.txt")))
    scatter = module.instruction("select_and_scatter.9")
    assert scatter is not None
    assert scatter.called == ("region_0.1", "region_1.2")


def test_excerpts_are_the_lines_that_were_read() -> None:
    module = find("odd-0.12.0.1", "1990.jit_t_float4_e2m1fn.sm_9.0a")
    assert module.excerpt("constant_1_1") == "%constant_1_1 = f32[] constant(2)"
    assert module.excerpt("no such instruction") == ""


@pytest.mark.parametrize(
    ("line", "operands"),
    [
        ("%r = f32[8] negate(%p)", [Operand("p")]),
        ("%r = f32[8] negate(p)", [Operand("p")]),
        ("%r = f32[8] add(f32[8]{0} %p, f32[8]{0:T(8,128)S(1)} %p)", [Operand("p"), Operand("p")]),
        ("%r = s32[] get-tuple-element((f32[8], s32[]) %q), index=1", [Operand("q")]),
        ("%r = f32[8] add(%p, %q#0)", [Operand("p"), Operand("q", (0,))]),
        ("%r = f32[8] copy(%q#1#0#12)", [Operand("q", (1, 0, 12))]),
        ("%r = f32[8] f(%p, %p, %p, %p, %p, /*index=5*/%p, /*index=6*/f32[8] %q)", [*[Operand("p")] * 6, Operand("q")]),
        ("%r = f32[8] fusion(), kind=kLoop", []),
        ("%r = s32[8] iota(), iota_dimension=0", []),
    ],
)
def test_operand_notations(line: str, operands: list[Operand]) -> None:
    instruction = only(line)
    assert list(instruction.operands) == operands
    assert instruction.literal is None


@pytest.mark.parametrize(
    "literal",
    ["5", "-inf", "nan", "{1, 2, 3}", "{...}", "{ { 1, 2 }, { 3, 4 } }", "false", "(1, -2)", "{(1, 2)}", "{\n    {1, 2},\n    {3}\n  }"],
)
def test_constants_of_any_kind(literal: str) -> None:
    instruction = only(f'%r = f32[] constant({literal}), metadata={{op_name="c"}}'.replace("\n  ", "\n"))
    assert instruction.literal == literal
    assert instruction.metadata.op_name == "c"
    assert instruction.operands == ()


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("slice", "{[0:2], [512:1024:2]}"),
        ("dim_labels", "b01f_o01i->b01f"),
        ("replica_groups", "[1,4]<=[4]T(1,0)"),
        ("replica_groups", "mesh['axis_0'=4, 'y'=2] {'axis_0', 'y'}"),
        ("sharding", "{mesh[], [{}, {}]}"),
        ("window", "{size=3x3 pad=1_1x1_1}"),
        ("output_to_operand_aliasing", "{{0}: (2, {})}"),
        ("custom_call_target", '"a, b=\\"{\\", c"'),
        ("backend_config", '{a = "}{\\22", n = 1 : i32}'),
        ("frontend_attributes", '{xla.sdy.meshes={empty_mesh = #sdy.mesh<[]>},b="}"}'),
        ("never_seen_before", "what(ever) {is} [here]"),
        ("backend_config", "{" * 30 + '"k":1' + "}" * 30),
    ],
)
def test_attribute_values_are_kept_as_written(name: str, raw: str) -> None:
    instruction = only(f"%r = f32[8] custom-call(%p), {name}={raw}, dimensions={{0}}")
    assert instruction.attributes == ((name, raw), ("dimensions", "{0}"))


def test_unknown_opcodes_are_kept() -> None:
    assert only("%r = f32[8] never-seen-2_start(%p)").opcode == "never-seen-2_start"


def test_deep_tuples_are_read_though_no_pattern_follows_them() -> None:
    shape = "(" * 40 + "f32[8]{0:T(8)}" + ")" * 40
    instruction = only(f"%r = {shape} tuple(%p)")
    assert instruction.shape.text() == shape
    assert instruction.operands == (Operand("p"),)


def test_an_execution_thread_stands_behind_the_brace() -> None:
    module = entry("%p = f32[] parameter(0)", before='%f (x: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n}, execution_thread="host"\n\n')
    assert module.by_name["f"].suffix == ', execution_thread="host"'


def test_names_behind_closing_braces_and_comments_are_no_content() -> None:
    module = parse_module("// made by hand\nHloModule m // so\n\nENTRY e {\n  // the only one\n  p = f32[] parameter(0) // zero\n} // e\n")
    assert module.entry.suffix == ""
    assert [i.name for i in module.entry.instructions] == ["p"]


def test_a_root_need_not_stand_last() -> None:
    module = entry("ROOT %a = f32[] parameter(1)\n%b = f32[] parameter(0)")
    assert module.entry.root.name == "a"
    assert [p.name for p in module.entry.parameters] == ["b", "a"]


def test_text_with_carriage_returns() -> None:
    module = parse_module("HloModule m\r\n\r\nENTRY e {\r\n  p = f32[] parameter(0)\r\n}\r\n")
    assert module == parse_module("HloModule m\n\nENTRY e {\n  p = f32[] parameter(0)\n}\n")
