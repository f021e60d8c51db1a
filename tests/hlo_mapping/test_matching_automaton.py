"""Which step of a program may launch what, and at what price."""

from __future__ import annotations

import pytest

from hlo_mapping.dump.program import Program
from hlo_mapping.kernel_kinds import kind_of_target
from hlo_mapping.matching.automaton import (
    BEGINS_WITH_HELPER,
    FIRST_MISSING,
    NEXT_MISSING,
    OTHER_DIMENSIONS,
    OTHER_SIZE,
    READY_MADE,
    STRANGE_LIBRARY,
    UNUSUAL_LIBRARY,
    Automaton,
)
from hlo_mapping.matching.schedule import SKIP_COST, build_schedule
from hlo_mapping.matching.tokens import Token
from tests.hlo_mapping.hand_programs import call, copy, kernel, launched, memset, module, nest, program, readback


def bound(found: Program, *tokens: Token) -> Automaton:
    return Automaton(build_schedule(found), tokens)


def test_a_kernel_fits_by_name_and_dimensions() -> None:
    automaton = bound(
        program("jit_f", kernel("a_fusion", grid=4)), launched("a_fusion", 4), launched("a_fusion", 8), launched("b_fusion", 4)
    )
    assert [automaton.accept(0, t) for t in range(3)] == [(0.0, 1), (OTHER_DIMENSIONS, 0), None]
    assert automaton.places(0) == (0,)
    assert automaton.places(1) == ()
    assert automaton.is_hopeless(2)


def test_copies_and_memsets_fit_by_size() -> None:
    hlo = module("%x = f32[256]{0} parameter(0)", "ROOT %copy.1 = f32[256]{0} copy(%x)")
    automaton = bound(program("jit_f", call("kCopy", "copy.1"), module=hlo), copy(1024), copy(512), memset(1024), readback())
    assert [automaton.accept(0, t) for t in range(4)] == [(0.0, 1), (OTHER_SIZE, 0), None, None]


def test_a_kernel_that_xla_ships_ready_made_fits_by_its_dimensions() -> None:
    automaton = bound(
        program("jit_f", kernel("topk", "custom-call.1", grid=20), kernel("a_fusion", grid=20)),
        launched("Run", 20), launched("Run", 21), launched("a_fusion", 20), launched("loop_add_fusion", 20),
        launched("redzone_checker", 20),
    )  # fmt: skip
    assert [automaton.accept(0, t) for t in range(5)] == [(READY_MADE, 1), None, None, None, None]
    # a fusion's kernel goes by its own name only
    assert automaton.accept(1, 0) is None


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("kCublasLtMatmul", "nvjet_sm90_tst_128x8_64x12_2x1_v_bz_NNT", (0.0, 0)),
        ("kGemm", "ampere_bf16_s16816gemm_bf16_64x64", (0.0, 0)),
        ("kGemm", "splitKreduce_kernel", (0.0, 0)),
        ("kGemm", "vector_fft", (UNUSUAL_LIBRARY, 0)),
        ("kConvolution", "cutlass_tensorop_fprop_256x64", (0.0, 0)),
        ("kConvolution", "nchwToNhwcKernel", (0.0, 0)),
        ("kFft", "regular_fft", (0.0, 0)),
        ("kFft", "scal_kernel_val", (0.0, 0)),
        ("kFft", "nvjet_sm90_tst_128x8_64x12_2x1_v_bz_NNT", (UNUSUAL_LIBRARY, 0)),
        ("kCubSort", "DeviceRadixSortOnesweepKernel", (0.0, 0)),
        ("kAllReduce", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", (0.0, 0)),
        ("kCustomCall", "anything_at_all", (0.0, 0)),
        ("kCustomCall", "loop_add_fusion_3", (STRANGE_LIBRARY, 0)),
        ("kGemm", "loop_add_fusion_3", None),
        ("kGemm", "RedzoneAllocatorKernel", None),
    ],
)
def test_library_calls_take_the_kernels_that_such_libraries_launch(kind: str, name: str, expected: tuple[float, int] | None) -> None:
    assert bound(program("jit_f", call(kind, "x.1")), launched(name)).accept(0, 0) == expected


def test_a_custom_call_named_like_its_kernel_fits_exactly() -> None:
    assert bound(program("jit_f", call("kCustomCall", "my_kernel.1")), launched("my_kernel_1")).accept(0, 0) == (0.0, 1)


def solver(target: str) -> Program:
    hlo = module("%x = f32[8,8]{1,0} parameter(0)", f'ROOT %call.1 = f32[8,8]{{1,0}} custom-call(%x), custom_call_target="{target}"')
    return program("jit_f", call("kCustomCall", "call.1"), module=hlo)


def test_the_target_tells_which_routine_a_custom_call_runs() -> None:
    tokens = (launched("getrf_pivot"), launched("batch_eye_kernel"), launched("geqr2_smem"))
    assert [bound(solver("cusolver_getrf_ffi"), *tokens).accept(0, t) for t in range(3)] == [(0.0, 0), (0.0, 0), (UNUSUAL_LIBRARY, 0)]
    assert [bound(solver("cusolver_geqrf_ffi"), *tokens).accept(0, t) for t in range(3)] == [(UNUSUAL_LIBRARY, 0), (0.0, 0), (0.0, 0)]


def test_the_types_of_a_product_tell_which_kernels_are_its() -> None:
    hlo = module(
        "%x = f16[8,8]{1,0} parameter(0)", 'ROOT %dot.1 = f16[8,8]{1,0} custom-call(%x, %x), custom_call_target="__cublas$lt$matmul"'
    )
    tokens = (
        launched("nvjet_sm90_hsh_64x8_NNT"),
        launched("nvjet_sm90_tst_64x8_NNT"),
        launched("splitKreduce_kernel"),
        launched("Kernel2"),
    )
    automaton = bound(program("jit_f", call("kCublasLtMatmul", "dot.1"), module=hlo), *tokens)
    assert [automaton.accept(0, t) for t in range(4)] == [(0.0, 0), (UNUSUAL_LIBRARY, 0), (0.0, 0), (0.0, 0)]


def moved(automaton: Automaton, state: int, token: int) -> dict[int, tuple[float, int]]:
    """Step reached → (cost, kernels missing before it)."""
    return {step: (round(cost, 6), missing) for step, cost, missing, _ in automaton.moves(state, token)}


def test_missing_kernels_cost_most_at_first() -> None:
    automaton = bound(program("jit_f", *(kernel(f"k{i}_fusion") for i in range(6))), *(launched(f"k{i}_fusion") for i in range(6)))
    assert moved(automaton, -1, 0) == {0: (0.0, 0)}
    assert moved(automaton, 0, 2) == {2: (FIRST_MISSING, 1)}
    assert moved(automaton, 0, 4) == {4: (FIRST_MISSING + 2 * NEXT_MISSING, 3)}
    assert moved(automaton, 3, 2) == {}
    assert automaton.finish(5) == (0.0, 0)
    assert automaton.finish(3) == (FIRST_MISSING + NEXT_MISSING, 2)


def test_gaps_beyond_the_budget_are_not_moves() -> None:
    automaton = bound(program("jit_f", *(kernel(f"k{i}_fusion") for i in range(40))), launched("k39_fusion"))
    assert moved(automaton, 0, 0) == {}
    assert automaton.finish(0)[0] == float("inf")
    assert automaton.kernels_between(0, 39) == 38


def test_copies_and_library_calls_may_launch_nothing() -> None:
    automaton = bound(program("jit_f", call("kCopy", "c"), call("kGemm", "g"), kernel("a_fusion")), launched("a_fusion"))
    assert moved(automaton, -1, 0) == {2: (SKIP_COST["copy"] + kind_of_target("__cublas$gemm").skip, 0)}


def test_a_library_call_goes_on_with_its_helpers_for_nothing() -> None:
    tokens = (launched("nvjet_sm90_tst_splitK_NNT"), launched("splitKreduce_kernel"), launched("nvjet_sm90_tst_NNT"))
    automaton = bound(program("jit_f", call("kGemm", "g.1"), call("kGemm", "g.2")), *tokens)
    assert moved(automaton, -1, 0)[0] == (0.0, 0)
    assert moved(automaton, 0, 1)[0] == (0.0, 0)
    # the sum could only be another call's at a price; a second product more likely is one
    assert moved(automaton, 0, 1)[1] == (BEGINS_WITH_HELPER, 0)
    assert moved(automaton, 0, 2)[1] < moved(automaton, 0, 2)[0]


def test_the_condition_of_a_loop_read_back_or_set_within_a_graph() -> None:
    loop = nest("kWhile", "while.1", condition=[], body=[kernel("a_fusion")])
    automaton = bound(program("jit_f", loop), readback(1), readback(4), launched("set_while_condition"))
    step = next(n for n, s in enumerate(automaton.schedule.steps) if s.kind == "readback")
    assert [automaton.accept(step, t) for t in range(3)] == [(0.0, 1), None, (0.0, 1)]


def test_loops_go_round_at_no_price() -> None:
    loop = nest("kWhile", "while.1", condition=[kernel("test_fusion")], body=[kernel("a_fusion")])
    automaton = bound(program("jit_f", loop), launched("test_fusion"), readback(), launched("a_fusion"))
    state, at = -1, []
    for token in (0, 1, 2, 0, 1, 2, 0, 1):
        best = min(automaton.moves(state, token), key=lambda m: m[1])
        assert best[1] == 0.0
        state = best[0]
        at.append(state)
    assert at == [1, 2, 3, 1, 2, 3, 1, 2]
    assert automaton.finish(state) == (0.0, 0)


def test_equal_steps_are_judged_as_one() -> None:
    automaton = bound(program("jit_f", *(kernel("a_fusion", f"a.{i}") for i in range(1000))), launched("a_fusion"))
    assert automaton.places(0) == tuple(range(1000))
    assert len(automaton._accepted) == 1
