"""Captures of a run read here, in a pool and on a real Dask cluster: the same values, and a rank that fails keeps nothing from the rest."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from nsys_report.errors import UsageError
from nsys_report.ranks.engine import Result, Task, run_tasks
from nsys_report.ranks.run import analyze_run
from nsys_report.ranks.summary import CaptureRuns, Failure
from nsys_report.reports.export import json_text
from nsys_report.reports.model import Part, Report
from nsys_report.reports.ranks_page import ranks_section
from tests.conftest import FIXTURES

distributed = pytest.importorskip("distributed")
SMALL = 40_000
"""Bytes that a rank of seven programs' collectives in nine steps may send."""


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a cluster of one worker, which values reach packed, as they reach another machine."""
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> list[Task]:
    """Two real ranks, and one that is no capture."""
    damaged = tmp_path_factory.mktemp("ranks") / "damaged.sqlite"
    damaged.write_bytes(b"no capture")
    paths = [(FIXTURES / "ranks" / f"rank_{n}" / "capture.sqlite", FIXTURES / "ranks" / f"rank_{n}" / "xla_dump") for n in range(2)]
    return [Task(capture, dump, f"rank_{n}", str(n)) for n, (capture, dump) in enumerate([*paths, (damaged, None)])]


@pytest.fixture(scope="module")
def here(tasks: list[Task]) -> tuple[Result, ...]:
    """What this process makes of them."""
    return run_tasks(tasks)


def written(results: tuple[Result, ...]) -> str:
    run = analyze_run([r for r in results if isinstance(r, CaptureRuns)], [r for r in results if isinstance(r, Failure)])
    return json_text(Report((Part("run", "", sections=(ranks_section(run),)),)))


def test_a_cluster_gives_the_same_bytes_as_this_process(tasks: list[Task], here: tuple[Result, ...], scheduler: str) -> None:
    said: list[str] = []
    there = run_tasks(tasks, scheduler=scheduler, progress=lambda text, share: said.append(text))
    assert written(here) == written(there)
    assert said == ["1 of 3 ranks", "2 of 3 ranks", "3 of 3 ranks"]
    for results in (here, there):
        failure = results[2]
        assert isinstance(failure, Failure) and failure.label == "2" and "damaged.sqlite" in failure.message
    assert all(len(pickle.dumps(one)) < SMALL for one in here)


def test_no_scheduler_at_an_address_is_a_usage_error(tasks: list[Task], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise OSError("timed out")

    monkeypatch.setattr("distributed.Client", refuse)
    with pytest.raises(UsageError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        run_tasks(tasks, scheduler="tcp://127.0.0.1:1")


def test_a_pool_of_processes_gives_the_same(tasks: list[Task], here: tuple[Result, ...]) -> None:
    assert written(run_tasks(tasks, jobs=2)) == written(here)
