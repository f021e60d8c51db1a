"""The ledger: accounts that add up to the step above its floor, claimed once."""

from __future__ import annotations

import pytest

from nsys_report.findings.explained import explained
from nsys_report.findings.ledger import Account, instruction_shares, make_accounts, settle
from nsys_report.findings.model import Finding
from tests.nsys_report.findings_samples import FIXTURES, analysis

CAPTURES = sorted(path.parent.name for path in FIXTURES.glob("*/capture.sqlite"))


def finding(slug: str, claims: dict[tuple[str, ...], float], gain: float | None = None) -> Finding:
    return Finding(slug, "Title", "Why.", "Remedy.", "sure", "Basis", claims=claims, gain_ns=gain)


def record(number: int, moved: int | None, weights: int = 0, detail: str = "softmax") -> dict[str, object]:
    return {
        "instruction_id": number,
        "kernel_class": "attention",
        "class_detail": detail,
        "bytes_accessed": moved,
        "weight_bytes": weights,
        "kv_read_bytes": 0,
        "kv_write_bytes": 0,
    }


def test_instructions_share_rows_of_the_budget_by_what_the_rows_are_made_of() -> None:
    """100 ns of traffic of two instructions that move 300 and 100 bytes needlessly; 90 ns above the roof, 20 and 10 ns theirs."""
    records = [record(1, 400, weights=100), record(2, 100)]
    spent, roofs = {1: 120.0, 2: 60.0}, {1: {"roof_time_ns": 100.0}, 2: {"roof_time_ns": 50.0}}
    rows = {("traffic", "attention: softmax"): 100.0, ("below_roof", "attention"): 90.0, ("floor", "weights"): 50.0, ("idle", "x"): 7.0}
    accounts = make_accounts(rows, {}, {}, instruction_shares(records, spent, roofs, rows))
    assert {source: account.ns for source, account in accounts.items()} == {
        ("traffic", "1"): 75.0,
        ("traffic", "2"): 25.0,
        ("below_roof", "1"): 60.0,
        ("below_roof", "2"): 30.0,
        ("part", "idle", "x"): 7.0,
    }
    assert accounts[("traffic", "1")].row == ("traffic", "attention: softmax")


def test_what_happens_in_few_steps_only_is_no_part_of_the_typical_one() -> None:
    accounts = make_accounts({}, {("launch", "graph_updates"): 40.0}, {("host", "host_work"): 30.0}, {})
    assert accounts[("part", "launch", "graph_updates")] == Account(("launch", "graph_updates"), 0.0, 40.0)
    assert accounts[("outside", "host", "host_work")].ns == 30.0


def test_no_moment_is_claimed_twice_and_a_gain_shrinks_with_its_claims() -> None:
    """The second claims 100 + 100 ns and gets 25 + 100: five eighths of its gain."""
    one, other = ("part", "host", "host_work"), ("part", "copies", "to_host")
    accounts = {one: Account(("host", "host_work"), 100.0, 100.0), other: Account(("copies", "to_host"), 100.0, 100.0)}
    everything = {one: 1.0, other: 1.0, ("part", "no", "such"): 1.0}
    (first, second), left = settle(accounts, [finding("a", {one: 0.75}, 75.0), finding("b", everything, 80.0)])
    assert (first.explained_ns, first.gain_ns) == (75.0, 75.0)
    assert (second.explained_ns, second.gain_ns) == (125.0, 50.0)
    assert left == {one: 0.0, other: 0.0}
    assert second.explains == {("host", "host_work"): 25.0, ("copies", "to_host"): 100.0}


def test_a_gain_that_nobody_knows_stays_unknown() -> None:
    one = ("part", "host", "host_work")
    (only,), _ = settle({one: Account(("host", "host_work"), 10.0, 10.0)}, [finding("a", {one: 1.0})])
    assert only.gain_ns is None and only.explained_ns == 10.0


@pytest.mark.parametrize("name", CAPTURES)
def test_findings_never_explain_more_than_the_step_above_its_floor(name: str) -> None:
    made = analysis(name)
    for one in explained(made.causes, made.results):
        assert 0 <= one.explained_ns <= one.above_floor_ns * (1 + 1e-9), one
    for found in made.causes:
        assert found.explained_ns == pytest.approx(sum(found.explains.values()))
