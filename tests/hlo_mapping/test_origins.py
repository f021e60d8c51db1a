"""What optimized instructions came of: layers that share op_name and source told apart by parameters, calls inlined, what is not told."""

from __future__ import annotations

from pathlib import Path

from hlo_mapping import find_origins, index_dump, parse_module, read_before
from hlo_mapping.origins import Origins

FIXTURES = Path(__file__).parents[2] / "fixtures"

BEFORE = """HloModule jit_f

%gelu (x: f32[8]) -> f32[8] {
  %x = f32[8] parameter(0)
  ROOT %tanh.1 = f32[8] tanh(%x), metadata={op_name="tanh" source_file="m.py" source_line=3}
}

ENTRY %main (x.0: f32[8], w.0: f32[8], w.1: f32[8], unused: f32[8], w.2: f32[8]) -> f32[8] {
  %x.0 = f32[8] parameter(0)
  %w.0 = f32[8] parameter(1)
  %w.1 = f32[8] parameter(2)
  %unused = f32[8] parameter(3)
  %w.2 = f32[8] parameter(4)
  %sum = f32[8] add(%w.1, %w.2)
  %zero = f32[8] subtract(%unused, %unused)
  %mul.0 = f32[8] multiply(%x.0, %w.0), metadata={op_name="jit(f)/mul" source_file="m.py" source_line=7}
  %call.0 = f32[8] call(%mul.0), to_apply=%gelu, metadata={op_name="jit(f)/jit(gelu)"}
  %add.0 = f32[8] add(%call.0, %zero), metadata={op_name="jit(f)/add" source_file="m.py" source_line=8}
  %mul.1 = f32[8] multiply(%add.0, %sum), metadata={op_name="jit(f)/mul" source_file="m.py" source_line=7}
  ROOT %add.1 = f32[8] add(%mul.1, %zero), metadata={op_name="jit(f)/add" source_file="m.py" source_line=8}
}
"""
AFTER = """HloModule jit_f, is_scheduled=true

%fused (p.0: f32[8], p.1: f32[8]) -> f32[8] {
  %p.0 = f32[8] parameter(0)
  %p.1 = f32[8] parameter(1)
  %m.0 = f32[8] multiply(%p.0, %p.1), metadata={op_name="jit(f)/mul" source_file="m.py" source_line=7}
  ROOT %t.0 = f32[8] tanh(%m.0), metadata={op_name="jit(f)/jit(gelu)/tanh" source_file="m.py" source_line=3}
}

ENTRY %main (x.0: f32[8], w.0: f32[8], w.1: f32[8], unused: f32[8], w.2: f32[8]) -> f32[8] {
  %x.0 = f32[8] parameter(0)
  %w.0 = f32[8] parameter(1)
  %w.1 = f32[8] parameter(2)
  %unused = f32[8] parameter(3)
  %w.2 = f32[8] parameter(4)
  %sum = f32[8] add(%w.1, %w.2)
  %fusion.0 = f32[8] fusion(%x.0, %w.0), kind=kLoop, calls=%fused
  %copy.0 = f32[8] copy(%fusion.0)
  ROOT %m.1 = f32[8] multiply(%copy.0, %sum), metadata={op_name="jit(f)/mul" source_file="m.py" source_line=7}
}
"""


def origins() -> Origins:
    return find_origins(parse_module(BEFORE), parse_module(AFTER))


def told(found: Origins, name: str) -> list[tuple[list[str], str]]:
    return [([i.name for i in origin.candidates], origin.method) for origin in found.of(name)]


def test_a_fusion_came_of_what_depends_on_the_same_parameters() -> None:
    # both products share op_name and line; the fusion's depends on x.0 and w.0, as mul.0 does; the call's op_name stands before tanh's
    assert told(origins(), "fusion.0") == [(["mul.0"], "parameters"), (["tanh.1"], "parameters")]


def test_parameters_that_a_pass_dropped_leave_the_nearest() -> None:
    # mul.1 depends on `unused` too, through a difference that a pass folded: one parameter away from m.1, where mul.0 lacks w.1 and w.2
    assert told(origins(), "m.1") == [(["mul.1"], "most parameters")]


def test_what_has_no_name_has_no_origin() -> None:
    assert told(origins(), "copy.0") == [] and told(origins(), "not there") == []


def test_what_nothing_tells_apart_stays_several() -> None:
    alike = BEFORE.replace("multiply(%add.0, %sum)", "multiply(%x.0, %w.0)")
    assert told(find_origins(parse_module(alike), parse_module(AFTER)), "fusion.0")[0] == (["mul.0", "mul.1"], "parameters")


def test_computations_that_call_themselves_in_pairs_end() -> None:
    levels = "".join(
        f"%c{n} (x: f32[]) -> f32[] {{\n  %x.{n} = f32[] parameter(0)\n  %a.{n} = f32[] call(%x.{n}), to_apply=%c{n + 1}\n"
        f"  ROOT %b.{n} = f32[] call(%a.{n}), to_apply=%c{n + 1}\n}}\n\n"
        for n in range(18)
    )
    last = "%c18 (x: f32[]) -> f32[] {\n  %x.18 = f32[] parameter(0)\n  ROOT %n.18 = f32[] negate(%x.18)\n}\n\n"
    entry = "ENTRY %main (y: f32[]) -> f32[] {\n  %y = f32[] parameter(0)\n  ROOT %r = f32[] call(%y), to_apply=%c0\n}\n"
    module = parse_module(f"HloModule m\n\n{levels}{last}{entry}")
    assert find_origins(module, module).of("r") == ()


def test_products_of_a_decoder_come_of_those_that_read_the_same_weight() -> None:
    index = index_dump(FIXTURES / "decode/xla_dump")
    program = next(index.load(number) for number in index.numbers if index.name(number) == "jit_decode_step")
    before = read_before(program)
    assert before is not None and program.module is not None
    found, checked = find_origins(before, program.module), 0
    for instruction in program.module.entry.instructions:
        weights = {operand.name for operand in instruction.operands if operand.name.startswith("params__layers")}
        dots = [origin for origin in found.of(instruction.name) if origin.key[0].endswith("/dot_general") and origin.method == "parameters"]
        for origin in dots if len(weights) == 1 == len(dots) else ():
            (dot,) = origin.candidates
            assert weights <= _read(before.entry.by_name, dot.name)
            checked += 1
    assert checked >= 12


def _read(by_name: dict, name: str) -> set[str]:  # type: ignore[type-arg]
    """An instruction's operands, looked through what only changes how they lie."""
    found: set[str] = set()
    for operand in by_name[name].operands:
        source = by_name[operand.name]
        found |= _read(by_name, source.name) if source.opcode in ("reshape", "transpose", "convert", "bitcast") else {source.name}
    return found
