"""Lines of source beside findings: found by the end of their path, never outside of the directory; findings as the text of an issue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from nsys_report.cli.app import group
from nsys_report.errors import InputError
from nsys_report.findings.model import Finding, Place
from nsys_report.reports.markdown import fenced, issue
from nsys_report.sources import open_sources

LINES = [f"line {n}" for n in range(1, 11)]
FIXTURES = Path(__file__).parent.parent.parent / "fixtures"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two files of one name, another one, and a link that leads out."""
    for name in ("proj/a/model.py", "proj/b/model.py", "proj/a/layers.py", "elsewhere/secret.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(f"{name}: {line}" for line in LINES))
    (tmp_path / "proj" / "leak.py").symlink_to(tmp_path / "elsewhere" / "secret.py")
    (tmp_path / "proj" / "out").symlink_to(tmp_path / "elsewhere")
    return tmp_path / "proj"


def test_the_line_and_those_around_it(tree: Path) -> None:
    found = open_sources(tree).snippet("a/layers.py", 9).split("\n")
    assert found == [f"  {n:>2}  proj/a/layers.py: line {n}" if n != 9 else f"> {n:>2}  proj/a/layers.py: line {n}" for n in range(7, 11)]


def test_the_file_whose_path_ends_alike(tree: Path) -> None:
    sources = open_sources(tree)
    assert sources.find("some/package/a/model.py") == tree / "a" / "model.py"
    assert sources.find("model.py") is None  # two of them
    assert sources.find("layers.py") == tree / "a" / "layers.py"


AWAY = ("leak.py", "secret.py", "out/secret.py", "../elsewhere/secret.py", "/etc/passwd", "", "gone.py")


@pytest.mark.parametrize(("name", "line"), [*((name, 1) for name in AWAY), ("a/layers.py", 99), ("a/layers.py", 0)])
def test_nothing_outside_and_nothing_that_is_not_there(tree: Path, name: str, line: int) -> None:
    assert open_sources(tree).snippet(name, line) == ""


def test_a_directory_that_is_none(tree: Path) -> None:
    with pytest.raises(InputError, match="is a file"):
        open_sources(tree / "a" / "layers.py")
    made = CliRunner().invoke(group, ["report", str(FIXTURES / "decode" / "capture.sqlite"), "--source", str(tree / "gone")])
    assert made.exit_code == 1
    assert "is not there" in str(made.output) + str(made.exception)


PLACE = Place("dot.1", 1500.0, 1.0, None, "dot.1 = f32[8] dot(a, b)", None, "model.py", 9, "h[0].up", "> 9  y = x @ `w`")
FINDING = Finding("slow", "A product is slow", "It is.", "Make it fast.", "likely", "a guess", places=(PLACE,))


def test_a_finding_as_an_issue() -> None:
    text = issue(FINDING, ("H200 · nsys 2023.4", "nsys-report 1"))
    lines = text.split("\n")
    assert lines[0] == "# A product is slow"
    assert "**To do:** Make it fast." in lines
    assert "`h[0].up`: 1.50 µs each time (model.py:9)" in lines
    assert lines[lines.index("```python") + 1] == "> 9  y = x @ `w`"
    assert lines[-3:] == ["- H200 · nsys 2023.4", "- nsys-report 1", ""]
    assert issue(replace(FINDING, places=()), ()).count("```") == 0


def test_backticks_do_not_end_a_block() -> None:
    assert fenced("a ``` b", "") == ("````", "a ``` b", "````", "")
