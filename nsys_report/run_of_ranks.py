"""The way in from Python to the ranks of a run: `nsys_report.analyze_ranks(captures, xla_dump)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_report.errors import InputError
from nsys_report.ranks.combining import combining_findings
from nsys_report.ranks.engine import Task, run_tasks
from nsys_report.ranks.findings import run_findings
from nsys_report.ranks.paths import dumps_for, expanded, in_order, ranks_of
from nsys_report.ranks.run import Run, analyze_run
from nsys_report.ranks.summary import CaptureRuns, Failure
from nsys_report.reports.model import Part, Section
from nsys_report.reports.ranks_page import ranks_section
from nsys_report.units import things

if TYPE_CHECKING:
    import pandas as pd

    from nsys_report.findings.model import Finding

Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True, slots=True, repr=False)
class Ranks:
    """The ranks of a run, shown by Jupyter. Its tables are pandas frames; what is missing in them is unknown, never 0.

    >>> nsys_report.analyze_ranks(["rank_0/capture.sqlite", "rank_1/capture.sqlite"], ["rank_0/xla_dump", "rank_1/xla_dump"])
    <Ranks: 42 collectives of 6 steps ...>
    """

    run: Run

    @property
    def ranks(self) -> pd.DataFrame:
        """A row a rank: its clock, how long it was busy and waited, in how many steps it was late.

        >>> r.ranks["steps_late"].to_list()
        [0, 2]
        """
        return self._frame("ranks")

    @property
    def late(self) -> pd.DataFrame:
        """A row for each rank that comes late: in how many steps, by how much, why.

        >>> r.late["rank"].to_list()
        [1]
        """
        return self._frame("late")

    @property
    def arrivals(self) -> pd.DataFrame:
        """A row for each rank at each collective: when it came after the first, how long it waited.

        >>> len(r.arrivals)
        84
        """
        return self._frame("arrivals")

    @property
    def collectives(self) -> pd.DataFrame:
        """A row a collective: its bytes, time, waiting, exposed time and bandwidths.

        >>> len(r.collectives)
        7
        """
        return self._frame("collectives")

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What costs the run time: late ranks first, then how collectives were combined.

        >>> r.findings[0].title
        'Rank 1 ...'
        """
        return (*run_findings(self.run), *combining_findings(self.run))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The captures that could not be read.

        >>> r.failures
        ()
        """
        return self.run.failures

    def section(self) -> Section:
        """The section `ranks` of the report.

        >>> r.section().title
        'Ranks'
        """
        return ranks_section(self.run)

    def _frame(self, key: str) -> pd.DataFrame:
        import pandas as pd

        table = next((t for t in self.section().tables if t.key == key), None)
        return pd.DataFrame(list(table.records()), columns=[c.key for c in table.columns]) if table is not None else pd.DataFrame()

    def __repr__(self) -> str:
        return f"<Ranks: {self.section().lines[0]}>"

    def _repr_html_(self) -> str:
        """Its findings and its small tables."""
        from nsys_report.reports.html.cell import render_cell

        section = self.section()
        return render_cell(
            Part(f"run of {things(len(self.run.ranks), 'rank')}", section.lines[0], findings=self.findings, sections=(section,))
        )


def analyze_ranks(captures: Paths, xla_dump: Paths | None = None, *, jobs: int = 1, scheduler: str | None = None) -> Ranks:
    """Aligns and compares the ranks of a run. `captures` are paths, a directory of ranks, or a pattern with {rank}; `xla_dump` one dump for
    all, one for each, or a pattern. They are read by so many processes, or on the Dask cluster of a scheduler.

    A capture that cannot be read is among `failures`. Raises InputError where none can, UsageError for paths that do not go together.

    >>> nsys_report.analyze_ranks("rank_{rank}/capture.sqlite", "rank_{rank}/xla_dump").ranks["rank"].to_list()
    [0, 1]
    """
    paths = in_order(expanded([Path(p) for p in _several(captures)]))
    dumps = dumps_for(paths, [Path(p) for p in _several(xla_dump)] if xla_dump is not None else [])
    rows = zip(paths, dumps, (str(path) for path in paths), ranks_of(paths), strict=True)
    results = run_tasks([Task(*row) for row in rows], jobs, scheduler)
    failures = [r for r in results if isinstance(r, Failure)]
    if len(failures) == len(results):
        raise InputError(failures[0].message, failures[0].hint) if failures else InputError("no captures were given")
    return Ranks(analyze_run([r for r in results if isinstance(r, CaptureRuns)], failures))


def _several(given: Paths) -> Sequence[str | Path]:
    return [given] if isinstance(given, (str, Path)) else given
