"""Colors of pictures, each for light and for dark ground. A color means one thing: classes, parts of a step, host ranges, programs and
phases have a palette each, and no two of one palette look alike to a color-blind reader."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Color:
    """A color on light ground and on dark ground, as #rrggbb."""

    light: str
    dark: str

    def ink(self, dark: bool = False) -> str:
        """Black or white, whichever reads better on it."""
        value = self.dark if dark else self.light
        red, green, blue = (_linear(int(value[at : at + 2], 16) / 255) for at in (1, 3, 5))
        luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        return "#000000" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "#ffffff"


def _linear(part: float) -> float:
    """One part of sRGB as light (IEC 61966-2-1)."""
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


CLASSES = {
    "weights": Color("#0068bd", "#397dd9"),
    "attention": Color("#eaa400", "#ffad08"),
    "kv_gather": Color("#26aa81", "#1ecc9f"),
    "kv_write": Color("#b87fca", "#e3b6fb"),
    "other": Color("#78656b", "#928288"),
    "unknown": Color("#d2d1aa", "#60514b"),
    "kernel": Color("#373e6f", "#a19cee"),
    "copy": Color("#d55d02", "#f16f08"),
    "memset": Color("#792900", "#ab550f"),
    "graph": Color("#56ccff", "#b0f7fc"),
}
"""Of classes of kernels, and of what is no kernel."""
BUDGET = {
    "floor": Color("#143d93", "#5189ff"),
    "traffic": Color("#74c4ff", "#afd8ff"),
    "below_roof": Color("#f3a000", "#fab00e"),
    "kernels": Color("#b4bda0", "#6f5c5f"),
    "not_recorded": Color("#c66901", "#aa5e00"),
    "other_executions": Color("#b775ee", "#ca9dff"),
    "copies": Color("#9d3801", "#f1720d"),
    "idle": Color("#f4e63d", "#ffec3a"),
    "launch": Color("#16998a", "#48d09f"),
    "host": Color("#4c3035", "#9b9099"),
    "compile": Color("#765caa", "#5b5cc7"),
    "profiler": Color("#bbedf3", "#dffff6"),
}
"""Of the parts of a step."""
HOST = {
    "xla": Color("#aec4ff", "#474fab"),
    "thunk": Color("#bcf9ff", "#232d5c"),
    "own": Color("#67b3a6", "#1d894c"),
    "call": Color("#e9c29b", "#695560"),
    "block": Color("#fdf090", "#5a3400"),
}
"""Of the timeline's ranges of XLA and of the program itself, of calls that no device waits for, and of layers and iterations."""
HEAT = ("#fbd7a0", "#e8893c", "#c8441f", "#7a1212")
"""Of heat maps, from little to much; nothing is white. Dark and light alone tell them apart too."""
PROGRAMS = (
    Color("#1e4191", "#6ea3f1"),
    Color("#d16906", "#eba466"),
    Color("#329d93", "#4ad5ca"),
    Color("#a9385f", "#e5659e"),
    Color("#a9b13e", "#dbdd3e"),
    Color("#7857be", "#8a6ce9"),
    Color("#5c361c", "#a97c44"),
    Color("#4cbdee", "#aff1ff"),
)
"""Of programs, by their place, over again where there are more."""
PHASES = {
    "input": Color("#a298c1", "#aaa16c"),
    "forward": Color("#436fc1", "#71a6ff"),
    "loss": Color("#732487", "#b356c4"),
    "rematerialized": Color("#85d1fd", "#cae5ff"),
    "backward": Color("#e07701", "#f7b82d"),
    "collective": Color("#20aa73", "#5ee2a5"),
    "optimizer": Color("#b42e4e", "#f173b7"),
    "unknown": Color("#e1d19c", "#737a61"),
}
"""Of the phases of a training step."""
LEAST_APART = 0.09
"""Least distance of two colors of one palette in OKLab, for people who see all colors and for the three kinds of color blindness."""


def of_class(name: str) -> Color:
    """The color of a class of kernels."""
    return CLASSES.get(name, CLASSES["unknown"])


def of_part(key: str) -> Color:
    """The color of a part of a step."""
    return BUDGET.get(key, BUDGET["profiler"])


def of_lane(number: int) -> Color:
    """The color of a program by its place."""
    return PROGRAMS[number % len(PROGRAMS)]
