"""Findings as values: thresholds, what several rules claim, the order, programs that share a cause, narrowing."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

import nsys_report.findings
from nsys_report.findings.model import Finding, Place
from nsys_report.findings.rules.apply import find
from nsys_report.findings.thresholds import threshold, thresholds
from nsys_report.joined import Joined
from tests.nsys_report.findings_samples import analysis, findings, found, run
from tests.nsys_report.test_findings_rules import EXACT

FOLDER = Path(nsys_report.findings.__file__).parent
BARE = Finding("slug", "Title", "Why.", "Remedy.", "sure", "Basis")


def test_every_threshold_is_used_and_every_one_used_is_there() -> None:
    folders = (FOLDER, FOLDER.parent / "ranks")
    text = "\n".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py"))
    used = set(re.findall(r'threshold\("(\w+)", "(\w+)"\)', text))
    assert used == {(subject, name) for subject, table in thresholds().items() for name in table}
    with pytest.raises(KeyError):
        threshold("programs", "no such")


def test_two_rules_do_not_claim_the_same_time() -> None:
    """One product of 20 µs is both on slow cores and far below its roof: more than it takes cannot be won."""
    made = found(run(EXACT, {"dot.1": 20_000}, between=1000), None, tf32=400.0, f32=40.0)
    gains = [finding.gain_ns or 0.0 for finding in made.values() if finding.places]
    assert made["slow-cores"].gain_ns and sum(gains) <= 20_000


def test_a_cause_in_two_programs_is_one_finding() -> None:
    made = findings("serve")
    waiting = made["waiting-for-host"]
    assert waiting.hlo_module == "jit_decode_step"
    assert waiting.also[0].hlo_module == "jit_prefill_chunk"
    assert {other.hlo_module for other in waiting.also[1:]} == {"jit_stage"}, "which run in its steps, and gain nothing by themselves"
    assert all(other.gain_ns is None for other in waiting.also[1:])
    assert waiting.total_gain_ns == pytest.approx(
        waiting.gain_ns * waiting.executions + waiting.also[0].gain_ns * waiting.also[0].executions
    )


def test_findings_of_some_programs() -> None:
    made = analysis("serve")
    prefill = next(key for key in _programs(made.joined) if key[0] == "jit_prefill_chunk")
    chosen = find(made.joined, made.results, made.health, {prefill})
    assert {finding.hlo_module for finding in chosen} == {"jit_prefill_chunk"}
    assert not any(finding.also for finding in chosen)


def test_narrowing_an_analysis_narrows_its_findings() -> None:
    made = analysis("serve").module("jit_prefill_chunk")
    assert {finding.hlo_module for finding in made.causes} == {"jit_prefill_chunk"}
    assert "scores-written" in {finding.slug for finding in made.causes}


def test_nothing_is_found_twice_and_input_stays_as_it_was() -> None:
    made = analysis("decode")
    before = made.joined.activities.nbytes, made.results.instructions.num_rows
    assert find(made.joined, made.results) == made.causes
    assert (made.joined.activities.nbytes, made.results.instructions.num_rows) == before
    assert len({finding.slug for finding in made.causes}) == len(made.causes)


def test_severity_follows_what_is_to_be_gained() -> None:
    assert BARE.severity == "info"
    assert dataclasses.replace(BARE, share=0.1).severity == "warning"
    assert dataclasses.replace(BARE, damage=True).severity == "error"


def test_a_figure_that_is_not_there() -> None:
    with pytest.raises(KeyError):
        BARE.value("time_ns")


def test_the_source_of_a_place() -> None:
    assert Place("dot.1", 1.0, 1.0, None, source_file="model.py", source_line=7).source == "model.py:7"
    assert Place("dot.1", 1.0, 1.0, None).source == ""


def _programs(joined: Joined) -> set[tuple[str | None, int | None]]:
    table = joined.executions
    return set(zip(table["hlo_module"].to_pylist(), table["program_id"].to_pylist(), strict=True))
