"""The way in from Python: one call reads, cuts, joins and analyzes a capture; the result shows itself in Jupyter."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_report.analysis.roofline.ceilings import parse_overrides
from nsys_report.columns import ACTIVITY_TABLE, EXECUTION_TABLE
from nsys_report.plots import Plots
from nsys_report.reports.build import TOP, build_report
from nsys_report.reports.model import Report, Table
from nsys_report.selection import Selection
from nsys_report.session import Session
from nsys_report.units import visible
from nsys_report.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from nsys_report.findings.model import Finding

Progress = Callable[[str, float], None]
MOST_FINDINGS = 3
"""Findings that the analysis shows of itself."""


@dataclass(frozen=True, slots=True, repr=False)
class Analysis(Session):
    """One analyzed capture, shown by Jupyter. Its tables are pandas frames; what is missing in them is unknown, never 0."""

    @property
    def plot(self) -> Plots:
        """Its pictures as matplotlib figures: `plot.budget()`, `plot.roofline()`, `plot.timeline(execution=3)`, ..."""
        return Plots(self)

    @property
    def activities(self) -> pd.DataFrame:
        """A row per GPU activity (kernel, copy, memset) in time order, with its execution, instruction, class and costs."""
        return frame(self.joined.complete().select(ACTIVITY_TABLE.names))

    @property
    def executions(self) -> pd.DataFrame:
        """A row per execution of an XLA program."""
        return frame(self.joined.executions.select(EXECUTION_TABLE.names))

    @property
    def modules(self) -> pd.DataFrame:
        """A row per program: how often it ran, how long an execution takes, how long the GPU waited before it."""
        return frame(self.results.modules)

    @property
    def classes(self) -> pd.DataFrame:
        """A row per program and class, with times, bytes, floors and bandwidths."""
        return frame(self.results.classes)

    @property
    def instructions(self) -> pd.DataFrame:
        """A row per program and HLO instruction, with times, bytes and bandwidths."""
        return frame(self.results.instructions)

    @property
    def kernels(self) -> pd.DataFrame:
        """The activities that are kernels."""
        activities = self.activities
        return activities[activities["activity"] == "kernel"]

    @property
    def layers(self) -> pd.DataFrame:
        """A row per program and position in the layer that repeats in it, folded over the layers."""
        return frame(self.results.layer_rows)

    @property
    def budget(self) -> pd.DataFrame:
        """A row per program and part of its step, from one execution's start to the next."""
        return frame(self.results.budget)

    def what_if(self, *scenarios: str) -> pd.DataFrame:
        """A row per program and scenario such as `weights=int8`, `kv=fp8`, `no-host-gap`, `kv_gather=fused`: the step it predicts.

        Raises UsageError for a scenario that does not exist.
        """
        from nsys_report.analysis.whatif import parse_scenarios, what_if

        return frame(what_if(self.results, parse_scenarios(scenarios)))

    def module(self, name: str) -> Analysis:
        """The analysis of the programs of that name, or name#number. Raises UsageError where none ran."""
        return Selection(modules=(name,)).narrow(self)

    def execution(self, *numbers: int) -> Analysis:
        """The analysis of one execution or several, by id. Raises UsageError for one that is not there."""
        return Selection(executions=numbers).narrow(self)

    def tables(self) -> dict[str, pa.Table]:
        """The tables that `--tables` writes, by file name without ending."""
        return {
            "activities": self.joined.complete().select(ACTIVITY_TABLE.names),
            "executions": self.joined.executions.select(EXECUTION_TABLE.names),
            "instructions": self.results.instructions,
            "classes": self.results.classes,
        }

    def report(self, top: int | None = TOP) -> Report:
        """The report, as every page and document is made from it; `top` rows of long tables on short pages."""
        return build_report([self], f"nsys-report {__version__}", top)

    def __repr__(self) -> str:
        part = self.report().parts[0]
        return f"<Analysis of {part.name}: {part.headline}>"

    def _repr_html_(self) -> str:
        """The programs and their classes as tables."""
        part = self.report().parts[0]
        pieces = [f"<p><b>{html.escape(part.name)}</b>: {html.escape(part.headline)}</p>"]
        pieces += [f"<p>⚠ {html.escape(notice.message)}</p>" for notice in part.notices if notice.severity != "info"]
        pieces += [f"<p>{number}. {_finding_html(finding)}</p>" for number, finding in enumerate(part.findings[:MOST_FINDINGS], 1)]
        for section in part.sections:
            tables = [table for table in section.tables if not table.in_full]
            if tables:
                pieces.append(f"<h4>{html.escape(section.title)}</h4>" + "".join(map(table_html, tables)))
        return "".join(pieces)


def _finding_html(finding: Finding) -> str:
    """A finding in one line: what it is, and what there is to gain."""
    gains = ", ".join(f"{gain.words} {gain.label}" for gain in finding.gains)
    return f"<b>{html.escape(visible(finding.title))}</b>" + (f" ({html.escape(visible(gains))})" if gains else "")


def table_html(table: Table) -> str:
    """A table of the report as a plain HTML table, its names escaped."""
    align = ["right" if column.is_number else "left" for column in table.columns]
    head = "".join(
        f'<th style="text-align:{a}" title="{html.escape(c.about)}">{html.escape(c.title)}</th>'
        for c, a in zip(table.columns, align, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td style="text-align:{a}">{html.escape(t)}</td>' for t, a in zip(table.texts(row), align, strict=True))
        + "</tr>"
        for row in table.shown()
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def frame(table: pa.Table) -> pd.DataFrame:
    """An Arrow table as pandas, integers with holes as nullable Int64 and not as floats: ids are larger than a float can hold."""
    import pandas as pd
    import pyarrow as pa

    nullable = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype(), pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(types_mapper=nullable.get)


def analyze(
    capture: str | Path,
    xla_dump: str | Path | None = None,
    *,
    roles: str | Path | None = None,
    manifest: str | Path | None = None,
    ceilings: Mapping[str, float] | None = None,
    ceilings_file: str | Path | None = None,
    what_if: Iterable[str] = (),
    show_paths: bool = False,
    progress: Progress | None = None,
) -> Analysis:
    """Reads a capture, joins it to what XLA dumped in the same run, and analyzes it.

    `ceilings` gives measured or nominal in GB/s, bf16, tf32, f32, fp8 or int8 in TFLOPS; `ceilings_file` is a
    table of GPUs that comes before the built-in one; `what_if` names scenarios such as `weights=int8` that the
    report predicts; `show_paths` leaves the paths of source files whole, which else begin at their package or project.
    Raises ReportError or HloError.
    """
    from nsys_report import pipeline
    from nsys_report.analysis.whatif import parse_scenarios

    made = pipeline.analyze(
        capture,
        xla_dump,
        roles=roles,
        manifest=manifest,
        ceilings=parse_overrides(f"{name}={value}" for name, value in (ceilings or {}).items()),
        ceilings_file=ceilings_file,
        what_if=parse_scenarios([what_if] if isinstance(what_if, str) else what_if),
        show_paths=show_paths,
        progress=progress,
    )
    return Analysis(*(getattr(made, field.name) for field in fields(Session)))
