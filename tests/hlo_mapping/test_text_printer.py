"""Modules written as text: reading it again gives an equal module."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_mapping.ir import Computation, Instruction, Module, Operand
from hlo_mapping.shape import Shape
from hlo_mapping.text.parser import parse_module
from hlo_mapping.text.printer import print_instruction, print_module

FILES = sorted((Path(__file__).parents[2] / "fixtures" / "dialects").glob("*/*optimizations.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name[:24]}")
def test_every_dialect_survives_printing(path: Path) -> None:
    module = parse_module(path.read_text(encoding="utf-8", errors="backslashreplace"), str(path))
    text = print_module(module)
    again = parse_module(text, "printed")
    assert again == module
    assert print_module(again) == text


def test_the_printed_form() -> None:
    text = """HloModule m, is_scheduled=true

%f (a: f32[8], b: (s32[], f32[8])) -> f32[8] {
  %b = (s32[], f32[8]{0}) parameter(1)
  %a = f32[8]{0} parameter(0)
  ROOT %r = f32[8]{0} add(%a, %b#1), metadata={op_name="x"}
}, execution_thread="host"

ENTRY %e () -> f32[] {
  ROOT %c = f32[] constant(-1)
}
"""
    assert print_module(parse_module(text)) == text


NAMES = st.from_regex(r"[a-z_][a-z0-9_.\-]{0,8}", fullmatch=True)
PAIR = Shape("tuple", elements=(Shape("pred"), Shape("bf16", (1,))))
SHAPES = st.sampled_from([Shape("f32", (2, 3)), Shape("s4", (8,)), Shape("token"), PAIR])
QUOTED = st.text(st.characters(codec="utf-8", exclude_characters='\\"\r'), max_size=12).map('"{}"'.format)
FLAT = st.from_regex(r"[a-z0-9_=:x>\-]{0,6}", fullmatch=True) | QUOTED
BRACED = st.recursive(FLAT, lambda inner: st.lists(inner, max_size=3).map(lambda parts: "{" + ",".join(parts) + "}"), max_leaves=8)
VALUES = st.lists(BRACED, min_size=1, max_size=3).map("".join)
ATTRIBUTES = st.lists(st.tuples(st.sampled_from(["window", "sharding", "custom_call_target", "odd.name"]), VALUES), max_size=3).map(tuple)


@st.composite
def computations(draw: st.DrawFn, name: str, is_entry: bool) -> Computation:
    made: dict[str, Instruction] = {}
    for made_name in draw(st.lists(NAMES, min_size=1, max_size=6, unique=True)):
        shape, attributes = draw(SHAPES), draw(ATTRIBUTES)
        if not made or draw(st.booleans()):
            literal = draw(st.sampled_from(["1", "{1, 2}", "{...}", "(1, 2)"]))
            made[made_name] = Instruction(made_name, shape, "constant", literal=literal, attributes=attributes)
        else:
            index = st.lists(st.integers(0, 20), max_size=2).map(tuple)
            operands = draw(st.lists(st.builds(Operand, st.sampled_from(sorted(made)), index), max_size=7))
            opcode = draw(st.sampled_from(["add", "custom-call"]))
            made[made_name] = Instruction(made_name, shape, opcode, tuple(operands), attributes=attributes)
    return Computation(name, tuple(made.values()), is_entry, by_name=made)


@st.composite
def modules(draw: st.DrawFn) -> Module:
    parts = (draw(computations("callee", False)), draw(computations("main.1", True)))
    return Module(draw(NAMES), parts, "main.1", attributes=draw(ATTRIBUTES))


@settings(max_examples=150, deadline=None)
@given(modules())
def test_any_module_survives_printing(module: Module) -> None:
    again = parse_module(print_module(module))
    assert again == module
    assert parse_module(print_module(again)) == again


def test_an_instruction_on_one_line() -> None:
    instruction = Instruction("r", Shape("f32", (2,)), "add", (Operand("a"), Operand("t", (1, 0))), None, (("x", "{1}"),), is_root=True)
    assert print_instruction(instruction) == "ROOT %r = f32[2] add(%a, %t#1#0), x={1}"
