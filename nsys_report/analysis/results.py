"""What the analysis finds, as one frozen value, and the function that makes it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from nsys_report.analysis.ceilings import Ceilings
from nsys_report.analysis.classes import classes_table, costs_of, details_table
from nsys_report.analysis.coverage import coverage_table, joined_share
from nsys_report.analysis.devices import devices_table
from nsys_report.analysis.instructions import instructions_table
from nsys_report.analysis.kernels import copies_table, kernels_table
from nsys_report.analysis.modules import modules_table
from nsys_report.analysis.view import make_view
from nsys_report.joined import Joined


@dataclass(frozen=True, slots=True)
class AnalysisResults:
    """Tables by the schemas of nsys_report.analysis.columns."""

    ceilings: Ceilings
    modules: pa.Table
    classes: pa.Table
    details: pa.Table
    instructions: pa.Table
    kernels: pa.Table
    copies: pa.Table
    coverage: pa.Table
    devices: pa.Table
    joined_share: float | None
    """Share of the kernel time joined with confidence 0.5 or more, autotuning left out; None without kernels."""


def analyse(joined: Joined, ceilings: Ceilings) -> AnalysisResults:
    """Everything the report shows of one capture; a pure function of its arguments."""
    view = make_view(joined)
    costs = costs_of(view)
    coverage = coverage_table(view)
    return AnalysisResults(
        ceilings=ceilings,
        modules=modules_table(view),
        classes=classes_table(view, costs, ceilings),
        details=details_table(view, costs, ceilings),
        instructions=instructions_table(view, costs, ceilings),
        kernels=kernels_table(view),
        copies=copies_table(view),
        coverage=coverage,
        devices=devices_table(view),
        joined_share=joined_share(coverage),
    )
