"""Rare forms of HLO text: what XLA's printer gives for its own tests, people's hand, and text that no compiler wrote.

Growth is judged by counting: a text four times as long must not take more than about four times as many steps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from hlo_mapping.errors import HloError, HloSyntaxError
from hlo_mapping.facts import module_facts
from hlo_mapping.text.calls import DEEPEST, check_depth, expanded_sizes
from hlo_mapping.text.parser import parse_module
from hlo_mapping.text.printer import print_module
from tests.hlo_mapping.hlo_samples import Row

TABLE = """HloModule m, entry_computation_layout={(f32[6]{0})->f32[6]{0}}, origin_recovery_table={
  {"a"} : {"b"},
  "
    HloModule recovery, entry_computation_layout={(f32[6]{0})->f32[6]{0}}

    ENTRY %e.1 (p.1: f32[6]) -> f32[6] {
      ROOT %p.1 = f32[6]{0} parameter(0)
    }
  "
}

ENTRY %e (p: f32[6]) -> f32[6] {
  %p = f32[6]{0} parameter(0)
  ROOT %k = f32[6]{0} negate(%p)
}
"""
CONFIG = """HloModule m

ENTRY %e (p: f32[6]) -> f32[6] {
  %p = f32[6]{0} parameter(0)
  ROOT %k = f32[6]{0} custom-call(%p), custom_call_target="f", backend_config={
    "cfg": {"sizes": [1,
                      2]},
    "name": "x, y"
  }, metadata={op_name="f"}
}
"""
BY_HAND = """HloModule m

%add (a: f32[],
      b: f32[]) -> f32[] {
  a = f32[]  parameter(0)
  b=f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY %e {
  %p = f32[6, 4]{1, 0} parameter(0)
  %z = f32[] constant(0)
  ROOT %k = f32[6]{0} reduce(%p, %z),
    dimensions={1},
    to_apply=%add
}
"""


def facts(text: str) -> dict[str, Row]:
    return {row["hlo_instruction"]: row for row in module_facts(parse_module(text), 0).to_pylist()}


def test_a_headers_tables_may_hold_other_modules_over_many_lines() -> None:
    module = parse_module(TABLE)
    assert [c.name for c in module.computations] == ["e"]
    assert module.attribute("origin_recovery_table").count("\n") == 9


def test_a_configuration_may_go_over_several_lines() -> None:
    call = parse_module(CONFIG).entry.root
    assert call.backend_config == {"cfg": {"sizes": [1, 2]}, "name": "x, y"}
    assert call.metadata.op_name == "f"


def test_what_people_write_by_hand_reads_as_what_they_mean() -> None:
    assert facts(BY_HAND)["k"]["bytes_accessed"] == 6 * 4 * 4 + 4 + 6 * 4


@pytest.mark.parametrize("text", [TABLE, CONFIG, BY_HAND])
def test_each_is_printed_and_read_as_the_same_module(text: str) -> None:
    module = parse_module(text)
    assert parse_module(print_module(module)) == module


@pytest.mark.parametrize("cut", ['"x, y"\n  }', "2]},", "backend_config={"])
def test_a_bracket_that_never_closes_swallows_no_instruction(cut: str) -> None:
    two = CONFIG.replace("ROOT %k", "%k").replace("\n}\n", "\n  ROOT %n = f32[6]{0} negate(%k)\n}\n")
    damaged = two.replace(cut, cut.rstrip("}]=,{") if cut[-1] in "}," else cut + "{")
    assert damaged != two
    with pytest.raises(HloSyntaxError, match="is not closed"):
        parse_module(damaged)


def test_a_call_with_fewer_operands_than_its_computation_takes_is_unknown_and_the_rest_stands() -> None:
    found = facts(
        """HloModule m
        %f (a: f32[8], b: f32[8]) -> f32[8] {
          %a = f32[8]{0} parameter(0)
          %b = f32[8]{0} parameter(1)
          ROOT %s = f32[8]{0} add(%a, %b)
        }
        ENTRY %e (p: f32[8]) -> f32[8] {
          %p = f32[8]{0} parameter(0)
          %k = f32[8]{0} fusion(%p), kind=kLoop, calls=%f
          ROOT %n = f32[8]{0} negate(%k)
        }
        """
    )
    assert (found["k"]["bytes_accessed"], found["k"]["bytes_note"]) == (None, "an operand is missing in the text")
    assert found["n"]["bytes_accessed"] == 64


def test_a_loop_that_carries_the_pair_of_a_recv_done() -> None:
    """Pipelined send and recv: what comes in stays in the loop as (data, token)."""
    found = facts(
        """HloModule m
        %body (b: (f32[8], token[])) -> (f32[8], token[]) {
          %b = (f32[8]{0}, token[]) parameter(0)
          %d = f32[8]{0} get-tuple-element(%b), index=0
          %n = f32[8]{0} negate(%d)
          %t = token[] get-tuple-element(%b), index=1
          ROOT %r = (f32[8]{0}, token[]) tuple(%n, %t)
        }
        %cond (c: (f32[8], token[])) -> pred[] {
          %c = (f32[8]{0}, token[]) parameter(0)
          ROOT %k = pred[] constant(true)
        }
        ENTRY %e () -> f32[8] {
          %a = token[] after-all()
          %s = (f32[8]{0}, u32[], token[]) recv(%a), channel_id=1
          %i = (f32[8]{0}, token[]) recv-done(%s), channel_id=1
          %w = (f32[8]{0}, token[]) while(%i), condition=%cond, body=%body
          ROOT %o = f32[8]{0} get-tuple-element(%w), index=0
        }
        """
    )
    assert found["n"]["bytes_accessed"] == 64


@pytest.mark.parametrize("operation", ['custom-call(), custom_call_target="f"', "constant({...})"])
def test_what_takes_no_operands_and_gives_a_tuple(operation: str) -> None:
    found = facts(
        f"""HloModule m
        ENTRY %e () -> f32[8] {{
          %k = (f32[8]{{0}}, f32[]) {operation}
          %g = f32[8]{{0}} get-tuple-element(%k), index=0
          ROOT %n = f32[8]{{0}} negate(%g)
        }}
        """
    )
    assert found["n"]["bytes_accessed"] == 64


def test_an_array_of_more_bytes_than_there_are_is_unknown_and_the_rest_stands() -> None:
    size = 2**63 - 1
    found = facts(
        f"""HloModule m
        ENTRY %e (p: f32[8]) -> f32[8] {{
          %p = f32[8]{{0}} parameter(0)
          %z = f32[{size},{size}]{{1,0}} broadcast(%p), dimensions={{}}
          ROOT %n = f32[8]{{0}} negate(%p)
        }}
        """
    )
    assert found["z"]["bytes_accessed"] is None
    assert found["z"]["bytes_note"] == "an array of unknown size or type"
    assert found["n"]["bytes_accessed"] == 64


@pytest.mark.parametrize("config", ['{"z":' + "[" * 20_000 + "]" * 20_000 + "}", '{"z":' + "9" * 5_000 + "}"])
def test_a_configuration_that_python_cannot_read_is_unknown(config: str) -> None:
    text = CONFIG[: CONFIG.index("backend_config")] + f"backend_config={config}\n}}\n"
    assert parse_module(text).entry.root.backend_config == {}


def test_a_number_of_thousands_of_digits_is_an_error_with_a_place() -> None:
    with pytest.raises(HloSyntaxError, match="thousands of digits"):
        parse_module(CONFIG.replace("f32[6]{0} parameter", f"f32[{'9' * 5_000}]{{0}} parameter"))


def chain(levels: int, calls: int, opcode: str = "fusion") -> str:
    """Computations that each call the one before so many times."""
    attribute = "kind=kLoop, calls" if opcode == "fusion" else "to_apply"
    lines = ["HloModule m", "%f0 (p: f32[8]) -> f32[8] {", "%p = f32[8]{0} parameter(0)", "ROOT %n = f32[8]{0} negate(%p)", "}"]
    for level in range(1, levels):
        lines += [f"%f{level} (p: f32[8]) -> f32[8] {{", "%p = f32[8]{0} parameter(0)"]
        lines += [f"%c{n} = f32[8]{{0}} {opcode}(%p), {attribute}=%f{level - 1}" for n in range(calls)]
        lines += [f"ROOT %r = f32[8]{{0}} add(%c0, %c{calls - 1})", "}"]
    lines += ["ENTRY %e (p: f32[8]) -> f32[8] {", "%p = f32[8]{0} parameter(0)"]
    return "\n".join([*lines, f"ROOT %k = f32[8]{{0}} {opcode}(%p), {attribute}=%f{levels - 1}", "}", ""])


def test_fusions_that_call_the_one_before_twice_are_left_closed() -> None:
    found = facts(chain(60, 2))
    assert found["k"]["bytes_note"] == "its computations call each other too often to be opened"
    assert found["k"]["bytes_accessed"] is None
    assert facts(chain(10, 2))["k"]["bytes_accessed"] == 64


def test_sizes_of_computations_are_worked_out_once_each() -> None:
    module = parse_module(chain(60, 2))
    sizes = expanded_sizes(module.by_name)
    assert sizes["f0"] == 2 and sizes["f1"] == 4 + 2 * 2 and sizes["f59"] > 2**60


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (chain(3_000, 1), f"more than {DEEPEST} deep"),
        (chain(60, 2, "call"), "more than 10,000,000 instructions"),
        (chain(3, 1).replace("negate(%p)", "fusion(%p), kind=kLoop, calls=%f2"), "calls itself"),
    ],
)
def test_calls_that_no_compiler_makes_are_refused_before_anything_follows_them(text: str, message: str) -> None:
    with pytest.raises(HloError, match=message):
        parse_module(text)


def test_calls_may_nest_as_deep_as_is_followed() -> None:
    module = parse_module(chain(DEEPEST - 1, 1))
    check_depth(module.by_name, "m")
    assert module_facts(module, 0)["bytes_accessed"].to_pylist() == [64]


def steps(work: Callable[[], object]) -> int:
    """Lines of Python that some work runs."""
    count = 0

    def trace(*_: object) -> Callable[..., object]:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except HloError:
        pass
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "text",
    [
        lambda n: CONFIG.replace("\n\nENTRY", "\n\n%zz (a: f32[]" + "->" * n + " x\n\nENTRY"),
        lambda n: CONFIG.replace("\n\nENTRY", "\n" * n + "ENTRY"),
        lambda n: CONFIG.replace('"x, y"', '"x, y"' + "\n" * n),
        lambda n: chain(n // 400, 2),
    ],
    ids=["arrows", "blank lines", "lines in a value", "calls"],
)
def test_steps_grow_with_the_text(text: Callable[[int], str]) -> None:
    small, large = (steps(lambda n=n: parse_module(text(n))) for n in (10_000, 40_000))  # type: ignore[misc]
    assert large < 6 * small + 1_000
