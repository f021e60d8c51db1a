"""A sample of the cases that `python -m tests.fuzz` makes without end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.cases import run_case
from tests.fuzz.judge import outcome

SAMPLE = range(0, 60)


@pytest.mark.parametrize("number", SAMPLE)
def test_a_report_or_one_clear_message(number: int, tmp_path: Path) -> None:
    case = run_case(number, tmp_path)
    assert case.wrong == "", f"{case.fixture}: {'; '.join(case.done)}"


def test_the_sample_holds_reports_and_messages(tmp_path: Path) -> None:
    found = []
    for number in range(100, 112):
        folder = tmp_path / str(number)
        folder.mkdir()
        found.append(run_case(number, folder).message != "")
    assert True in found and False in found


def test_the_judge_sees_what_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("tests.fuzz.judge.analyze", fails)
    assert outcome(tmp_path, None).wrong == "ZeroDivisionError: division by zero"
