"""The trend of a history as one page without scripts."""

from __future__ import annotations

from collections.abc import Sequence

from nsys_report.history.trend import Trend
from nsys_report.reports.html.diff import static_page
from nsys_report.reports.trend_page import HEIGHT, WIDTH, chart, trend_section


def render_trend(series: Sequence[Trend], title: str, made_by: str) -> str:
    """The page: a table of levels, then a chart of each series, those whose level changed first."""
    ordered = sorted(series, key=lambda s: (not s.changes, s.case))
    return static_page(
        "trend.html",
        title=title,
        made_by=made_by,
        section=trend_section(series),
        charts=[chart(s) for s in ordered if s.values],
        width=WIDTH,
        height=HEIGHT,
    )
