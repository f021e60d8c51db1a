"""The page's interactive charts, as what BokehJS draws them from. Ids are given anew, so that the same chart is the same text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from bokeh.core.properties import value
from bokeh.embed import json_item
from bokeh.models import (
    BoxZoomTool,
    CategoricalColorMapper,
    ColumnDataSource,
    HoverTool,
    NumeralTickFormatter,
    Range1d,
    WheelZoomTool,
)
from bokeh.plotting import figure

from nsys_report.reports.palette import Colour, of_class
from nsys_report.reports.pictures.model import Roofline, Runs
from nsys_report.reports.scales import wide
from nsys_report.units import count, duration, phrase, share, shorten, visible, words

FONT = "system-ui, sans-serif"
INK = "ink"
"""Tag of what is drawn in the colour of the page's text."""
GROUND = "ground"
"""Tag of what is drawn in the colour of the page's ground."""
LANE_HEIGHT = 34
CLOSE = 2.5
"""Peaks of a roofline so close that the name of the lower one stands below its line."""


def mapper(colours: dict[str, Colour], name: str = "") -> CategoricalColorMapper:
    """Colours by word; its tags hold those for light and for dark ground, and those of text on them."""
    palettes = {
        "light": [c.light for c in colours.values()],
        "dark": [c.dark for c in colours.values()],
    }
    return CategoricalColorMapper(factors=list(colours), palette=palettes["light"], tags=[palettes], nan_color="#888888", name=name or None)


def _range(start: float, end: float) -> Range1d:
    return Range1d(start=start, end=end)


def _figure(name: str, height: int, **given: Any) -> Any:
    """An empty chart with quiet axes, transparent ground, zoom by dragging and by the wheel with Ctrl."""
    made = figure(name=name, height=height, sizing_mode="stretch_width", toolbar_location=None, tools="", min_width=200, **given)
    made.background_fill_alpha = made.border_fill_alpha = 0
    made.outline_line_color = None
    made.grid.grid_line_color = "#dddddd"
    for axis in made.axis:
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font = axis.major_label_text_font = FONT
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "12px"
        axis.minor_tick_line_color = None
    made.xaxis.formatter = made.yaxis.formatter = NumeralTickFormatter(format="0,0.[000000]")
    return made


def roofline_chart(picture: Roofline, name: str) -> dict[str, Any]:
    """Instructions as dots, as large as their time, under the roofs."""
    x, y = [p.flops_per_byte for p in picture.points], [p.flops_per_s / 1e12 for p in picture.points]
    bandwidths = [r for r in picture.roofs if r.is_bandwidth]
    peaks = [r for r in picture.roofs if not r.is_bandwidth]
    ridge = [max(p.value for p in peaks) / min(b.value for b in bandwidths)] if peaks and bandwidths else []
    low, high = wide(min(x) / 3, max([*x, *ridge]) * 6)
    least, tall = wide(min(y) / 3, max([*y, *(p.value / 1e12 for p in peaks)]) * 3)
    chart = _figure(f"{name}-roofline", 380, x_axis_type="log", y_axis_type="log", x_range=_range(low, high), y_range=_range(least, tall))
    _roofs(chart, bandwidths, peaks, low, high, tall)
    _points(chart, picture, low, high)
    chart.xaxis.axis_label, chart.yaxis.axis_label = "arithmetic intensity (FLOP per byte)", "arithmetic (TFLOPS)"
    chart.add_tools(BoxZoomTool(), WheelZoomTool(modifiers="ctrl"))
    return _item(chart, name)


def _roofs(chart: Any, bandwidths: list[Any], peaks: list[Any], low: float, high: float, tall: float) -> None:
    top = max((p.value for p in peaks), default=math.inf)
    best = max((b.value for b in bandwidths), default=0.0)
    for number, roof in enumerate(bandwidths):
        end = min(high, top / roof.value)
        dash = "solid" if roof.label == "measured" else "dashed"
        chart.line([low, end], [low * roof.value / 1e12, end * roof.value / 1e12], line_width=1.5, line_dash=dash, tags=[INK])
        text = f"{'——' if dash == 'solid' else '- - -'} {roof.label} {phrase('bytes_per_s', roof.value)}"
        chart.text([low], [tall], [text], x_offset=6, y_offset=16 + 17 * number, text_font=value(FONT), text_font_size="12px", tags=[INK])
    for roof in peaks:
        below = any(1 < other.value / roof.value < CLOSE for other in peaks)
        chart.line([roof.value / best if best else low, high], [roof.value / 1e12] * 2, line_width=1.5, tags=[INK])
        chart.text([high], [roof.value / 1e12], [f"{roof.label} {phrase('flops_per_s', roof.value)}"], text_align="right", x_offset=-4,
                   y_offset=16 if below else -4, text_font=value(FONT), text_font_size="12px", tags=[INK])  # fmt: skip


def _points(chart: Any, picture: Roofline, low: float, high: float) -> None:
    classes = {p.kernel_class: of_class(p.kernel_class) for p in picture.points}
    ordered = sorted(picture.points, key=lambda p: -p.time_ns)
    fill = {"field": "class", "transform": mapper(classes)}
    for kernel_class in classes:
        mine = [p for p in ordered if p.kernel_class == kernel_class]
        source = ColumnDataSource({
            "x": [p.flops_per_byte for p in mine],
            "y": [p.flops_per_s / 1e12 for p in mine],
            "size": [round(6 + 34 * math.sqrt(p.time_share), 2) for p in mine],
            "class": [kernel_class] * len(mine),
            "name": [visible(p.name) for p in mine],
            "time": [f"{duration(p.time_ns)}, {share(p.time_share)} of the kernel time" for p in mine],
            "rate": [phrase("flops_per_s", p.flops_per_s) for p in mine],
            "intensity": [f"{p.flops_per_byte:.3g} FLOP per byte" for p in mine],
            "roof": [words("ratio", p.share_of_roof) for p in mine],
        })  # fmt: skip
        dots = chart.scatter("x", "y", size="size", source=source, fill_color=fill, fill_alpha=0.75, line_color="white", line_width=0.6)
        tips = [("", "@name"), ("class", "@class"), ("time", "@time"), ("arithmetic", "@rate"), ("intensity", "@intensity"),
                ("of its roof", "@roof")]  # fmt: skip
        chart.add_tools(HoverTool(renderers=[dots], tooltips=tips))
    first = ordered[:1]
    third = int(3 * math.log(first[0].flops_per_byte / low) / math.log(high / low)) if first else 0
    side, away = (("left", -6), ("center", 0), ("right", 6))[min(max(third, 0), 2)]  # below its dot, clear of the chart's ends
    chart.text([p.flops_per_byte for p in first], [p.flops_per_s / 1e12 for p in first], [visible(shorten(p.name, 30)) for p in first],
               x_offset=away, y_offset=22, text_align=side, text_baseline="middle", text_font=value(FONT),
               text_font_size="12px", tags=[INK])  # fmt: skip


def _item(model: Any, name: str) -> dict[str, Any]:
    """What BokehJS embeds, its ids counted from 1."""
    return _renumbered(dict(json_item(model, name)), {}, name)  # type: ignore[arg-type]


def _renumbered(given: Any, ids: dict[str, str], name: str) -> Any:
    if isinstance(given, dict):
        return {
            key: ids.setdefault(inner, f"{name}-{len(ids) + 1}") if key in ("id", "root_id") and isinstance(inner, str) else
            _renumbered(inner, ids, name)
            for key, inner in given.items()
        }  # fmt: skip
    if isinstance(given, (list, tuple)):
        return [_renumbered(inner, ids, name) for inner in given]
    return given


def summary_of(picture: Runs) -> str:
    """The executions in a sentence, for who does not see the chart."""
    counts = np.bincount(picture.lane, weights=picture.count, minlength=len(picture.lanes))
    parts = [f"{count(float(n))} of {visible(name)}" for n, name in zip(counts, picture.lanes, strict=True)]
    return f"Executions over {duration(float(picture.end_ns.max()))}: {', '.join(parts)}."
