"""The fewest bytes of whole programs, on paper, and how often their instructions run."""

from __future__ import annotations

from hlo_mapping.facts import module_facts
from hlo_mapping.floor import LARGEST_L2, floor_bytes
from hlo_mapping.launches import launch_counts
from hlo_mapping.text.parser import parse_module


def looped(size: int, trips: int | None) -> str:
    known = f', backend_config={{"known_trip_count":{{"n":"{trips}"}}}}' if trips is not None else ""
    return f"""HloModule m, is_scheduled=true
%cond (c: (s32[], f32[{size}])) -> pred[] {{
  %c = (s32[], f32[{size}]) parameter(0)
  %ci = s32[] get-tuple-element(%c), index=0
  %most = s32[] constant(3)
  ROOT %less = pred[] compare(%ci, %most), direction=LT
}}
%body (b: (s32[], f32[{size}])) -> (s32[], f32[{size}]) {{
  %b = (s32[], f32[{size}]) parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  %w = f32[{size}] get-tuple-element(%b), index=1
  %k = f32[{size}] negate(%w)
  ROOT %t = (s32[], f32[{size}]) tuple(%i, %w)
}}
ENTRY %e (i: s32[], w: f32[{size}]) -> s32[] {{
  %i0 = s32[] parameter(0)
  %w0 = f32[{size}] parameter(1)
  %s = (s32[], f32[{size}]) tuple(%i0, %w0)
  %l = (s32[], f32[{size}]) while(%s), condition=%cond, body=%body{known}
  ROOT %o = s32[] get-tuple-element(%l), index=0
}}
"""


def least(text: str) -> int:
    module = parse_module(text)
    return floor_bytes(module_facts(module, 0).to_pylist(), launch_counts(module))


def test_a_condition_runs_once_more_than_its_body_and_unknown_trips_are_unknown() -> None:
    counts = launch_counts(parse_module(looped(8, 3)))
    assert (counts["k"], counts["less"]) == (3, 4)
    assert launch_counts(parse_module(looped(8, None)))["k"] is None


def test_an_input_that_fits_a_cache_is_needed_once_however_often_a_loop_reads_it() -> None:
    assert 1024 * 4 - 5 < least(looped(1024, 5)) <= 1024 * 4 + 16, "in five parts, each of whole bytes"


def test_an_input_that_fits_no_cache_is_needed_in_each_iteration() -> None:
    size = LARGEST_L2 // 4 + 1
    assert 5 * size * 4 <= least(looped(size, 5)) <= 5 * size * 4 + 64


def test_what_one_kernel_writes_for_another_is_not_needed() -> None:
    text = """HloModule m, is_scheduled=true
    ENTRY %e (p: f32[1000]) -> f32[1000] {
      %p = f32[1000] parameter(0)
      %a = f32[1000] negate(%p)
      %b = f32[1000] exponential(%a)
      ROOT %c = f32[1000] multiply(%a, %b)
    }
    """
    assert least(text) == 2 * 1000 * 4


TABLE = """HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}
ENTRY %e (table: f32[1000,8], moment: f32[1000,8], ids: s32[10,1], g: f32[10,8]) -> (f32[1000,8], f32[1000,8]) {
  %table = f32[1000,8] parameter(0)
  %moment = f32[1000,8] parameter(1)
  %ids = s32[10,1] parameter(2)
  %g = f32[10,8] parameter(3)
  %zero = f32[] constant(0)
  %zeros = f32[1000,8] broadcast(%zero), dimensions={}
  %gradient = f32[1000,8] scatter(%zeros, %ids, %g), SCATTER, to_apply=%add
  %square = f32[1000,8] multiply(GRADIENT, GRADIENT)
  %later = f32[1000,8] add(%moment, %square)
  %root = f32[1000,8] sqrt(%later)
  %step = f32[1000,8] divide(GRADIENT, %root)
  %new = f32[1000,8] subtract(%table, %step)
  ROOT %t = (f32[1000,8], f32[1000,8]) tuple(%new, %later)
}
"""
TABLE = TABLE.replace("SCATTER", "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1")
ROWS = 10 * 8 * 4
"""Bytes of ten rows of eight f32."""


def test_of_a_table_whose_gradient_is_scattered_only_the_touched_rows_are_needed() -> None:
    """Adagrad of 1,000 rows in a step that looks up ten: ten rows of table and moments are read and written, ten gradients are read."""
    assert least(TABLE.replace("GRADIENT", "%gradient")) == 4 * ROWS + ROWS + 10 * 4


def test_a_scattered_gradient_to_which_a_dense_one_is_added_touches_every_row() -> None:
    """A table that is the head as well has a gradient of a product in every row."""
    product = "%d = f32[1000,8] dot(%x, %y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    operands = "%x = f32[1000,4] parameter(4)\n  %y = f32[4,8] parameter(5)"
    dense = TABLE.replace("g: f32[10,8])", "g: f32[10,8], x: f32[1000,4], y: f32[4,8])")
    dense = dense.replace("  %zero =", f"  {operands}\n  {product}\n  %zero =")
    dense = dense.replace("  %square =", "  %both = f32[1000,8] add(%gradient, %d)\n  %square =")
    moved = 4 * 1000 * 8 * 4 + ROWS + 10 * 4 + (1000 * 4 + 4 * 8) * 4
    assert least(dense.replace("GRADIENT", "%both")) == moved
