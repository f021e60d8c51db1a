"""Streams of launches cut into executions of programs made by hand: what is right can be worked out on paper."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_mapping.dump.program import Program
from hlo_mapping.matching.automaton import Automaton
from hlo_mapping.matching.beam import StreamCutter
from hlo_mapping.matching.schedule import build_schedule
from tests.hlo_mapping.hand_programs import call, copy, cut, kernel, nest, program, readback, tokens_of


def straight(name: str, *kernels: str, number: int = 1) -> Program:
    return program(name, *(kernel(k) for k in kernels), number=number)


A = straight("jit_a", "a_fusion", "shared_fusion", "b_fusion", number=1)
B = straight("jit_b", "c_fusion", "shared_fusion", "d_fusion", number=2)
RUN_A, RUN_B = ["a_fusion", "shared_fusion", "b_fusion"], ["c_fusion", "shared_fusion", "d_fusion"]


def names(found: tuple[object, list[tuple[str, int, int]]]) -> list[tuple[str, int, int]]:
    return found[1]


def test_programs_interleaved_in_uneven_order() -> None:
    stream = RUN_A + RUN_B + RUN_B + RUN_A + RUN_A + RUN_A + RUN_B
    found, executions = cut(stream, A, B)
    assert [e[0] for e in executions] == ["jit_a", "jit_b", "jit_b", "jit_a", "jit_a", "jit_a", "jit_b"]
    assert [e[1:] for e in executions] == [(3 * n, 3 * n + 3) for n in range(7)]
    assert found.steps.tolist() == [0, 1, 2] * 7
    assert all((s.exact, s.extra, s.missing, s.cut_start, s.cut_end) == (3, 0, 0, False, False) for s in found.segments)


def test_back_to_back_without_a_copy_between() -> None:
    _, executions = cut(RUN_A * 50, A, B)
    assert executions == [("jit_a", 3 * n, 3 * n + 3) for n in range(50)]


def test_the_window_cuts_off_the_first_and_the_last() -> None:
    found, executions = cut(["b_fusion", *RUN_A, *RUN_B, "a_fusion", "shared_fusion"], A, B)
    assert executions == [("jit_a", 0, 1), ("jit_a", 1, 4), ("jit_b", 4, 7), ("jit_a", 7, 9)]
    assert [(s.cut_start, s.cut_end) for s in found.segments] == [(True, False), (False, False), (False, False), (False, True)]


def test_launches_of_no_program_are_nobodys() -> None:
    found, executions = cut(["x", *RUN_A, "y", "z", *RUN_B], A, B)
    assert executions == [("jit_a", 1, 4), ("jit_b", 6, 9)]
    assert found.steps.tolist() == [-1, 0, 1, 2, -1, -1, 0, 1, 2]


def test_a_launch_too_many_and_one_missing_leave_the_execution_whole() -> None:
    many = straight("jit_m", *(f"k{i}_fusion" for i in range(9)))
    run = [f"k{i}_fusion" for i in range(9)]
    extra, missing = [*run[:4], "x", *run[4:]], run[:4] + run[5:]
    found, executions = cut(run + extra + missing + run, many)
    assert executions == [("jit_m", 0, 9), ("jit_m", 9, 19), ("jit_m", 19, 27), ("jit_m", 27, 36)]
    assert [(s.extra, s.missing) for s in found.segments] == [(0, 0), (1, 0), (0, 1), (0, 0)]
    assert found.steps.tolist()[9:19] == [0, 1, 2, 3, -1, 4, 5, 6, 7, 8]
    assert found.steps.tolist()[19:27] == [0, 1, 2, 3, 5, 6, 7, 8]


def test_one_program_begins_like_another() -> None:
    short, long = (
        straight("jit_short", "a_fusion", "b_fusion", number=1),
        straight("jit_long", "a_fusion", "b_fusion", "c_fusion", number=2),
    )
    stream = ["a_fusion", "b_fusion", "a_fusion", "b_fusion", "c_fusion", "a_fusion", "b_fusion", "a_fusion", "b_fusion", "c_fusion"]
    expected = [("jit_short", 0, 2), ("jit_long", 2, 5), ("jit_short", 5, 7), ("jit_long", 7, 10)]
    assert cut(stream, short, long)[1] == expected
    assert cut(stream, long, short)[1] == expected


def test_a_program_begins_with_all_of_another_and_ends_with_all_of_a_third() -> None:
    one, two = straight("jit_one", "a_fusion", number=1), straight("jit_two", "b_fusion", number=2)
    both = straight("jit_both", "a_fusion", "b_fusion", number=3)
    # the fewest executions explain it, where the host says nothing
    assert cut(["a_fusion", "b_fusion"] * 3, one, two, both)[1] == [("jit_both", 2 * n, 2 * n + 2) for n in range(3)]
    # and it is as the host says, where it says where executions end
    ends = [False, True, True, True, True, True]
    assert [e[0] for e in cut(["a_fusion", "b_fusion"] * 3, one, two, both, fresh=ends)[1]] == ["jit_one", "jit_two"] * 3
    ends = [False, False, True, False, True, False]
    assert [e[0] for e in cut(["a_fusion", "b_fusion"] * 3, one, two, both, fresh=ends)[1]] == ["jit_both"] * 3


def test_programs_of_one_kernel() -> None:
    fill = program("jit_fill", kernel("loop_broadcast_fusion", grid=4))
    _, executions = cut(["x"] + [t for _ in range(20) for t in ("loop_broadcast_fusion",)], straight("jit_fill", "loop_broadcast_fusion"))
    assert executions == [("jit_fill", n, n + 1) for n in range(1, 21)]
    # the same kernel with other launch dimensions is at best a guess
    found, _ = cut(["loop_broadcast_fusion"], fill)
    assert all(s.exact == 0 for s in found.segments)


def test_identical_programs_are_rivals_and_the_later_compiled_one_is_named() -> None:
    first, second = straight("jit_f", *RUN_A, number=10), straight("jit_g", *RUN_A, number=20)
    found, executions = cut(RUN_A * 2, first, second)
    assert [e[0] for e in executions] == ["jit_g", "jit_g"]
    assert [s.alternatives for s in found.segments] == [((0, 0.0),), ((0, 0.0),)]


def test_a_loop_whose_count_differs_from_execution_to_execution() -> None:
    loop = nest("kWhile", "while.1", condition=[kernel("test_fusion")], body=[kernel("body_fusion")])
    looping = program("jit_loop", kernel("start_fusion"), loop, kernel("end_fusion"))

    def run(trips: int) -> list[object]:
        round_ = ["test_fusion", readback(), "body_fusion"]
        return ["start_fusion", *round_ * trips, "test_fusion", readback(), "end_fusion"]

    found, executions = cut([*run(0), *run(3), *run(1)], looping)
    assert [(start, end) for _, start, end in executions] == [(0, 4), (4, 17), (17, 24)]
    assert all(s.extra == s.missing == 0 for s in found.segments)


def test_branches_taken_and_not() -> None:
    branches = nest("kConditional", "cond.1", branch_0=[kernel("left_fusion")], branch_1=[kernel("right_fusion"), kernel("more_fusion")])
    choosing = program("jit_choose", kernel("start_fusion"), branches, kernel("end_fusion"))
    left = ["start_fusion", readback(4), "left_fusion", "end_fusion"]
    right = ["start_fusion", readback(4), "right_fusion", "more_fusion", "end_fusion"]
    found, executions = cut([*left, *right, *left], choosing)
    assert [(start, end) for _, start, end in executions] == [(0, 4), (4, 9), (9, 13)]
    assert all(s.extra == s.missing == 0 for s in found.segments)


def test_no_execution_begins_inside_a_graph_launch() -> None:
    first, second = straight("jit_f", "a_fusion", "b_fusion", number=1), straight("jit_g", "b_fusion", number=2)
    # two launches: the first graph holds a and b, the second graph b
    _, executions = cut(["a_fusion", "b_fusion", "b_fusion"], first, second, graph=[False, True, False])
    assert executions == [("jit_f", 0, 2), ("jit_g", 2, 3)]


def test_a_graph_launch_that_ends_with_a_launch_too_many_still_ends() -> None:
    graph = ([False] + [True] * 9) * 3
    run = [f"k{i}_fusion" for i in range(9)]
    _, executions = cut([*run, "x"] * 3, straight("jit_f", *run), graph=graph)
    assert executions == [("jit_f", 10 * n, 10 * n + 10) for n in range(3)]


def test_several_graph_launches_and_plain_launches_in_one_execution() -> None:
    parts = program(
        "jit_f",
        nest("kCommandBuffer", sequence=[kernel("a_fusion"), kernel("b_fusion")]),
        kernel("c_fusion"),
        nest("kCommandBuffer", sequence=[kernel("d_fusion"), kernel("e_fusion")]),
    )
    run = ["a_fusion", "b_fusion", "c_fusion", "d_fusion", "e_fusion"]
    _, executions = cut(run * 3, parts, graph=[False, True, False, False, True] * 3)
    assert executions == [("jit_f", 5 * n, 5 * n + 5) for n in range(3)]


def test_a_library_call_at_the_seam_goes_where_the_host_saw_the_end() -> None:
    ends = program("jit_f", kernel("a_fusion"), call("kFft", "fft.1"), number=1)
    begins = program("jit_g", call("kFft", "fft.2"), kernel("b_fusion"), number=2)
    stream = ["a_fusion", "regular_fft", "vector_fft", "regular_fft", "vector_fft", "b_fusion"]
    for seam in (2, 3, 4):
        _, executions = cut(stream, ends, begins, fresh=[n == seam for n in range(6)])
        assert executions == [("jit_f", 0, seam), ("jit_g", seam, 6)]


def test_a_host_callback_within_an_execution_does_not_tear_it() -> None:
    run = [f"k{i}_fusion" for i in range(8)]
    fresh = ([False] * 4 + [True] + [False] * 3 + [True] + [False] * 3 + [True] + [False] * 3)[:16]
    _, executions = cut(run * 2, straight("jit_f", *run), fresh=fresh)
    assert executions == [("jit_f", 0, 8), ("jit_f", 8, 16)]


LONG = [f"k{i}_fusion" for i in range(60)]


def test_a_block_of_lost_records_costs_only_what_it_held() -> None:
    stream = LONG * 6
    # from within the second, after step 19, to within the fourth, before step 10
    kept = stream[:80] + stream[190:]
    found, executions = cut(kept, straight("jit_f", *LONG))
    assert [e[1:] for e in executions] == [(0, 60), (60, 80), (80, 130), (130, 190), (190, 250)]
    assert [(s.cut_start, s.cut_end) for s in found.segments] == [
        (False, False),
        (False, True),
        (True, False),
        (False, False),
        (False, False),
    ]
    assert found.steps.tolist() == [n % 60 for n in range(80)] + [n % 60 for n in range(190, 360)]


def test_the_host_tells_whether_a_block_of_lost_records_held_an_end() -> None:
    kept = LONG + LONG[:20] + LONG[30:] + LONG
    one = [(0, 60), (60, 110), (110, 170)]
    two = [(0, 60), (60, 80), (80, 110), (110, 170)]
    for ends, expected in (((60, 110), one), ((60, 80, 110), two)):
        assert [e[1:] for e in cut(kept, straight("jit_f", *LONG), fresh=[n in ends for n in range(170)])[1]] == expected


def test_a_block_lost_within_one_execution_leaves_it_one() -> None:
    found, executions = cut(LONG + LONG[:10] + LONG[50:] + LONG, straight("jit_f", *LONG))
    assert [e[1:] for e in executions] == [(0, 60), (60, 80), (80, 140)]
    assert found.steps.tolist()[60:80] == [*range(10), *range(50, 60)]


def test_a_broken_off_execution_of_one_program_before_one_of_another() -> None:
    other = [f"m{i}_fusion" for i in range(60)]
    found, executions = cut(LONG + LONG[:30] + other, straight("jit_f", *LONG), straight("jit_g", *other, number=2))
    assert executions == [("jit_f", 0, 60), ("jit_f", 60, 90), ("jit_g", 90, 150)]
    assert found.segments[1].cut_end


def test_settled_executions_are_copied_to_other_streams_too() -> None:
    alphabet, codes = tokens_of(RUN_A * 4 + RUN_B * 4)
    cutter = StreamCutter([Automaton(build_schedule(p), alphabet) for p in (A, B)])
    outside = np.zeros(len(codes), bool)
    once, again = cutter.cut(codes, outside), cutter.cut(codes, outside)
    assert once.segments == again.segments
    assert (once.steps == again.steps).all()
    assert sum(map(len, cutter.patterns.values())) == 2


def test_an_empty_stream_and_no_programs() -> None:
    assert cut([], A)[1] == []
    found, executions = cut(RUN_A)
    assert executions == []
    assert found.steps.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("seed", range(5))
def test_random_mixes_of_programs_are_cut_as_they_were_made(seed: int) -> None:
    rng = np.random.default_rng(seed)
    programs, runs = [], []
    for number in range(8):
        length = int(rng.integers(2, 30))
        run = [f"k{k}_fusion" for k in rng.integers(0, 12, length)] + [f"own{number}_fusion"]
        programs.append(straight(f"jit_{number}", *run, number=number))
        runs.append(run)
    order = rng.integers(0, 8, 60).tolist()
    _, executions = cut([k for number in order for k in runs[number]], *programs)
    assert [e[0] for e in executions] == [f"jit_{number}" for number in order]


def test_copies_only() -> None:
    stage = program("jit_stage", call("kCopy", "copy.1"))
    _, executions = cut([copy(4), *RUN_A, copy(8), *RUN_A], A, stage)
    assert executions == [("jit_stage", 0, 1), ("jit_a", 1, 4), ("jit_stage", 4, 5), ("jit_a", 5, 8)]


def test_whether_the_host_saw_an_execution_begin_and_end() -> None:
    fill = straight("jit_fill", "a_fusion")
    launches = ["x", "a_fusion", "y", "a_fusion", "z"]
    found, executions = cut(launches, fill, fresh=[False, False, False, True, True])
    assert executions == [("jit_fill", 1, 2), ("jit_fill", 3, 4)]
    # the first lies in the middle of something else
    assert [s.seen for s in found.segments] == [False, True]
    assert [s.seen for s in cut(launches, fill)[0].segments] == [None, None]
