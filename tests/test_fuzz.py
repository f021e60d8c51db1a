"""A sample of the cases that `python -m tests.fuzz` makes without end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.cases import run_case
from tests.fuzz.judge import outcome
from tests.fuzz.rooms import ROOMS, UNFORESEEN, room_fault

SAMPLE = range(0, 30)


@pytest.mark.parametrize("number", SAMPLE)
def test_a_report_or_one_clear_message(number: int, tmp_path: Path) -> None:
    case = run_case(number, tmp_path)
    assert case.wrong == "", f"{case.fixture}: {'; '.join(case.done)}"


def test_the_sample_holds_reports_and_messages(tmp_path: Path) -> None:
    found = set()
    for number in range(100, 112):
        folder = tmp_path / str(number)
        folder.mkdir()
        found.add(run_case(number, folder).message != "")
        if len(found) == 2:
            return
    raise AssertionError("twelve cases gave reports alone, or messages alone")


def test_the_judge_sees_what_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("tests.fuzz.judge.analyze", fails)
    assert outcome(tmp_path, None).wrong == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize(("code", "said"), [(1, f"this program {UNFORESEEN}: KeyError: 3"), (2, "error: no such option")])
def test_the_judge_of_the_other_commands_sees_what_is_wrong(code: int, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(words: list[str]) -> int:
        print(said)
        return code

    monkeypatch.setattr("tests.fuzz.rooms.run", run)
    assert said.rpartition(": ")[2] in room_fault(ROOMS[0], tmp_path, tmp_path, None, tmp_path / "out")
