"""The command line: usage, errors as text with their exit codes, output that stays data."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pyarrow.parquet as pq
import pytest

from nsys_report.cli import app
from nsys_report.cli.outputs import OUTPUTS
from nsys_report.cli.pairs import part_names
from nsys_report.cli.progress import progress_text
from nsys_report.columns import ACTIVITY_TABLE, EXECUTION_TABLE
from tests.conftest import FIXTURES

ROOT = Path(__file__).parent.parent.parent
DECODE = ROOT / "fixtures" / "decode"
CAPTURE, DUMP = str(DECODE / "capture.sqlite"), str(DECODE / "xla_dump")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command line."""
    code = app.run(list(map(str, arguments)))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv(app.DEBUG, raising=False)


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert all(f"\n  {name} " in out and listed.example in out for name, listed in app.COMMANDS.items())
    assert "_NSYS_REPORT_COMPLETE" in out and "--debug" in out


@pytest.mark.parametrize("name", app.COMMANDS)
def test_the_example_of_a_command_is_one(name: str) -> None:
    """Its options are the command's own; what they are given is not looked at."""
    words = shlex.split(app.COMMANDS[name].example)
    assert words[:2] == ["nsys-report", name] or name == "report"
    given = words[2 if words[1] == name else 1 :]
    command = app.group.get_command(click.Context(app.group), name)
    assert command is not None
    command.make_parser(click.Context(command)).parse_args(given)


@pytest.mark.parametrize(("word", "offered"), [("ser", {"serve-profile"}), ("re", {"report", "record"}), ("zzz", set())])
def test_a_shell_completes_commands(word: str, offered: set[str]) -> None:
    asked = {"_NSYS_REPORT_COMPLETE": "bash_complete", "COMP_WORDS": f"nsys-report {word}", "COMP_CWORD": "1"}
    script = "from nsys_report.cli import app; app.main()"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, **asked}
    )
    assert {line.removeprefix("plain,") for line in done.stdout.split()} == offered


def test_long_work_says_how_long_the_rest_takes() -> None:
    """A quarter of the work took 30 s: three times as long is left."""
    assert progress_text("joining", 0.25, 30.0) == "joining … 25%, about 90 s left"
    assert progress_text("joining", 0.25, 60.0) == "joining … 25%, about 3 min left"
    assert progress_text("joining", 0.25, 1.0) == "joining … 25%"
    assert progress_text("joining", 0.0, 60.0) == "joining …"
    assert progress_text("joining", 0.99, 60.0) == "joining … 99%"


def test_help_does_not_wait_for_pandas() -> None:
    script = (
        "import sys; from nsys_report.cli import app; app.run(['--help']); print({'pandas', 'pyarrow', 'numpy', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.endswith("set()\n")


def test_a_report_waits_for_no_library_that_it_does_not_use() -> None:
    script = (
        "import sys, pyarrow; pyarrow.array([1]); theirs = set(sys.modules); "  # older pyarrow imports pandas by itself
        f"from nsys_report.cli import app; app.run([{CAPTURE!r}, '--xla-dump', {DUMP!r}]); "
        "print({'pandas', 'sqlalchemy', 'matplotlib', 'jinja2', 'scipy'} & {name.split('.')[0] for name in set(sys.modules) - theirs})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.endswith("set()\n")


def test_report_is_the_default_command(capsys: pytest.CaptureFixture[str]) -> None:
    missing = "no-such-file.sqlite"
    assert run(capsys, missing) == run(capsys, "report", missing)


def test_a_missing_capture_is_an_input_error_without_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "no-such-file.sqlite")
    assert (code, out) == (1, "")
    assert err.startswith("error: no-such-file.sqlite: no such file\n  → ")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all, but text that is long enough to be one", b"SQLite format 3\0 and then nothing"]
)
def test_what_is_no_database_is_an_input_error(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "capture.sqlite"
    path.write_bytes(content)
    code, out, err = run(capsys, str(path))
    assert (code, out) == (1, "")
    assert err.startswith("error: ") and str(path) in err and "Traceback" not in err
    assert os.listdir(tmp_path) == ["capture.sqlite"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["report"],
        [CAPTURE, "--no-such-option"],
        [CAPTURE, "--ceiling", "measured"],
        [CAPTURE, "--ceiling", "measured=-3"],
        [CAPTURE, "--ceiling", "speed=3"],
        [CAPTURE, "--top", "many"],
        [CAPTURE, "--class", "weight"],
        [CAPTURE, "--min-coverage", "95"],
        [CAPTURE, "--min-coverage", "nan"],
        [CAPTURE, "--min-coverage", "95%"],
        [CAPTURE, "--ceiling", "measured=1e-300"],
        [CAPTURE, "--ceiling", "measured=3000", "--ceiling", "measured=4000"],
        [CAPTURE, "--json", "same", "--html", "same"],
        [CAPTURE, "--json", "same", "--tables", "./same"],
        [CAPTURE, "--json", CAPTURE],
        [CAPTURE, "--tables", DUMP, "--xla-dump", DUMP],
        [CAPTURE, "--execution", "3", "--module", "jit_stage"],
        [CAPTURE, CAPTURE, CAPTURE, "--xla-dump", DUMP, "--xla-dump", DUMP],
        [CAPTURE, "--tables", "-"],
        [CAPTURE, "--what-if", "weights=int9"],
        [CAPTURE, "--what-if", "weights"],
        [CAPTURE, "--what-if", "kv=fp8", "--what-if", "kv=int8"],
        ["modules"],
    ],
)
def test_wrong_usage_exits_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and "Traceback" not in err


@pytest.mark.parametrize("option", ["", "--xla-dump", "--roles", "--ceilings", *(output.option for output in OUTPUTS)])
def test_an_empty_path_is_not_the_directory_at_hand(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *([CAPTURE, option, ""] if option else [""]))
    assert (code, out) == (2, "")
    assert "the path is empty" in err


def test_what_may_not_be_read_is_an_input_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(self: Path, *_args: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("os.access", lambda *_args, **_options: False)
    monkeypatch.setattr(Path, "open", refuse)
    code, out, err = run(capsys, CAPTURE)
    assert (code, out) == (1, "")
    assert f"{CAPTURE}: cannot be read: Permission denied" in err


def test_all_captures_are_looked_at_before_the_first_is_read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsys_report.notebook.analyze", lambda *_args, **_options: pytest.fail("read"))
    code, _, err = run(capsys, CAPTURE, "no-such-file.sqlite")
    assert code == 1
    assert "no-such-file.sqlite: no such file" in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_an_output_that_fails_costs_nothing_else(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, CAPTURE, "--html", "/dev/full", "--json", tmp_path / "report.json")
    assert code == 1
    assert out.startswith("capture.sqlite: NVIDIA")
    assert "error: cannot write /dev/full: " in err and f"wrote {tmp_path / 'report.json'}" in err
    assert json.loads((tmp_path / "report.json").read_text())["format"] == "nsys-report"


def test_an_output_that_is_a_link_to_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    code, _, err = run(capsys, CAPTURE, "--json", tmp_path / "loop")
    assert (code, err) == (0, f"wrote {tmp_path / 'loop'}\n")
    assert json.loads((tmp_path / "loop").read_text())["format"] == "nsys-report"


def test_a_stream_may_be_a_pipe() -> None:
    command = f"{sys.executable} profile_report.py {CAPTURE} --json /dev/stdout 2>/dev/null | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "{"


def test_ended_from_outside_it_leaves_no_half_written_file(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, signal, sys\n"
        "from nsys_report.cli import app\n"
        "from nsys_report.reports import export\n"
        "def write(out):\n"
        "    print(sorted(os.listdir()))\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "app.run = lambda _arguments: export.write_whole(pathlib.Path('report.json'), write)\n"
        "app.main([])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    assert (done.returncode, done.stderr) == (143, "")
    assert ".nsys-report-" in done.stdout
    assert os.listdir(tmp_path) == []


def test_folders_of_several_captures_are_never_shared(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("a b.sqlite", "a-b.sqlite", "A B.sqlite", "...sqlite", "-.sqlite"):
        (tmp_path / name).symlink_to(CAPTURE)
    captures = sorted(p for p in tmp_path.iterdir() if p.is_symlink())
    code, _, _ = run(capsys, *captures, "--tables", tmp_path / "out", "--csv", tmp_path / "csv")
    assert code == 0
    folders = [folder for folder in (tmp_path / "out").iterdir() if (folder / "activities.parquet").is_file()]
    assert len(folders) == len({folder.name.lower() for folder in folders}) == len(captures)
    assert len(list((tmp_path / "csv").glob("*modules.csv"))) + len(list((tmp_path / "csv").glob("*modules-[0-9].csv"))) == len(captures)


def test_a_misspelt_command_is_told_from_a_capture(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "chek")
    assert code == 2
    assert "did you mean the command check?" in err


def test_an_output_that_cannot_be_written_is_refused_before_the_work(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "no-such-file.sqlite", "--json", str(tmp_path / "none" / "report.json"))
    assert (code, out) == (1, "")
    assert "cannot write" in err and "no such file" not in err


def test_an_empty_or_missing_dump_is_an_input_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "none", Path(CAPTURE)):
        code, out, err = run(capsys, CAPTURE, "--xla-dump", str(directory))
        assert (code, out) == (1, "")
        assert err.startswith("error: ") and "Traceback" not in err


def test_an_unforeseen_failure_is_one_sentence_unless_debugging(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr("nsys_report.notebook.analyze", fail)
    code, _, err = run(capsys, CAPTURE)
    assert code == 1
    assert "KeyError" in err and "--debug" in err and "Traceback" not in err
    with pytest.raises(KeyError):
        run(capsys, "--debug", CAPTURE)


def test_interrupting_is_no_error_report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nsys_report.notebook.analyze", interrupt)
    code, out, err = run(capsys, CAPTURE)
    assert (code, out) == (130, "")
    assert "interrupted" in err and "Traceback" not in err


def test_a_reader_that_leaves_is_no_error() -> None:
    command = f"{sys.executable} profile_report.py {CAPTURE} | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.startswith("capture.sqlite: NVIDIA H200")
    assert done.stderr == ""


def test_json_on_stdout_is_the_document_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, CAPTURE, "--json", "-")
    document = json.loads(out)
    assert (code, err, document["format"]) == (0, "", "nsys-report")
    assert document["captures"][0]["facts"]["kernels"]["value"] == 1620


def test_files_are_written_and_named_and_the_page_is_plain(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, CAPTURE, "--xla-dump", DUMP, "--json", tmp_path / "report.json", "--tables", tmp_path / "tables")
    assert code == 0
    assert err.splitlines() == [f"wrote {tmp_path / 'report.json'}", f"wrote {tmp_path / 'tables'}"]
    assert out.startswith("capture.sqlite: NVIDIA H200 · nsys 2023.4.4") and "\x1b" not in out
    names = ["activities.parquet", "classes.parquet", "executions.parquet", "instructions.parquet"]
    assert sorted(os.listdir(tmp_path / "tables")) == names
    assert pq.read_schema(tmp_path / "tables" / "activities.parquet").names == ACTIVITY_TABLE.names
    assert pq.read_schema(tmp_path / "tables" / "executions.parquet").names == EXECUTION_TABLE.names


def test_the_same_capture_gives_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (CAPTURE, "--xla-dump", DUMP, "--json", "-")
    assert run(capsys, *arguments) == run(capsys, *arguments)


def test_several_captures_get_a_part_each_and_a_summary(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    other = tmp_path / "other" / "capture.sqlite"
    other.parent.mkdir()
    other.symlink_to(CAPTURE)
    code, out, _ = run(capsys, CAPTURE, str(other), "--tables", str(tmp_path / "tables"))
    assert code == 0
    assert out.startswith("Captures\n")
    assert "decode/capture.sqlite: NVIDIA" in out and "other/capture.sqlite: NVIDIA" in out
    assert (tmp_path / "tables" / "other-capture" / "activities.parquet").is_file()


def test_the_gate_exits_3_after_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, CAPTURE, "--min-coverage", "0.95")
    assert code == 3
    assert "0.0 %" in err and "95.0 %" in err
    assert out.startswith("capture.sqlite")
    assert run(capsys, CAPTURE, "--xla-dump", DUMP, "--min-coverage", "0.95")[0] == 0


def test_the_gate_names_every_capture_below_it(capsys: pytest.CaptureFixture[str], fixture_path: Callable[..., Path]) -> None:
    graphs = fixture_path("graph_2025", "capture.sqlite")
    code, out, err = run(capsys, CAPTURE, graphs, "--min-coverage", "0.95")
    assert code == 3
    assert "decode/capture.sqlite: 0.0 % of the kernel time" in err and "graph_2025/capture.sqlite: there is no kernel to join" in err
    assert out.startswith("Captures\n")


def test_programs_of_whole_graphs_come_by_busy_time_and_their_kernels_are_unknown(
    capsys: pytest.CaptureFixture[str], fixture_path: Callable[..., Path]
) -> None:
    _, out, _ = run(capsys, fixture_path("graph_2025", "capture.sqlite"), "--json", "-")
    part = json.loads(out)["captures"][0]
    sections = {section["key"]: section for section in part["sections"]}
    first, *others = sections["modules"]["tables"]["modules"]["rows"]
    assert (first["hlo_module"], first["kernels_per_execution"], first["kernel_time_ns"]) == ("jit_prefill_chunk", None, None)
    assert first["busy_time_ns"] > 500_000
    assert {row["kernel_time_ns"] for row in others if row["hlo_module"].startswith("jit_stage")} == {0}
    assert all(table["rows"] for section in part["sections"] for table in section["tables"].values())


def test_a_class_that_a_program_lacks_is_said_so(capsys: pytest.CaptureFixture[str], fixture_path: Callable[..., Path]) -> None:
    train = (fixture_path("train", "capture.sqlite"), "--xla-dump", fixture_path("train", "xla_dump"))
    code, out, _ = run(capsys, *train, "--class", "kv_write")
    assert code == 0
    assert "Nothing in it is of class kv_write." in out
    assert "\nClasses\n" not in out and "\nKernels by time\n" not in out


def test_a_program_that_is_not_there_is_named_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, CAPTURE, "--module", "jit_decode_stp")
    assert code == 2
    assert "did you mean jit_decode_step?" in err
    code, _, err = run(capsys, CAPTURE, "--module", "jit_stage#19861")
    assert code == 2
    assert "did you mean jit_stage#19860" in err
    code, _, err = run(capsys, CAPTURE, "--execution", "4000")
    assert code == 2
    assert "no execution 4000" in err


def test_narrowing_to_a_program_and_an_execution(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, CAPTURE, "--module", "jit_decode_step", "--json", "-")
    part = json.loads(out)["captures"][0]
    rows = part["sections"][0]["tables"]["modules"]["rows"]
    assert (code, [r["hlo_module"] for r in rows], rows[0]["executions"]) == (0, ["jit_decode_step"], 10)
    code, out, _ = run(capsys, CAPTURE, "--execution", "3", "--json", "-")
    rows = json.loads(out)["captures"][0]["sections"][0]["tables"]["modules"]["rows"]
    assert (code, len(rows), rows[0]["executions"]) == (0, 1, 1)
    code, out, _ = run(capsys, CAPTURE, "--module", "19860", "--json", "-")
    rows = json.loads(out)["captures"][0]["sections"][0]["tables"]["modules"]["rows"]
    assert (code, [(r["hlo_module"], r["program_id"]) for r in rows]) == (0, [("jit_stage", 19860)])


def test_check_says_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "check", CAPTURE, "--xla-dump", DUMP)
    assert code == 0
    out = " ".join(out.split())
    assert "✓ Recorded: 1,620 kernels, " in out and "Not recorded: allocations." in out
    assert "✓ 40 executions of 3 programs, found by XLA's NVTX ranges." in out
    assert "✓ The dump holds 4 programs, all 3 that ran among them." in out
    assert "It answers: which kernels take the time; " in out and "It does not answer" not in out


def test_check_says_what_cannot_be_answered(capsys: pytest.CaptureFixture[str], fixture_path: Callable[..., Path]) -> None:
    code, out, _ = run(capsys, "check", CAPTURE)
    assert code == 0
    assert "It does not answer: which HLO instructions and classes take the time; how far from the bandwidth ceiling." in out
    _, out, _ = run(capsys, "check", CAPTURE, "--xla-dump", fixture_path("train", "xla_dump"))
    assert "none of the 3 that ran" in out or "0 of the 3 that ran" in out
    _, out, _ = run(capsys, "check", fixture_path("decode_graph", "capture.sqlite"))
    assert "It answers" not in out
    assert "→ Capture again with nsys profile --cuda-graph-trace=node" in out


def test_ceilings_lists_the_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "ceilings")
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("GB10"))
    assert "273" in line and "233" in line


def test_names_of_parts_are_short_and_distinct() -> None:
    assert part_names([Path("/a/b/one.sqlite"), Path("/a/b/two.sqlite")]) == ["one.sqlite", "two.sqlite"]
    assert part_names([Path("/a/x/capture.sqlite"), Path("/a/y/capture.sqlite")]) == ["x/capture.sqlite", "y/capture.sqlite"]
    assert part_names([Path("/a/c.sqlite"), Path("/a/c.sqlite")]) == ["c.sqlite (1)", "c.sqlite (2)"]


def test_modules_lists_programs_and_shows_the_largest(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "modules", DUMP)
    assert code == 0
    assert " programs.\n2 of them are 1 program compiled again and again" in out
    assert "Programs that differ in sizes alone" in out
    assert "jit_decode_step#21184\nParameters: 57 weight (866 MB), 12 kv cache (403 MB), 3 input (136 B); donated 403 MB." in out


def test_only_modules_with_caches_have_a_column_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for name in ("decode", "train"):
        code, out, _ = run(capsys, "modules", str(FIXTURES / name / "xla_dump"))
        assert code == 0
        shown[name] = "caches" in out
    assert shown == {"decode": True, "train": False}


def test_modules_of_a_dump_with_very_many_programs_reads_the_largest(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_report.cli.modules.MOST_READ", 1)
    _, out, _ = run(capsys, "modules", DUMP)
    assert "1 program.\n" in out and "smaller programs are not in these figures (jit_stage 3)" in out
    assert "jit_decode_step#21184\n" in out
    _, out, _ = run(capsys, "modules", DUMP, "--top", "0")
    assert "smaller programs" not in out


def test_modules_of_a_dump_that_cannot_be_read_at_all(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"module_000{number}.jit_f.sm_9.0a_gpu_after_optimizations.txt").write_bytes(b"\xff\x00")
    code, out, err = run(capsys, "modules", str(tmp_path))
    assert (code, out) == (1, "")
    assert "none of 2 programs can be read: jit_f#1: " in err and "(and 1 more like it)" in err


def test_modules_shows_the_program_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("19860", "jit_stage#19860"):
        code, out, _ = run(capsys, "modules", DUMP, "--module", name)
        assert code == 0
        assert out.startswith("jit_stage#19860\n")
    code, _, err = run(capsys, "modules", DUMP, "--module", "jit_stge")
    assert code == 2
    assert "did you mean jit_stage" in err


def test_what_if_predicts_a_step_for_each_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    """On paper: half of 735,109,120 bytes of bf16 weights at 4,300 GB/s are 85.5 µs."""
    code, out, _ = run(capsys, CAPTURE, "--xla-dump", DUMP, "--what-if", "weights=int8", "--what-if", "no-host-gap", "--json", "-")
    sections = {section["key"]: section for section in json.loads(out)["captures"][0]["sections"]}
    table = sections["program:jit_decode_step#21184"]["tables"]["what_if"]
    now, narrower, _, both = table["rows"]
    assert (code, now["scenario"], both["scenario"]) == (0, "as it is", "weights=int8 + no-host-gap")
    assert narrower["saved_ns"] == pytest.approx(735_109_120 / 2 / 4300, rel=1e-3)
    assert narrower["predicted_ns"] == pytest.approx(now["predicted_ns"] - narrower["saved_ns"])
    assert "widened inside the product" in narrower["assumptions"]
    assert table["notes"][0].startswith("weights=int8: weights stored in 8 bits")
    code, _, err = run(capsys, CAPTURE, "--what-if", "cache=fp8")
    assert code == 2
    assert "kv=TYPE, no-host-gap, kv_gather=fused" in err


def test_a_scenario_that_saves_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, CAPTURE, "--xla-dump", DUMP, "--what-if", "kv=bf16")
    assert code == 0
    assert "kv=bf16: would save nothing that is known of this program" in out


def test_narrowing_keeps_findings_and_predictions_in_step(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(
        capsys,
        CAPTURE,
        "--xla-dump",
        DUMP,
        "--module",
        "jit_decode_step",
        "--class",
        "attention",
        "--what-if",
        "weights=int8",
        "--json",
        "-",
    )
    part = json.loads(out)["captures"][0]
    assert code == 0
    assert {finding["module"] for finding in part["findings"]} == {"jit_decode_step#21184"}
    assert [row["scenario"] for row in part["sections"][1]["tables"]["what_if"]["rows"]] == ["as it is", "weights=int8"]
