"""One number for one idea on every surface: of all fixtures, of made captures, and of reports with planted contradictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nsys_report.findings.rules.apply import _of_executions
from nsys_report.quantities import QUANTITIES
from nsys_report.reports.build import build_report
from nsys_report.reports.model import Part, Report
from nsys_report.reports.terminal_page import render
from tests.conftest import CAPTURES
from tests.nsys_report.test_report_build import DUMP, found, section, session, step, table
from tests.quantities import counts_are_counts, gains, names_are_defined, one_value, parts_add_up, problems, steps_in_words
from tests.surfaces import Surfaces, surfaces_of_fixture


@pytest.mark.parametrize("name", CAPTURES)
def test_every_surface_of_a_fixture_says_the_same(name: str) -> None:
    assert problems(surfaces_of_fixture(name)) == []


def test_no_two_quantities_have_one_name_and_meaning() -> None:
    names = [quantity.name for quantity in QUANTITIES.values()]
    assert len(set(names)) == len(names)


def planted(**changes: Any) -> Surfaces:
    """The surfaces of a fixture in whose report something was changed."""
    whole = surfaces_of_fixture("decode")
    made = Surfaces(whole.name, whole.analysis)
    made.__dict__["report"] = Report((replace(whole.report.parts[0], **changes),), None, "planted")
    return made


def with_program(**changes: Any) -> Surfaces:
    """The same with a change to the section of its program."""
    part: Part = surfaces_of_fixture("decode").report.parts[0]
    return planted(sections=tuple(replace(s, **changes) if s.module is not None else s for s in part.sections))


def test_a_fact_that_differs_is_found() -> None:
    (program,) = (s for s in surfaces_of_fixture("decode").report.parts[0].sections if s.module is not None)
    facts = tuple(replace(f, value=2.11e6) if f.key == "step_ns" else f for f in program.facts)
    assert "in facts" in "".join(one_value(with_program(facts=facts)))


def test_a_row_that_is_missing_and_a_share_of_another_whole_are_found() -> None:
    (program,) = (s for s in surfaces_of_fixture("decode").report.parts[0].sections if s.module is not None)
    short = tuple(replace(t, rows=t.rows[1:]) if t.key == "classes" else t for t in program.tables)
    assert any("details adds up to" in text for text in parts_add_up(with_program(tables=short)))
    columns = [c.key for c in next(t for t in program.tables if t.key == "budget").columns]
    at = columns.index("share")
    wrong = tuple(
        replace(t, rows=tuple(replace(r, values=(*r.values[:at], 0.745, *r.values[at + 1 :])) for r in t.rows)) if t.key == "budget" else t
        for t in program.tables
    )
    assert any("and called 0.745" in text for text in parts_add_up(with_program(tables=wrong)))


@pytest.mark.parametrize(
    "line", ["103 of 101 kernels are small.", "0.5 copies come back.", "3.2 arguments go up.", "It takes 130.0 % of its step."]
)
def test_counts_that_are_none_and_more_than_all_are_found(line: str) -> None:
    assert list(counts_are_counts(with_program(lines=(line,)))) != []


def test_a_step_of_another_length_and_another_name_are_found() -> None:
    assert list(steps_in_words(with_program(lines=("It waits 1.00 ms of each 2.11 ms step.",)))) != []
    (program,) = (s for s in surfaces_of_fixture("decode").report.parts[0].sections if s.module is not None)
    facts = tuple(replace(f, label="step time") if f.key == "step_ns" else f for f in program.facts)
    assert list(names_are_defined(with_program(facts=facts))) != []


def test_a_gain_that_is_more_than_its_share_is_found() -> None:
    wrong = replace(surfaces_of_fixture("decode").report.parts[0].findings[0], share=0.01)
    assert list(gains(planted(findings=(wrong,)))) != []


def test_what_runs_in_some_executions_has_the_time_of_a_step_and_says_so() -> None:
    """A gather of 100 ns in one of two typical steps: 50 ns of a step, while its launches and bytes are of one that has it."""
    rows = [r for n in range(5) for r in step(n * 10_000, n) if r["instruction_id"] != 1 or n % 2]
    made = section(build_report([session(rows, xla_dump=DUMP)], "test").parts[0], "program:jit_step#1")
    gather = next(row for row in table(made, "instructions").rows if row.values[0] == "gather.2")
    values = dict(zip((c.key for c in table(made, "instructions").columns), gather.values, strict=True))
    assert (values["typical_ns"], values["launches_per_execution"], values["time_per_execution_ns"]) == (50, 1, 100)
    assert values["typical_share"] == pytest.approx(50 / 1450)
    assert "∗" in [mark.sign for mark in gather.marks]


def test_medians_are_not_summed_as_if_they_were_means() -> None:
    """Executions of 1,500 ns, in which every other one takes 900 ns longer in one kernel: classes add up to the kernel time of a step."""
    slow = [r | {"end_ns": r["end_ns"] + 900} if r["instruction_id"] == 2 and n % 2 else r for n in range(9) for r in step(n * 10_000, n)]
    made = section(build_report([session(slow, xla_dump=DUMP)], "test").parts[0], "program:jit_step#1")
    *rows, total = table(made, "classes").records()
    kernel_time = next(f.value for f in made.facts if f.key == "typical_kernel_time_ns")
    assert sum(float(str(r["typical_ns"])) for r in rows) == pytest.approx(total["typical_ns"]) == kernel_time


def test_a_program_without_steps_has_gains_of_an_execution() -> None:
    """7.73 µs of an execution of 10.4 are 74.5 % of that, and of no step of 160."""
    one = found(gain_ns=7730.0, share=0.745, share_of="execution")
    page = render(build_report([session(step(0, 0), xla_dump=DUMP, causes=(one,))], "test"), 120, full=True)
    assert "7.73 µs to gain each time, 74.5 % of an execution" in " ".join(page.split()) and "% of a step" not in page
    assert "1.50 µs an execution of jit_step#1: " in page and "mean over the middle half of 1 execution, without the time" in page


def test_words_of_steps_become_words_of_executions_where_there_are_none() -> None:
    from types import SimpleNamespace

    unsteady: Any = SimpleNamespace(is_steady=False)
    said = _of_executions(unsteady, "It takes 5.00 µs of each 10.4 µs step, 2 copies a step; in each step one more. Steps of others stay.")
    assert said == "It takes 5.00 µs of each 10.4 µs execution, 2 copies an execution; in each execution one more. Steps of others stay."


def test_a_floor_that_arithmetic_raises_says_so() -> None:
    """The products of a training step take longer than the bytes they need: the budget's floor is more than the bytes' time."""
    (program,) = (s for s in surfaces_of_fixture("train").report.parts[0].sections if s.module is not None)
    facts = {fact.key: fact for fact in program.facts}
    assert float(str(facts["floor_ns"].value)) > 1.05 * float(str(facts["floor_measured_ns"].value))
    assert any(line.endswith(f"With arithmetic its floor is {facts['floor_ns'].text}.") for line in program.lines)
