"""Analyzes the captures of a run: here one after another, in a pool of processes, or on a Dask cluster. One task a capture; what
comes back of each is its CaptureRuns, some kilobytes, and one that fails keeps nothing from the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hlo_mapping import HloError
from nsys_report.capture.session import read_session_start
from nsys_report.errors import ReportError, UsageError
from nsys_report.pipeline import analyze
from nsys_report.ranks.extract import capture_runs
from nsys_report.ranks.summary import CaptureRuns, Failure
from nsys_report.session import Session

Progress = Callable[[str, float], None]
Result = CaptureRuns | Failure


@dataclass(frozen=True, slots=True)
class Task:
    """One capture to analyze; `options` are those of pipeline.analyze."""

    capture: Path
    dump: Path | None
    name: str
    label: str
    options: Mapping[str, Any] = field(default_factory=dict)


def runs_of(session: Session, label: str) -> CaptureRuns:
    """What a capture that was analyzed sends."""
    return capture_runs(session, label, read_session_start(session.joined.capture.path))


def run_task(task: Task) -> Result:
    """Analyzes one capture, wherever this runs. Nothing is raised: what went wrong is the result."""
    try:
        session = analyze(task.capture, task.dump, **task.options)
        return runs_of(session.named(task.name), task.label)
    except (ReportError, HloError) as error:
        return Failure(task.name, task.label, error.message, error.hint)
    except Exception as error:  # one rank must not take the others with it
        return Failure(
            task.name, task.label, f"{type(error).__name__}: {error}", "report this: the capture alone with `nsys-report report`"
        )


def run_tasks(tasks: Sequence[Task], jobs: int = 1, scheduler: str | None = None, progress: Progress | None = None) -> tuple[Result, ...]:
    """The results in the order of the tasks: on the cluster of a scheduler, else in so many processes, else in this one."""
    say = progress or (lambda text, share: None)
    found: dict[int, Result] = {}
    with _results(tasks, jobs, scheduler) as arriving:
        for number, result in arriving:
            found[number] = result
            say(f"{len(found)} of {len(tasks)} ranks", len(found) / len(tasks))
    return tuple(found[n] for n in range(len(tasks)))


@contextmanager
def _results(tasks: Sequence[Task], jobs: int, scheduler: str | None) -> Iterator[Iterator[tuple[int, Result]]]:
    """The results as they arrive, each with its task's number."""
    if scheduler is not None:
        with _cluster(scheduler) as client:
            yield _from_cluster(client, tasks)
    elif jobs > 1 and len(tasks) > 1:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with ProcessPoolExecutor(min(jobs, len(tasks)), get_context("spawn")) as pool:
            yield _from_pool(pool, tasks)
    else:
        yield ((n, run_task(task)) for n, task in enumerate(tasks))


def _from_pool(pool: Any, tasks: Sequence[Task]) -> Iterator[tuple[int, Result]]:
    from concurrent.futures import as_completed

    numbers = {pool.submit(run_task, task): n for n, task in enumerate(tasks)}
    for future in as_completed(numbers):
        yield numbers[future], _result(future, tasks[numbers[future]])


def _from_cluster(client: Any, tasks: Sequence[Task]) -> Iterator[tuple[int, Result]]:
    from distributed import as_completed

    numbers = {client.submit(run_task, task, pure=False): n for n, task in enumerate(tasks)}
    arriving: Any = as_completed  # Dask is not typed
    for future in arriving(list(numbers), loop=client.loop):
        yield numbers[future], _result(future, tasks[numbers[future]])
        future.release()


def _result(future: Any, task: Task) -> Result:
    """A task's result; a worker that died on it is a failure of its capture."""
    try:
        result: Result = future.result()
        return result
    except Exception as error:
        text = f"the process that analyzed it ended: {type(error).__name__}" + (f": {error}" if str(error) else "")
        return Failure(task.name, task.label, text, "is there memory for one capture a worker? fewer --jobs need less")


@contextmanager
def _cluster(scheduler: str) -> Iterator[Any]:
    """A client of the Dask cluster at an address. Raises UsageError where Dask is not installed or nobody answers."""
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("--scheduler needs Dask, which is not installed", "pip install 'nsys-report[dask]'", slug="dask") from None
    try:
        connect: Any = Client
        client = connect(scheduler, timeout="15s", set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        hint = "start one with `dask scheduler`, workers with `dask worker ADDRESS`, and give its address: --scheduler tcp://HOST:8786"
        raise UsageError(f"no Dask scheduler answers at {scheduler}: {error}", hint, slug="dask") from error
    try:
        yield client
    finally:
        client.close()
