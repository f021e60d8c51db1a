"""Text for this terminal: its width, and color only for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from nsys_report.reports.model import Report, Section

PIPED_WIDTH = 160
"""Width where there is no terminal and COLUMNS does not say: room for every figure."""


def width() -> int:
    """Characters in a line: COLUMNS, else the terminal's, else PIPED_WIDTH."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns):
        return int(columns)
    return os.get_terminal_size(sys.stdout.fileno()).columns if _is_terminal() else PIPED_WIDTH


def _is_terminal() -> bool:
    """Whether stdout is a terminal; it may also be closed."""
    return sys.stdout is not None and sys.stdout.isatty()


def color() -> bool:
    """Whether a person with a color terminal reads this."""
    return _is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def report_text(report: Report, full: bool = False) -> str:
    """The report for this terminal; `full` has every finding, table and column."""
    from nsys_report.reports.terminal_page import render

    return render(report, width(), color(), full)


def show(sections: Iterable[Section]) -> None:
    """Prints sections that are no report."""
    from nsys_report.reports.terminal_page import render_sections

    click.echo(render_sections(sections, width(), color()), nl=False)
