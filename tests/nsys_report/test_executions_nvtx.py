"""What XLA's ranges say of launches: innermost range, its own thread, trial runs, ranges without work."""

from __future__ import annotations

from nsys_report.executions.nvtx import ModuleRanges, annotate
from tests.nsys_report.launch_samples import activities, ranges


def said(found: ModuleRanges) -> list[tuple[str, int, str] | None]:
    """(module, program, instruction) of each activity, None where it is in no annotated execution."""
    a = found.annotations
    names = [a.instructions[c] if c >= 0 else "" for c in a.instruction.tolist()]
    return [(a.modules[e], a.programs[e], n) if e >= 0 else None for e, n in zip(a.execution.tolist(), names, strict=True)]


def test_the_innermost_thunk_and_its_module_count() -> None:
    nvtx = ranges(
        (0, 100, "XlaModule:#prefix=jit(f),hlo_module=jit_f,program_id=12#"),
        (10, 90, "Thunk:#name=while,hlo_op=while.7#"),
        (20, 30, "Thunk:#name=bhd,bthd->bht,hlo_op=dot.1,unique_hlo_op_id=3#"),
    )
    launched = activities({"start_ns": 25}, {"start_ns": 50}, {"start_ns": 95}, {"start_ns": 150})
    assert said(annotate(launched, nvtx)) == [("jit_f", 12, "dot.1"), ("jit_f", 12, "while.7"), ("jit_f", 12, ""), None]


def test_ranges_of_other_threads_do_not_count() -> None:
    nvtx = ranges((0, 100, "XlaModule:#hlo_module=jit_f,program_id=1#", 8), (0, 100, "XlaModule:#hlo_module=jit_g,program_id=2#", 9))
    launched = activities({"start_ns": 5, "launch_thread": 9}, {"start_ns": 6})
    assert said(annotate(launched, nvtx)) == [("jit_g", 2, ""), None]


def test_two_ranges_of_one_program_are_two_executions_and_each_device_has_its_own() -> None:
    text = "XlaModule:#hlo_module=jit_f,program_id=1#"
    launched = activities({"start_ns": 5}, {"start_ns": 6, "device_id": 1}, {"start_ns": 25})
    found = annotate(launched, ranges((0, 10, text), (20, 30, text)))
    assert len(set(found.annotations.execution.tolist())) == 3


def test_a_range_without_a_program_is_a_trial_of_the_autotuner() -> None:
    launched = activities({"start_ns": 5}, {"start_ns": 15})
    found = annotate(
        launched, ranges((0, 10, "XlaModule:#hlo_module=gemm_fusion_dot.1#"), (11, 20, "XlaModule:#hlo_module=jit_f,program_id=4#"))
    )
    assert found.annotations.autotuning.tolist() == [True, False]
    assert said(found) == [None, ("jit_f", 4, "")]


def test_a_graph_launch_names_no_instruction() -> None:
    nvtx = ranges((0, 10, "XlaModule:#hlo_module=jit_f,program_id=4#"), (1, 9, "Thunk:#hlo_op=command_buffer_1#"))
    launched = activities({"start_ns": 5, "graph_node_id": 3 << 32}, {"start_ns": 6})
    assert said(annotate(launched, nvtx)) == [("jit_f", 4, ""), ("jit_f", 4, "")]


def test_ranges_that_launched_nothing_are_counted_by_module() -> None:
    text = "XlaModule:#hlo_module=jit_f,program_id=4#"
    found = annotate(activities({"start_ns": 5}), ranges((0, 10, text), (20, 30, text), (40, None, text)))
    assert found.without_work == {"jit_f": 2}


def test_a_range_left_open_at_the_end_still_holds_what_it_launched() -> None:
    found = annotate(activities({"start_ns": 50}), ranges((40, None, "XlaModule:#hlo_module=jit_f,program_id=4#")))
    assert said(found) == [("jit_f", 4, "")]


def test_a_launch_that_nobody_recorded_is_in_no_range() -> None:
    launched = activities({"start_ns": 5, "launch_thread": None, "launch_start_ns": None, "launch_end_ns": None, "launch_api": None})
    assert said(annotate(launched, ranges((0, 10, "XlaModule:#hlo_module=jit_f,program_id=4#")))) == [None]


def test_a_range_without_number_is_of_the_only_program_of_its_name() -> None:
    """Executables that were loaded from a cache carry no module; with the dump's names their ranges say as much as others."""
    launched = activities({"start_ns": 5}, {"start_ns": 15}, {"start_ns": 25})
    nvtx = ranges(
        (0, 10, "XlaModule:#hlo_module=jit_f#"),
        (11, 20, "XlaModule:#hlo_module=gemm_fusion_dot.3#"),
        (21, 30, "XlaModule:#hlo_module=jit_g,program_id=2#"),
    )
    found = annotate(launched, nvtx, {"jit_f": (7,)})
    assert said(found) == [("jit_f", 7, ""), None, ("jit_g", 2, "")]
    assert found.annotations.autotuning.tolist() == [False, True, False]


def test_ranges_without_any_number_say_nothing_where_the_dump_does_not_tell() -> None:
    """Neither whose executions they are, nor that they are the autotuner's."""
    launched = activities({"start_ns": 5}, {"start_ns": 15})
    nvtx = ranges((0, 10, "XlaModule:#hlo_module=jit_f#"), (11, 20, "XlaModule:#hlo_module=jit_g#"))
    for dumped in (None, {"jit_f": (7, 8)}):
        found = annotate(launched, nvtx, dumped)
        assert said(found) == [None, None]
        assert not found.annotations.autotuning.any()


def test_numbers_too_long_for_a_program() -> None:
    launched = activities({"start_ns": 5}, {"start_ns": 15})
    nvtx = ranges((0, 10, f"XlaModule:#hlo_module=jit_f,program_id={'9' * 20}#"), (11, 20, "XlaModule:#hlo_module=jit_g,program_id=2#"))
    assert said(annotate(launched, nvtx)) == [None, ("jit_g", 2, "")]
