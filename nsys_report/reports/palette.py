"""Colours of pictures, told apart by colour-blind readers (after Okabe and Ito), each for light and for dark ground."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour on light ground and on dark ground, as #rrggbb."""

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
    "weights": Colour("#0072b2", "#3d9fdc"),
    "attention": Colour("#e69f00", "#f0b840"),
    "kv_gather": Colour("#009e73", "#2cc59a"),
    "kv_write": Colour("#cc79a7", "#dc98bf"),
    "other": Colour("#767676", "#8c8c8c"),
    "unknown": Colour("#b5a88f", "#8d8470"),
    "kernel": Colour("#56688a", "#9db0d3"),
    "copy": Colour("#d55e00", "#f08442"),
    "memset": Colour("#8b4513", "#c28a5c"),
    "graph": Colour("#56b4e9", "#8accf0"),
}
"""Of classes of kernels, and of what is no kernel."""
BUDGET = {
    "floor": Colour("#0072b2", "#3d9fdc"),
    "traffic": Colour("#8cc8ec", "#9ad4f5"),
    "below_roof": Colour("#e69f00", "#f0b840"),
    "kernels": Colour("#b5a88f", "#8d8470"),
    "not_recorded": Colour("#a6761d", "#c99a45"),
    "other_executions": Colour("#cc79a7", "#dc98bf"),
    "copies": Colour("#d55e00", "#f08442"),
    "idle": Colour("#f0e442", "#f0e442"),
    "launch": Colour("#009e73", "#2cc59a"),
    "host": Colour("#4d4d4d", "#9a9a9a"),
    "compile": Colour("#7b5aa6", "#a98fd0"),
    "profiler": Colour("#bdbdbd", "#cfcfcf"),
}
"""Of the parts of a step."""
HOST = {
    "xla": Colour("#b9c7dd", "#3f5474"),
    "thunk": Colour("#d7dfeb", "#33435c"),
    "own": Colour("#8fd3b6", "#2b6b52"),
    "call": Colour("#d5d5d5", "#4a4a4a"),
    "block": Colour("#e3dccd", "#4d4636"),
}
"""Of the timeline's ranges of XLA and of the program itself, of calls that no device waits for, and of layers and iterations."""
HEAT = ("#fbd7a0", "#e8893c", "#c8441f", "#7a1212")
"""Of heat maps, from little to much; nothing is white. Dark and light alone tell them apart too."""
LANES = ("weights", "attention", "kv_gather", "kv_write", "copy", "graph", "other")
"""Colours of programs, by their place, over again where there are more."""


def of_class(name: str) -> Colour:
    """The colour of a class of kernels."""
    return CLASSES.get(name, CLASSES["unknown"])


def of_part(key: str) -> Colour:
    """The colour of a part of a step."""
    return BUDGET.get(key, BUDGET["profiler"])


def of_lane(number: int) -> Colour:
    """The colour of a program by its place."""
    return CLASSES[LANES[number % len(LANES)]]
