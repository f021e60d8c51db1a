"""A program's memory as a line over its order: the path of an area in a box of 1000 by 100."""

from __future__ import annotations

from markupsafe import Markup

from nsys_report.reports.memory_page import Curve
from nsys_report.units import share, size

WIDTH, HEIGHT = 1000, 100


def area(curve: Curve) -> Markup:
    """The path of the area under the curve, in steps; numbers alone, so that it passes as it is, however long."""
    stretch = WIDTH / len(curve.points)
    steps = (f"V{HEIGHT * (1 - used / curve.most):.1f}H{(at + 1) * stretch:.1f}" for at, used in enumerate(curve.points))
    return Markup(f"M0 {HEIGHT}{''.join(steps)}V{HEIGHT}Z")


def peak_at(curve: Curve) -> str:
    """Where most is, as a place on the width."""
    return f"{WIDTH * (curve.place + 0.5) / curve.instructions:.1f}"


def curve_words(curve: Curve) -> str:
    """The picture in words."""
    way = share(curve.place / curve.instructions)
    return (
        f"Temporaries in use over the program's {curve.instructions:,} instructions: at most {size(curve.most)}, at {curve.where} "
        f"({way} of the way)."
    )
