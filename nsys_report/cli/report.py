"""`nsys-report report`: one or several captures, to the terminal and to files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsys_report.cli.options import (
    PathType,
    ShareType,
    captures_argument,
    ceiling_option,
    ceilings_file_option,
    narrowing_options,
    ncu_option,
    role_options,
    rollup_option,
    what_if_option,
)
from nsys_report.cli.outputs import OUTPUTS, Finished, Output
from nsys_report.cli.page import report_text
from nsys_report.cli.pairs import dumps_option, pairs, part_names
from nsys_report.cli.places import is_same, refuse_inputs
from nsys_report.cli.progress import progress_line
from nsys_report.cli.ranks import Several, of_run, rank_options, ranks_within, read_ranks, tasks_of

if TYPE_CHECKING:
    from nsys_report.notebook import Analysis
    from nsys_report.selection import Selection
    from nsys_report.sources import Sources


THINGS = {"FILE": "file", "DIR": "directory"}


def output_options(command: Any) -> Any:
    """One option for each kind of file."""
    for output in reversed(OUTPUTS):
        kind = PathType(allow_dash=True)
        command = click.option(output.option, output.key, metavar=output.metavar, type=kind, help=output.about)(command)
    return command


@click.command("report", short_help="Where the time of a capture goes.")
@captures_argument
@dumps_option
@role_options
@ceiling_option
@ceilings_file_option
@what_if_option
@ncu_option
@narrowing_options
@rollup_option
@rank_options
@output_options
@click.option("--full", is_flag=True, help="Every finding, table and column in the terminal.")
@click.option("--source", metavar="DIR", type=PathType(), help="The program's source: findings show the lines of Python they rest on.")
@click.option("--show-paths", is_flag=True, help="Show paths of source files whole, and not from their package or project on.")
@click.option("--min-coverage", metavar="SHARE", type=ShareType(), help="Exit 3 where less of the kernel time is joined with confidence.")
def command(
    captures: tuple[Path, ...],
    dumps: tuple[Path, ...],
    roles: Path | None,
    manifest: Path | None,
    ceilings: tuple[str, ...],
    ceilings_file: Path | None,
    scenarios: tuple[str, ...],
    ncu: Path | None,
    top: int,
    modules: tuple[str, ...],
    executions: tuple[int, ...],
    classes: tuple[str, ...],
    rollup: str,
    full: bool,
    as_ranks: bool | None,
    jobs: int | None,
    scheduler: str | None,
    source: Path | None,
    show_paths: bool,
    min_coverage: float | None,
    **paths: Path | None,
) -> int:
    """Where the time of a capture goes: by execution, by class of kernel, against what the GPU can do.

    CAPTURE is an export of Nsight Systems (nsys export --type sqlite, parquetdir or arrowdir), packed or not, or its own report where nsys
    is installed. Ranks of one run get one report: name each, the directory that they lie in, or a pattern such as
    'rank_{rank}/capture.sqlite' with --xla-dump 'dump_{rank}'. Of other captures, each gets a part, and a table sums them up.
    """
    from nsys_report.analysis.roofline.ceilings import parse_overrides
    from nsys_report.analysis.whatif import parse_scenarios
    from nsys_report.ranks.paths import expanded_inputs, is_pattern
    from nsys_report.selection import Selection
    from nsys_report.sources import open_sources

    forced = as_ranks or (as_ranks is None and (is_pattern(captures) or scheduler is not None))
    captures, dumps = expanded_inputs(captures, dumps)
    wanted = [(output, path) for output in OUTPUTS if (path := paths[output.key]) is not None]
    _check_outputs(wanted, [*captures, *dumps, *(p for p in (roles, manifest, ceilings_file, ncu) if p is not None)])
    if ncu is not None and len(captures) > 1:
        raise click.UsageError("--ncu is a profile of one program: give one capture with it")
    selection = Selection(modules, executions, classes)
    parse_scenarios(scenarios)  # refused before the long work
    sources = None if source is None else open_sources(source)
    known: dict[str, Any] = {
        "roles": roles,
        "manifest": manifest,
        "ceilings": parse_overrides(ceilings),
        "ceilings_file": ceilings_file,
        "show_paths": show_paths,
    }
    shown = known | {"ncu": ncu, "what_if": scenarios}
    several = Several() if as_ranks is False else _several(captures, dumps, known, shown, forced, jobs, scheduler)
    if several.run is not None:
        finished = of_run(several, selection, top or None, rollup)
    else:
        finished = _of_captures(captures, dumps, shown, several.sessions, selection, top or None, rollup, sources)
    deliver(finished, wanted, full)
    _gate(finished.analyses, min_coverage)
    return several.exit_code


def _several(
    captures: Sequence[Path],
    dumps: Sequence[Path],
    known: Mapping[str, Any],
    shown: Mapping[str, Any],
    forced: bool,
    jobs: int | None,
    scheduler: str | None,
) -> Several:
    """Ranks of one run, read; `known` are the options of every rank, `shown` those of the one that is shown in detail."""
    from nsys_report.capture import check_capture

    for capture in captures:
        if not capture.exists():
            check_capture(capture)
    if len(captures) < 2:
        return Several()
    tasks = tasks_of(captures, dumps, known)
    return read_ranks(tasks, forced, jobs, scheduler, lambda task: _analyze(task.capture, task.dump, shown, f"{task.name}: "))


def _of_captures(
    captures: Sequence[Path],
    dumps: Sequence[Path],
    known: Mapping[str, Any],
    read: Mapping[Path, Analysis],
    selection: Selection,
    top: int | None,
    rollup: str,
    sources: Sources | None,
) -> Finished:
    """A part for each capture; `read` are those that were analyzed before."""
    from nsys_report.capture import check_capture
    from nsys_report.reports.build import build_report
    from nsys_report.version import __version__

    matched = pairs(captures, dumps)
    for capture in captures[1:]:
        check_capture(capture)
    analyses = {}
    for name, (capture, dump) in zip(part_names(captures), matched, strict=True):
        analysis = read.get(capture) or _analyze(capture, dump, known, f"{name}: " if len(captures) > 1 else "")
        narrowed = selection.narrow(analysis)
        analyses[name] = narrowed if sources is None else narrowed.with_sources(sources)
    report = build_report([a.named(name) for name, a in analyses.items()], f"nsys-report {__version__}", top, rollup)
    return ranks_within(report, analyses)


def _analyze(capture: Path, dump: Path | None, known: Mapping[str, Any], label: str) -> Analysis:
    from nsys_report.notebook import analyze

    with progress_line(label) as progress:
        return analyze(capture, dump, progress=progress, **known)


def _check_outputs(wanted: Sequence[tuple[Output, Path]], inputs: Sequence[Path]) -> None:
    """Raises before the long work where an output cannot be written, or would be written over another or onto or into an input."""
    if sum(str(path) == "-" for _, path in wanted) > 1:
        raise click.UsageError("only one output can go to stdout")
    files = [(output, path) for output, path in wanted if str(path) != "-"]
    for output, path in wanted:
        if str(path) == "-" and output.to_stdout is None:
            raise click.UsageError(f"{output.option} writes no stream: name a {THINGS[output.metavar]}")
    for number, (output, path) in enumerate(files):
        output.require(path)
        if path.is_char_device():
            continue
        refuse_inputs(output.option, path, inputs, THINGS[output.metavar])
        for other, taken in files[:number]:
            if _collide(output, path, other, taken):
                raise click.UsageError(f"{output.option} {path} and {other.option} {taken} would write the same file: name another place")


def _collide(output: Output, path: Path, other: Output, taken: Path) -> bool:
    """Whether two outputs can write one file: the same path, or a file in the folder of another that writes files with its ending."""
    if output.ending and other.ending:
        return False  # folders may be shared: their files differ by ending
    if not output.ending and not other.ending:
        return is_same(path, taken)
    file, folder, ending = (path, taken, other.ending) if other.ending else (taken, path, output.ending)
    return is_same(file, folder) or (file.suffix == ending and any(is_same(above, folder) for above in file.absolute().parents))


def deliver(finished: Finished, wanted: Sequence[tuple[Output, Path]], full: bool = False) -> None:
    """Writes the files, then the page, `full` or not; a file that goes to stdout stands in the page's stead.

    What cannot be written keeps nothing else from being written: the error comes at the end.
    """
    from nsys_report.errors import InputError

    streamed, failed = None, []
    for output, path in wanted:
        if str(path) == "-" and output.to_stdout is not None:
            streamed = output.to_stdout(finished)
            continue
        try:
            output.write(finished, path)
            click.echo(f"wrote {path}", err=True)
        except InputError as error:
            failed.append(error)
    click.echo(report_text(finished.report, full) if streamed is None else streamed, nl=False)
    if failed:
        raise InputError("\n".join(error.message for error in failed), failed[0].hint, failed[0].slug)


def _gate(analyses: Mapping[str, Analysis], least: float | None) -> None:
    """Raises CoverageError where less than `least` of a capture's kernel time is joined with confidence."""
    if least is None:
        return
    from nsys_report.errors import CoverageError
    from nsys_report.units import share

    missed = []
    for name, analysis in analyses.items():
        joined = analysis.results.joined_share
        if joined is None or joined < least:
            found = "there is no kernel to join" if joined is None else f"{share(joined)} of the kernel time is joined with confidence"
            missed.append(f"{name}: {found}, less than the {share(least)} demanded")
    if missed:
        raise CoverageError("\n".join(missed), "the section Coverage says what was not joined, `nsys-report check` why")
