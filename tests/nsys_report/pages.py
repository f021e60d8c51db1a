"""Pages of the fixtures, and of one whose names are an attack, for the tests of the page."""

from __future__ import annotations

import functools
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from nsys_report.notebook import Analysis, analyze
from nsys_report.reports.build import build_report
from nsys_report.reports.html.content import Page, build_page
from nsys_report.reports.html.page import render

FIXTURES = Path(__file__).parents[2] / "fixtures"
HOSTILE = """<img src=x onerror="window.attacked=1">'"`&amp;</script><script>window.attacked=1</script>\u202e\u0007\u05d0{{7*7}}${1}"""
"""Markup, quotes, an entity, the end of a script, a right-to-left override, a bell, a letter of a right-to-left script, templates."""


@functools.cache
def analyzed(name: str) -> Analysis:
    """A fixture, analyzed once."""
    dump = FIXTURES / name / "xla_dump"
    return analyze(FIXTURES / name / "capture.sqlite", dump if dump.is_dir() else None)


def page_of(*analyses: tuple[str, Analysis]) -> Page:
    """The page of one or several analyses, each under a name."""
    sessions = [analysis.named(name) for name, analysis in analyses]
    return build_page(build_report(sessions, "nsys-report test"), sessions)


@functools.cache
def html_of(name: str) -> str:
    """The page of a fixture."""
    return render(page_of((name, analyzed(name))))


def hostile_capture(folder: Path, name: str) -> Path:
    """A copy of a fixture whose GPU and operations, and without XLA its kernels, have hostile names."""
    made = folder / name
    shutil.copytree(FIXTURES / name, made, copy_function=shutil.copyfile)
    dump = made / "xla_dump"
    with sqlite3.connect(made / "capture.sqlite") as database:
        if not dump.is_dir():  # an XLA program's kernels are joined by their names
            kernels = "SELECT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL UNION SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL"
            database.execute(f"UPDATE StringIds SET value = value || ? WHERE id IN ({kernels})", (HOSTILE,))
        database.execute("UPDATE TARGET_INFO_GPU SET name = ?", (f"NVIDIA H200 {HOSTILE}",))
    for text in dump.glob("*after_optimizations.txt"):
        quoted = HOSTILE.replace("\\", "\\\\").replace('"', '\\"')
        source = text.read_text(encoding="utf-8")
        text.write_text(source.replace('op_name="', f'op_name="{quoted}'), encoding="utf-8")
    return made


def with_hostile_names(analysis: Analysis) -> Analysis:
    """An analysis in which every program, instruction, kernel and detail has a hostile name."""
    results = analysis.results
    changed = {n: _hostile(getattr(results, n)) for n in results.__dataclass_fields__ if isinstance(getattr(results, n), pa.Table)}
    joined = replace(analysis.joined, activities=_hostile(analysis.joined.activities), executions=_hostile(analysis.joined.executions))
    named = replace(results, **changed, view=replace(results.view, joined=joined))  # the timeline reads the view's own rows
    return replace(analysis, results=named, joined=joined)


def _hostile(table: pa.Table) -> pa.Table:
    for name in ("hlo_module", "hlo_instruction", "kernel_name", "name", "op_name", "source_file", "class_detail"):
        if name in table.column_names:
            at = table.schema.get_field_index(name)
            values: list[Any] = [None if v is None else f"{v}{HOSTILE}" for v in table[name].cast(pa.string()).to_pylist()]
            kind = table.schema.field(at).type
            column = pa.array(values, pa.string())
            table = table.set_column(at, name, column.dictionary_encode() if pa.types.is_dictionary(kind) else column)
    return table
