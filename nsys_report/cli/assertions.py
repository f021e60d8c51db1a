"""What `nsys-report check` does with assertions: options, files and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nsys_report.cli.options import A_PATH
from nsys_report.cli.progress import progress_line

if TYPE_CHECKING:
    from nsys_report.assertions.judging import Answer
    from nsys_report.assertions.language import Assertion

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
FAILED = 3


def assertion_options(command: Decorated) -> Decorated:
    """--assert, --assertions, --junit and --summary."""
    options = (
        click.option("--assert", "texts", metavar="TEXT", multiple=True, help="Such as 'host_gap_ns < 200us'. Exit 3 where one fails."),
        click.option("--assertions", "assertions_file", metavar="FILE", type=A_PATH, help="TOML file of assertions: tables [[assert]]."),
        click.option("--junit", "junit_file", metavar="FILE", type=A_PATH, help="The answers as JUnit XML."),
        click.option(
            "--summary", "summary_file", metavar="FILE", type=A_PATH, help="Append the answers as Markdown ($GITHUB_STEP_SUMMARY)."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def read_all(texts: Sequence[str], file: Path | None, outputs: Sequence[Path | None]) -> tuple[Assertion, ...]:
    """Every assertion given; refused before the long work where one cannot be read or an output cannot be written."""
    wanted = [path for path in outputs if path is not None]
    if not (texts or file is not None or wanted):
        return ()
    from nsys_report.assertions.files import read_assertions
    from nsys_report.assertions.language import parse
    from nsys_report.reports.export import require_file

    found = (*map(parse, texts), *(read_assertions(file) if file is not None else ()))
    if wanted and not found:
        raise click.UsageError("--junit and --summary show assertions: give --assert or --assertions")
    for path in wanted:
        require_file(path)
    return found


def check_assertions(
    assertions: Sequence[Assertion],
    captures: Sequence[tuple[str, Path, Path | None]],
    junit_file: Path | None,
    summary_file: Path | None,
) -> int:
    """Holds captures (name, path, dump) against the assertions, prints and writes the answers; 3 where one fails."""
    from nsys_report.assertions.judging import judge
    from nsys_report.assertions.names import names_of
    from nsys_report.notebook import analyze

    answers: list[Answer] = []
    for name, capture, dump in captures:
        with progress_line() as progress:
            analysis = analyze(capture, dump, progress=progress)
        answers += judge(names_of(analysis), assertions, name)
    _say(answers, len(captures) > 1)
    _write(answers, junit_file, summary_file)
    return FAILED if any(not answer.holds for answer in answers) else 0


def _say(answers: Sequence[Answer], several: bool) -> None:
    from nsys_report.units import visible

    for answer in answers:
        where = f"{answer.capture}: " if several else ""
        title = f"{answer.assertion.name}: " if answer.assertion.name else ""
        click.echo(visible(f"{'✓' if answer.holds else '✗'} {where}{title}{answer.assertion.text}: {answer.found}"))
    failed = sum(not answer.holds for answer in answers)
    click.echo(f"{len(answers) - failed} of {len(answers)} assertions hold")


def _write(answers: Sequence[Answer], junit_file: Path | None, summary_file: Path | None) -> None:
    from nsys_report.assertions.files import junit, markdown
    from nsys_report.reports.export import write_whole

    if junit_file is not None:
        write_whole(junit_file, lambda out: out.write(junit(answers)))
    if summary_file is not None:
        with summary_file.open("a", encoding="utf-8", errors="backslashreplace") as out:  # a job's steps share one summary
            out.write(markdown(answers))
