"""Sentences on a dump that does not fit: few, whole, and in the right number, however many programs ran."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from hlo_mapping.dump.index import index_dump
from hlo_mapping.dump.program import Program
from hlo_mapping.matching.result import JoinedExecution, LaunchJoin
from nsys_report.executions.notes import join_notes

TEXT = "HloModule {name}\n\nENTRY e {{\n  ROOT p = f32[] parameter(0)\n}}\n"


def found(module: str, number: int | None, program: Program | None = None, fit: float | None = None) -> JoinedExecution:
    return JoinedExecution(module, number, program, "nvtx", 1.0, fit, True, None)


def joined(*executions: JoinedExecution) -> LaunchJoin:
    none = np.zeros(0, int)
    programs = {e.program.number: e.program for e in executions if e.program is not None}
    return LaunchJoin(executions, none, none, (), none, none, none, programs, ())


def notes(folder: Path, *executions: JoinedExecution, **without_work: int) -> tuple[str, ...]:
    for number, name in enumerate(("jit_f", "jit_g"), 1):
        (folder / f"module_000{number}.{name}.sm_9.0a_gpu_after_optimizations.txt").write_text(TEXT.format(name=name))
    return join_notes(joined(*executions), index_dump(folder), without_work)


def test_a_program_that_the_dump_lacks(tmp_path: Path) -> None:
    assert notes(tmp_path, found("jit_h", 9)) == (
        "1 execution of jit_h (program 9): the dump holds no module of that number; another run's dump?",
    )


def test_an_execution_without_a_number_has_none(tmp_path: Path) -> None:
    (note,) = notes(tmp_path, found("jit_h", None))
    assert note.startswith("1 execution of jit_h: ")


def test_many_programs_that_the_dump_lacks_are_one_sentence(tmp_path: Path) -> None:
    executions = [found(f"jit_{number}", number) for number in range(100, 1300) for _ in range(1 + (number == 700))]
    (note,) = notes(tmp_path, *executions)
    assert note == (
        "1,201 executions of 1,200 programs, jit_700 (program 700), jit_100 (program 100), jit_101 (program 101), jit_102 (program 102), "
        "jit_103 (program 103) and 1,195 more: the dump holds no module of those numbers; another run's dump?"
    )


def test_many_programs_that_do_not_fit_are_few_sentences(tmp_path: Path) -> None:
    for number in range(100, 120):
        (tmp_path / f"module_0{number}.jit_f.sm_9.0a_gpu_after_optimizations.txt").write_text(TEXT.format(name="jit_f"))
    said = notes(tmp_path, *(found("jit_f" if number % 2 else "jit_h", number, fit=0.125) for number in range(100, 120)))
    assert said[0] == "1 execution of jit_h (program 100): the dump's module 100 is jit_f; another run's dump?"
    assert "agrees with 12.5 % of the launches" in said[1]
    assert said[4:] == ("16 more programs ran that the dump's modules do not agree with",)


def test_many_programs_that_cannot_be_read_are_few_sentences(tmp_path: Path) -> None:
    (tmp_path / "module_0001.jit_f.sm_9.0a_gpu_after_optimizations.txt").write_text("no HLO")
    whole = index_dump(tmp_path).load(1)
    executions = [found("jit_f", number, replace(whole, number=number)) for number in range(1, 11)]
    said = notes(tmp_path, *executions)
    assert len(said) == 5
    assert said[0].startswith("program jit_f (1): ") and "\n" not in said[0]
    assert said[-1] == "6 more programs of the dump cannot be read whole either"


def test_ranges_without_work_come_in_the_right_number(tmp_path: Path) -> None:
    one, many = notes(tmp_path, jit_a=1, jit_b=2000)
    assert one.startswith("1 annotated execution of jit_a ") and many.startswith("2,000 annotated executions of jit_b ")
