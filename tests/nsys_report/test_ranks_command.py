"""`nsys-report report` of ranks: two real processes of one run, of which rank 1 sleeps before every third step."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nsys_report
from nsys_report.cli import app
from nsys_report.errors import InputError, UsageError
from nsys_report.ranks.paths import dumps_for, expanded, in_order, ranks_of
from tests.conftest import FIXTURES

RANKS = FIXTURES / "ranks"


Report = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Report:
    """report(arguments) gives the exit code, the JSON document and all that was printed."""

    def run(*arguments: str) -> tuple[int, dict[str, Any], str]:
        file = tmp_path / "run.json"
        code = app.run(["report", *arguments, "--json", str(file)])
        printed = capsys.readouterr()
        text = printed.out + printed.err
        assert file.exists(), text
        return code, json.loads(file.read_text()), text

    return run


def table(document: dict[str, Any], key: str) -> list[dict[str, Any]]:
    (part,) = document["captures"]
    (section,) = (s for s in part["sections"] if s["key"] == "ranks")
    return list(section["tables"][key]["rows"])


def test_two_ranks_are_one_report_that_names_the_one_that_sleeps(report: Report, tmp_path: Path) -> None:
    captures = [str(RANKS / f"rank_{n}" / "capture.sqlite") for n in range(2)]
    code, document, text = report(*captures, "--xla-dump", str(RANKS / "rank_{rank}" / "xla_dump"))
    assert code == 0 and len(document["captures"]) == 1, text
    first, second = table(document, "ranks")
    assert (first["rank"], first["clock_offset_ns"], first["steps"]) == (0, 0, 6)
    assert second["clock_offset_ns"] == pytest.approx(87_186_000, abs=10_000)  # the starts of the whole captures' sessions say 87,190,965
    assert second["clock_error_ns"] < 15_000
    assert (first["busy_ns"], second["busy_ns"]) == pytest.approx(
        (40_644_000, 33_100_000), rel=0.02
    )  # rank 1 waits 87 ms for the capture of rank 0
    (late,) = table(document, "late")
    assert (late["rank"], late["steps_late"], late["late_steps"], late["cause"]) == (1, 2, "2, 5", "host_work")
    assert late["median_ns"] == pytest.approx(3_740_000, rel=0.02)  # it sleeps 4 ms; rank 0 is the slower one otherwise
    arrivals = table(document, "arrivals")
    assert len(arrivals) == 2 * 6 * 7
    assert [row["counted"] for row in arrivals if row["collective"] == "all-gather.25" and row["rank"] == 0] == [False] + [True] * 5
    finding = document["captures"][0]["findings"][0]
    assert finding["slug"] == "rank-late" and finding["title"].startswith("Rank 1 arrives")
    assert "RANKS" in text


def test_collectives_move_what_their_shapes_say(report: Report, tmp_path: Path) -> None:
    """all-gather.25 gathers 1,024 × (3,072 + 1,024 + 4,096 + 4,096 + 3,072) values of two bytes."""
    pattern = str(RANKS / "rank_{rank}" / "capture.sqlite")
    _, document, _ = report(pattern, "--xla-dump", str(RANKS / "rank_{rank}" / "xla_dump"), "--jobs", "1")
    rows = {row["collective"]: row for row in table(document, "collectives")}
    first = rows["all-gather.25"]
    assert first["bytes"] == 1024 * (3072 + 1024 + 4096 + 4096 + 3072) * 2
    assert first["algorithm_bytes_per_s"] == pytest.approx(first["bytes"] * 1e9 / first["moving_ns"])
    assert first["bus_bytes_per_s"] == pytest.approx(first["algorithm_bytes_per_s"] / 2)
    assert {row["kind"] for row in rows.values()} == {"all-gather", "reduce-scatter", "all-reduce"}
    assert all(row["waiting_ns"] <= row["time_ns"] and row["exposed_ns"] <= row["time_ns"] for row in rows.values())


def test_a_damaged_rank_is_named_and_the_rest_reported(report: Report, tmp_path: Path) -> None:
    for n in range(2):
        shutil.copytree(RANKS / f"rank_{n}", tmp_path / f"rank_{n}")
    (tmp_path / "rank_2").mkdir()
    (tmp_path / "rank_2" / "capture.sqlite").write_bytes(b"SQLite format 3\0" + bytes(40))
    code, document, text = report(str(tmp_path / "rank_{rank}" / "capture.sqlite"), "--xla-dump", str(tmp_path / "rank_{rank}/xla_dump"))
    assert code == 1 and "rank_2/capture.sqlite is left out" in text
    assert [row["rank"] for row in table(document, "ranks")] == [0, 1]
    assert "rank-failed" in [notice["slug"] for notice in document["captures"][0]["notices"]]


def test_without_a_dump_the_kernels_names_tell_the_collectives(report: Report, tmp_path: Path) -> None:
    code, document, _ = report(str(RANKS))
    assert code == 0
    assert [(row["rank"], row["steps_late"]) for row in table(document, "late")] == [(1, 2)]
    assert {row["kind"] for row in table(document, "collectives")} == {"all-gather", "reduce-scatter", "all-reduce"}


def test_devices_of_one_capture_are_ranks_too(report: Report, tmp_path: Path) -> None:
    sharded = FIXTURES / "sharded_nocb"
    code, document, _ = report(str(sharded / "capture.sqlite"), "--xla-dump", str(sharded / "xla_dump"))
    assert code == 0
    assert [(row["rank"], row["device"], row["clock_offset_ns"]) for row in table(document, "ranks")] == [(0, 0, 0), (1, 1, 0)]


def test_captures_of_different_runs_keep_a_part_each(report: Report, tmp_path: Path) -> None:
    captures = [str(FIXTURES / name / "capture.sqlite") for name in ("train", "int8")]
    code, document, _ = report(*captures)
    assert code == 0 and [part["name"] for part in document["captures"]] == ["train/capture.sqlite", "int8/capture.sqlite"]
    forced = [str(RANKS / f"rank_{n}" / "capture.sqlite") for n in range(2)]
    _, document, _ = report(*forced, "--no-ranks")
    assert len(document["captures"]) == 2


def test_a_pattern_of_dumps_goes_with_captures_that_are_no_ranks(report: Report) -> None:
    code, document, _ = report(
        str(RANKS / "rank_{rank}" / "capture.sqlite"), "--no-ranks", "--xla-dump", str(RANKS / "rank_{rank}" / "xla_dump")
    )
    assert code == 0 and [part["name"] for part in document["captures"]] == ["rank_0/capture.sqlite", "rank_1/capture.sqlite"]


def test_no_output_is_written_into_a_dump_that_a_pattern_means(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for n in range(2):
        shutil.copytree(RANKS / f"rank_{n}", tmp_path / f"rank_{n}")
    dumps, inside = str(tmp_path / "rank_{rank}" / "xla_dump"), tmp_path / "rank_1" / "xla_dump" / "report.json"
    assert app.run(["report", str(tmp_path / "rank_{rank}" / "capture.sqlite"), "--xla-dump", dumps, "--json", str(inside)]) == 2
    assert "lies in the input" in capfd.readouterr().err and not inside.exists()


def test_paths_of_ranks(tmp_path: Path) -> None:
    for n in (0, 2, 10):
        (tmp_path / f"rank_{n}").mkdir()
        (tmp_path / f"rank_{n}" / "capture.sqlite").touch()
    found = expanded([tmp_path / "rank_{rank}" / "capture.sqlite"])
    assert [p.parent.name for p in found] == ["rank_0", "rank_2", "rank_10"] == [p.parent.name for p in expanded([tmp_path])]
    assert ranks_of(found) == ["0", "2", "10"]
    assert in_order(found[::-1]) == found
    assert dumps_for(found, [Path("dump{rank}")]) == [Path("dump0"), Path("dump2"), Path("dump10")]
    assert dumps_for(found, [Path("dump")]) == [Path("dump")] * 3 and dumps_for(found, []) == [None] * 3
    assert ranks_of([Path("a/x.sqlite"), Path("b/y.sqlite")]) == ["0", "1"]
    assert dumps_for([Path("r007.sqlite"), Path("r010.sqlite")], [Path("d{rank}")]) == [Path("d007"), Path("d010")]
    with pytest.raises(UsageError):
        dumps_for(found, [Path("a"), Path("b")])
    with pytest.raises(InputError):
        expanded([tmp_path / "gone_{rank}.sqlite"])


def test_a_directory_holds_packed_captures_too(tmp_path: Path) -> None:
    """One packed, one not, one both ways, of which the unpacked counts."""
    for name in ("rank_0/capture.sqlite.gz", "rank_1/capture.sqlite", "rank_2/capture.sqlite", "rank_2/capture.sqlite.zst"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = expanded([tmp_path])
    assert [str(p.relative_to(tmp_path)) for p in found] == ["rank_0/capture.sqlite.gz", "rank_1/capture.sqlite", "rank_2/capture.sqlite"]
    assert ranks_of(found) == ["0", "1", "2"]


def test_a_directory_of_reports_is_a_run(tmp_path: Path) -> None:
    for rank in (10, 2):
        (tmp_path / f"rank_{rank}.nsys-rep").touch()
    assert [p.name for p in expanded([tmp_path])] == ["rank_2.nsys-rep", "rank_10.nsys-rep"]


def test_captures_without_programs_have_no_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = shutil.copyfile(FIXTURES / "torch_mlp" / "capture.sqlite", tmp_path / "capture.sqlite")
    assert app.run(["report", str(FIXTURES / "torch_mlp" / "capture.sqlite"), str(other), "--ranks"]) == 1
    assert "there are no ranks to lay together" in capsys.readouterr().err


def test_ranks_from_python() -> None:
    found = nsys_report.analyze_ranks(RANKS / "rank_{rank}" / "capture.sqlite", RANKS / "rank_{rank}" / "xla_dump")
    assert found.late["rank"].tolist() == [1] and found.late["late_steps"].tolist() == ["2, 5"]
    assert len(found.arrivals) == 84 and set(found.collectives["kind"]) == {"all-gather", "reduce-scatter", "all-reduce"}
    assert found.ranks["steps"].tolist() == [6, 6] and not found.failures
    assert found.findings[0].slug == "rank-late" and repr(found).startswith("<Ranks: 42 collectives of 6 steps")
    assert "Late ranks" in found._repr_html_() and "Rank 1 arrives" in found._repr_html_()
    with pytest.raises(InputError):
        nsys_report.analyze_ranks([RANKS / "ORIGIN.md"])
