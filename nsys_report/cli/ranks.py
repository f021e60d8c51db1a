"""Several captures in one call: whether they are ranks of one run, and then the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsys_report.cli.outputs import Finished
from nsys_report.cli.pairs import part_names
from nsys_report.cli.progress import progress_line

if TYPE_CHECKING:
    from nsys_report.notebook import Analysis
    from nsys_report.ranks.engine import Result, Task
    from nsys_report.ranks.run import Run
    from nsys_report.ranks.summary import Failure
    from nsys_report.reports.model import Report
    from nsys_report.selection import Selection

ENOUGH = 2
"""Captures that tell whether all are ranks of one run."""


def rank_options(command: Any) -> Any:
    """--ranks, --jobs and --scheduler."""
    about = "Several captures are ranks of one run, or are not. The default looks: ranks run one program whose collectives need them all."
    ranks = click.option("--ranks/--no-ranks", "as_ranks", default=None, help=about)
    jobs = click.option(
        "--jobs", metavar="N", type=click.IntRange(min=1), help="Processes that read the captures of a run. [as many as there are cores]"
    )
    scheduler = click.option("--scheduler", metavar="ADDRESS", help="Read the captures of a run on the Dask cluster of this scheduler.")
    return ranks(jobs(scheduler(command)))


@dataclass(frozen=True, slots=True)
class Several:
    """What became of several captures: a run with the rank that is shown in detail, or sessions of the first captures."""

    run: Run | None = None
    shown: int = 0
    sessions: Mapping[Path, Analysis] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """1 where a capture of the run could not be read."""
        return 1 if self.run is not None and self.run.failures else 0


def read_ranks(
    tasks: Sequence[Task], forced: bool, jobs: int | None, scheduler: str | None, analyze: Callable[[Task], Analysis]
) -> Several:
    """Reads the captures of a run; of captures that are none, unless that is `forced`, the first ones. Raises what `analyze` raises
    where no capture can be read, or where one cannot and the others are no run.
    """
    from nsys_report.errors import InputError
    from nsys_report.ranks.engine import run_tasks, runs_of
    from nsys_report.ranks.recognize import are_ranks
    from nsys_report.ranks.run import analyze_run
    from nsys_report.ranks.summary import CaptureRuns, Failure

    sessions, failures = _first(tasks, 1 if forced else ENOUGH, analyze)
    if not sessions or (failures and len(sessions) < ENOUGH and not forced):
        raise next(iter(failures.values()))
    found: dict[int, Result] = {n: runs_of(session.named(tasks[n].name), tasks[n].label) for n, session in sessions.items()}
    if not forced and not are_ranks(tuple(r for r in found.values() if isinstance(r, CaptureRuns))):
        if failures:
            raise next(iter(failures.values()))
        return Several(sessions={tasks[n].capture: session for n, session in sessions.items()})
    found |= {n: _failure(tasks[n], error) for n, error in failures.items()}
    rest = [n for n in range(len(tasks)) if n not in found]
    with progress_line("reading ") as progress:
        results = run_tasks([tasks[n] for n in rest], jobs or os.cpu_count() or 1, scheduler, progress)
    found |= dict(zip(rest, results, strict=True))
    ordered = [found[n] for n in range(len(tasks))]
    run = analyze_run([r for r in ordered if isinstance(r, CaptureRuns)], [r for r in ordered if isinstance(r, Failure)])
    if not run.ranks:
        message = "no capture holds executions of an XLA program: there are no ranks to lay together"
        raise InputError(message, "give the dumps with --xla-dump, or leave out --ranks", slug="no-ranks")
    first = tasks[min(sessions)]
    shown = next((n for n, rank in enumerate(run.ranks) if run.captures[rank.capture].name == first.name), 0)
    return Several(run, shown, {first.capture: sessions[min(sessions)]})


def of_run(several: Several, selection: Selection, top: int | None, rollup: str) -> Finished:
    """The report of a run: its ranks, and one of them in detail."""
    from nsys_report.reports.build import build_report
    from nsys_report.reports.ranks_page import run_part
    from nsys_report.version import __version__

    assert several.run is not None
    session = selection.narrow(next(iter(several.sessions.values())))
    report = build_report([session], f"nsys-report {__version__}", top, rollup)
    part = run_part(several.run, report.parts[0], several.shown, session.results.ceilings)
    for failure in several.run.failures:
        click.echo(f"{failure.name} is left out: {failure.message}", err=True)
    return Finished(replace(report, parts=(part,)), {part.name: session}, {part.name: several.run})


def ranks_within(report: Report, analyses: dict[str, Analysis]) -> Finished:
    """What there is to write of a part a capture, with the ranks of captures that hold several themselves: devices that meet."""
    from nsys_report.ranks.engine import runs_of
    from nsys_report.ranks.recognize import is_run
    from nsys_report.ranks.run import analyze_run
    from nsys_report.reports.ranks_page import with_ranks

    parts, found = list(report.parts), {}
    for n, (name, session) in enumerate(analyses.items()):
        if len(session.results.view.devices) > 1 and is_run(sent := runs_of(session, "0")):
            found[name] = analyze_run([sent])
            parts[n] = with_ranks(parts[n], found[name], session.results.ceilings)
    return Finished(replace(report, parts=tuple(parts)), analyses, found)


def _first(tasks: Sequence[Task], wanted: int, analyze: Callable[[Task], Analysis]) -> tuple[dict[int, Analysis], dict[int, Exception]]:
    """The first captures that can be read, as many as are wanted, and the errors of those before that cannot."""
    from hlo_mapping import HloError
    from nsys_report.errors import ReportError

    sessions: dict[int, Analysis] = {}
    failures: dict[int, Exception] = {}
    for n, task in enumerate(tasks):
        if len(sessions) == wanted:
            break
        try:
            sessions[n] = analyze(task)
        except (ReportError, HloError) as error:
            failures[n] = error
    return sessions, failures


def _failure(task: Task, error: Exception) -> Failure:
    from nsys_report.ranks.summary import Failure

    return Failure(task.name, task.label, getattr(error, "message", str(error)), getattr(error, "hint", ""))


def tasks_of(captures: Sequence[Path], dumps: Sequence[Path], options: Mapping[str, Any]) -> list[Task]:
    """A task for each capture, in the order of their numbers."""
    from nsys_report.ranks.engine import Task
    from nsys_report.ranks.paths import dumps_for, ranks_of

    rows = zip(captures, dumps_for(captures, dumps), part_names(captures), ranks_of(captures), strict=True)
    return sorted((Task(*row, options) for row in rows), key=lambda task: int(task.label))
