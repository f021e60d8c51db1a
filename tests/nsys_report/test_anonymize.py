"""Copies for public reports: nothing planted in any text gets through, and the figures stay."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_mapping import Renamer, anonymous_dump, index_dump, module_names, parse_module
from hlo_mapping.text.anonymous import without_names
from nsys_report.anonymize.copy import copy_without_names
from nsys_report.cli.app import run
from nsys_report.notebook import Analysis

CANARY = "canary_of_ann"
TEXTS = ("TEXT", "VARCHAR", "CHAR", "CLOB", "BLOB")


def planted(folder: Path, fixture: Path) -> tuple[Path, Path]:
    """A capture and dump with a canary in each text column of each table, in unused strings, ranges, messages, and the dump's names."""
    capture, dump = folder / "capture.sqlite", folder / "xla_dump"
    shutil.copyfile(fixture / "capture.sqlite", capture)
    shutil.copytree(fixture / "xla_dump", dump, copy_function=shutil.copyfile)
    with sqlite3.connect(capture) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            if table in ("StringIds", "META_DATA_EXPORT") or table.startswith(("ENUM_", "sqlite_")):
                continue
            for _, column, kind, *_ in database.execute(f'PRAGMA table_info("{table}")').fetchall():
                if kind.upper().startswith(TEXTS):
                    database.execute(
                        f'UPDATE "{table}" SET "{column}" = ? WHERE "{column}" NOT LIKE "Xla%" OR "{column}" IS NULL', (CANARY,)
                    )
        database.execute("INSERT INTO StringIds SELECT max(id) + 1, ? FROM StringIds", (CANARY,))
        database.execute("INSERT INTO META_DATA_EXPORT (name, value) VALUES ('EXPORT_HOST', ?)", (CANARY,))
        database.execute("CREATE TABLE PROCESS_STREAMS (text TEXT)")
        database.execute("INSERT INTO PROCESS_STREAMS VALUES (?)", (CANARY,))
        (thread,) = database.execute("SELECT globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME").fetchone()
        columns = [row[1] for row in database.execute("PRAGMA table_info(NVTX_EVENTS)")]
        row = {"start": 1, "end": 2, "eventType": 59, "text": f"Thunk:#name={CANARY},hlo_op=dot.1#", "globalTid": thread}
        for extra in (row, row | {"text": CANARY}):
            used = [name for name in extra if name in columns]
            values = [extra[name] for name in used]
            names, marks = ", ".join(f'"{n}"' for n in used), ", ".join("?" for _ in used)
            database.execute(f"INSERT INTO NVTX_EVENTS ({names}) VALUES ({marks})", values)
    database.close()
    for path in dump.glob("*after_optimizations.txt"):
        path.write_text(path.read_text().replace('metadata={op_name="', f'metadata={{op_name="{CANARY}/'))
    _name_a_kernel(capture, dump)
    (dump / f"{CANARY}.txt").write_text(CANARY)
    return capture, dump


def _name_a_kernel(capture: Path, dump: Path) -> None:
    """Gives the instruction and kernel that run most often a name of the user's, in all files and the capture, as a custom kernel has."""
    with sqlite3.connect(capture) as database:
        common = "SELECT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL GROUP BY shortName ORDER BY count(*) DESC LIMIT 1"
        (kernel,) = database.execute(f"SELECT value FROM StringIds WHERE id = ({common})").fetchone()
        stem = re.sub(r"(_\d+)+$", "", kernel)
        database.execute("UPDATE StringIds SET value = replace(value, ?, ?) WHERE value GLOB ?", (stem, CANARY, f"{stem}*"))
    database.close()
    for path in dump.iterdir():
        path.write_text(re.sub(rf"\b{stem}(?=[._\d]|\b)", CANARY, path.read_text(errors="surrogateescape")), errors="surrogateescape")


def figures(analysis: Analysis) -> list[tuple[object, ...]]:
    """What a report says of programs, without their names."""
    names = ("kernel_class", "time_per_execution_ns", "launches_per_execution", "bytes_accessed", "weight_bytes", "kv_read_bytes", "flops")
    rows = analysis.results.classes.to_pylist()
    return sorted((tuple(row.get(name) for name in names) for row in rows), key=repr)


@pytest.mark.parametrize("name", ["decode", "moe", "train"])
def test_nothing_planted_gets_through_and_the_figures_stay(name: str, tmp_path: Path, fixture_path: Callable[..., Path]) -> None:
    capture, dump = planted(tmp_path, fixture_path(name))
    removed, before, after = copy_without_names(capture, tmp_path / "out", dump)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert b"canary" not in path.read_bytes(), path.name
        assert "canary" not in path.name
    assert "PROCESS_STREAMS" in removed.tables and removed.ranges >= 1
    assert figures(after) == figures(before)
    assert after.results.joined_share == pytest.approx(before.results.joined_share)
    names = {n for n in after.joined.executions["hlo_module"].to_pylist() if n is not None}
    assert names and all(n.startswith("program_") for n in names)


def test_a_table_of_which_nothing_is_read_is_left_out(tmp_path: Path, fixture_path: Callable[..., Path]) -> None:
    capture = shutil.copyfile(fixture_path("moe", "capture.sqlite"), tmp_path / "capture.sqlite")
    with sqlite3.connect(capture) as database:
        database.execute("DROP TABLE ANALYSIS_DETAILS")
        database.execute("CREATE TABLE ANALYSIS_DETAILS (startTime INTEGER)")
    database.close()
    copy_without_names(capture, tmp_path / "out")
    with sqlite3.connect(tmp_path / "out" / "capture.sqlite") as database:
        assert ("ANALYSIS_DETAILS",) not in database.execute("SELECT name FROM sqlite_master").fetchall()
    database.close()


def test_names_can_be_kept(tmp_path: Path, fixture_path: Callable[..., Path]) -> None:
    source = fixture_path("moe")
    _, before, after = copy_without_names(source / "capture.sqlite", tmp_path / "out", source / "xla_dump", keep_names=True)
    assert set(after.joined.executions["hlo_module"].to_pylist()) == set(before.joined.executions["hlo_module"].to_pylist())


def test_some_executions_alone(tmp_path: Path, fixture_path: Callable[..., Path]) -> None:
    source = fixture_path("decode")
    removed, before, after = copy_without_names(source / "capture.sqlite", tmp_path / "out", source / "xla_dump", executions=3)
    (step,) = [m for m in after.results.modules.to_pylist() if m["kernels_per_execution"] == 162]
    assert step["executions"] == 3
    whole = next(m for m in before.results.modules.to_pylist() if m["hlo_module"] == "jit_decode_step")
    assert step["kernel_time_ns"] == pytest.approx(whole["kernel_time_ns"], rel=0.01)
    assert removed.outside > 0


def test_a_directory_that_holds_something_is_refused(
    tmp_path: Path, fixture_path: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("x")
    assert run(["anonymize", str(fixture_path("moe", "capture.sqlite")), str(tmp_path)]) == 2
    assert "not an empty directory" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_command_says_what_it_left_out(tmp_path: Path, fixture_path: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["anonymize", str(fixture_path("torch_mlp", "capture.sqlite")), str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "left out whole" in said
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["capture.sqlite"]


CUSTOM = """HloModule jit_secret, is_scheduled=true, frontend_attributes={note="a}b"}

%secret_body.3 (secret_state: f32[4], p.1: f32[4]) -> f32[4] {
  %secret_state = f32[4]{0} parameter(0)
  %p.1 = f32[4]{0} parameter(1)
  ROOT %add.7 = f32[4]{0} add(%secret_state, %p.1), origin={{"secret"}}
}

ENTRY %main (secret_w: f32[4]) -> f32[4] {
  %secret_w = f32[4]{0} parameter(0), sharding={mesh['secret'=2], [{'secret'}]}
  %secret_kernel.2 = f32[4]{0} custom-call(%secret_w), custom_call_target="__gpu$xla.gpu.triton", backend_config=TRITON
  %ffi_call.1 = f32[4]{0} custom-call(%secret_kernel.2), custom_call_target="secret_target", backend_config="secret {"
  %opaque.1 = f32[4]{0} custom-call(%ffi_call.1), custom_call_target="of_secret", backend_config={"secret":["x"]}
  %custom-call.4 = f32[4]{0} custom-call(%opaque.1), custom_call_target="__cublas$gemm", backend_config={"epilogue":"DEFAULT"}
  %all-reduce.1 = f32[4]{0} all-reduce(%custom-call.4), replica_groups=mesh['secret'=2] {'secret'}, to_apply=%secret_body.3 /*secret*/
  ROOT %loop_add_fusion.1 = f32[4]{0} fusion(%all-reduce.1, /*index=5*/%secret_w), kind=kLoop, calls=%secret_body.3
}
""".replace("TRITON", r'{debug = false, grid_x = 3 : i32, ir = "secret\22}", name = "secret_kernel"}')


def test_names_of_custom_kernels_computations_axes_and_configurations_are_gone() -> None:
    text = without_names(CUSTOM, "program_0")
    assert "secret" not in text
    assert 'custom_call_target="__gpu$xla.gpu.triton", backend_config={grid_x = 3 : i32, name = "Worda_kernel"}' in text
    assert "%Worda_kernel.2 = " in text and "calls=%Worda_body.3" in text and "to_apply=%Worda_body.3" in text
    assert 'custom_call_target="__cublas$gemm", backend_config={"epilogue":"DEFAULT"}' in text
    assert "replica_groups=mesh['Worda'=2] {'Worda'}" in text and "/*index=5*/%Arg_0" in text
    assert [i.opcode for i in parse_module(text, "x").entry.instructions] == [
        i.opcode for i in parse_module(CUSTOM, "x").entry.instructions
    ]


def test_a_dump_of_a_triton_kernel_of_the_users_own(tmp_path: Path, fixture_path: Callable[..., Path]) -> None:
    """The kernel keeps one name in all files, and no word of its own."""
    index = index_dump(fixture_path("dialects", "odd-0.8.1"))
    rename = Renamer()
    anonymous_dump(index, tmp_path / "out", module_names(index), rename)
    texts = "\n".join(path.read_text() for path in (tmp_path / "out").iterdir())
    assert "pallas" not in texts.lower() and "ML\\EFR" not in texts
    thunks = [thunk.kernel for number in index_dump(tmp_path / "out").numbers for thunk in index_dump(tmp_path / "out").load(number).thunks]
    assert f"{rename('my')}_{rename('pallas')}_kernel__1" in thunks


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("loop_add_fusion_3", True),
        ("nvjet_sm90_tst_24x64_64x16_4x1_v_bz_bias_TNN", True),
        ("DeviceRadixSortOnesweepKernel", False),
        ("acme_reduce_kernel", False),
        ("splitKreduce_kernel", True),
    ],
)
def test_libraries_kernels_keep_their_names(name: str, kept: bool) -> None:
    assert (Renamer().kernel(name) == name) is kept
    assert "acme" not in Renamer().kernel(name)


def test_a_module_keeps_its_dataflow_and_loses_its_names() -> None:
    text = """HloModule jit_secret, is_scheduled=true, frontend_attributes={note="a}b"}

ENTRY %main (secret_w: f32[4,4], x: f32[4]) -> f32[4] {
  %secret_w = f32[4,4]{1,0} parameter(0), metadata={op_name="w['secret']"}
  %x.1 = f32[4]{0} parameter(1)
  ROOT %dot.1 = f32[4]{0} dot(%secret_w, %x.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="secret/\\"}{"}
}

FileNames
1 "/home/ann/secret.py"
"""
    assert (
        without_names(text, "program_0")
        == """HloModule program_0, is_scheduled=true

ENTRY %main (Arg_0: f32[4,4], x: f32[4]) -> f32[4] {
  %Arg_0 = f32[4,4]{1,0} parameter(0)
  %Arg_1 = f32[4]{0} parameter(1)
  ROOT %dot.1 = f32[4]{0} dot(%Arg_0, %Arg_1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    )
