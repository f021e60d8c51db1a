"""`nsys-report check`: what a capture can and cannot answer."""

from __future__ import annotations

from pathlib import Path

import click

from nsys_report.cli.options import captures_argument
from nsys_report.cli.page import show
from nsys_report.cli.pairs import dumps_option, pairs, part_names
from nsys_report.cli.progress import progress_line


@click.command("check", short_help="What a capture can and cannot answer.")
@captures_argument
@dumps_option
def command(captures: tuple[Path, ...], dumps: tuple[Path, ...]) -> int:
    """What a capture can and cannot answer: what was recorded and lost, and the flag that would mend each lack."""
    from nsys_report.notebook import analyze
    from nsys_report.reports.check import check_section

    sections = []
    for name, (capture, dump) in zip(part_names(captures), pairs(captures, dumps), strict=True):
        with progress_line() as progress:
            analysis = analyze(capture, dump, progress=progress)
        sections.append(check_section(analysis.subject(name)))
    show(sections)
    return 0
