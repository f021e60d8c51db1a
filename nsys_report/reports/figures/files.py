"""The pictures of a capture as PNG files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_report.reports.export import distinct_stems, write_folder
from nsys_report.reports.figures.bars import budget_figure, rates_figure
from nsys_report.reports.figures.canvas import png
from nsys_report.reports.figures.heat import heat_figure
from nsys_report.reports.figures.roofline import roofline_figure
from nsys_report.reports.figures.times import runs_figure, timeline_figure
from nsys_report.reports.pictures.model import HeatMap, Pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures(pictures: Pictures, heat: HeatMap | None = None) -> Iterator[tuple[str, Figure]]:
    """Every picture with the name of its file, without ending; of the timelines the median execution's, of ranks the heat map."""
    if heat is not None:
        yield "ranks", heat_figure(heat)
    if pictures.runs is not None:
        yield "executions", runs_figure(pictures.runs)
    if pictures.stretch is not None:
        yield "timeline", timeline_figure(pictures.stretch)
    for program, name in zip(pictures.programs, distinct_stems((p.program for p in pictures.programs), "program"), strict=True):
        if program.budget is not None:
            yield f"{name}.budget", budget_figure(program.budget)
        if program.rates is not None:
            yield f"{name}.classes", rates_figure(program.rates)
        if program.roofline is not None:
            yield f"{name}.roofline", roofline_figure(program.roofline)
        if program.timelines:
            yield f"{name}.timeline", timeline_figure(program.timelines[0])


def write_png(pictures: Pictures, directory: Path, heat: HeatMap | None = None) -> None:
    """Writes NAME.png for each picture into a directory, like export.write_folder."""
    write_folder(directory, {f"{name}.png": _writer(png(figure)) for name, figure in figures(pictures, heat)})


def _writer(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)
