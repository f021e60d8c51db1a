"""No output says whose machine it was: what is planted wherever a machine or a person could show through comes out of no command."""

from __future__ import annotations

import base64
import re
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from nsys_report.cli.app import run

CANARY = "ann_canary"
FIXTURE = "decode"
SETTINGS = ("EXPORT_PRODUCT_VERSION", "NvDriverVersion", "CUDA_GRAPH_TRACE_OPTIONS:MODE", "EXPORT_HOST", "PROCESS_0:ENVIRONMENT_VARIABLE")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory, fixture_path: Callable[..., Path]) -> tuple[Path, Path]:
    """A capture and dump in a person's folder, with that name in settings, environment, messages, source files, flags and damaged files."""
    home = tmp_path_factory.mktemp("home") / CANARY
    shutil.copytree(fixture_path(FIXTURE), home / "run", copy_function=shutil.copyfile)
    capture, dump = home / "run" / "capture.sqlite", home / "run" / "xla_dump"
    with sqlite3.connect(capture) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in ("META_DATA_EXPORT", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV"):
            if table not in tables:
                database.execute(f"CREATE TABLE {table} (name TEXT, value TEXT)")
            database.execute(f"UPDATE {table} SET value = ?", (f"/home/{CANARY}/x",))
            names = (
                "EXPORT_PRODUCT_VERSION",
                "NvDriverVersion",
                "CUDA_GRAPH_TRACE_OPTIONS:MODE",
                "EXPORT_HOST",
                "PROCESS_0:ENVIRONMENT_VARIABLE",
            )
            database.executemany(f"INSERT INTO {table} (name, value) VALUES (?, ?)", [(name, f"/home/{CANARY}/x") for name in names])
        if "DIAGNOSTIC_EVENT" not in tables:
            database.execute("CREATE TABLE DIAGNOSTIC_EVENT (timestamp INT, severity INT, text TEXT, globalPid INT)")
        database.execute("INSERT INTO DIAGNOSTIC_EVENT (timestamp, severity, text) VALUES (1, 3, ?)", (f"cannot open /home/{CANARY}/a.so",))
    database.close()
    for path in dump.iterdir():
        text = path.read_text(errors="surrogateescape")
        text = text.replace('"workloads.py"', f'"/home/{CANARY}/proj/workloads.py"', 1).replace(
            "\n2 ", f'\n3 "/opt/{CANARY}.d/other.py"\n2 ', 1
        )
        path.write_text(text, errors="surrogateescape")
    for path in dump.glob("*thunk_sequence*.txt"):
        path.write_text("no thunk\n" + path.read_text())
    for path in dump.glob("*debug_options*"):
        path.write_text(f'{path.read_text()}xla_dump_to: "/home/{CANARY}/d"\nxla_gpu_cuda_data_dir: "/home/{CANARY}/cuda"\n')
    return capture, dump


def contents(path: Path) -> Iterator[bytes]:
    """What a file holds: its bytes, and what is packed or encoded in it."""
    data = path.read_bytes()
    yield data
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        yield repr((table.schema.metadata, pq.read_metadata(path).metadata)).encode()
        for column in table.columns:
            values = column.combine_chunks()
            yield repr((values.dictionary if pa.types.is_dictionary(values.type) else values).to_pylist()).encode()
    if path.suffix == ".png":
        with Image.open(path) as picture:
            yield repr(picture.info).encode()
    for packed in re.findall(rb"[A-Za-z0-9+/]{100,}={0,2}", data) if path.suffix == ".html" else ():
        for bits in (zlib.MAX_WBITS, zlib.MAX_WBITS | 16, -zlib.MAX_WBITS):
            try:
                yield zlib.decompress(base64.b64decode(packed + b"=="), bits)
            except (ValueError, zlib.error):
                continue


def leaks(folder: Path) -> dict[str, bytes]:
    """The files below a folder in whose names or contents the planted name is, and its surroundings."""
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if CANARY in path.name:
            found[path.name] = b"its name"
        for piece in contents(path):
            if (at := piece.find(CANARY.encode())) >= 0:
                found[path.name] = piece[max(0, at - 80) : at + 80]
    return found


REPORT = ("--html r.html", "--json r.json", "--markdown r.md", "--csv csv", "--png png", "--perfetto r.pftrace", "--tables tables")


def outputs(folder: Path, *pairs: str) -> list[str]:
    """Options that each name a file in a folder."""
    return [word for pair in pairs for option, name in [pair.split()] for word in (option, str(folder / name))]


def commands(capture: str, dump: str, out: Path) -> dict[str, list[str]]:
    """A call of each command that reads captures or dumps, with every output that it has."""
    both = [capture, "--xla-dump", dump]
    history = ["--registry", str(out / "history.jsonl"), "--case", "one", "--out", str(out / "record.json")]
    checks = ["--assert", "kernel_time_ns > 0", *outputs(out, "--junit j.xml", "--summary s.md")]
    instructions = ["--instructions", "--gpu", "H200", *outputs(out, "--json m.json", "--csv modules")]
    return {
        "report": ["report", *both, *outputs(out, *REPORT)],
        "report of two": ["report", capture, *both, *outputs(out, "--json two.json", "--markdown two.md")],
        "check": ["check", *both],
        "check --assert": ["check", *both, *checks],
        "diff": ["diff", capture, *both, *outputs(out, "--html d.html", "--json d.json", "--markdown d.md")],
        "record": ["record", *both, *history],
        "compare": ["compare", *both, *history],
        "trend": ["trend", str(out / "history.jsonl"), *outputs(out, "--html t.html")],
        "modules": ["modules", dump],
        "modules --instructions": ["modules", dump, *instructions],
        "anonymize": ["anonymize", capture, str(out / "copy"), "--xla-dump", dump],
    }


def test_no_output_of_any_command_says_whose_machine_it_was(
    planted: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture, dump = map(str, planted)
    for name, words in commands(capture, dump, tmp_path).items():
        code = run(words)
        said = capsys.readouterr()
        assert code in (0, 3), f"{name}: {said.err}"
        (tmp_path / f"{name.replace(' ', '_')}.stdout").write_text(said.out)
    assert leaks(tmp_path) == {}
    assert {"r.html", "r.json", "r.pftrace", "d.html", "t.html", "m.json"} <= {path.name for path in tmp_path.iterdir()}


def test_what_is_planted_is_looked_for_in_packed_contents_too(tmp_path: Path) -> None:
    packed = base64.b64encode(zlib.compress(f"{list(range(200))} {CANARY}".encode())).decode()
    (tmp_path / "a.html").write_text(f"<script>{packed}</script>")
    pq.write_table(pa.table({"a": pa.array([CANARY]).dictionary_encode()}), tmp_path / "b.parquet", compression="zstd")
    assert set(leaks(tmp_path)) == {"a.html", "b.parquet"}
