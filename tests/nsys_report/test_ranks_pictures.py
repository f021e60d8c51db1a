"""The heat map of ranks by steps: its cells, how many ranks and steps share one, and how the page draws it."""

from __future__ import annotations

import numpy as np
import pytest

from nsys_report.ranks.run import analyze_run
from nsys_report.reports.figures.canvas import png
from nsys_report.reports.figures.heat import heat_figure
from nsys_report.reports.html.heat import heat_drawing
from nsys_report.reports.pictures.heat import MOST_COLUMNS, MOST_ROWS, heat_map
from tests.nsys_report.made_ranks import MS, US, Made


def test_a_cell_is_how_late_a_rank_is_in_a_step() -> None:
    found = heat_map(analyze_run(Made(ranks=3, steps=5, late={(1, 2): 4 * MS}, missing=frozenset({(2, 0)})).captures()))
    assert found is not None and (found.rows, found.columns) == (("0", "1", "2"), ("0", "1", "2", "3", "4"))
    assert found.late_ns[1, 2] == pytest.approx(4 * MS, abs=5 * US) and found.most_ns == found.late_ns[1, 2]
    assert np.isnan(found.late_ns[2, 0])
    assert found.title == "jit_step: rank 1 comes 4.00 ms late in 1 of 5 steps"
    drawn = heat_drawing(found)
    assert [cell["title"] for cell in drawn["cells"] if cell["strength"] == "1.00"] == ["rank 1, step 2: 4.00 ms late"]
    assert [cell["title"] for cell in drawn["cells"] if cell["strength"] == "none"] == ["rank 2, step 0: nothing counts"]
    assert png(heat_figure(found))[:4] == b"\x89PNG"


def test_many_ranks_and_steps_share_cells_that_show_the_latest() -> None:
    found = heat_map(analyze_run(Made(ranks=66, steps=164, collectives=1, late={(41, 123): 2 * MS}).captures()))
    assert found is not None and len(found.rows) <= MOST_ROWS and len(found.columns) <= MOST_COLUMNS
    row, column = np.unravel_index(np.nanargmax(found.late_ns), found.late_ns.shape)
    assert found.rows[row] == "40–41" and found.columns[column] == "122–123"
    assert "several" in found.notes[1]


def test_ranks_that_meet_nowhere_have_no_map() -> None:
    assert heat_map(analyze_run(Made(ranks=1).captures())) is None
