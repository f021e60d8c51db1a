"""What a program is expected to launch: thunks as steps, and which may follow which."""

from __future__ import annotations

from hlo_mapping.dump.thunks import Thunk
from hlo_mapping.matching.product_types import multiplied_types
from hlo_mapping.matching.schedule import (
    COPY,
    KERNEL,
    LIBRARY,
    MEMSET,
    READBACK,
    UNROLL_LIMIT,
    VIRTUAL,
    Schedule,
    build_schedule,
)
from tests.hlo_mapping.hand_programs import call, kernel, module, nest, program

FUSED = """\
%f (p: f32[256]) -> f32[256] {
  ROOT %p = f32[256]{0} parameter(0)
}
"""

LOOP = """\
%body (p: (s32[])) -> (s32[]) {
  ROOT %p = (s32[]) parameter(0)
}
%condition (p: (s32[])) -> pred[] {
  ROOT %p = pred[] parameter(0)
}
"""


def kinds(schedule: Schedule) -> list[str]:
    return [s.kind for s in schedule.steps]


def instructions(schedule: Schedule) -> list[str | None]:
    return [s.instruction for s in schedule.steps]


def after(schedule: Schedule, step: int) -> set[int]:
    """Steps that may follow a step (-1: the first ones; the number of steps: the end)."""
    return {target for target, _ in schedule.follow[step + 1]}


def test_a_straight_program_is_a_chain() -> None:
    schedule = build_schedule(program("jit_f", kernel("a_fusion"), call("kGemm", "dot.1"), kernel("b_fusion")))
    assert kinds(schedule) == [KERNEL, LIBRARY, KERNEL]
    # a library call may go on launching; nothing else repeats
    assert [after(schedule, s) for s in (-1, 0, 1, 2)] == [{0}, {1}, {1, 2}, {3}]
    assert schedule.own_names == {"a_fusion", "b_fusion"}
    assert schedule.expected_kernels == 2
    assert schedule.source == "thunk_sequence"


def test_a_loop_of_known_trip_count_is_unrolled_and_its_condition_left_out() -> None:
    text = 'ROOT %while.1 = (s32[]) while(%x), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"3"}}'
    loop = nest("kWhile", "while.1", condition=[kernel("compare_fusion")], body=[kernel("a_fusion"), kernel("b_fusion")])
    schedule = build_schedule(
        program("jit_f", loop, kernel("end_fusion"), module=module("%x = (s32[]) parameter(0)", text, computations=LOOP))
    )
    assert instructions(schedule)[:6] == ["a_fusion", "b_fusion"] * 3
    end = instructions(schedule).index("end_fusion")
    assert after(schedule, 5) == {end}
    # the loop may be a node of a graph instead, which records condition, body and condition again whatever the count; entering costs
    assert kinds(schedule)[6:end] == [VIRTUAL, KERNEL, VIRTUAL, KERNEL, KERNEL, KERNEL, VIRTUAL]
    assert dict(schedule.follow[0]) == {0: 0.0, 6: 0.4}
    assert after(schedule, end - 1) == {end}
    assert not schedule.has_readback


def test_a_loop_of_unknown_trip_count_reads_its_condition_back_and_goes_round() -> None:
    loop = nest("kWhile", "while.1", condition=[kernel("compare_fusion")], body=[kernel("a_fusion")])
    schedule = build_schedule(program("jit_f", loop, kernel("end_fusion")))
    assert kinds(schedule) == [VIRTUAL, KERNEL, READBACK, KERNEL, KERNEL]
    assert after(schedule, 0) == {1}
    assert after(schedule, 2) == {3, 4}  # the body, or out
    assert after(schedule, 3) == {0}  # round
    assert schedule.has_readback
    assert schedule.steps[2].byte_count == 1


def test_a_loop_too_long_to_unroll_goes_round_instead() -> None:
    trips = UNROLL_LIMIT + 1
    text = f'ROOT %while.1 = (s32[]) while(%x), condition=%condition, body=%body, backend_config={{"known_trip_count":{{"n":"{trips}"}}}}'
    loop = nest("kWhile", "while.1", condition=[], body=[kernel("a_fusion")])
    schedule = build_schedule(program("jit_f", loop, module=module("%x = (s32[]) parameter(0)", text, computations=LOOP)))
    assert kinds(schedule) == [VIRTUAL, READBACK, KERNEL]


def test_branches_part_after_the_selector_and_meet_again() -> None:
    branches = nest("kConditional", "cond.1", branch_0=[kernel("a_fusion")], branch_1=[kernel("b_fusion"), kernel("c_fusion")])
    schedule = build_schedule(program("jit_f", branches, kernel("end_fusion")))
    assert kinds(schedule) == [READBACK, KERNEL, KERNEL, KERNEL, KERNEL]
    assert after(schedule, 0) == {1, 2, 4}  # either branch; neither is possible at a price
    assert dict(schedule.follow[1])[4] > 1.0
    assert after(schedule, 1) == {4}
    assert after(schedule, 3) == {4}


def test_an_empty_branch_costs_nothing() -> None:
    branches = nest("kConditional", "cond.1", branch_0=[], branch_1=[kernel("b_fusion")])
    schedule = build_schedule(program("jit_f", branches, kernel("end_fusion")))
    assert dict(schedule.follow[1])[2] == 0.0


def test_within_a_graph_a_branch_may_go_unseen() -> None:
    branches = nest("kConditional", "cond.1", branch_0=[kernel("a_fusion")], branch_1=[kernel("b_fusion")])
    schedule = build_schedule(program("jit_f", nest("kCommandBuffer", sequence=[branches]), kernel("end_fusion")))
    assert dict(schedule.follow[1])[3] < 0.5


def test_wrappers_launch_what_is_inside_them_and_waits_nothing() -> None:
    schedule = build_schedule(
        program(
            "jit_f",
            nest("kCommandBuffer", "command_buffer_1", sequence=[kernel("a_fusion")]),
            nest("kAsyncStart", "start.1", sequence=[call("kAllReduce", "all-reduce.1")]),
            call("kAsyncDone", "done.1"),
            call("kWaitForStreams", "wait"),
            nest("kSequential", "solve.1", sequence=[Thunk(None, "kCopy"), call("kTriangularSolve", "solve.1")]),
        )
    )
    assert kinds(schedule) == [KERNEL, LIBRARY, COPY, LIBRARY]
    assert instructions(schedule) == ["a_fusion", "all-reduce.1", "solve.1", "solve.1"]


def test_copies_and_memsets_know_their_sizes() -> None:
    hlo = module(
        "%x = f32[256]{0} parameter(0)",
        "%copy.1 = f32[256]{0} copy(%x)",
        "ROOT %fill.2 = f32[16]{0} fusion(), kind=kLoop, calls=%f",
        computations=FUSED,
    )
    schedule = build_schedule(program("jit_f", call("kCopy", "copy.1"), call("kMemzero", "fill.2"), call("kCopy", "elsewhere"), module=hlo))
    assert [(s.kind, s.byte_count) for s in schedule.steps] == [(COPY, 1024), (MEMSET, 64), (COPY, None)]


SLICES = """\
%read (p: f32[8,16], i: s32[]) -> f32[1,16] {
  %p = f32[8,16]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %zero = s32[] constant(0)
  ROOT %slice = f32[1,16]{1,0} dynamic-slice(%p, %i, %zero), dynamic_slice_sizes={1,16}
}
%write (p: f32[8,16], u: f32[1,16], i: s32[]) -> f32[8,16] {
  %p = f32[8,16]{1,0} parameter(0)
  %u = f32[1,16]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %zero = s32[] constant(0)
  ROOT %update = f32[8,16]{1,0} dynamic-update-slice(%p, %u, %i, %zero)
}
%solve (p: f32[8,16]) -> (f32[1,16], s8[64]) {
  %p = f32[8,16]{1,0} parameter(0)
  ROOT %custom-call.6 = (f32[1,16]{1,0}, s8[64]{0}) custom-call(%p), custom_call_target="xla.gpu.ext.cub_sort_keys"
}
"""


def test_a_slice_that_runs_as_a_copy_is_its_fusion_and_an_update_writes_the_update() -> None:
    hlo = module(
        "%p = f32[8,16]{1,0} parameter(0)",
        "%i = s32[] parameter(1)",
        "%read.1 = f32[1,16]{1,0} fusion(%p, %i), kind=kLoop, calls=%read",
        "ROOT %write.2 = f32[8,16]{1,0} fusion(%p, %read.1, %i), kind=kLoop, calls=%write",
        computations=SLICES,
    )
    schedule = build_schedule(
        program(
            "jit_f",
            nest("kDynamicSliceFusion", "read.1", sequence=[call("kCopy", "copy.9")]),
            nest("kDynamicSliceFusion", "write.2", sequence=[call("kCopy", "copy.8")]),
            module=hlo,
        )
    )
    # the update's 16 values of 4 bytes, not the whole of the 8 x 16 buffer
    assert [(s.instruction, s.byte_count) for s in schedule.steps if s.instruction == "write.2"] == [("write.2", 64)]
    assert [s.instruction for s in schedule.steps] == ["read.1", "write.2"]


def test_a_library_call_within_a_slice_fusion_keeps_its_own_name() -> None:
    hlo = module(
        "%p = f32[8,16]{1,0} parameter(0)",
        "ROOT %dynamic_slice_fusion = (f32[1,16]{1,0}, s8[64]{0}) fusion(%p), kind=kCustom, calls=%solve",
        computations=SLICES,
    )
    thunk = nest("kDynamicSliceFusion", "dynamic_slice_fusion", sequence=[Thunk(None, "kCustomCall")])
    (step,) = build_schedule(program("jit_f", thunk, module=hlo)).steps
    assert step.instruction == "custom-call.6"
    assert "cub_sort" in step.call


def test_the_passes_of_a_sort_are_parts_of_one_instruction() -> None:
    sort = [call("kCopy", "fusion.3"), kernel("sort_8_1", "fusion.3"), kernel("sort_8_1__1", "fusion.3"), kernel("a_fusion")]
    schedule = build_schedule(program("jit_f", *sort))
    assert [s.part for s in schedule.steps] == [0, 1, 2, 0]


def test_the_same_kernel_twice_in_a_row_for_two_instructions_is_no_part() -> None:
    schedule = build_schedule(program("jit_f", kernel("a_fusion", "a_fusion"), kernel("a_fusion", "a_fusion.1")))
    assert [s.part for s in schedule.steps] == [0, 0]


def test_identical_programs_share_a_signature_whatever_their_instructions_are_called() -> None:
    one = build_schedule(program("jit_f", kernel("a_fusion", "a_fusion.1"), number=1))
    same = build_schedule(program("jit_g", kernel("a_fusion", "a_fusion.7"), number=2))
    wider = build_schedule(program("jit_f", kernel("a_fusion", "a_fusion.1", grid=2), number=3))
    assert one.signature == same.signature != wider.signature


def test_without_thunks_the_scheduled_hlo_is_read() -> None:
    hlo = module(
        "%x = f32[256]{0} parameter(0)",
        "%copy.1 = f32[256]{0} copy(%x)",
        "%add_fusion.3 = f32[256]{0} fusion(%copy.1), kind=kLoop, calls=%f",
        "%view = f32[16,16]{1,0} bitcast(%add_fusion.3)",
        'ROOT %custom-call.2 = (f32[256]{0}, s8[8]{0}) custom-call(%x), custom_call_target="__cublas$lt$matmul"',
        computations=FUSED,
    )
    schedule = build_schedule(program("jit_f", module=hlo))
    assert schedule.source == "scheduled_hlo"
    assert [(s.kind, s.instruction) for s in schedule.steps] == [(COPY, "copy.1"), (KERNEL, "add_fusion.3"), (LIBRARY, "custom-call.2")]
    assert schedule.steps[1].names == {"add_fusion_3"}
    assert schedule.steps[1].grid is None


def test_neither_thunks_nor_hlo_gives_an_empty_schedule() -> None:
    schedule = build_schedule(program("jit_f"))
    assert (schedule.steps, schedule.source) == ((), "none")


def product(operand: str, config: str) -> frozenset[str]:
    hlo = module(
        f"%a = {operand} parameter(0)", f'ROOT %dot.1 = f32[8,8]{{1,0}} custom-call(%a, %a), custom_call_target="__cublas$gemm"{config}'
    )
    found = hlo.instruction("dot.1")
    assert found is not None
    return multiplied_types(found, hlo)


def test_element_types_that_a_product_may_multiply() -> None:
    def precision(text: str) -> str:
        return f', backend_config={{"gemm_backend_config":{{"precision_config":{{{text}}}}}}}'

    assert product("bf16[8,8]{1,0}", "") == {"bf16"}
    assert product("f8e4m3fn[8,8]{1,0}", "") == {"f8"}
    # f32 is rounded to TF32 unless the precision forbids it
    assert product("f32[8,8]{1,0}", "") == {"f32", "tf32"}
    assert product("f32[8,8]{1,0}", precision('"operand_precision":["HIGHEST","HIGHEST"]')) == {"f32"}
    assert product("f32[8,8]{1,0}", precision('"algorithm":"ALG_DOT_TF32_TF32_F32"')) == {"tf32"}
    assert product("f32[8,8]{1,0}", precision('"algorithm":"ALG_DOT_F32_F32_F32"')) == {"f32"}
    assert product("c64[8,8]{1,0}", "") == set()
