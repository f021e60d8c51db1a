"""Whether what came out of a case is as it must be: a report whose figures do not contradict each other, or one clear message."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from hlo_mapping.errors import HloError
from nsys_report.errors import ReportError
from nsys_report.notebook import Analysis, analyze
from nsys_report.reports.export import json_text
from nsys_report.reports.markdown import render as markdown
from nsys_report.reports.terminal_page import render as terminal

MOST_SECONDS = 10.0
"""Of processor time, for a capture of a few hundred kernels."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case gave: figures or a message, and what is wrong with it ("" for nothing)."""

    figures: dict[str, Any] | None
    message: str
    wrong: str


def outcome(capture: Path, dump: Path | None) -> Outcome:
    """Analyzes a capture, renders it in every way that is text, and judges what comes out."""
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            analysis = analyze(capture, dump)
            report = analysis.report()
            pages = (json_text(report), terminal(report, 100, False), markdown(report))
    except (ReportError, HloError) as error:
        message = str(error)
        return Outcome(None, message, "" if message and "Traceback" not in message else "an error without a message")
    except Exception as error:
        return Outcome(None, "", f"{type(error).__name__}: {error}")
    took = time.process_time() - began
    wrong = contradictions(analysis) or (f"{took:.1f} s" if took > MOST_SECONDS else "")
    wrong = wrong or next((f"{word} on a page" for word in ("nan", "inf ", "-0 ns") for page in pages[1:] if f" {word}" in page), "")
    return Outcome(figures(analysis), "", wrong)


def figures(analysis: Analysis) -> dict[str, Any]:
    """The figures that nothing harmless may change."""
    names = ("kernel_time_ns", "busy_time_ns", "kernels_per_execution", "executions", "span_ns")
    modules = {(m["hlo_module"], m["program_id"]): tuple(m[n] for n in names) for m in analysis.results.modules.to_pylist()}
    classes = {
        (c["hlo_module"], c["program_id"], c["kernel_class"]): (c["time_per_execution_ns"], c["bytes_accessed"])
        for c in analysis.results.classes.to_pylist()
    }
    budget = {(b["program_id"], b["category"], b["part"]): b["total_ns"] for b in analysis.results.budget.to_pylist()}
    return {"modules": modules, "classes": classes, "budget": budget, "joined": analysis.results.joined_share}


def contradictions(analysis: Analysis) -> str:
    """The first contradiction among an analysis' figures; "" for none."""
    return next((said for check in (_devices, _times, _shares, _budgets) for said in check(analysis)), "")


def _devices(analysis: Analysis) -> Iterator[str]:
    for device in analysis.results.devices.to_pylist():
        if not 0 <= device["busy_time_ns"] <= device["span_ns"] or device["idle_time_ns"] < 0:
            yield f"a device busy for {device['busy_time_ns']} of {device['span_ns']} ns"


def _times(analysis: Analysis) -> Iterator[str]:
    results = analysis.results
    for name, table in (("modules", results.modules), ("classes", results.classes), ("instructions", results.instructions)):
        for column in table.column_names:
            if column.endswith("_ns") and "drift" not in column and (pc.min(table[column]).as_py() or 0) < 0:
                yield f"{name}.{column} is below zero"


def _shares(analysis: Analysis) -> Iterator[str]:
    shares = analysis.results.classes["time_share"].to_pylist()
    for share in (*shares, analysis.results.joined_share):
        if share is not None and not 0 <= share <= 1.0001:
            yield f"a share of {share} of a whole"


def _budgets(analysis: Analysis) -> Iterator[str]:
    sums: dict[tuple[Any, Any], int] = {}
    for row in analysis.results.budget.to_pylist():
        key = (row["hlo_module"], row["program_id"])
        sums[key] = sums.get(key, 0) + row["total_ns"]
    for step in analysis.results.steps.to_pylist():
        if sums.get((step["hlo_module"], step["program_id"]), 0) != step["total_ns"]:
            yield f"a budget of {sums.get((step['hlo_module'], step['program_id']))} for steps of {step['total_ns']} ns"
