"""No two colors of a palette look alike, neither to most people nor to the color-blind; and a color means one thing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from hlo_mapping import KERNEL_CLASSES, TRAINING_PHASES
from nsys_report.analysis.budget.parts import CATEGORIES
from nsys_report.reports.palette import BUDGET, CLASSES, HOST, LEAST_APART, PHASES, PROGRAMS, Color, of_class, of_lane, of_part

Matrix = NDArray[np.float64]
PALETTES = {"classes": CLASSES, "budget": BUDGET, "host": HOST, "programs": dict(zip("01234567", PROGRAMS, strict=True)), "phases": PHASES}
SEEN_BY = {
    "all colors": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
"""Machado, Oliveira and Fernandes (2009), severity 1, in linear sRGB."""
_CONES = np.array(
    [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]]
)
_LAB = np.array(
    [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099], [0.0259040371, 0.7827717662, -0.8086757660]]
)
"""Ottosson (2020), OKLab."""


def linear(color: str) -> Matrix:
    parts = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def seen(color: str, eye: Matrix) -> Matrix:
    return _LAB @ np.cbrt(_CONES @ np.clip(eye @ linear(color), 0, 1))


def apart(one: str, other: str, eye: Matrix) -> float:
    return float(np.linalg.norm(seen(one, eye) - seen(other, eye)))


def test_the_measure_itself() -> None:
    """White is 1 away from black; red and green of one lightness are far apart, but not for who sees no red or green."""
    assert apart("#000000", "#ffffff", SEEN_BY["all colors"]) == pytest.approx(1, abs=1e-3)
    assert apart("#c04040", "#5f7f2f", SEEN_BY["all colors"]) > 0.2
    assert apart("#c04040", "#5f7f2f", SEEN_BY["protanopia"]) < 0.5 * apart("#c04040", "#5f7f2f", SEEN_BY["all colors"])


@pytest.mark.parametrize("eye", SEEN_BY)
@pytest.mark.parametrize("ground", ["light", "dark"])
@pytest.mark.parametrize("palette", PALETTES)
def test_no_two_look_alike(palette: str, ground: str, eye: str) -> None:
    colors = {name: getattr(color, ground) for name, color in PALETTES[palette].items()}
    close = {
        (one, other): round(distance, 3)
        for one, other in combinations(colors, 2)
        if (distance := apart(colors[one], colors[other], SEEN_BY[eye])) < LEAST_APART
    }
    assert close == {}


def test_a_color_means_one_thing() -> None:
    """No color stands in two palettes."""
    homes: dict[str, set[str]] = {}
    for name, palette in PALETTES.items():
        for color in palette.values():
            homes.setdefault(f"light {color.light}", set()).add(name)
            homes.setdefault(f"dark {color.dark}", set()).add(name)
    assert {color: found for color, found in homes.items() if len(found) > 1} == {}


def test_everything_that_has_a_color_has_its_own() -> None:
    assert set(KERNEL_CLASSES) <= CLASSES.keys()
    assert set(CATEGORIES) <= BUDGET.keys()
    assert set(TRAINING_PHASES) == PHASES.keys()
    assert of_lane(len(PROGRAMS)) == of_lane(0)
    assert (of_class("none"), of_part("none")) == (CLASSES["unknown"], BUDGET["profiler"])


@pytest.mark.parametrize("color", [color for palette in PALETTES.values() for color in palette.values()], ids=lambda c: c.light)
def test_what_is_written_on_a_color_can_be_read(color: Color) -> None:
    """A contrast of 4.5 (WCAG 2.1, 1.4.3)."""
    for ground, dark in ((color.light, False), (color.dark, True)):
        light, ink = (float(np.array([0.2126, 0.7152, 0.0722]) @ linear(c)) for c in (ground, color.ink(dark)))
        assert (max(light, ink) + 0.05) / (min(light, ink) + 0.05) >= 4.5
