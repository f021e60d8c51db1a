"""The heat map of ranks by steps as a drawing on the page, which needs no script."""

from __future__ import annotations

from typing import Any

import numpy as np

from nsys_report.reports.pictures.model import HeatMap
from nsys_report.units import duration

CELL, ROOM = 16, 1_000
"""The height of a cell, and the width of the map, in the drawing's units."""
MOST_NAMES = 24


def heat_drawing(picture: HeatMap) -> dict[str, Any]:
    """Cells with their place, strength (0 to 1) and words; the names along both sides, as many as there is room for."""
    rows, columns = picture.late_ns.shape
    width = min(ROOM / columns, 60.0)
    most = picture.most_ns or 1.0
    cells = [
        {
            "x": f"{column * width:.1f}",
            "y": row * CELL,
            "strength": f"{picture.late_ns[row, column] / most:.2f}" if late else "none",
            "title": f"rank {picture.rows[row]}, step {picture.columns[column]}: "
            + (f"{duration(float(picture.late_ns[row, column]))} late" if late else "nothing counts"),
        }
        for row, column in zip(*(place.tolist() for place in np.nonzero(~(picture.late_ns <= 0))), strict=True)
        for late in (bool(np.isfinite(picture.late_ns[row, column])),)
    ]
    every = {"rows": -(-rows // MOST_NAMES), "columns": -(-columns // MOST_NAMES)}
    return {
        "title": picture.title,
        "notes": picture.notes,
        "cells": cells,
        "cell": (f"{width:.2f}", CELL),
        "size": (f"{width * columns:.1f}", rows * CELL),
        "rows": [(n * CELL + CELL * 0.75, name) for n, name in enumerate(picture.rows) if n % every["rows"] == 0],
        "columns": [(f"{(n + 0.5) * width:.1f}", name) for n, name in enumerate(picture.columns) if n % every["columns"] == 0],
        "most": duration(picture.most_ns),
    }
