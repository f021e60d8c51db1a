"""The report of a run whose ranks each made a capture: rank 0 waits for the others, and lays them together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsys_report.cli.outputs import Finished
from nsys_report.cli.ranks import of_run, read_ranks, tasks_of

if TYPE_CHECKING:
    from nsys_report.notebook import Analysis
    from nsys_report.profiling.ranks import Arrived
    from nsys_report.ranks.engine import Task

PATTERN = "rank_{rank}/capture_rank{rank}.sqlite"
LEAST = 2
"""Captures that make a run."""


@contextmanager
def failure_said(folder: Path | None) -> Iterator[None]:
    """Leaves a word for rank 0 in a rank's folder where its run gives no capture, so that nobody waits for it."""
    from nsys_report.profiling.ranks import FAILED

    try:
        yield
    except BaseException as error:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / FAILED).write_text(f"{error}\n", encoding="utf-8")
        raise


def report_of_run(keep: Path, limit_s: float) -> tuple[Finished | None, bool]:
    """The report of all ranks, None where there is one capture only or they are no run; and whether a rank is missing in it."""
    from nsys_report.profiling.ranks import rank_folder, size_of, wait_for_ranks
    from nsys_report.reports.build import TOP
    from nsys_report.selection import Selection

    size = size_of(os.environ)
    if size is None:
        click.echo(f"how many ranks there are is not said; lay them together with: nsys-report report '{keep.name}/{PATTERN}'", err=True)
        return None, False
    if size < LEAST:
        return None, False
    click.echo(f"waiting for the captures of {size - 1} other ranks, {limit_s:.0f} s at most", err=True)
    arrived = wait_for_ranks(keep, size, limit_s)
    is_short = _say_absent(arrived)
    folders = {n: rank_folder(keep, n) for n in arrived.done}
    captures = [folder / f"capture_rank{n}.sqlite" for n, folder in folders.items()]
    if len(captures) < LEAST:
        return None, is_short
    dumps = [folder / "xla_dump" for folder in folders.values()]
    given = dumps if all(any(dump.iterdir()) for dump in dumps) else []
    several = read_ranks(tasks_of(captures, given, {}), False, None, None, _analyze)
    return (of_run(several, Selection(), TOP, "name") if several.run is not None else None), is_short or bool(several.exit_code)


def _analyze(task: Task) -> Analysis:
    from nsys_report.cli.progress import progress_line
    from nsys_report.notebook import analyze

    with progress_line(f"{task.name}: ") as progress:
        return analyze(task.capture, task.dump, progress=progress)


def _say_absent(arrived: Arrived) -> bool:
    """Whether ranks are missing, which is said."""
    for numbers, why in ((arrived.failed, "gave no capture"), (arrived.missing, "did not finish in time")):
        if numbers:
            click.echo(f"rank {', '.join(map(str, numbers))} {why}", err=True)
    return bool(arrived.failed or arrived.missing)
