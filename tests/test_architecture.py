"""The imports tell the architecture, and this holds them to it; so do the sizes of files and functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("hlo_mapping", "nsys_report")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

RENDERERS = (
    "nsys_report/units.py",
    "nsys_report/reports/model.py",
    "nsys_report/reports/terminal_page.py",
    "nsys_report/reports/html/charts.py",
    "nsys_report/reports/html/data.py",
    "nsys_report/reports/html/page.py",
    "nsys_report/reports/figures/bars.py",
    "nsys_report/reports/figures/canvas.py",
    "nsys_report/reports/figures/files.py",
    "nsys_report/reports/figures/roofline.py",
    "nsys_report/reports/figures/times.py",
    "nsys_report/reports/pictures/model.py",
    "nsys_report/reports/palette.py",
    "nsys_report/reports/markdown.py",
    "nsys_report/reports/export.py",
    "nsys_report/reports/csv_files.py",
)
FORBIDDEN = {
    "hlo_mapping/": ("nsys_report", "click", "rich", "jinja2", "matplotlib", "sqlalchemy", "adbc_driver_sqlite", "bokeh", "perfetto"),
    "nsys_report/capture/": (
        "click",
        "rich",
        "jinja2",
        "matplotlib",
        "nsys_report.cli",
        "nsys_report.reports",
        "nsys_report.analysis",
        "nsys_report.findings",
        "nsys_report.executions",
    ),
    "nsys_report/executions/": (
        "click",
        "rich",
        "jinja2",
        "matplotlib",
        "nsys_report.cli",
        "nsys_report.reports",
        "nsys_report.findings",
        "nsys_report.analysis.results",
    ),
    "nsys_report/analysis/": ("click", "rich", "jinja2", "matplotlib", "nsys_report.cli", "nsys_report.reports", "nsys_report.findings"),
    "nsys_report/findings/": ("click", "rich", "jinja2", "matplotlib", "nsys_report.cli", "nsys_report.reports"),
    "nsys_report/reports/": ("click", "sqlalchemy", "adbc_driver_sqlite", "nsys_report.cli"),
    "nsys_report/cli/": ("sqlalchemy", "adbc_driver_sqlite", "matplotlib"),
}
"""What the files of a folder may not import: a finished value comes in from the stage before, and nothing knows the stage after."""
FINDING_MAKERS = tuple(f"nsys_report.findings.{name}" for name in ("apply", "overlap", "parts", "rules", "step", "thresholds"))
NOT_FOR_RENDERERS = ("nsys_report.capture", "nsys_report.analysis", *FINDING_MAKERS, "nsys_report.pipeline", "hlo_mapping")

LONGEST_FILE = 400
LONGEST_FUNCTION = 60
MOST_UNDER = 40
"""Nine functions in ten are shorter."""


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> set[str]:
    """Every module that a file imports, also inside functions, but not for type checking alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)}: a relative import"
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("path", FILES, ids=name)
def test_imports_go_one_way(path: Path) -> None:
    banned = {b for folder, modules in FORBIDDEN.items() if name(path).startswith(folder) for b in modules}
    if name(path) in RENDERERS:
        banned |= set(NOT_FOR_RENDERERS)
    wrong = {module for module in imports(path) for b in banned if within(module, b)}
    assert not wrong


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
