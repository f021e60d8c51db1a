"""Snapshots of reports: a difference is found, named and readable; the same report has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import snapshots


def test_a_document_is_a_line_for_each_row_named_by_what_it_is() -> None:
    value = {"a": 1, "rows": [{"x": 1, "y": None}, {"x": 2, "y": "µ"}], "parts": [{"name": "p", "facts": {"f": {"value": 3}}}]}
    assert snapshots.document(value).splitlines() == [
        "/a 1",
        '/rows[] {"x": 1, "y": null}',
        '/rows[] {"x": 2, "y": "µ"}',
        '/parts[p]/name "p"',
        '/parts[p]/facts/f {"value": 3}',
    ]


def test_a_report_is_like_itself_and_a_changed_figure_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert snapshots.main(["take", str(tmp_path), "torch_mlp"]) == 0
    assert snapshots.main(["compare", str(tmp_path), "torch_mlp"]) == 0
    assert capsys.readouterr().out.endswith("torch_mlp: the same\n")
    page = tmp_path / "torch_mlp" / "terminal.txt"
    page.write_text(page.read_text(encoding="utf-8").replace("NVIDIA", "AMD", 1), encoding="utf-8")
    assert snapshots.main(["compare", str(tmp_path), "torch_mlp"]) == 3
    shown = capsys.readouterr().out
    assert shown.startswith("torch_mlp/terminal.txt: 2 rows\n")
    assert "  -" in shown and "  +" in shown and "AMD" in shown


def test_an_unknown_fixture_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert snapshots.main(["take", str(tmp_path), "no-such"]) == 2
    assert "no fixture no-such" in capsys.readouterr().err
