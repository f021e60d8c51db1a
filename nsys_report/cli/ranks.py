"""Several captures in one call: whether they are ranks of one run, and then the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsys_report.cli.progress import progress_line

if TYPE_CHECKING:
    from nsys_report.notebook import Analysis
    from nsys_report.ranks.engine import Result, Task
    from nsys_report.ranks.run import Run
    from nsys_report.ranks.summary import Failure

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

    run: Run | None
    shown: int
    sessions: Mapping[int, Analysis]
    """By the place of the capture."""


def read_ranks(
    tasks: Sequence[Task], forced: bool, jobs: int | None, scheduler: str | None, analyze: Callable[[Task], Analysis]
) -> Several:
    """Reads the captures of a run; of captures that are none, unless that is `forced`, the first ones. Raises what `analyze` raises
    where no capture can be read, or where one cannot and the others are no run.
    """
    from nsys_report.ranks.engine import runs_of, run_tasks
    from nsys_report.ranks.recognize import are_ranks
    from nsys_report.ranks.run import analyze_run
    from nsys_report.ranks.summary import CaptureRuns

    sessions, failures = _first(tasks, 1 if forced else ENOUGH, analyze)
    found: dict[int, Result] = {n: runs_of(session.named(tasks[n].name), tasks[n].label) for n, session in sessions.items()}
    if not forced and not are_ranks(tuple(r for r in found.values() if isinstance(r, CaptureRuns))):
        if failures:
            raise next(iter(failures.values()))
        return Several(None, 0, sessions)
    found |= {n: _failure(tasks[n], error) for n, error in failures.items()}
    rest = [n for n in range(len(tasks)) if n not in found]
    with progress_line("reading ") as progress:
        results = run_tasks([tasks[n] for n in rest], jobs or os.cpu_count() or 1, scheduler, progress)
    found |= dict(zip(rest, results, strict=True))
    ordered = [found[n] for n in range(len(tasks))]
    captures = [r for r in ordered if isinstance(r, CaptureRuns) and r.devices]
    run = analyze_run(captures, [r for r in ordered if not isinstance(r, CaptureRuns)])
    first = min(sessions)
    shown = next((n for n, rank in enumerate(run.ranks) if run.captures[rank.capture].name == tasks[first].name), 0)
    return Several(run, shown, {first: sessions[first]})


def _first(tasks: Sequence[Task], wanted: int, analyze: Callable[[Task], Analysis]) -> tuple[dict[int, Analysis], dict[int, Exception]]:
    """The first captures that can be read, as many as are wanted, and the errors of those before that cannot.

    Raises the first error where none can be read.
    """
    from hlo_mapping import HloError
    from nsys_report.errors import ReportError

    sessions: dict[int, Analysis] = {}
    failures: dict[int, Exception] = {}
    for n, task in enumerate(tasks):
        try:
            sessions[n] = analyze(task)
        except (ReportError, HloError) as error:
            failures[n] = error
        if len(sessions) == wanted:
            break
    if not sessions:
        raise next(iter(failures.values()))
    return sessions, failures


def _failure(task: Task, error: Exception) -> Failure:
    from nsys_report.ranks.summary import Failure

    return Failure(task.name, task.label, getattr(error, "message", str(error)), getattr(error, "hint", ""))


def tasks_of(captures: Sequence[Path], dumps: Sequence[Path], names: Sequence[str], options: Mapping[str, Any]) -> list[Task]:
    """A task for each capture, in the order of their numbers."""
    from nsys_report.ranks.engine import Task
    from nsys_report.ranks.paths import dumps_for, ranks_of

    labels = ranks_of(captures)
    return [Task(*four, options) for four in zip(captures, dumps_for(captures, dumps), names, labels, strict=True)]
