"""Where a step goes, and how fast each class is: pictures of bars."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from nsys_report.reports.figures.canvas import GRID, INK, LABEL, QUIET, SMALL, axes, name_ticks, new_figure, plain, write
from nsys_report.reports.palette import of_class, of_part
from nsys_report.reports.pictures.model import BudgetBar, ClassRate, ClassRates
from nsys_report.reports.scales import time_scale
from nsys_report.units import cell_text, duration, phrase, share, shorten

LEAST_INSIDE = 0.07
"""Share of the bar from which a part has room for its share in words."""


def budget_figure(picture: BudgetBar) -> Figure:
    """One step as one bar, and its parts in words below it."""
    rows = len(picture.parts)
    height = 1.25 + 0.27 * rows
    figure, bottom, top = new_figure(height, picture.title, picture.notes)
    unit = (top - bottom) / height
    bar = axes(figure, 0.02, top - 0.62 * unit, 0.98, top - 0.08 * unit)
    scale, name = time_scale(picture.step_ns)
    at = 0.0
    for part in picture.parts:
        color = of_part(part.key)
        bar.barh(0, part.ns / scale, left=at / scale, height=1, color=color.light, edgecolor="white", linewidth=1)
        if part.share >= LEAST_INSIDE:
            write(bar, (at + part.ns / 2) / scale, 0, share(part.share), color=color.ink(), ha="center", va="center")
        at += part.ns
    bar.set_xlim(0, picture.step_ns / scale)
    bar.set_ylim(-0.5, 0.5)
    bar.set_yticks([])
    bar.set_xlabel(f"time in a step ({name})", size=LABEL, color=INK)
    table = figure.add_axes((0.02, bottom, 0.96, 0.27 * rows * unit))
    table.set_axis_off()
    table.set_xlim(0, 1)
    table.set_ylim(rows, 0)
    for row, part in enumerate(picture.parts):
        table.add_patch(Rectangle((0.0, row + 0.2), 0.014, 0.6, facecolor=of_part(part.key).light, edgecolor="none"))
        write(table, 0.022, row + 0.5, part.label, va="center")
        write(table, 0.33, row + 0.5, duration(part.ns), va="center", ha="right")
        write(table, 0.41, row + 0.5, share(part.share), va="center", ha="right")
        write(table, 0.43, row + 0.5, shorten(part.mostly, 78), va="center", color=QUIET, size=SMALL)
    return figure


def rates_figure(picture: ClassRates) -> Figure:
    """The bandwidth of each class as a bar against both ceilings, its figures beside it."""
    rows = [row for row in picture.rows if row.bytes_per_s]
    height = 1.1 + 0.42 * len(rows)
    figure, bottom, top = new_figure(height, picture.title, picture.notes)
    unit = (top - bottom) / height
    chart = axes(figure, 0.115, bottom + 0.5 * unit, 0.66, top - 0.5 * unit)
    ceilings = [(name, value) for name, value in (("measured", picture.measured), ("nominal", picture.nominal)) if value]
    fastest = max([row.bytes_per_s or 0 for row in rows] + [value for _, value in ceilings]) / 1e9
    chart.set_xlim(0, fastest * 1.03)
    chart.grid(axis="x", color=GRID, linewidth=0.8)
    for place, row in enumerate(rows):
        _rate(chart, place, row)
    _ceiling_lines(chart, ceilings)
    name_ticks(chart, list(range(len(rows))), [row.kernel_class for row in rows])
    chart.set_ylim(len(rows) - 0.5, -0.5)
    chart.set_xlabel("implied bandwidth (GB/s)", size=LABEL, color=INK)
    beside = chart.get_yaxis_transform()
    for x, heading in zip(COLUMNS, ("implied", "of measured" if picture.measured else "of nominal", "of the time"), strict=True):
        write(chart, x, -0.62, heading, transform=beside, ha="right", va="bottom", size=SMALL, color=QUIET)
    return figure


COLUMNS = (1.22, 1.41, 1.585)
"""Right ends of the figures beside the bars, as shares of the chart's width."""


def _rate(chart: Axes, place: int, row: ClassRate) -> None:
    """One class's bar, hatched where it is above the measured ceiling, and its figures."""
    hatch = "//" if row.is_above else None
    color = of_class(row.kernel_class).light
    chart.barh(place, (row.bytes_per_s or 0) / 1e9, height=0.62, color=color, hatch=hatch, edgecolor="white" if hatch else color)
    ratio = row.share_of_measured if row.share_of_measured is not None else row.share_of_nominal
    said = (phrase("bytes_per_s", row.bytes_per_s) + (" ▲" if row.is_above else ""), cell_text("ratio", ratio), share(row.time_share))
    for x, text in zip(COLUMNS, said, strict=True):
        write(chart, x, place, text, transform=chart.get_yaxis_transform(), ha="right", va="center")


def _ceiling_lines(chart: Axes, ceilings: list[tuple[str, float]]) -> None:
    """A line for each ceiling; its name ends at it, each on a line of its own."""
    for number, (name, value) in enumerate(sorted(ceilings, key=lambda pair: pair[1])):
        style = "-" if name == "measured" else "--"
        chart.axvline(value / 1e9, color=INK, linewidth=1.3, linestyle=style, zorder=3)
        chart.annotate(
            plain(f"{name} {phrase('bytes_per_s', value)}"),
            (value / 1e9, 1),
            xycoords=chart.get_xaxis_transform(),
            xytext=(0, 4 + 12 * number),
            textcoords="offset points",
            ha="right",
            size=SMALL,
            color=INK,
            parse_math=False,
        )
