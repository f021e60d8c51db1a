"""`nsys-report check`: what a capture can and cannot answer."""

from __future__ import annotations

from pathlib import Path

import click

from nsys_report.cli.assertions import assertion_options, check_assertions, read_all
from nsys_report.cli.options import captures_argument
from nsys_report.cli.page import show
from nsys_report.cli.pairs import dumps_option, pairs, part_names
from nsys_report.cli.progress import progress_line


@click.command("check", short_help="What a capture can and cannot answer.")
@captures_argument
@dumps_option
@assertion_options
def command(
    captures: tuple[Path, ...],
    dumps: tuple[Path, ...],
    texts: tuple[str, ...],
    assertions_file: Path | None,
    junit_file: Path | None,
    summary_file: Path | None,
) -> int:
    """What a capture can and cannot answer: what was recorded and lost, and the flag that would mend each lack.

    With --assert or --assertions, whether the report's figures are as they must be: 'host_gap_ns < 200us',
    'weights.share_of_measured >= 0.9', 'kernels(jit_step) == 162', 'no finding(cache-copied)', 'jit_step: step_ns < 3ms'.
    Names are the keys of the JSON report.
    """
    assertions = read_all(texts, assertions_file, (junit_file, summary_file))
    named = list(zip(part_names(captures), pairs(captures, dumps), strict=True))
    if assertions:
        return check_assertions(assertions, [(name, *pair) for name, pair in named], junit_file, summary_file)
    from nsys_report.notebook import analyze
    from nsys_report.reports.check import check_section

    sections = []
    for name, (capture, dump) in named:
        with progress_line() as progress:
            analysis = analyze(capture, dump, progress=progress)
        sections.append(check_section(analysis.named(name)))
    show(sections)
    return 0
