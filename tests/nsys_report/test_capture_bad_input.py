"""What is not a capture: one error each, saying what is wrong, what was found and what to do; nothing is written."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from nsys_report.capture import check_capture, open_capture
from nsys_report.errors import InputError
from tests.conftest import FIXTURES
from tests.nsys_report.tiny_capture import KERNEL, NVTX, RUNTIME, build, call, kernel, nvtx

SOUND = FIXTURES / "int8" / "capture.sqlite"


def refused(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        open_capture(path)
    if caught.value.slug not in ("capture-damaged", "capture-schema"):  # these show when the tables are read
        with pytest.raises(InputError, match=re.escape(caught.value.message)):
            check_capture(path)
    assert caught.value.exit_code == 1
    assert caught.value.hint
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message
    return caught.value


def test_no_such_file(tmp_path: Path) -> None:
    error = refused(tmp_path / "nothing.sqlite")
    assert (error.slug, "no such file" in error.message) == ("capture-missing", True)


@pytest.mark.parametrize(("inside", "hint"), [("", "nsys export"), ("a.sqlite", "did you mean"), ("module_0001.jit_f.txt", "--xla-dump")])
def test_a_directory(tmp_path: Path, inside: str, hint: str) -> None:
    if inside:
        (tmp_path / inside).touch()
    error = refused(tmp_path)
    assert error.slug == "capture-directory"
    assert hint in error.hint


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"PAR1....", "Parquet"),
        (b"HloModule jit_f, entry", "HLO text"),
        (b"\0" * 4096, "interrupted"),
        (b"hello, world\n" * 20, "hello"),
        (b"hi", "2 bytes"),
    ],
)
def test_another_kind_of_file(tmp_path: Path, content: bytes, found: str) -> None:
    path = tmp_path / "capture.sqlite"
    path.write_bytes(content)
    error = refused(path)
    assert error.slug == "capture-not-sqlite"
    assert found in error.message


def test_the_profilers_own_report(tmp_path: Path) -> None:
    path = tmp_path / "run.nsys-rep"
    path.write_bytes(b"QUADD" * 100)
    error = refused(path)
    assert error.slug == "capture-not-exported"
    assert "nsys export --type sqlite" in error.hint


def test_an_export_that_never_finished(tmp_path: Path) -> None:
    path = tmp_path / "capture.sqlite"
    path.touch()
    assert refused(path).slug == "capture-empty"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE t (x)")
    database.execute("DROP TABLE t")
    database.close()
    assert refused(path).slug == "capture-empty"


@pytest.mark.parametrize("share", [0.95, 0.5, 0.1, 0.0001])
def test_a_copy_cut_short(tmp_path: Path, share: float) -> None:
    path = tmp_path / "capture.sqlite"
    whole = SOUND.read_bytes()
    path.write_bytes(whole[: max(20, int(len(whole) * share))])
    assert refused(path).slug == "capture-truncated"


def test_pages_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "capture.sqlite"
    content = bytearray(SOUND.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    assert refused(path).slug == "capture-damaged"


def test_one_table_overwritten(tmp_path: Path) -> None:
    path = build(tmp_path / "capture.sqlite", {KERNEL: [kernel(i, i + 1, i) for i in range(1, 500)], RUNTIME: [call(1, 2)]})
    database = sqlite3.connect(path)
    (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (KERNEL,)).fetchone()
    database.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(content)
    assert refused(path).slug == "capture-damaged"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path / "pipe").slug == "capture-unreadable"


def test_paths_that_the_system_does_not_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for name in ("loop", "a" * 5000, "null\0byte"):
        assert refused(tmp_path / name).slug == "capture-unreadable"

    def refuse(self: Path, *_args: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "is_dir", refuse)
    assert refused(SOUND).slug == "capture-unreadable"


def test_another_program_is_writing(tmp_path: Path) -> None:
    path = Path(shutil.copy(SOUND, tmp_path / "capture.sqlite"))
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    try:
        assert refused(path).slug == "capture-locked"
    finally:
        writer.execute("ROLLBACK")
        writer.close()
    open_capture(path)


def test_no_cuda_in_it(tmp_path: Path) -> None:
    error = refused(build(tmp_path / "capture.sqlite", {NVTX: [nvtx(1, 2, "step")], "OSRT_API": [{"start": 1, "end": 2}]}))
    assert error.slug == "capture-no-cuda"
    assert "NVTX_EVENTS, OSRT_API" in error.message
    assert "-t cuda,nvtx" in error.hint


def test_cuda_tables_without_rows(tmp_path: Path) -> None:
    path = build(tmp_path / "capture.sqlite", {KERNEL: [kernel(1, 2)]})
    database = sqlite3.connect(path)
    with database:
        database.execute(f"DELETE FROM {KERNEL}")
    database.close()
    assert refused(path).slug == "capture-no-cuda"


@pytest.mark.parametrize("tables", [["CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"], ["CUPTI_ACTIVITY_KIND_DRIVER", "StringTable"]])
def test_an_nvprof_database(tmp_path: Path, tables: list[str]) -> None:
    path = tmp_path / "old.nvvp"
    make(path, tables)
    assert refused(path).slug == "capture-nvprof"


def test_somebody_elses_database(tmp_path: Path) -> None:
    path = tmp_path / "photos.sqlite"
    make(path, ["albums", "pictures"])
    error = refused(path)
    assert error.slug == "capture-foreign"
    assert "albums, pictures" in error.message


def make(path: Path, tables: list[str]) -> None:
    database = sqlite3.connect(path)
    with database:
        for table in tables:
            database.execute(f"CREATE TABLE {table} (x)")
    database.close()


def test_a_column_nothing_can_stand_in_for(tmp_path: Path) -> None:
    error = refused(build(tmp_path / "capture.sqlite", {KERNEL: [{"end": 2, "deviceId": 0}], RUNTIME: [call(1, 2)]}))
    assert error.slug == "capture-schema"
    assert "start" in error.message and "deviceId" in error.message


def test_a_damaged_parquet_file(tmp_path: Path) -> None:
    (tmp_path / f"{KERNEL}.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError) as caught:
        open_capture(tmp_path)
    assert caught.value.slug == "capture-damaged"


@pytest.mark.parametrize(
    "use", [lambda p: p, lambda p: p.parent / "a b#c?d%e 'f.sqlite", lambda p: p.parent / os.fsdecode(b"n\xff.sqlite")]
)
def test_reading_writes_nothing(tmp_path: Path, use: Callable[[Path], Path]) -> None:
    path = use(tmp_path / "capture.sqlite")
    shutil.copy(SOUND, path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    open_capture(path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_a_database_left_in_wal_mode(tmp_path: Path) -> None:
    path = build(tmp_path / "capture.sqlite", {KERNEL: [kernel(1, 2)], RUNTIME: [call(1, 2)]})
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.close()
    assert open_capture(path).activities.num_rows == 1
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    writer = sqlite3.connect(path)
    with writer:  # a row that is in the log alone
        writer.execute(f"INSERT INTO {KERNEL} SELECT * FROM {KERNEL}")
        writer.execute(f"UPDATE {KERNEL} SET end = end + 1 WHERE rowid = 2")
    assert open_capture(path).activities.num_rows == 2
    writer.close()
