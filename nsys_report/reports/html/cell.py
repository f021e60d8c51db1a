"""What Jupyter shows of an analysis or a comparison: the step budget as a bar, the first findings with remedies, small tables."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from nsys_report.reports.html.page import TEMPLATES, as_shown, bar_words
from nsys_report.reports.model import Part, Table
from nsys_report.reports.palette import of_part
from nsys_report.reports.pictures.model import BudgetBar
from nsys_report.units import duration, share

MOST_FINDINGS = 3
MOST_BUDGETS = 2
"""Programs whose budget is drawn: those with most time."""
MOST_COLUMNS = 8
"""Columns of a table, as many as fit below a cell; those of the highest drop rank go first."""


def render_cell(part: Part, budgets: Sequence[BudgetBar] = (), opened: bool = True) -> str:
    """A part of a report as HTML that needs nothing but the page it stands in; the first table is open."""
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, finalize=as_shown)
    environment.filters.update(duration=duration, share=share)
    environment.globals.update(small=_small, bar_words=bar_words, of_part=of_part)
    template = environment.get_template("cell.html")
    return template.render(part=part, budgets=budgets[:MOST_BUDGETS], findings=part.findings[:MOST_FINDINGS], opened=opened)


def _small(table: Table) -> list[int]:
    """The columns that are shown, by position: those that say something, the least of them left out where there are many."""
    telling = table.telling()
    ranked = sorted(telling, key=lambda i: (i > 0 and table.columns[i].drop_rank, i))
    return sorted(ranked[:MOST_COLUMNS])
