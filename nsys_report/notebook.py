"""The way in from Python: one call reads, cuts, joins and analyzes a capture; the result shows itself in Jupyter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_report import saving
from nsys_report.analysis.rollup.dimensions import DIMENSIONS
from nsys_report.analysis.roofline.ceilings import parse_overrides
from nsys_report.columns import ACTIVITY_TABLE, EXECUTION_TABLE
from nsys_report.errors import UsageError
from nsys_report.plots import Plots
from nsys_report.reports.build import TOP
from nsys_report.reports.model import Report
from nsys_report.selection import Selection
from nsys_report.session import Session

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from nsys_report.findings.model import Finding

Progress = Callable[[str, float], None]
MOST_ROWS = 8
"""Rows of long tables that the analysis shows of itself."""


@dataclass(frozen=True, slots=True, repr=False)
class Analysis(Session):
    """One analyzed capture, shown by Jupyter. Its tables are pandas frames; what is missing in them is unknown, never 0.

    >>> a = nsys_report.analyze("capture.sqlite", "xla_dump")
    >>> a
    <Analysis of capture.sqlite: NVIDIA H200 · nsys 2023.4.4.54 · 23.2 ms span · 1,620 kernels, 5.47 ms of kernel time>
    """

    @property
    def plot(self) -> Plots:
        """Its pictures as matplotlib figures: `plot.budget()`, `plot.roofline()`, `plot.timeline(execution=3)`, ...

        >>> a.plot.budget().savefig("budget.png")
        """
        return Plots(self)

    @property
    def activities(self) -> pd.DataFrame:
        """A row per GPU activity (kernel, copy, memset) in time order, with its execution, instruction, class and costs.

        >>> a.activities["activity"].value_counts().to_dict()
        {'kernel': 1620, 'memcpy': 70}
        """
        return frame(self.joined.complete().select(ACTIVITY_TABLE.names))

    @property
    def executions(self) -> pd.DataFrame:
        """A row per execution of an XLA program.

        >>> len(a.executions.query("hlo_module == 'jit_decode_step'"))
        10
        """
        return frame(self.joined.executions.select(EXECUTION_TABLE.names))

    @property
    def modules(self) -> pd.DataFrame:
        """A row per program: how often it ran, how long an execution takes, how long the GPU waited before it.

        >>> a.modules["hlo_module"].to_list()
        ['jit_decode_step', 'jit_stage', 'jit_stage']
        """
        return frame(self.results.modules)

    @property
    def classes(self) -> pd.DataFrame:
        """A row per program and class, with times, bytes, floors and bandwidths.

        >>> a.classes.query("hlo_module == 'jit_decode_step'")["kernel_class"].to_list()
        ['weights', 'other', 'attention', 'kv_write', 'kv_gather']
        """
        return frame(self.results.classes)

    @property
    def instructions(self) -> pd.DataFrame:
        """A row per program and HLO instruction, with times, bytes and bandwidths.

        >>> step = a.module("jit_decode_step").instructions
        >>> step.nlargest(1, "time_per_execution_ns")[["hlo_instruction", "kernel_class"]].iloc[0].to_list()
        ['gemm_fusion_dot.103', 'weights']
        """
        return frame(self.results.instructions)

    @property
    def kernels(self) -> pd.DataFrame:
        """The activities that are kernels.

        >>> len(a.kernels)
        1620
        """
        activities = self.activities
        return activities[activities["activity"] == "kernel"]

    @property
    def layers(self) -> pd.DataFrame:
        """A row per program and position in the layer that repeats in it, folded over the layers.

        >>> len(a.layers)
        26
        """
        return frame(self.results.layer_rows)

    @property
    def budget(self) -> pd.DataFrame:
        """A row per program and part of its step, from one execution's start to the next.

        >>> step = a.budget.query("hlo_module == 'jit_decode_step'")
        >>> print(f"{step['typical_ns'].sum() / 1e6:.2f} ms")
        2.14 ms
        """
        return frame(self.results.budget)

    @property
    def findings(self) -> pd.DataFrame:
        """A row per cause of lost time, most to be gained first, with its remedy and what that would give back at most.

        >>> a.findings["slug"].iloc[0]
        'waiting-for-host'
        """
        return findings_frame(self.causes)

    def timeline(self, execution: int | None = None) -> saving.Framed:
        """The whole step on one axis (host threads, copies, streams, layers, idle time by cause), to zoom and select in: opens on that
        execution, else on a median one. Raises UsageError for an execution that is not there.

        >>> a.timeline(3).save("step.html").name
        'step.html'
        """
        return saving.timeline(self, execution)

    def what_if(self, *scenarios: str) -> pd.DataFrame:
        """A row per program and scenario such as `weights=int8`, `kv=fp8`, `no-host-gap`, `kv_gather=fused`: the step it predicts.

        Raises UsageError for a scenario that does not exist.

        >>> a.module("jit_decode_step").what_if("no-host-gap")["scenario"].to_list()
        ['no-host-gap']
        """
        from nsys_report.analysis.whatif import parse_scenarios, what_if

        return frame(what_if(self.results, parse_scenarios(scenarios)))

    def rollup(self, by: str = "name", *, nested: bool = False) -> pd.DataFrame:
        """A typical step summed up by name, scope, source, layer, parameter, class, opcode or phase: a row per program and group.

        With `nested` there are rows for groups of groups too, and for each instruction. Raises UsageError for another word.

        >>> a.module("jit_decode_step").rollup("source")["group"].iloc[0]
        'workloads.py:110'
        """
        from nsys_report.analysis.rollup.tree import rollup_table

        if by not in DIMENSIONS:
            raise UsageError(f"there is no roll-up by {by!r}", f"there are {', '.join(DIMENSIONS)}", "unknown-rollup")
        return frame(rollup_table(self.results.work, by, self.results.ceilings, nested=nested))

    def module(self, name: str) -> Analysis:
        """The analysis of the programs of that name, or name#number. Raises UsageError where none ran.

        >>> a.module("jit_decode_step").executions["hlo_module"].unique().tolist()
        ['jit_decode_step']
        """
        return Selection(modules=(name,)).narrow(self)

    def execution(self, *numbers: int) -> Analysis:
        """The analysis of one execution or several, by id. Raises UsageError for one that is not there.

        >>> a.execution(3)
        <Analysis of capture.sqlite: execution 3 of jit_decode_step · 162 kernels, 546 µs of kernel time · 549 µs span>
        """
        return Selection(executions=numbers).narrow(self)

    def tables(self) -> dict[str, pa.Table]:
        """The Arrow tables that `--tables` writes, by file name without ending.

        >>> list(a.tables())
        ['activities', 'executions', 'instructions', 'classes']
        """
        return saving.tables(self)

    def report(self, top: int | None = TOP) -> Report:
        """The report, as every page and document is made from it; `top` rows of long tables on short pages.

        >>> a.report().parts[0].findings[0].slug
        'waiting-for-host'
        """
        return saving.report(self, top)

    def to_html(self, path: str | Path | None = None) -> str:
        """The page, as `--html` writes it; into a file too where a path is given. Raises InputError where it cannot be written.

        >>> a.to_html("report.html").startswith("<!doctype html>")
        True
        """
        page = saving.html_page(self)
        if path is not None:
            saving.write_text(page, Path(path))
        return page

    def save(self, path: str | Path) -> Path:
        """Writes what the ending of the path names (.html, .json, .md, .pftrace; without one a directory of Parquet tables), and
        returns the path. Raises UsageError for another ending, InputError where it cannot be written.

        >>> a.save("report.json").name
        'report.json'
        """
        return saving.save(self, Path(path))

    def __dir__(self) -> list[str]:
        """What completion offers: what is described here, and not what pages are made from."""
        return sorted(name for name in vars(Analysis) if not name.startswith("_") and name not in _OF_SESSIONS)

    def __repr__(self) -> str:
        part = self.report().parts[0]
        return f"<Analysis of {part.name}: {part.headline}>"

    def _repr_html_(self) -> str:
        """The step budget, the first findings with their remedies, and small tables."""
        from nsys_report.reports.html.cell import render_cell
        from nsys_report.reports.pictures.build import budget_bars

        return render_cell(self.report(MOST_ROWS).parts[0], budget_bars(self))


_OF_SESSIONS = frozenset(dir(Session))
"""What every session has: its values, for code and not for completion."""


def findings_frame(causes: Iterable[Finding]) -> pd.DataFrame:
    """Findings as a frame, in their order."""
    import pandas as pd

    columns = ("slug", "module", "title", "gain_ns", "share", "tokens_per_s", "explained_ns", "confidence", "remedy", "why")
    return pd.DataFrame([[getattr(cause, name) for name in columns] for cause in causes], columns=list(columns))


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
    ncu: str | Path | None = None,
    show_paths: bool = False,
    progress: Progress | None = None,
) -> Analysis:
    """Reads a capture, joins it to what XLA dumped in the same run, and analyzes it.

    `ceilings` gives measured or nominal in GB/s, bf16, tf32, f32, fp8 or int8 in TFLOPS; `ceilings_file` is a
    table of GPUs that comes before the built-in one; `what_if` names scenarios such as `weights=int8` that the
    report predicts; `ncu` is the CSV of Nsight Compute on the same program; `show_paths` leaves the paths of source
    files whole, which else begin at their package or project.
    Raises ReportError or HloError.

    >>> nsys_report.analyze("capture.sqlite", "xla_dump", ceilings={"measured": 4000}).results.ceilings.measured.value
    4000000000000.0
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
        ncu=ncu,
        show_paths=show_paths,
        progress=progress,
    )
    return Analysis(*(getattr(made, field.name) for field in fields(Session)))
