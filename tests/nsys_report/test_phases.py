"""Phases of a captured training step add up to its kernels' time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nsys_report.analysis.results import AnalysisResults
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
