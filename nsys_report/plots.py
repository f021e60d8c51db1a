"""The pictures of an analysis as matplotlib figures, for notebooks: `a.plot.budget()`, `a.plot.timeline(execution=3)` and so on."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from nsys_report.errors import UsageError
from nsys_report.reports.pictures.build import build_pictures, short_names
from nsys_report.reports.pictures.model import Pictures, ProgramPictures
from nsys_report.reports.pictures.timeline import ExecutionCutter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nsys_report.session import Session

Drawn = TypeVar("Drawn")


@dataclass(frozen=True, slots=True)
class Plots:
    """Draws one analysis. Every figure is a new one that belongs to nobody; none touches matplotlib's global state.

    `module` names a program, or name#number; without it the program with most time is meant. Raises UsageError for a program or
    execution that is not there, or has nothing to draw.
    """

    session: Session

    def budget(self, module: str | None = None) -> Figure:
        """Where a typical step goes, as one bar, with its parts in words."""
        from nsys_report.reports.figures.bars import budget_figure

        program = self._program(module)
        return budget_figure(_there(program.budget, f"{program.name} has no complete execution"))

    def classes(self, module: str | None = None) -> Figure:
        """The implied bandwidth of each class of kernels, against the ceilings."""
        from nsys_report.reports.figures.bars import rates_figure

        program = self._program(module)
        return rates_figure(_there(program.rates, f"the bytes of no kernel of {program.name} are known"))

    def roofline(self, module: str | None = None) -> Figure:
        """Instructions that compute, under the roofs of bandwidth and arithmetic."""
        from nsys_report.reports.figures.roofline import roofline_figure

        program = self._program(module)
        return roofline_figure(_there(program.roofline, f"no instruction of {program.name} has known flops and bytes"))

    def executions(self) -> Figure:
        """All executions over time, with the idle time before each; the activities of a capture without executions."""
        from nsys_report.reports.figures.times import runs_figure, timeline_figure

        pictures = self._pictures()
        if pictures.runs is not None:
            return runs_figure(pictures.runs)
        return timeline_figure(_there(pictures.stretch, "the capture holds no GPU activity"))

    def timeline(self, execution: int | None = None, module: str | None = None) -> Figure:
        """One execution by stream, colored by class: that with this id, else the median one of the program."""
        from nsys_report.reports.figures.times import timeline_figure

        if execution is None:
            program = self._program(module)
            return timeline_figure(_there(program.timelines[0] if program.timelines else None, f"{program.name} has no complete execution"))
        joined, results = self.session.joined, self.session.results
        ids = joined.executions["execution_id"].to_pylist()
        if execution not in ids:
            there = f"they are numbered {min(ids)} to {max(ids)}" if ids else "it holds none"
            raise UsageError(f"no execution {execution} in this capture", there)
        row = ids.index(execution)
        record = joined.executions.slice(row, 1).to_pylist()[0]
        name = short_names(results.modules.to_pylist()).get((record["hlo_module"], record["program_id"]), "unknown program")
        return timeline_figure(ExecutionCutter(joined).timeline(row, name))

    def _pictures(self) -> Pictures:
        return build_pictures(self.session, most_bars=0, most_timelines=1)

    def _program(self, module: str | None) -> ProgramPictures:
        """The pictures of a program; the first one's without a name."""
        found = self._pictures().programs
        if module is None:
            return _there(found[0] if found else None, "no program of XLA ran in this capture")
        known = {name: program for program in reversed(found) for name in (program.program, program.name, program.program.split("#")[0])}
        if module not in known:
            close = difflib.get_close_matches(module, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(p.name for p in found) or 'none'}"
            raise UsageError(f"no program {module!r} with a section of its own in this capture", hint)
        return known[module]


def _there(picture: Drawn | None, why_not: str) -> Drawn:
    if picture is None:
        raise UsageError(f"nothing to draw: {why_not}", "the analysis itself shows what there is")
    return picture
