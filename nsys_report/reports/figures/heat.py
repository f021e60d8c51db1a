"""Ranks by steps as a picture."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from nsys_report.reports.figures.canvas import GRID, INK, LABEL, QUIET, SMALL, axes, new_figure, plain
from nsys_report.reports.palette import HEAT
from nsys_report.reports.pictures.model import HeatMap
from nsys_report.reports.scales import time_scale

MOST_TICKS = 20


def heat_figure(picture: HeatMap) -> Figure:
    """A row a rank, a column a step; the darker, the later."""
    rows = len(picture.rows)
    height = 1.4 + max(1.0, min(0.3 * rows, 6.0))
    figure, bottom, top = new_figure(height, picture.title, picture.notes)
    unit = (top - bottom) / height
    chart = axes(figure, 0.08, bottom + 0.6 * unit, 0.88, top - 0.2 * unit)
    scale, name = time_scale(picture.most_ns or 1.0)
    colors = LinearSegmentedColormap.from_list("late", ["#ffffff", *HEAT]).with_extremes(bad=GRID)
    cells = np.ma.masked_invalid(picture.late_ns / scale)
    image = chart.imshow(cells, aspect="auto", cmap=colors, vmin=0, vmax=max(picture.most_ns / scale, 1e-9), interpolation="nearest")
    for axis, names, label in ((chart.xaxis, picture.columns, "step"), (chart.yaxis, picture.rows, "rank")):
        every = -(-len(names) // MOST_TICKS)
        axis.set_ticks(list(range(0, len(names), every)))
        axis.set_ticklabels([plain(n) for n in names[::every]])
        axis.set_label_text(label, size=LABEL, color=INK)
    bar = figure.colorbar(image, cax=figure.add_axes((0.905, bottom + 0.6 * unit, 0.015, top - bottom - 0.8 * unit)))
    bar.set_label(f"late ({name})", size=LABEL, color=INK)
    bar.outline.set_edgecolor(QUIET)
    bar.ax.tick_params(labelsize=SMALL)
    return figure
