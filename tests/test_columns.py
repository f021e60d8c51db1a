"""Rows are read by column names; each name that the code asks for is one that a table has."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator

import pyarrow as pa
import pytest

import nsys_report.analysis
import nsys_report.findings.rules
import nsys_report.reports
from hlo_mapping import ACTIVITIES, COSTS, DETAILS, FACTS, JOIN, KERNEL_CLASSES, LAUNCHES
from nsys_report.columns import EXECUTION_TABLE
from tests import architecture

ROWS = frozenset({"record", "r", "row", "step", "module", "layer", "loop", "repeat", "program"})
"""What rows of tables are called where a single one is read."""
ROOMS = ("nsys_report/findings/", "nsys_report/reports/programs.py", "nsys_report/reports/capture_sections.py")


def schemas() -> Iterator[pa.Schema]:
    """Every schema of the house."""
    yield from (ACTIVITIES, COSTS, FACTS, JOIN, LAUNCHES, EXECUTION_TABLE)
    for package in (nsys_report.analysis, nsys_report.findings, nsys_report.reports):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, pa.Schema):
                    yield value


COLUMNS = {name for schema in schemas() for name in schema.names} | {"instruction_id", "bears_cost"}


def asked(source: str) -> set[str]:
    """The column names that a source takes from rows."""
    return {
        node.slice.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in ROWS
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    }


FILES = {file: text for file, text in architecture.source_tree().items() if file.startswith(ROOMS)}


def test_every_column_that_is_read_is_one_of_a_table() -> None:
    found = {file: asked(text) for file, text in FILES.items()}
    assert sum(map(len, found.values())) > 120
    assert {(file, name) for file, names in found.items() for name in names - COLUMNS} == set()


def test_a_column_that_no_table_has_is_seen() -> None:
    assert asked('total = sum(r["kernel_tme_ns"] for r in rows)') - COLUMNS == {"kernel_tme_ns"}


@pytest.mark.parametrize("words", [KERNEL_CLASSES, DETAILS])
def test_words_of_classes_are_told_apart(words: tuple[str, ...]) -> None:
    assert len(set(words)) == len(words) and all(word == word.lower().strip() for word in words)
