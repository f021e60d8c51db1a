"""Outputs never lie on or in inputs, nor on each other; nothing is written but the outputs; what a killed run left goes with the next."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nsys_report.cli.app import run
from nsys_report.scratch import PREFIX, scratch_folder

MOE = ("capture.sqlite", "--xla-dump", "xla_dump")


@pytest.fixture
def at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fixture_path: Callable[..., Path]) -> Path:
    """A folder with a capture and its dump, which is the working directory."""
    shutil.copytree(fixture_path("moe"), tmp_path / "w", copy_function=shutil.copyfile)
    monkeypatch.chdir(tmp_path / "w")
    return tmp_path / "w"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("outputs", "named"),
    [
        pytest.param(["--json", "capture.sqlite"], ["--json", "is an input"], id="on the capture"),
        pytest.param(["--json", "xla_dump/new.json"], ["--json", "lies in the input xla_dump"], id="a new file in the dump"),
        pytest.param(["--csv", "xla_dump/csv"], ["--csv", "lies in the input xla_dump"], id="a folder in the dump"),
        pytest.param(["--json", "capture.sqlite-wal"], ["--json", "lies in the input"], id="as the capture's log"),
        pytest.param(["--json", "r.json", "--markdown", "./r.json"], ["--json", "--markdown", "same file"], id="one file twice"),
        pytest.param(["--json", "d/coverage.csv", "--csv", "d"], ["--json", "--csv", "same file"], id="a file that a folder may get"),
        pytest.param(["--html", "d/x.parquet", "--tables", "d"], ["--html", "--tables", "same file"], id="or of another ending"),
    ],
)
def test_outputs_that_would_lose_something_are_refused(
    outputs: list[str], named: list[str], at_hand: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (at_hand / "d").mkdir()
    before = contents(at_hand)
    assert run([*MOE, *outputs]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert all(word in said.err for word in named)
    assert contents(at_hand) == before


def test_a_hard_link_to_an_input_is_that_input(at_hand: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.link("capture.sqlite", "other.json")
    assert run([*MOE, "--json", "other.json"]) == 2
    assert "is an input" in capsys.readouterr().err


def test_a_file_beside_the_tables_of_one_folder(at_hand: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*MOE, "--json", "out/report.json", "--csv", "out"]) == 1  # there is no folder out yet: said before the work
    (at_hand / "out").mkdir()
    assert run([*MOE, "--json", "out/report.json", "--csv", "out", "--tables", "out"]) == 0
    assert {path.suffix for path in (at_hand / "out").iterdir()} == {".json", ".csv", ".parquet"}


def test_what_a_dead_run_left_is_removed_and_what_a_live_one_holds_is_not(tmp_path: Path) -> None:
    dead = tmp_path / f"{PREFIX}dead"
    dead.mkdir()
    (dead / ".lock").touch()
    (dead / "half").write_text("half")
    mine = tmp_path / ".somebody-elses"
    mine.mkdir()
    with scratch_folder(tmp_path) as live:
        hour_ago = time.time() - 3600
        for folder in (dead, live):
            os.utime(folder, (hour_ago, hour_ago))
        with scratch_folder(tmp_path):
            assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(PREFIX)) == [mine.name]
            assert live.is_dir()
            assert not dead.exists()
    assert [path.name for path in tmp_path.iterdir()] == [mine.name]


def with_log(capture: Path) -> None:
    """Puts the capture into WAL mode with a row that only its log holds."""
    writer = sqlite3.connect(capture)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("PRAGMA wal_autocheckpoint=0")
    writer.execute("INSERT INTO StringIds VALUES (99999999, 'only in the log')")
    writer.commit()
    kept = [(path, path.read_bytes()) for path in (capture, Path(f"{capture}-wal"))]
    writer.close()
    for path, data in kept:
        path.write_bytes(data)
    Path(f"{capture}-shm").unlink(missing_ok=True)


def test_a_capture_with_a_log_is_read_and_nothing_appears_beside_it(at_hand: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_log(at_hand / "capture.sqlite")
    before = contents(at_hand)
    assert "capture.sqlite-wal" in before
    assert run([*MOE]) == 0
    assert "96" in capsys.readouterr().out
    assert contents(at_hand) == before


def test_a_capture_with_a_log_and_no_room_for_a_copy(
    at_hand: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_log(at_hand / "capture.sqlite")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nsys_report.capture.sqlite_checks.shutil.copyfile", full)
    assert run([*MOE]) == 1
    said = capsys.readouterr().err
    assert "write-ahead log" in said
    assert "No space left" in said
    assert "damaged" not in said


def test_a_page_names_no_path(at_hand: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(at_hand / "capture.sqlite"), "--xla-dump", str(at_hand / "xla_dump")]
    assert run([*arguments, "--html", "page.html", "--json", "report.json", "--markdown", "report.md", "--csv", "csv"]) == 0
    capsys.readouterr()
    for path in (at_hand / "page.html", at_hand / "report.json", at_hand / "report.md", *(at_hand / "csv").iterdir()):
        assert str(tmp_path) not in path.read_text(), path.name


@pytest.mark.parametrize("size", ["²", "9" * 5_000, "-3", "wide", "", "0"])
@pytest.mark.parametrize("variable", ["COLUMNS", "LINES"])
def test_a_size_that_is_none(
    variable: str, size: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fixture_path: Callable[..., Path]
) -> None:
    monkeypatch.setenv(variable, size)
    assert run(["check", str(fixture_path("torch_mlp", "capture.sqlite"))]) == 0
    assert "NVIDIA H200" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("diff capture.sqlite capture.sqlite --json capture.sqlite", "--json capture.sqlite is an input"),
        ("diff capture.sqlite capture.sqlite --xla-dump xla_dump --html xla_dump/d.html", "--html xla_dump/d.html lies in the input"),
        ("record capture.sqlite --case a --registry capture.sqlite", "--registry capture.sqlite is an input"),
        ("record capture.sqlite --case a --registry r.jsonl --out r.jsonl", "would write the same file"),
        ("compare capture.sqlite --case a --xla-dump xla_dump --registry xla_dump/r.jsonl", "lies in the input xla_dump"),
        ("check capture.sqlite --assert programs>0 --junit capture.sqlite", "--junit capture.sqlite is an input"),
        ("check capture.sqlite --assert programs>0 --summary capture.sqlite", "--summary capture.sqlite is an input"),
        ("anonymize capture.sqlite xla_dump/out --xla-dump xla_dump", "OUT xla_dump/out lies in the input"),
        ("modules xla_dump --instructions --json xla_dump/m.json", "lies in the dump"),
        ("trend history.jsonl --html history.jsonl", "--html history.jsonl is an input"),
    ],
)
def test_no_command_writes_onto_or_into_what_it_reads(words: str, named: str, at_hand: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (at_hand / "history.jsonl").write_text("")
    before = contents(at_hand)
    assert run(words.split()) == 2
    assert named in capsys.readouterr().err
    assert contents(at_hand) == before
