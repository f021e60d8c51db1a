"""`nsys-report diff`: captures before and after a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsys_report.cli.options import A_PATH, PathType, ShareType
from nsys_report.cli.page import report_text
from nsys_report.cli.pairs import pairs, part_names
from nsys_report.cli.places import keep_apart
from nsys_report.cli.progress import progress_line

if TYPE_CHECKING:
    from nsys_report.diffing import Diff
    from nsys_report.notebook import Analysis

FAILED = 3
OUTPUT = PathType(allow_dash=True)


@click.command("diff", short_help="Did it get slower, where, and is it noise?")
@click.argument("captures", metavar="[BEFORE AFTER]", nargs=-1, type=A_PATH)
@click.option(
    "--before", metavar="CAPTURE", type=A_PATH, multiple=True, help="A capture before the change. Repeatable: noise is then measured."
)
@click.option("--after", metavar="CAPTURE", type=A_PATH, multiple=True, help="A capture after the change. Repeatable.")
@click.option(
    "--xla-dump", "dumps", metavar="DIR", type=A_PATH, multiple=True, help="Dumps, in the order of the captures: before, then after."
)
@click.option("--noise", metavar="SHARE", type=ShareType(), help="Kernel time that runs differ by where a side has one capture. [0.005]")
@click.option("--host-noise", metavar="SHARE", type=ShareType(), help="The same of all other time. [0.3]")
@click.option("--fail-on", type=click.Choice(["slower", "unsure"]), multiple=True, help="Exit 3 on this verdict. Repeatable.")
@click.option("--top", metavar="N", type=click.IntRange(min=0), default=12, show_default=True, help="Rows of long tables; 0: all.")
@click.option("--html", "html_file", metavar="FILE", type=OUTPUT, help="The comparison as one page that opens anywhere.")
@click.option("--json", "json_file", metavar="FILE", type=OUTPUT, help="The comparison as one JSON document; - is stdout.")
@click.option("--markdown", "markdown_file", metavar="FILE", type=OUTPUT, help="The comparison as Markdown; - is stdout.")
def command(
    captures: tuple[Path, ...],
    before: tuple[Path, ...],
    after: tuple[Path, ...],
    dumps: tuple[Path, ...],
    noise: float | None,
    host_noise: float | None,
    fail_on: tuple[str, ...],
    top: int,
    html_file: Path | None,
    json_file: Path | None,
    markdown_file: Path | None,
) -> int:
    """Did it get slower, where, and is it noise?

    Programs are paired by name and by what they compute, instructions by their structure in the HLO, so that renumbered fusions are
    no difference. Give BEFORE and AFTER, or several captures a side with --before and --after.
    """
    from nsys_report.diffing import diff
    from nsys_report.errors import InputError

    ones, others = _sides(captures, before, after)
    _check({"--html": html_file, "--json": json_file, "--markdown": markdown_file}, [*ones, *others, *dumps])
    names = part_names([*ones, *others])
    analyses = _read(pairs([*ones, *others], dumps), names)
    found = diff(
        analyses[: len(ones)],
        analyses[len(ones) :],
        kernel_noise=noise,
        host_noise=host_noise,
        names=(names[: len(ones)], names[len(ones) :]),
    )
    texts = _texts(found, top or None, html_file, json_file, markdown_file)
    click.echo(_deliver(texts) or report_text(found.report(top or None)), nl=False)
    if fail_on and not found.comparison.main():
        raise InputError("no program runs on both sides, so that nothing was compared", "are these captures of the same program?", "diff")
    return FAILED if found.verdict in fail_on else 0


def _sides(captures: Sequence[Path], before: Sequence[Path], after: Sequence[Path]) -> tuple[Sequence[Path], Sequence[Path]]:
    if captures and (before or after):
        raise click.UsageError("give BEFORE and AFTER, or --before and --after, not both")
    if captures:
        if len(captures) != 2:
            raise click.UsageError(f"{len(captures)} captures: give BEFORE and AFTER, or several a side with --before and --after")
        return captures[:1], captures[1:]
    if not before or not after:
        raise click.UsageError("a diff needs captures of both sides: BEFORE AFTER, or --before and --after")
    return before, after


def _check(outputs: Mapping[str, Path | None], inputs: Sequence[Path]) -> None:
    """Raises before the long work where an output cannot be written, or is an input."""
    from nsys_report.reports.export import require_file

    if sum(str(path) == "-" for path in outputs.values()) > 1:
        raise click.UsageError("only one output can go to stdout")
    for path in outputs.values():
        if path is not None and str(path) != "-":
            require_file(path)
    keep_apart(outputs, inputs)


def _read(matched: Sequence[tuple[Path, Path | None]], names: Sequence[str]) -> list[Analysis]:
    from nsys_report.capture import check_capture
    from nsys_report.notebook import analyze

    for capture, _ in matched[1:]:
        check_capture(capture)
    found = []
    for (capture, dump), name in zip(matched, names, strict=True):
        with progress_line(f"{name}: ") as progress:
            found.append(analyze(capture, dump, progress=progress))
    return found


def _texts(
    found: Diff, top: int | None, html_file: Path | None, json_file: Path | None, markdown_file: Path | None
) -> list[tuple[Path, str]]:
    from nsys_report.diffing import MADE_BY
    from nsys_report.reports import markdown
    from nsys_report.reports.diff_document import diff_json

    texts = []
    if json_file is not None:
        texts.append((json_file, diff_json(found.comparison, MADE_BY)))
    if markdown_file is not None:
        texts.append((markdown_file, markdown.render(found.report(top))))
    if html_file is not None:
        texts.append((html_file, found.html()))
    return texts


def _deliver(texts: Sequence[tuple[Path, str]]) -> str | None:
    """Writes the files; what goes to stdout is given back."""
    from nsys_report.reports.export import write_whole

    streamed = None
    for path, text in texts:
        if str(path) == "-":
            streamed = text
            continue
        encoded = text.encode("utf-8", "backslashreplace")
        write_whole(path, lambda out, encoded=encoded: out.write(encoded))  # type: ignore[misc]
        click.echo(f"wrote {path}", err=True)
    return streamed
