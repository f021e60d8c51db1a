"""Phases of a captured training step add up to its kernels' time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nsys_report.analysis.results import AnalysisResults
from nsys_report.cli import app
from nsys_report.joined import Joined
from nsys_report.pipeline import analyze


@pytest.fixture(scope="module")
def trained(fixture_path: Callable[..., Path]) -> tuple[Joined, AnalysisResults]:
    made = analyze(fixture_path("train", "capture.sqlite"), fixture_path("train", "xla_dump"))
    return made.joined, made.results


def test_phases_add_up_and_leave_little_unknown(trained: tuple[Joined, AnalysisResults]) -> None:
    _, results = trained
    rows = results.phases.to_pylist()
    assert [r["phase"] for r in rows] == ["forward", "loss", "backward", "optimizer"]
    steps = [r for r in results.instructions.to_pylist() if r["hlo_module"] == "jit_train_step"]
    assert sum(r["time_mean_ns"] for r in rows) == pytest.approx(sum(r["time_mean_ns"] for r in steps))
    assert sum(r["time_share"] for r in rows) == pytest.approx(1.0)
    by_phase = {r["phase"]: r["time_share"] for r in rows}
    assert by_phase["backward"] > by_phase["forward"]  # seven products against four
    assert {r["phase"] for r in steps} == set(by_phase)


def test_the_joined_capture_says_what_kind_each_program_is(trained: tuple[Joined, AnalysisResults]) -> None:
    joined, _ = trained
    kinds = {joined.programs[number].name: kind.kind for number, kind in joined.kinds.items()}
    assert kinds["jit_train_step"] == "training"


def test_no_phases_without_training(fixture_path: Callable[..., Path]) -> None:
    made = analyze(fixture_path("int8", "capture.sqlite"), fixture_path("int8", "xla_dump"))
    assert len(made.results.phases) == 0


def test_the_document_shows_phases_and_kinds_where_there_are_any(fixture_path: Callable[..., Path], tmp_path: Path) -> None:
    found = {}
    for name in ("train", "int8"):
        out = tmp_path / f"{name}.json"
        with pytest.raises(SystemExit) as done:
            app.main(
                ["report", str(fixture_path(name, "capture.sqlite")), "--xla-dump", str(fixture_path(name, "xla_dump")), "--json", str(out)]
            )
        assert done.value.code == 0
        sections = json.loads(out.read_text())["captures"][0]["sections"]
        found[name] = next(s for s in sections if s["key"].startswith("program:"))
    assert [row["phase"] for row in found["train"]["tables"]["phases"]["rows"]] == ["forward", "loss", "backward", "optimizer"]
    assert "phase" in [c["key"] for c in found["train"]["tables"]["instructions"]["columns"]]
    assert "phases" not in found["int8"]["tables"]
    assert [found[n]["facts"]["program_kind"]["value"] for n in ("train", "int8")] == ["training", "inference"]
