"""The imports tell the architecture, and this holds them to it; so do the sizes of files and functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import hlo_mapping
from tests import architecture

ROOT = architecture.ROOT
FILES = sorted(path for package in architecture.PACKAGES for path in (ROOT / package).rglob("*.py"))
TREE = architecture.source_tree()

LONGEST_FILE = 400
LONGEST_FUNCTION = 60
MOST_UNDER = 40
"""Nine functions in ten are shorter."""


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_every_import_is_allowed() -> None:
    """A file that no line of tests/architecture.py names is one with itself."""
    assert architecture.violations(TREE) == set()


def test_no_files_and_no_folders_need_each_other() -> None:
    assert architecture.file_circles(TREE) == []
    assert architecture.folder_circles(TREE) == []


def test_every_room_reaches_only_what_stands_above_it() -> None:
    above: set[str] = set()
    for room in architecture.RULES:
        assert room.name in TREE or any(architecture.folder_of(file) == room.name for file in TREE), f"there is no {room.name}"
        unknown = {target for target in room.rooms if target not in above and architecture.folder_of(target) not in above}
        assert not unknown, f"{room.name} reaches for what does not stand above it"
        assert not {target for target in room.rooms if target.endswith(".py") and target not in TREE}, f"{room.name} names what is gone"
        above.add(room.name)


def test_the_rest_of_the_house_knows_hlo_by_its_door_alone() -> None:
    reached = {target for room in architecture.RULES if room.name.startswith("nsys_report/") for target in room.rooms}
    assert {target for target in reached if target.startswith("hlo_mapping/")} == {"hlo_mapping/__init__.py"}


def test_every_name_of_the_door_loads_and_is_what_type_checking_sees() -> None:
    typed = re.findall(r"from (hlo_mapping[.\w]*) import (\w+) as \2$", TREE["hlo_mapping/__init__.py"], re.MULTILINE)
    assert sorted(name for _, name in typed) == hlo_mapping.__all__
    assert all(getattr(hlo_mapping, name) is getattr(import_module(home), name) for home, name in typed)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = hlo_mapping.nothing


def planted(file: str, source: str) -> set[tuple[str, str]]:
    """What is wrong with a copy of the sources in which a file ends in those lines; a file that is not there is new."""
    return architecture.violations({**TREE, file: TREE.get(file, "") + source})


@pytest.mark.parametrize(
    ("file", "source", "target"),
    [
        ("hlo_mapping/text/parser.py", "\nfrom hlo_mapping.matching.join import join\n", "hlo_mapping/matching/join.py"),
        ("hlo_mapping/shape.py", "\nimport hlo_mapping.classification.rules\n", "hlo_mapping/classification/rules.py"),
        ("hlo_mapping/costs/flops.py", "\nfrom hlo_mapping.classification import rules\n", "hlo_mapping/classification/rules.py"),
        ("hlo_mapping/dataflow.py", "\nfrom nsys_report import units\n", "nsys_report/units.py"),
        ("nsys_report/findings/flow.py", "\nfrom hlo_mapping.dataflow import build_graph\n", "hlo_mapping/dataflow.py"),
        ("nsys_report/findings/rules/host.py", "\nfrom nsys_report.capture import sqlite\n", "nsys_report/capture/sqlite.py"),
        (
            "nsys_report/joined.py",
            "\nif TYPE_CHECKING:\n    from nsys_report.reports.model import Report\n",
            "nsys_report/reports/model.py",
        ),
        ("nsys_report/pipeline.py", "\ndef late():\n    from nsys_report.cli.app import run\n", "nsys_report/cli/app.py"),
        ("nsys_report/measuring/measure.py", "\nfrom nsys_report.cli import app\n", "nsys_report/cli/app.py"),
        (
            "nsys_report/reports/perfetto/trace.py",
            "\nfrom nsys_report.analysis.idle.idle_times import idle_times\n",
            "nsys_report/analysis/idle/idle_times.py",
        ),
        (
            "nsys_report/reports/markdown.py",
            "\nfrom nsys_report.analysis.results import compute_results\n",
            "nsys_report/analysis/results.py",
        ),
        ("nsys_report/analysis/budget/parts.py", "\nimport click\n", "click"),
        ("nsys_report/analysis/budget/parts.py", "\nfrom . import idle\n", "..idle"),
        ("nsys_report/units.py", '\nLATER = "nsys_report.notebook"\n', "nsys_report/notebook.py"),
        ("nsys_report/anywhere.py", "", "nsys_report/anywhere.py"),
        ("hlo_mapping/newcomers/first.py", "", "hlo_mapping/newcomers/first.py"),
    ],
)
def test_a_planted_import_is_caught(file: str, source: str, target: str) -> None:
    assert planted(file, source) == {(file, target)}


def test_planted_circles_are_caught() -> None:
    tree = {**TREE, "hlo_mapping/text/lexer.py": TREE["hlo_mapping/text/lexer.py"] + "\nfrom hlo_mapping.text import parser\n"}
    assert {"hlo_mapping/text/lexer.py", "hlo_mapping/text/parser.py"} <= architecture.file_circles(tree)[0]
    tree = {**TREE, "hlo_mapping/costs/flops.py": "from hlo_mapping.classification import rules"}
    assert {"hlo_mapping/costs/", "hlo_mapping/classification/"} <= architecture.folder_circles(tree)[0]


ON_BOTH_SIDES = {"Window"}
"""What a program's hook and this package both have: the hook runs without the package."""


def test_no_two_types_have_one_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name(path))
    assert {one: files for one, files in homes.items() if len(files) > 1 and one not in ON_BOTH_SIDES} == {}


def functions() -> Iterator[tuple[str, int]]:
    """Every function with its length in lines."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield f"{name(path)}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_files_are_small_enough_to_hold_in_mind() -> None:
    long = {name(path): lines for path in FILES if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_FILE}
    assert not long


def test_functions_are_short() -> None:
    sizes = dict(functions())
    assert {n: lines for n, lines in sizes.items() if lines > LONGEST_FUNCTION} == {}
    assert sum(lines < MOST_UNDER for lines in sizes.values()) >= 0.9 * len(sizes)


def test_every_module_says_what_it_is() -> None:
    silent = [name(path) for path in FILES if (text := path.read_text(encoding="utf-8")).strip() and not ast.get_docstring(ast.parse(text))]
    assert not silent


def test_nothing_points_at_the_machine_it_was_written_on() -> None:
    private = re.compile(r"(?<![\w.])/(?:work|root)/|/tmp/\w+")
    texts = [
        p
        for p in (*FILES, *(ROOT / "tests").rglob("*.py"), ROOT / "README.md", ROOT / "pyproject.toml")
        if p.is_file() and p != Path(__file__)
    ]
    assert [name(path) for path in texts if private.search(path.read_text(encoding="utf-8"))] == []
