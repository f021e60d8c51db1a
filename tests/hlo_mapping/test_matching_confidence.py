"""How surely a launch is joined, library calls next to each other, annotated executions, and identical programs."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_mapping.dump.program import Program
from hlo_mapping.matching import confidence
from hlo_mapping.matching.align import align
from hlo_mapping.matching.automaton import Automaton
from hlo_mapping.matching.calls import divide, neighboring_calls
from hlo_mapping.matching.plans import plan
from hlo_mapping.matching.schedule import build_schedule
from tests.hlo_mapping.hand_programs import Launch, call, copy, kernel, launched, memset, module, program, tokens_of

LONG = [f"k{i}_fusion" for i in range(40)]


def aligned(found: Program, *launches: Launch) -> tuple[Automaton, np.ndarray, np.ndarray]:
    alphabet, codes = tokens_of(launches)
    automaton = Automaton(build_schedule(found), alphabet)
    return automaton, codes, align(automaton, codes).steps


def judged(found: Program, *launches: Launch, quality: float | None = 1.0, readings: int = 1) -> tuple[list[str | None], list[float]]:
    automaton, codes, steps = aligned(found, *launches)
    counts = np.full(automaton.schedule.end + 1, readings)
    method, sure = confidence.judge(automaton, codes, steps, quality, counts)
    return [confidence.JOIN_METHODS[m] if m >= 0 else None for m in method.tolist()], [round(float(s), 4) for s in sure]


MIXED = program("jit_f", kernel("a_fusion"), call("kGemm", "dot.1"), call("kCopy", "copy.1"), kernel("b_fusion", grid=2))


def test_methods() -> None:
    launches = ["a_fusion", "nvjet_sm90_tst_NNT", copy(4), launched("b_fusion", 2)]
    assert judged(MIXED, *launches) == (["sequence", "order", "order", "sequence"], [0.999, 0.99, 0.99, 0.999])


def test_other_launch_dimensions_leave_only_the_name() -> None:
    methods, sure = judged(MIXED, "a_fusion", "nvjet_sm90_tst_NNT", copy(4), "b_fusion")
    assert methods[-1] == "name"
    assert sure[-1] < 0.5


def test_next_to_a_launch_that_fits_nowhere_a_library_call_is_doubtful() -> None:
    methods, sure = judged(MIXED, "a_fusion", "loop_stray_fusion", "nvjet_sm90_tst_NNT", copy(4), launched("b_fusion", 2))
    assert methods == ["sequence", None, "order", "order", "sequence"]
    assert np.isnan(sure[1])
    assert sure[2] == 0.6
    assert sure[0] == sure[4] == 0.999


def test_a_poor_fit_or_none_makes_everything_doubtful() -> None:
    for quality in (0.7, None):
        _, sure = judged(MIXED, "a_fusion", "nvjet_sm90_tst_NNT", copy(4), launched("b_fusion", 2), quality=quality)
        assert max(sure) < 0.5


def test_several_readings_share_the_confidence() -> None:
    _, sure = judged(MIXED, "a_fusion", "nvjet_sm90_tst_NNT", copy(4), launched("b_fusion", 2), readings=3)
    assert sure == [0.333, 0.33, 0.33, 0.333]


def test_found_by_the_schedule_alone() -> None:
    fused = "%f (p: f32[8]) -> f32[8] {\n  ROOT %p = f32[8]{0} parameter(0)\n}\n"
    hlo = module("%x = f32[8]{0} parameter(0)", "ROOT %a_fusion = f32[8]{0} fusion(%x), kind=kLoop, calls=%f", computations=fused)
    assert judged(program("jit_f", module=hlo), "a_fusion") == (["schedule"], [0.99])


@pytest.mark.parametrize(
    ("exact", "extra", "missing", "launches", "free", "expected"),
    [
        (10, 0, 0, 10, 0, 1.0),
        (7, 1, 0, 9, 1, 7 / 8),
        (7, 0, 2, 9, 2, 7 / 9),
        (8, 1, 0, 10, 1, 1.0),  # one of nine is forgiven
        (8, 1, 1, 9, 0, 8 / 9),
        (0, 0, 0, 4, 4, None),
        (0, 3, 0, 3, 0, 0.0),
    ],
)
def test_fit(exact: int, extra: int, missing: int, launches: int, free: int, expected: float | None) -> None:
    assert confidence.fit(exact, extra, missing, launches, free) == expected


def test_library_calls_side_by_side_are_a_little_less_sure() -> None:
    calls = program("jit_f", kernel("a_fusion"), call("kFft", "fft.1"), call("kFft", "fft.2"), kernel("b_fusion"), call("kFft", "fft.3"))
    _, sure = judged(calls, "a_fusion", "regular_fft", "regular_fft", "b_fusion", "regular_fft")
    assert sure == [0.999, 0.95, 0.95, 0.999, 0.99]


def test_a_library_call_next_to_a_missing_kernel_is_doubtful() -> None:
    calls = program("jit_f", *(kernel(k) for k in LONG), call("kFft", "fft.1"), kernel("b_fusion"))
    _, sure = judged(calls, *LONG[:-1], "regular_fft", "b_fusion")
    assert sure[-2:] == [0.6, 0.999]


def test_which_of_several_alike_is_missing_cannot_be_told() -> None:
    # a a a b: one a is missing; which one is open, for b it is not
    alike = program("jit_f", *(kernel("a_fusion", f"a.{n}") for n in range(3)), kernel("b_fusion"), *(kernel(k) for k in LONG))
    _, sure = judged(alike, "a_fusion", "a_fusion", "b_fusion", *LONG)
    assert sure[:2] == [0.6, 0.6]
    assert set(sure[2:]) == {0.999}
    # the whole run is not in doubt
    assert set(judged(alike, "a_fusion", "a_fusion", "a_fusion", "b_fusion", *LONG)[1]) == {0.999}


def test_a_missing_kernel_whose_neighbors_differ_leaves_them_sure() -> None:
    _, sure = judged(program("jit_f", *(kernel(k) for k in LONG)), *LONG[:7], *LONG[8:])
    assert set(sure) == {0.999}


def test_alike_kernels_missing_at_the_end() -> None:
    alike = program("jit_f", *(kernel(k) for k in LONG), kernel("a_fusion", "a.0"), kernel("a_fusion", "a.1"))
    _, sure = judged(alike, *LONG, "a_fusion")
    assert sure[-1] == 0.6
    assert set(sure[:-1]) == {0.999}


def test_alignment_of_an_annotated_execution_that_is_cut_off() -> None:
    automaton, codes, _ = aligned(program("jit_f", *(kernel(k) for k in LONG)), *LONG[25:])
    found = align(automaton, codes)
    assert found.steps.tolist() == list(range(25, 40))
    assert (found.cut_start, found.cut_end, found.missing) == (True, False, 0)
    found = align(automaton, codes[:5])
    assert found.steps.tolist() == list(range(25, 30))
    assert (found.cut_start, found.cut_end, found.missing) == (True, True, 0)
    # a few missing at the end are cheaper than a second cut
    found = align(automaton, codes[:12])
    assert (found.cut_start, found.cut_end, found.missing) == (True, False, 3)


def test_alignment_over_a_block_of_lost_records() -> None:
    _, _, steps = aligned(program("jit_f", *(kernel(k) for k in LONG)), *LONG[:5], *LONG[35:])
    assert steps.tolist() == [*range(5), *range(35, 40)]


TWO_CALLS = program("jit_f", kernel("a_fusion"), call("kFft", "fft.1"), call("kFft", "fft.2"), kernel("b_fusion"))


def divided(found: Program, launches: list[Launch], pauses: list[float]) -> list[str | None]:
    automaton, codes, steps = aligned(found, *launches)
    names = [s.instruction for s in automaton.schedule.steps]
    return [names[s] for s in divide(automaton, codes, steps, np.array(pauses, float)).tolist()]


def test_the_host_pauses_between_library_calls() -> None:
    launches: list[Launch] = ["a_fusion", "regular_fft", "vector_fft", "regular_fft", "vector_fft", "vector_fft", "b_fusion"]
    assert divided(TWO_CALLS, launches, [-1, 9000, 1000, 9000, 1000, 1000, 5000])[1:6] == ["fft.1"] * 2 + ["fft.2"] * 3
    assert divided(TWO_CALLS, launches, [-1, 9000, 1000, 1000, 1000, 9000, 5000])[1:6] == ["fft.1"] * 4 + ["fft.2"]


def test_within_a_graph_no_pause_is_known_and_nothing_changes() -> None:
    launches: list[Launch] = ["a_fusion", "regular_fft", "vector_fft", "b_fusion"]
    automaton, codes, steps = aligned(TWO_CALLS, *launches)
    assert (divide(automaton, codes, steps, np.full(4, -1.0)) == steps).all()


def test_a_helper_does_not_begin_a_call_however_long_the_pause() -> None:
    products = program("jit_f", call("kGemm", "dot.1"), call("kGemm", "dot.2"))
    launches: list[Launch] = ["nvjet_tst_splitK", "splitKreduce_kernel", "nvjet_tst"]
    assert divided(products, launches, [-1, 30_000, 20_000]) == ["dot.1", "dot.1", "dot.2"]


def test_a_memset_goes_with_the_call_that_follows() -> None:
    attention = program("jit_f", call("kCuDnn", "sdpa.1"), call("kCuDnn", "sdpa.2"))
    launches: list[Launch] = [memset(8), "cudnn_sdpa_sm80", memset(64), memset(4), "cudnn_sdpa_sm90"]
    assert divided(attention, launches, [-1, 70_000, 16_000, 300, 25_000]) == ["sdpa.1"] * 2 + ["sdpa.2"] * 3


def test_runs_of_calls_and_what_ends_them() -> None:
    automaton, _codes, steps = aligned(TWO_CALLS, "a_fusion", "regular_fft", "vector_fft", "b_fusion")
    assert neighboring_calls(automaton, steps) == ([(1, 3)] if steps[1] != steps[2] else [])
    one = program("jit_f", kernel("a_fusion"), call("kFft", "fft.1"), kernel("b_fusion"))
    automaton, _, steps = aligned(one, "a_fusion", "regular_fft", "vector_fft", "b_fusion")
    assert neighboring_calls(automaton, steps) == []


def test_programs_that_launch_the_same_share_one_plan() -> None:
    alphabet, _ = tokens_of(["a_fusion"])
    one, two, other = (
        program("jit_f", kernel("a_fusion", "a.1"), number=3),
        program("jit_f", kernel("a_fusion", "a.9"), number=7),
        program("jit_g", kernel("b_fusion"), number=5),
    )
    plans = plan([one, two, other, program("jit_nothing", number=9)], alphabet)
    assert [(p.program.number, p.identical) for p in plans.plans] == [(7, (("jit_f", 3),)), (5, ())]
    assert plans.by_number == {3: 0, 7: 0, 5: 1}
    # each twin keeps the names of its own instructions
    assert plans.instructions[3] == ("a.1",)
    assert plans.instructions[7] == ("a.9",)
    # two answers for the step whose instructions differ; one for what lies outside
    assert plans.readings(plans.plans[0]).tolist() == [2, 1]
    assert plans.readings(plans.plans[1]).tolist() == [1, 1]


def test_twins_that_name_all_alike_are_one_reading() -> None:
    alphabet, _ = tokens_of(["a_fusion"])
    plans = plan([program("jit_f", kernel("a_fusion"), number=n) for n in (1, 2, 3)], alphabet)
    assert plans.readings(plans.plans[0]).tolist() == [1, 1]
    named = plan([program(name, kernel("a_fusion"), number=n) for n, name in enumerate(("jit_f", "jit_g"))], alphabet)
    assert named.readings(named.plans[0]).tolist() == [2, 1]
