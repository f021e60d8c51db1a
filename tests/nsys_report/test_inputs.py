"""Every form that a capture or a dump comes in gives the figures of the plain one: packed, in an archive, as Arrow files, as a report."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import sqlite3
import stat
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from nsys_report import packed
from nsys_report.capture import open_capture
from nsys_report.capture.sqlite import SqliteSource
from nsys_report.cli.app import run
from nsys_report.errors import InputError
from nsys_report.notebook import analyze

STAND_IN = Path(__file__).with_name("stand_in_nsys.py")


def zstd_stream(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


PACKED = {"gz": gzip.compress, "zst": zstd_stream, "xz": lzma.compress, "bz2": bz2.compress}


@pytest.fixture
def moe(fixture_path: Callable[..., Path]) -> Path:
    return fixture_path("moe")


@pytest.mark.parametrize("ending", PACKED)
def test_a_packed_capture_is_the_capture(ending: str, moe: Path, tmp_path: Path) -> None:
    path = tmp_path / f"capture.sqlite.{ending}"
    path.write_bytes(PACKED[ending]((moe / "capture.sqlite").read_bytes()))
    plain, found = open_capture(moe / "capture.sqlite"), open_capture(path)
    assert found.activities.equals(plain.activities) and found.runtime.equals(plain.runtime)
    assert found.path == path
    assert [p.name for p in tmp_path.iterdir()] == [path.name]  # nothing beside it


def archive(path: Path, moe: Path, names: dict[str, str]) -> Path:
    """A tar or zip archive of files of the fixture by their path in it."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
            for name, source in names.items():
                made.write(moe / source, name)
        return path
    packers = {".gz": gzip.GzipFile, ".xz": lzma.LZMAFile}
    stream = packers[path.suffix](path, "w") if path.suffix in packers else path.open("wb")
    with stream, tarfile.open(fileobj=stream, mode="w") as tar:
        for name, source in names.items():
            tar.add(moe / source, name)
    return path


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tar.xz", "zip"])
def test_an_archive_of_capture_and_dump_gives_the_report(ending: str, moe: Path, tmp_path: Path) -> None:
    files = {f"run/xla_dump/{p.name}": f"xla_dump/{p.name}" for p in (moe / "xla_dump").iterdir()}
    path = archive(tmp_path / f"run.{ending}", moe, {**files, "run/capture.sqlite": "capture.sqlite"})
    plain, found = analyze(moe / "capture.sqlite", moe / "xla_dump"), analyze(path, path)
    assert found.results.classes.equals(plain.results.classes)
    assert found.results.joined_share == plain.results.joined_share == 1.0
    assert found.xla_dump is not None and found.xla_dump.name == "xla_dump"


def test_what_is_unpacked_is_unpacked_once_and_gone_in_the_end(moe: Path, tmp_path: Path) -> None:
    path = tmp_path / "capture.sqlite.gz"
    path.write_bytes(gzip.compress((moe / "capture.sqlite").read_bytes()))
    first = packed.unpacked_capture(path)
    assert packed.unpacked_capture(path) == first and first.parent.parent == Path(tempfile.gettempdir())
    path.write_bytes(gzip.compress((moe / "capture.sqlite").read_bytes() + b"\0" * 4096))
    assert packed.unpacked_capture(path) != first  # another content


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b"no database" * 100), "what it holds is no capture"),
        (gzip.compress(b"SQLite format 3\0" + b"x" * 5000)[:-40], "cannot be unpacked"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 60, "cannot be unpacked"),
        (b"PK\x03\x04" + b"\0" * 60, "cannot be unpacked"),
    ],
    ids=["gzip of no capture", "gzip cut off", "no zstd", "no zip"],  # gzip writes the time of day, which no test is called by
)
def test_what_cannot_be_unpacked(content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "capture.sqlite.gz"
    path.write_bytes(content)
    assert run(["report", str(path)]) == 1
    assert said in capsys.readouterr().err


def test_archives_of_several(moe: Path, tmp_path: Path) -> None:
    several = archive(tmp_path / "two.tar", moe, {"a/capture.sqlite": "capture.sqlite", "b/other.sqlite": "capture.sqlite"})
    with pytest.raises(InputError, match="an archive of several captures"):
        open_capture(several)
    optimized = next(p.name for p in (moe / "xla_dump").iterdir() if p.name.endswith("gpu_after_optimizations.txt"))
    dumps = archive(tmp_path / "dumps.tar", moe, {f"{rank}/{optimized}": f"xla_dump/{optimized}" for rank in (0, 1)})
    with pytest.raises(InputError, match="an archive of 2 dumps"):
        analyze(moe / "capture.sqlite", dumps)
    with pytest.raises(InputError, match="what it holds is no dump of XLA"):
        analyze(moe / "capture.sqlite", several)


def test_members_of_an_archive_stay_in_their_folder(moe: Path, tmp_path: Path) -> None:
    optimized = next(p.name for p in (moe / "xla_dump").iterdir() if p.name.endswith("gpu_after_optimizations.txt"))
    found = packed.unpacked_dump(archive(tmp_path / "evil.tar", moe, {f"../../evil/{optimized}": f"xla_dump/{optimized}"}))
    assert tempfile.gettempdir() in str(found) and ".." not in found.parts and (found / optimized).is_file()


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_arrow_files_read_the_same(kind: str, moe: Path, tmp_path: Path) -> None:
    """arrowdir: a stream a table, ids unsigned, words as codes; files with an index are read too."""
    source = SqliteSource(moe / "capture.sqlite")
    folder = tmp_path / "run_arwdir"
    folder.mkdir()
    with sqlite3.connect(moe / "capture.sqlite") as database:
        for table, columns in source.columns.items():
            rows = database.execute(f'SELECT * FROM "{table}"').fetchall()
            values = {c: pa.array([row[n] for row in rows]) for n, c in enumerate(columns)}
            if "globalPid" in values:
                values["globalPid"] = values["globalPid"].cast(pa.uint64())
            if table == "StringIds":
                values["value"] = values["value"].dictionary_encode()
            made = pa.table(values)
            opens = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
            with opens(str(folder / f"{table}.arrow"), made.schema) as writer:
                writer.write_table(made, max_chunksize=50)
    plain, found = open_capture(moe / "capture.sqlite"), open_capture(folder)
    assert found.activities.equals(plain.activities) and found.nvtx.to_pylist() == plain.nvtx.to_pylist()
    assert found.tables["CUPTI_ACTIVITY_KIND_KERNEL"] == 96


def test_a_damaged_arrow_file(tmp_path: Path) -> None:
    (tmp_path / "CUPTI_ACTIVITY_KIND_KERNEL.arrow").write_bytes(b"no stream of batches")
    with pytest.raises(InputError, match="cannot be read as arrowdir"):
        open_capture(tmp_path)


@pytest.fixture
def nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moe: Path) -> Path:
    """The stand-in for nsys on PATH, which exports the fixture, and a folder of its own for temporary files."""
    path = tmp_path / "bin" / "nsys"
    path.parent.mkdir()
    path.write_text(f"#!{sys.executable}\n{STAND_IN.read_text()}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN_EXPORT", str(moe / "capture.sqlite"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return path


def test_a_report_is_exported_once(nsys: Path, tmp_path: Path, moe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "run.nsys-rep"
    report.write_bytes(b"node")
    assert open_capture(report).activities.equals(open_capture(moe / "capture.sqlite").activities)
    (kept,) = (tmp_path / "tmp").glob("nsys-report-exports-*/*.sqlite")
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    monkeypatch.setenv("STAND_IN_FAILS", "export")  # a second export would fail
    (tmp_path / "copy.nsys-rep").write_bytes(b"node")
    assert open_capture(tmp_path / "copy.nsys-rep").activities.num_rows > 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin", "copy.nsys-rep", "run.nsys-rep", "tmp"]


def test_a_report_that_nsys_cannot_export(nsys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_FAILS", "export")
    (tmp_path / "run.nsys-rep").write_bytes(b"node")
    with pytest.raises(InputError, match="could not export it") as caught:
        open_capture(tmp_path / "run.nsys-rep")
    assert "ERROR: the report is damaged" in caught.value.hint
    assert not list((tmp_path / "tmp").glob("*/*"))


def test_a_report_where_there_is_no_nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("nsys_report.capture.exported.find_nsys", lambda: _no_nsys())
    (tmp_path / "a run.nsys-rep").write_bytes(b"node")
    (tmp_path / "a run.sqlite").touch()
    with pytest.raises(InputError) as caught:
        open_capture(tmp_path / "a run.nsys-rep")
    assert caught.value.slug == "capture-not-exported"
    assert "did you mean" in caught.value.hint and f"nsys export --type sqlite '{tmp_path}/a run.nsys-rep'" in caught.value.hint


def _no_nsys() -> None:
    raise InputError("nsys is not on PATH", "", slug="no-nsys")


def test_a_directory_of_several_dumps_is_read_by_what_ran(moe: Path, fixture_path: Callable[..., Path], tmp_path: Path) -> None:
    """The dumps of two processes in a directory each, and of another run over the same files: the capture's own is chosen and named."""
    for name, fixture in (("rank_0", "train"), ("rank_1", "moe")):
        shutil.copytree(fixture_path(fixture, "xla_dump"), tmp_path / "dumps" / name, copy_function=shutil.copyfile)
    plain, found = analyze(moe / "capture.sqlite", moe / "xla_dump"), analyze(moe / "capture.sqlite", tmp_path / "dumps")
    assert found.results.classes.equals(plain.results.classes)
    assert "of the dumps in 2 directories that in rank_1 is read, whose programs and kernels ran" in found.joined.notes
    assert run(["check", str(moe / "capture.sqlite"), "--xla-dump", str(tmp_path / "dumps")]) == 0


def test_dumps_of_two_runs_in_one_directory(moe: Path, fixture_path: Callable[..., Path], tmp_path: Path) -> None:
    """Another process wrote a program of another name under the same number, later."""
    shutil.copytree(moe / "xla_dump", tmp_path / "dump", copy_function=shutil.copyfile)
    other = next(p for p in fixture_path("train", "xla_dump").iterdir() if "train_step" in p.name and p.name.endswith("optimizations.txt"))
    shutil.copyfile(other, tmp_path / "dump" / "module_5305.jit_train_step.sm_9.0a_gpu_after_optimizations.txt")
    found = analyze(moe / "capture.sqlite", tmp_path / "dump")
    assert found.results.joined_share == 1.0
    (note,) = (n for n in found.joined.notes if "stands for several modules" in n)
    assert note.endswith("jit_moe_layer, as XLA's ranges name it, is used")
