"""`nsys-report check`: what a capture can and cannot answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsys_report.cli.assertions import assertion_options, check_assertions, read_all
from nsys_report.cli.options import captures_argument
from nsys_report.cli.page import show
from nsys_report.cli.pairs import dumps_option, pairs, part_names
from nsys_report.cli.places import keep_apart
from nsys_report.cli.progress import progress_line

if TYPE_CHECKING:
    from nsys_report.reports.model import Section


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

    Of a capture alone, its rows are counted and nothing is joined, which takes a moment whatever its size; with --xla-dump it is analyzed
    as a report does.

    With --assert or --assertions, whether the report's figures are as they must be: 'host_gap_ns < 200us',
    'weights.share_of_measured >= 0.9', 'kernels(jit_step) == 162', 'no finding(cache-copied)', 'jit_step: step_ns < 3ms'.
    Names are the keys of the JSON report.
    """
    keep_apart({"--junit": junit_file, "--summary": summary_file}, [*captures, *dumps, assertions_file])
    assertions = read_all(texts, assertions_file, (junit_file, summary_file))
    named = list(zip(part_names(captures), pairs(captures, dumps), strict=True))
    if assertions:
        return check_assertions(assertions, [(name, *pair) for name, pair in named], junit_file, summary_file)
    show([_counted(name, capture) if dump is None else _joined(name, capture, dump) for name, (capture, dump) in named])
    return 0


def _counted(name: str, capture: Path) -> Section:
    from nsys_report.capture.survey import survey
    from nsys_report.reports.survey_page import survey_section

    return survey_section(name, survey(capture))


def _joined(name: str, capture: Path, dump: Path) -> Section:
    from nsys_report.notebook import analyze
    from nsys_report.reports.check import check_section

    with progress_line() as progress:
        analysis = analyze(capture, dump, progress=progress)
    return check_section(analysis.named(name))
