"""Pictures along time: executions with their gaps, and one execution's timeline."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from nsys_report.reports.figures.canvas import GRID, INK, LABEL, QUIET, SMALL, axes, name_ticks, new_figure, plain, write
from nsys_report.reports.palette import of_class, of_lane
from nsys_report.reports.pictures.model import Floats, Ints, Runs, Timeline
from nsys_report.reports.scales import time_scale
from nsys_report.units import shorten

MOST_LANES = 8
"""Programs in the picture of executions; the others are counted in a note."""
LEAST_NAMED = 0.055
"""Share of the axis from which a bar has room for a name."""
SIGNS = {"o": "●", "x": "×", "^": "△"}
"""Signs of the marks in words."""
LONGEST_ROW = 24
"""Letters of the name of a row."""
LEAST_LETTERS = 10
"""Letters that must be left of a longer name."""


def runs_figure(picture: Runs) -> Figure:
    """Executions as bars on a lane for each program with the idle time before them, and below it how long each took."""
    lanes = picture.lanes[:MOST_LANES]
    more = len(picture.lanes) - len(lanes)
    notes = picture.notes + ((f"{more:,} more programs are not drawn.",) if more else ())
    height = 0.5 + 0.46 * len(lanes) + 2.3
    figure, bottom, top = new_figure(height, picture.title, ("pale: the GPU idle before the execution", *notes))
    unit = (top - bottom) / height
    lower = axes(figure, 0.085, bottom + 0.48 * unit, 0.985, bottom + 2.2 * unit)
    upper = axes(figure, 0.085, bottom + 2.42 * unit, 0.985, top - 0.05 * unit)
    upper.sharex(lower)
    scale, name = time_scale(float(picture.end_ns.max()))
    shown = picture.lane < len(lanes)
    _lane_bars(upper, picture, shown, scale)
    name_ticks(upper, list(range(len(lanes))), [""] * len(lanes))
    upper.set_ylim(len(lanes) - 0.6, -0.5)
    for place, lane in enumerate(lanes):
        write(upper, 0, place - 0.16, shorten(lane, 60), size=SMALL, va="bottom", transform=upper.get_yaxis_transform())
    upper.tick_params(axis="x", labelbottom=False)
    _durations(lower, picture, shown, scale)
    lower.set_xlabel(f"time since the first execution ({name})", size=LABEL, color=INK)
    first, last = float(picture.start_ns.min()), float(picture.end_ns.max())
    lower.set_xlim((first - 0.01 * (last - first)) / scale, (last + 0.01 * (last - first)) / scale)
    return figure


def _lane_bars(chart: Axes, picture: Runs, shown: np.ndarray, scale: float) -> None:
    """Gaps pale, executions in the color of their lane over them; those cut off are hatched."""
    for lane in np.unique(picture.lane[shown]).tolist():
        mine = picture.lane == lane
        color = of_lane(lane).light
        gap = np.maximum(picture.gap_ns[mine], 0)
        start, end = picture.start_ns[mine], picture.end_ns[mine]
        _boxes(chart, (start - gap) / scale, start / scale, lane + 0.1, 0.15, color=color, alpha=0.22, linewidth=0)
        _boxes(chart, start / scale, end / scale, lane + 0.1, 0.22, facecolor=color, edgecolor=color, linewidth=0.5)
        cut = ~picture.is_complete[mine]
        _boxes(chart, start[cut] / scale, end[cut] / scale, lane + 0.1, 0.22, facecolor="none", edgecolor="white", hatch="///", linewidth=0)


def _boxes(chart: Axes, left: Floats, right: Floats, row: float | Floats, half: float, **style: object) -> None:
    """Boxes of one look at once."""
    if not len(left):
        return
    low, high = np.broadcast_to(np.asarray(row) - half, left.shape), np.broadcast_to(np.asarray(row) + half, left.shape)
    corners = np.stack([np.stack([left, low], 1), np.stack([left, high], 1), np.stack([right, high], 1), np.stack([right, low], 1)], 1)
    chart.add_collection(PolyCollection(corners, zorder=3, **style), autolim=False)  # type: ignore[arg-type]


def _durations(chart: Axes, picture: Runs, shown: np.ndarray, scale: float) -> None:
    """Kernel time of each execution as dots, the gap before it as crosses."""
    kernel, gap = picture.kernel_time_ns, picture.gap_ns
    slowest = np.where(picture.count > 1, picture.slowest_ns, -1).astype(float)
    values = [kernel[shown & (kernel > 0)], gap[shown & (gap > 0)], slowest[shown & (slowest > 0)]]
    longest = max((float(v.max()) for v in values if len(v)), default=1.0)
    size, unit = time_scale(longest)
    chart.grid(axis="y", color=GRID, linewidth=0.8)
    marks = {"o": ("kernel time", kernel), "x": ("idle before", gap), "^": ("slowest span", slowest)}
    for sign, (_, series) in marks.items():
        for lane in np.unique(picture.lane[shown]).tolist():
            mine = (picture.lane == lane) & (series > 0)
            chart.scatter(picture.start_ns[mine] / scale, series[mine] / size, s=16, marker=sign, color=of_lane(lane).light, linewidths=1)
    chart.set_ylim(0, longest / size * 1.18)
    chart.set_ylabel(f"each execution ({unit})", size=LABEL, color=INK)
    said = " · ".join(f"{SIGNS[sign]} {name}" for sign, (name, series) in marks.items() if np.any(series[shown] > 0))
    write(chart, 0.995, 0.985, said, transform=chart.transAxes, ha="right", va="top", size=SMALL, color=QUIET,
          bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5}, zorder=5)  # fmt: skip


def timeline_figure(picture: Timeline) -> Figure:
    """One execution: a row for each stream, its kernels colored by class, the longest named."""
    classes = list(dict.fromkeys(picture.kinds[k].kernel_class for k in picture.kind.tolist()))
    rows = len(picture.rows)
    height = 0.9 + 0.5 * rows
    figure, bottom, top = new_figure(height, picture.title, picture.notes)
    unit = (top - bottom) / height
    names = [shorten(row, LONGEST_ROW) for row in picture.rows]
    left = 0.022 + 0.0085 * max(map(len, names), default=0)
    chart = axes(figure, left, bottom + 0.48 * unit, 0.985, top - 0.32 * unit)
    scale, name = time_scale(float(picture.span_ns))
    kind_class = np.array([classes.index(kind.kernel_class) for kind in picture.kinds])
    of_bar = kind_class[picture.kind] if len(picture.kind) else picture.kind
    for code, label in enumerate(classes):
        mine = of_bar == code
        start = picture.start_ns[mine] / scale
        _boxes(chart, start, start + picture.duration_ns[mine] / scale, picture.row[mine].astype(float), 0.4,
               facecolor=of_class(label).light, edgecolor=of_class(label).light, linewidth=0.4)  # fmt: skip
    _boundaries(chart, picture, scale)
    _name_bars(chart, picture, scale)
    name_ticks(chart, list(range(rows)), names)
    chart.set_ylim(rows - 0.5, -0.5)
    chart.set_xlim(0, max(picture.span_ns, 1) / scale)
    origin = "the first activity" if picture.execution_id is None else "the execution's start"
    chart.set_xlabel(f"time since {origin} ({name})", size=LABEL, color=INK)
    _classes_above(figure, classes, of_bar, picture.duration_ns, left, top - 0.16 * unit)
    return figure


def _boundaries(chart: Axes, picture: Timeline, scale: float) -> None:
    """A thin line where a bar begins that is wide enough to be seen apart from its neighbor."""
    mine = picture.duration_ns > 0.004 * picture.span_ns
    start, row = picture.start_ns[mine] / scale, picture.row[mine]
    chart.vlines(start, row - 0.4, row + 0.4, colors="white", linewidth=0.5, zorder=4)


def _name_bars(chart: Axes, picture: Timeline, scale: float) -> None:
    """The names of the bars that are long enough, as much of them as fits."""
    for at in np.flatnonzero(picture.duration_ns >= LEAST_NAMED * picture.span_ns).tolist():
        kind = picture.kinds[picture.kind[at]]
        room = int(picture.duration_ns[at] / picture.span_ns * 124 * chart.get_position().width)
        if room < min(LEAST_LETTERS, len(kind.name)):
            continue
        middle = (picture.start_ns[at] + picture.duration_ns[at] / 2) / scale
        write(chart, middle, float(picture.row[at]), shorten(kind.name, room), ha="center", va="center", size=7.5,
              color=of_class(kind.kernel_class).ink(), clip_on=True, zorder=5)  # fmt: skip


def _classes_above(figure: Figure, classes: list[str], of_bar: Ints, duration: Ints, x: float, y: float) -> None:
    """The classes with their share of the time of all bars, along the top."""
    total = max(float(duration.sum()), 1.0)
    shares = [(float(duration[of_bar == code].sum()) / total, name) for code, name in enumerate(classes)]
    for part, name in sorted(shares, reverse=True):
        text = plain(f"{name} {part * 100:.1f} %")
        figure.text(x, y, "■", size=LABEL, color=of_class(name).light, va="center")
        figure.text(x + 0.014, y, text, size=SMALL, color=INK, va="center", parse_math=False)
        x += 0.034 + 0.0076 * len(text)
