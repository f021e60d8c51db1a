"""Remedies advise nothing that is done already, or that cannot be done to the program at hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hlo_mapping.text.parser import parse_module
from nsys_report.findings.rules import remedies
from tests.conftest import CAPTURES
from tests.nsys_report.findings_samples import analysis

LOOP = """
HloModule jit_loop{header}

body {{
  p = (s32[], f32[8]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  x = f32[8] get-tuple-element(p), index=1
  ROOT out = (s32[], f32[8]) tuple(next, x)
}}

condition {{
  p = (s32[], f32[8]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  last = s32[] constant(8)
  ROOT less = pred[] compare(n, last), direction=LT
}}

ENTRY main {{
  start = s32[] parameter(0)
  x = f32[8] parameter(1)
  state = (s32[], f32[8]) tuple(start, x)
  ROOT loop = (s32[], f32[8]) while(state), condition=condition, body=body{trip_count}
}}
"""
KNOWN = ', backend_config={"known_trip_count":{"n":"8"}}'
ALIASED = ", input_output_alias={ {1}: (1, {}, may-alias) }"


def step(header: str = "", trip_count: str = KNOWN, flags: tuple[str, ...] = (), types: tuple[str | None, ...] = ()) -> Any:
    module = parse_module(LOOP.format(header=header, trip_count=trip_count), "made up")
    products = [{"dot_type": kind} for kind in types]
    return SimpleNamespace(module=module, flag_values=lambda name: flags, of=lambda kernel_class, detail: products)


def test_only_loops_of_a_known_length_are_unrolled() -> None:
    assert remedies.longer_bodies(step()).startswith("Unroll the loop")
    assert "nroll" not in remedies.longer_bodies(step(trip_count=""))


def test_a_graph_of_the_whole_loop_is_advised_where_it_is_off() -> None:
    assert "=+WHILE" in remedies.longer_bodies(step())
    assert "WHILE" not in remedies.longer_bodies(step(flags=("FUSION", "WHILE")))


def test_what_is_donated_already_is_not_advised_to_be() -> None:
    for said in (remedies.keep_buffers, remedies.state_on_device):
        assert "donate_argnums" in said(step())
        assert "donate_argnums" not in said(step(header=ALIASED))


@pytest.mark.parametrize(
    ("types", "first"),
    [
        (("bf16,bf16->f32", None), "jax.nn.dot_product_attention"),
        (("f32,f32->f32",), "a flash attention kernel"),
        ((), "jax.nn.dot_product_attention"),
    ],
)
def test_cudnns_attention_is_advised_to_types_that_it_takes(types: tuple[str | None, ...], first: str) -> None:
    assert remedies.fused_attention(step(types=types)).startswith(f"Use a fused attention: {first}")


def test_a_call_that_loops_already_is_not_told_to() -> None:
    assert "scan" not in remedies.fewer_calls(step())
    assert "do several steps in one call (a scan)" in remedies.fewer_calls(SimpleNamespace(module=None))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CAPTURES)
def test_no_fixture_is_advised_what_its_header_shows_to_be_done(name: str) -> None:
    made = analysis(name)
    donated = {number for number, program in made.joined.programs.items() if program.module is not None and program.module.aliases}
    advised = [f.slug for f in made.causes if f.program_id in donated and "donate them" in f.remedy and f.slug != "cache-copied"]
    assert advised == [] and not any("autotune_level=4" in f.remedy for f in made.causes)
