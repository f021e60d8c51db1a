"""Figures by matplotlib's object interface: no global state, the same bytes for the same picture, names that stay text."""

from __future__ import annotations

import io
import textwrap
from functools import cache
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from nsys_report.units import visible

WIDTH = 10.0
"""Inches: at DPI a picture fills a slide of 1,600 pixels, at SCREEN_DPI the column of a notebook."""
DPI, SCREEN_DPI = 160, 100
TITLE, LABEL, SMALL = 13.0, 10.0, 9.0
"""Sizes of text, points."""
INK, QUIET, GRID = "#1a1a1a", "#555555", "#dddddd"


class ShownFigure(Figure):
    """A figure that notebooks show without any magic."""

    def _repr_png_(self) -> bytes:
        return png(self, SCREEN_DPI)


def new_figure(height: float, title: str, notes: tuple[str, ...] = ()) -> tuple[Figure, float, float]:
    """A figure with its finding on top and its notes below, and the room between: bottom and top as shares of the height."""
    lines = textwrap.wrap(plain(title), 88) or [""]
    below = [line for note in notes for line in textwrap.wrap(plain(note), 130)]
    head, foot = 0.16 + 0.24 * len(lines), 0.08 + 0.17 * len(below)
    whole = height + head + foot
    figure = ShownFigure(figsize=(WIDTH, whole), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    label: dict[str, Any] = {"parse_math": False}
    figure.text(0.012, 1 - 0.08 / whole, "\n".join(lines), size=TITLE, weight="bold", color=INK, va="top", linespacing=1.25, **label)
    if below:
        figure.text(0.012, 0.06 / whole, "\n".join(below), size=SMALL, color=QUIET, va="bottom", **label)
    return figure, foot / whole, 1 - head / whole


def axes(figure: Figure, left: float, bottom: float, right: float, top: float) -> Axes:
    """Axes between those shares of the figure, with a quiet frame."""
    made = figure.add_axes((left, bottom, right - left, top - bottom))
    for side in ("top", "right", "left"):
        made.spines[side].set_visible(False)
    made.spines["bottom"].set_color(QUIET)
    made.tick_params(colors=INK, labelsize=LABEL, length=3)
    made.set_axisbelow(True)
    made.xaxis.set_major_formatter(_number)
    made.yaxis.set_major_formatter(_number)
    return made


def log_axes(target: Axes) -> None:
    """Both axes logarithmic, their ticks plain numbers."""
    for axis, scale in ((target.xaxis, target.set_xscale), (target.yaxis, target.set_yscale)):
        scale("log")
        axis.set_major_formatter(_number)
        axis.set_minor_formatter(lambda value, place: "")


def _number(value: float, _place: float) -> str:
    """A tick's number, thousands apart."""
    return f"{value:,.10g}"


def write(target: Axes, x: float, y: float, words: str, **style: Any) -> Any:
    """Text on axes, in which nothing is taken for mathematics."""
    return target.text(x, y, plain(words), parse_math=False, **{"size": LABEL, "color": INK, **style})


def name_ticks(target: Axes, places: list[float], names: list[str]) -> None:
    """Names along the y axis, the first on top."""
    target.set_yticks(places)
    target.set_yticklabels([plain(name) for name in names], parse_math=False)
    target.tick_params(axis="y", length=0)
    target.invert_yaxis()


def plain(words: str) -> str:
    """Text that the font can show: hidden characters as escapes, letters that it lacks too."""
    known = _letters()
    return "".join(c if ord(c) in known or c == "\n" else f"\\u{ord(c):04x}" for c in visible(words))


@cache
def _letters() -> frozenset[int]:
    """The characters of the font that matplotlib ships and draws with."""
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(font_manager.findfont("DejaVu Sans")).get_charmap())


def png(figure: Figure, dpi: int = DPI) -> bytes:
    """A figure as PNG, without date or version in it."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=dpi, facecolor="white", metadata={"Software": None})
    return out.getvalue()
