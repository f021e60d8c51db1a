"""Histories: written by many at once, judged by the rule, perturbed to test the gate itself."""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nsys_report.benching.cases import read_cases
from nsys_report.cli.app import run
from nsys_report.errors import InputError, UsageError
from nsys_report.history.judging import judge_record, self_test
from nsys_report.history.model import Record
from nsys_report.history.rule import judge, time_limit
from nsys_report.history.store import open_store
from nsys_report.history.trend import levels, series_of

MS = 1_000_000.0


def a_record(step_ms: float, case: str = "decode", gpu: str = "GPU A", **figures: float) -> Record:
    return Record(case, "2026-01-01T00:00:00+00:00", gpu, {"jit_f:step_ns": step_ms * MS, **figures})


@pytest.mark.parametrize(
    ("history", "limit"),
    [
        ([10.0], 15.0),  # fewer than three: 1.5 m
        ([10.0, 12.0], 16.5),
        ([10.0, 10.0, 10.0], 12.5),  # 1.25 m: there is no spread
        ([8.0, 10.0, 12.0], 10 + 4 * 1.4826 * 2),  # the spread is wider
        ([0.1, 0.1, 0.1], 0.2),  # never for less than 0.1 ms
    ],
)
def test_the_limit_is_the_rules(history: Sequence[float], limit: float) -> None:
    assert time_limit([v * MS for v in history]) == pytest.approx(limit * MS)


def test_only_the_last_ten_count() -> None:
    assert judge("f:step_ns", 13 * MS, [100 * MS] * 5 + [10 * MS] * 10).flagged
    assert not judge("f:step_ns", 13 * MS, [10 * MS] * 10 + [12 * MS] * 10).flagged


@pytest.mark.parametrize(
    ("figure", "value", "flagged"),
    [
        ("f:step_ns", 5.0 * MS, False),  # faster is no regression
        ("f:weights.bytes", 1009.0, False),
        ("f:weights.bytes", 1011.0, True),
        ("f:weights.bytes", 500.0, False),
        ("joined_share", 0.985, True),  # coverage falls
        ("joined_share", 1.0, False),
    ],
)
def test_bytes_and_coverage_have_their_own_rule_and_direction(figure: str, value: float, flagged: bool) -> None:
    before = {"f:step_ns": 10 * MS, "f:weights.bytes": 1000.0, "joined_share": 0.999}[figure]
    assert judge(figure, value, [before] * 3).flagged == flagged


def test_records_of_another_gpu_are_not_compared() -> None:
    history = [a_record(1.0, gpu="GPU B")] * 3 + [a_record(1.0, case="prefill")] * 3
    result = judge_record(a_record(50.0), history)
    assert not result.flagged and result.others == 3
    assert judge_record(a_record(50.0), [*history, a_record(1.0)]).flagged


def test_the_self_test_flags_every_case_or_says_which_cannot_be() -> None:
    """3 ms or 0.6 m, the larger; 3 ms on a step of 100 ms is below the limit of 125 ms."""
    short, long = [a_record(2.0)] * 3, [a_record(100.0, "train")] * 3
    assert self_test(short[0], short, None).perturbed_ns == 3 * MS
    assert self_test(long[0], long, None).perturbed_ns == 60 * MS
    assert self_test(long[0], [], None).flagged  # against itself
    assert self_test(short[0], short, 3 * MS).flagged
    with pytest.raises(InputError, match="case train") as raised:
        self_test(long[0], long, 3 * MS)
    assert "25.0 ms" in raised.value.hint


def _write(path: str, writer: int, times: int) -> None:
    store = open_store(Path(path))
    for number in range(times):
        store.append([a_record(float(number), case=f"case {writer}", note=float(writer))])


@pytest.mark.parametrize("name", ["history.jsonl", "history.sqlite"])
def test_many_processes_write_one_history(tmp_path: Path, name: str) -> None:
    writers, times = 3, 6
    path = tmp_path / name
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write, args=(str(path), writer, times)) for writer in range(writers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    records = open_store(path).read()
    assert len(records) == writers * times
    for writer in range(writers):  # each one's own records are all there, in its order
        steps = [r.figures["jit_f:step_ns"] / MS for r in records if r.case == f"case {writer}"]
        assert steps == [float(n) for n in range(times)]


def test_a_line_that_a_crash_left_half_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    store = open_store(path)
    store.append([a_record(1.0)])
    with path.open("ab") as file:
        file.write(b'{"format": "nsys-report rec')
    store.append([a_record(2.0)])
    assert path.read_bytes().count(b"\n") == 3
    with pytest.raises(InputError, match="line 2"):
        store.read()


def test_what_is_no_history_is_said(tmp_path: Path) -> None:
    for name, text in (
        ("a.jsonl", "[1]\n"),
        ("b.jsonl", '{"format": "nsys-report record"}\n'),
        ("c.sqlite", "no database, but text " * 50),
    ):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError):
            open_store(path).read()


def test_no_folder_is_made_for_a_history(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no directory"):
        open_store(tmp_path / "absent" / "history.jsonl")
    assert not (tmp_path / "absent").exists()


def test_record_and_compare(fixture_path: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    registry = tmp_path / "history.jsonl"

    def arguments(command: str, name: str) -> list[str]:
        capture, dump = (str(fixture_path("compared", name, part)) for part in ("capture.sqlite", "xla_dump"))
        return [command, capture, "--xla-dump", dump, "--registry", str(registry), "--case", "decode"]

    assert run([*arguments("record", "again_1"), "--no-record"]) == 0
    assert not registry.exists()
    for name in ("again_1", "again_2", "again_1"):
        assert run([*arguments("record", name), "--label", "xla=0.11.2"]) == 0
    records = open_store(registry).read()
    assert len(records) == 3
    assert records[0].gpu == "NVIDIA H200" and records[0].environment["xla"] == "0.11.2"
    assert {"jit_decode_step:step_ns", "jit_decode_step:weights.time_ns", "jit_decode_step:weights.bytes", "joined_share"} <= set(
        records[0].figures
    )
    capsys.readouterr()
    out = tmp_path / "out.json"
    assert run([*arguments("compare", "changed_fusion"), "--out", str(out)]) == 3
    assert "regression" in capsys.readouterr().out
    figures = json.loads(out.read_text(encoding="utf-8"))["cases"][0]["figures"]
    assert figures["jit_decode_step:kernel_time_ns"]["flagged"] and figures["jit_decode_step:weights.bytes"]["flagged"]
    assert run([*arguments("compare", "again_2"), "--perturb"]) == 3
    assert run([*arguments("compare", "again_2"), "--perturb", "1us"]) == 1
    assert "case decode" in capsys.readouterr().err
    assert run([*arguments("compare", "again_2"), "--perturb=soon"]) == 2
    assert run(["compare", "--perturb", *arguments("compare", "again_2")[1:]]) == 3  # what follows is the capture, not a time
    assert len(open_store(registry).read()) == 3


STEP_LINE = "import json; print(json.dumps({{'format': 'nsys-report steps', 'name': 'x', 'gpu': 'G', 'median_ns': {ns}, 'peak_bytes': 5}}))"


def cases_file(folder: Path, ns: int) -> Path:
    command = json.dumps([sys.executable, "-c", STEP_LINE.format(ns=ns)])
    text = f"""
registry = "history.jsonl"
[[case]]
name = "fast"
command = {command}
[[case]]
name = "sometimes"
command = {command}
treat = "once"
[[case]]
name = "large"
captures = ["absent.sqlite"]
treat = "skipped"
reason = "needs two GPUs"
"""
    path = folder / "cases.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_bench_measures_compares_and_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = str(cases_file(tmp_path, 2_000_000))
    for _ in range(3):
        assert run(["bench", cases]) == 0
    history = tmp_path / "history.jsonl"
    assert [r.case for r in open_store(history).read()] == ["fast"] * 3
    said = capsys.readouterr().out
    assert "skipped: needs two GPUs" in said and "run once" in said
    assert run(["bench", cases, "--perturb"]) == 3
    assert run(["bench", cases, "--perturb", "3ms"]) == 3
    assert run(["bench", cases, "--perturb", "10us"]) == 1
    assert "case fast" in capsys.readouterr().err
    cases_file(tmp_path, 4_000_000)
    assert run(["bench", cases, "--no-record", "--out", str(tmp_path / "out.json")]) == 3
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["flagged"] == ["fast"]
    assert len(open_store(history).read()) == 3
    assert run(["bench", cases]) == 3  # a regression is recorded: a trend without it would hide it
    assert len(open_store(history).read()) == 4


def test_a_case_that_fails_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, said in (
        ([sys.executable, "-c", "raise SystemExit(7)"], "ended with 7"),
        (["no-such-program"], "no program"),
        ([sys.executable, "-c", ""], "no line"),
    ):
        path = tmp_path / "cases.toml"
        path.write_text(f'registry = "h.jsonl"\n[[case]]\nname = "mine"\ncommand = {json.dumps(command)}\n', encoding="utf-8")
        assert run(["bench", str(path)]) == 1
        error = capsys.readouterr().err
        assert "case mine" in error and said in error


def test_one_case_that_fails_leaves_the_others_their_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = cases_file(tmp_path, 2_000_000)
    path.write_text(path.read_text(encoding="utf-8") + '[[case]]\nname = "bad"\ncommand = ["no-such-program"]\n', encoding="utf-8")
    assert run(["bench", str(path)]) == 1
    said = capsys.readouterr()
    assert "failed: case bad" in " ".join(said.out.split()) and "case bad" in said.err
    assert [r.case for r in open_store(tmp_path / "history.jsonl").read()] == ["fast"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        '[[case]]\nname = "a"\n',
        '[[case]]\nname = "a"\ncommand = "python"\n',
        '[[case]]\nname = "a"\ntreat = "skipped"\n',
        '[[case]]\nname = "a"\ncommand = ["x"]\nspeed = 3\n',
        '[[case]]\nname = "a"\ncommand = ["x"]\n[[case]]\nname = "a"\ncommand = ["x"]\n',
    ],
)
def test_cases_that_cannot_be_are_wrong_use(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cases.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError):
        read_cases(path)


def test_a_change_of_level_is_found_with_its_commits_and_a_spike_is_none() -> None:
    """Eight records about 10 ms, one spike, then eight about 12 ms: one change, +20 %, between the commits on either side."""
    values = [10.0, 10.1, 9.9, 10.0, 15.0, 10.1, 9.9, 10.0, 12.0, 12.1, 11.9, 12.0, 12.1, 11.9, 12.0, 12.0]
    history = [Record("decode", f"2026-01-{n + 1:02}", "G", {"f:step_ns": v * MS}, {"commit": f"c{n}"}) for n, v in enumerate(values)]
    series = series_of(history)[0]
    assert [(level.first, level.last) for level in series.levels] == [(0, 7), (8, 15)]
    assert series.levels[1].change == pytest.approx(0.2, abs=0.01)
    assert series.since(series.levels[1]) == "c7..c8"


@pytest.mark.parametrize("values", [[], [1.0], [5.0] * 20, [10.0, 10.1] * 8, [0.0] * 8, [1.0, 2.0, 3.0]])
def test_without_a_change_there_is_one_level_at_most(values: list[float]) -> None:
    assert len(list(levels(values))) <= 1


def test_the_trend_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = tmp_path / "h.jsonl", tmp_path / "t.html"
    open_store(path).append([a_record(v) for v in [10.0] * 5 + [13.0] * 5])
    open_store(path).append([a_record(2.0, "<prefill>")])
    assert run(["trend", str(path), "--html", str(page)]) == 0
    assert "1 with a change of level" in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 2 and 'class="mark"' in text and "&lt;prefill&gt;" in text and "<script" not in text
    assert run(["trend", str(path), "--case", "absent"]) == 2
    assert run(["trend", str(tmp_path / "none.jsonl")]) == 1
