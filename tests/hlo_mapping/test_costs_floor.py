"""The fewest bytes of whole programs, on paper, and how often their instructions run."""

from __future__ import annotations

from hlo_mapping.costs.floor import LARGEST_L2, floor_bytes
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
    return floor_bytes(module, launch_counts(module))


def test_a_condition_runs_once_more_than_its_body_and_unknown_trips_are_unknown() -> None:
    counts = launch_counts(parse_module(looped(8, 3)))
    assert (counts["k"], counts["less"]) == (3, 4)
    assert launch_counts(parse_module(looped(8, None)))["k"] is None


def test_an_input_that_fits_a_cache_is_needed_once_however_often_a_loop_reads_it() -> None:
    assert 1024 * 4 <= least(looped(1024, 5)) <= 1024 * 4 + 16


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
