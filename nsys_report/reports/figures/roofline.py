"""The roofline: arithmetic a byte against arithmetic a second."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from nsys_report.reports.figures.canvas import DPI, GRID, INK, LABEL, QUIET, SMALL, axes, log_axes, new_figure, plain, write
from nsys_report.reports.palette import of_class
from nsys_report.reports.pictures.model import Point, Roof, Roofline
from nsys_report.reports.scales import wide
from nsys_report.units import phrase, share, shorten

MOST_NAMES = 4
"""Points that are named, those with most time."""
CLOSE = 2.5
"""Peaks so close that the name of the lower one stands below its line."""
LETTER = 5.6
"""Width of a letter of a name, points."""


def roofline_figure(picture: Roofline) -> Figure:
    """Instructions as dots, as large as their time, under the roofs of bandwidth and arithmetic."""
    height = 5.0
    figure, bottom, top = new_figure(height, picture.title, picture.notes)
    unit = (top - bottom) / height
    chart = axes(figure, 0.085, bottom + 0.52 * unit, 0.985, top - 0.1 * unit)
    log_axes(chart)
    chart.grid(which="major", color=GRID, linewidth=0.8)
    low, high, least, most = _limits(picture)
    chart.set_xlim(low, high)
    chart.set_ylim(least, most)
    _draw_roofs(chart, picture.roofs, low, high)
    for point in reversed(picture.points):
        chart.scatter(point.flops_per_byte, point.flops_per_s / 1e12, s=_area(point), color=of_class(point.kernel_class).light,
                      alpha=0.75, edgecolors="white", linewidths=0.6, zorder=3)  # fmt: skip
    _name_largest(chart, picture.points)
    _legend(chart, picture.points)
    chart.set_xlabel("arithmetic intensity (FLOP per byte)", size=LABEL, color=INK)
    chart.set_ylabel("arithmetic (TFLOPS)", size=LABEL, color=INK)
    return figure


def _area(point: Point) -> float:
    return 16 + 1400 * point.time_share


def _limits(picture: Roofline) -> tuple[float, float, float, float]:
    """Axis limits that hold every point and the roofs above them."""
    x = [p.flops_per_byte for p in picture.points]
    y = [p.flops_per_s / 1e12 for p in picture.points]
    bandwidths = [r.value for r in picture.roofs if r.is_bandwidth]
    peaks = [r.value for r in picture.roofs if not r.is_bandwidth]
    if bandwidths and peaks:
        x.append(max(peaks) / min(bandwidths))
    y += [p / 1e12 for p in peaks]
    low, high = wide(min(x) / 3, max(x) * 4)
    y += [min(b * low for b in bandwidths) / 1e12] if bandwidths and not peaks else []
    return low, high, *wide(min(y) / 3, max(y) * 3)


def _draw_roofs(chart: Axes, roofs: tuple[Roof, ...], low: float, high: float) -> None:
    """Bandwidths as slopes up to the highest peak, peaks as level lines from the best bandwidth on."""
    bandwidths = [r for r in roofs if r.is_bandwidth]
    peaks = [r for r in roofs if not r.is_bandwidth]
    top = max((r.value for r in peaks), default=math.inf)
    best = max((r.value for r in bandwidths), default=0.0)
    for number, roof in enumerate(bandwidths):
        end = min(high, top / roof.value)
        style = "-" if roof.label == "measured" else "--"
        chart.plot([low, end], [low * roof.value / 1e12, end * roof.value / 1e12], color=INK, linewidth=1.3, linestyle=style, zorder=2)
        y = 0.955 - 0.05 * number
        chart.plot([0.012, 0.045], [y, y], color=INK, linewidth=1.3, linestyle=style, transform=chart.transAxes)
        write(chart, 0.055, y, f"{roof.label} {phrase('bytes_per_s', roof.value)}", transform=chart.transAxes, va="center", size=SMALL)
    for roof in peaks:
        start = roof.value / best if best else low
        below = any(1 < other.value / roof.value < CLOSE for other in peaks)
        chart.plot([start, high], [roof.value / 1e12] * 2, color=INK, linewidth=1.3, zorder=2)
        text = f"{roof.label} {phrase('flops_per_s', roof.value)}"
        chart.annotate(plain(text), (high, roof.value / 1e12), xytext=(-3, -3 if below else 3), textcoords="offset points", size=SMALL,
                       color=INK, ha="right", va="top" if below else "bottom", parse_math=False)  # fmt: skip


def _name_largest(chart: Axes, points: tuple[Point, ...]) -> None:
    """Names of the points with most time, beside their dots, where they cover no other dot and no other name."""
    to_pixels, room = chart.transData.transform, chart.get_window_extent()
    dots = to_pixels([(p.flops_per_byte, p.flops_per_s / 1e12) for p in points])
    written = [text.get_window_extent() for text in chart.texts]
    taken: list[tuple[float, float, float, float]] = [(box.x0, box.y0, box.x1, box.y1) for box in written]
    named = 0
    for number, point in enumerate(points):
        text = f"{shorten(point.name, 34)} {share(point.share_of_roof)}" if point.share_of_roof is not None else shorten(point.name, 40)
        x, y = dots[number]
        away, wide, high = math.sqrt(_area(point)) / 2 + 4, len(plain(text)) * LETTER * DPI / 72, SMALL * 1.3 * DPI / 72
        for side, rise in ((1, 0.0), (-1, 0.0), (1, -9.0), (-1, -9.0), (1, 9.0), (-1, 9.0)):
            near = x + side * away * DPI / 72
            middle = y + rise * DPI / 72
            place = (min(near, near + side * wide), middle - high / 2, max(near, near + side * wide), middle + high / 2)
            if room.x0 <= place[0] and place[2] <= room.x1 and not _covers(place, dots) and not any(_meet(place, other) for other in taken):
                _name(chart, point, text, (side * away, rise))
                taken.append(place)
                named += 1
                break
        if named == MOST_NAMES:
            return


def _name(chart: Axes, point: Point, text: str, at: tuple[float, float]) -> None:
    """A name `at` so many points from the middle of its dot, bright around it so that lines do not strike it through."""
    chart.annotate(plain(text), (point.flops_per_byte, point.flops_per_s / 1e12), xytext=at, textcoords="offset points", size=SMALL,
                   color=INK, ha="left" if at[0] > 0 else "right", va="center", parse_math=False, zorder=5,
                   path_effects=[withStroke(linewidth=2.5, foreground="white")])  # fmt: skip


def _covers(box: tuple[float, float, float, float], dots: NDArray[np.float64]) -> bool:
    """Whether the middle of any dot lies in a box of pixels."""
    inside = (dots[:, 0] > box[0]) & (dots[:, 0] < box[2]) & (dots[:, 1] > box[1]) & (dots[:, 1] < box[3])
    return bool(inside.any())


def _meet(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _legend(chart: Axes, points: tuple[Point, ...]) -> None:
    """The classes, and what the size of a dot and the figure beside a name are."""
    for number, name in enumerate(dict.fromkeys(point.kernel_class for point in points)):
        y = 0.13 + 0.055 * number
        chart.scatter([0.8], [y], s=40, color=of_class(name).light, transform=chart.transAxes, zorder=4)
        write(chart, 0.815, y, name, transform=chart.transAxes, va="center", size=SMALL)
    write(
        chart,
        0.985,
        0.03,
        "dot size: time · percent: of its roof",
        transform=chart.transAxes,
        ha="right",
        va="bottom",
        size=SMALL,
        color=QUIET,
    )
