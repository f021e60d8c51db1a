"""Serves, loads and measures: the whole of `nsys-report serve-profile` but for its options and its page."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from nsys_report.errors import InputError
from nsys_report.nsys_tool import Nsys
from nsys_report.profiling.record import Conditions
from nsys_report.serving.drivers import Driver
from nsys_report.serving.load import LoadFigures, ServerTimes, figures, run_workload, server_times
from nsys_report.serving.server import running_server, wait_until_ready
from nsys_report.serving.workloads import Workload

SESSION = "nsys-report-serve"
STOP_SECONDS = 600
"""For nsys to import what a session recorded."""


@dataclass(frozen=True, slots=True)
class Served:
    """What came of each workload."""

    measured: tuple[LoadFigures, ...]
    server: Mapping[str, ServerTimes | None]
    tracing: Literal["", "idle", "recording"] = ""
    """What nsys did to the server while it was measured: nothing, waited to record, or recorded."""
    conditions: Conditions | None = None
    """The GPU before the load; None where nothing was served."""


@dataclass(frozen=True, slots=True)
class NsysSession:
    """An nsys session around a server that starts without recording, and records while it is told to."""

    nsys: Nsys
    record: Path
    """Without its ending, which nsys adds."""
    traces: str = "cuda,nvtx"

    def launch_command(self, server: Sequence[str]) -> list[str]:
        traces = [f"--trace={self.traces}", "--cuda-graph-trace=node", "--trace-fork-before-exec=true"]
        return [self.nsys.path, "launch", f"--session-new={SESSION}", *traces, *server]

    def start(self, environment: Mapping[str, str]) -> None:
        options = ["--sample=none", "--cpuctxsw=none", "--force-overwrite=true", f"--output={self.record}"]
        self._tell(["start", f"--session={SESSION}", *options], environment)

    def stop(self, environment: Mapping[str, str]) -> None:
        self._tell(["stop", f"--session={SESSION}"], environment)

    def shut_down(self, environment: Mapping[str, str]) -> None:
        """Ends a session that may have ended already."""
        command = [self.nsys.path, "shutdown", f"--session={SESSION}", "--kill=none"]
        subprocess.run(command, env=dict(environment), capture_output=True, timeout=STOP_SECONDS, check=False)

    @contextmanager
    def recording(self, environment: Mapping[str, str]) -> Iterator[None]:
        """Records what happens within; the report is there afterwards."""
        self.start(environment)
        yield
        self.stop(environment)

    def _tell(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        command = [self.nsys.path, *words]
        done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, timeout=STOP_SECONDS, check=False)
        if done.returncode:
            raise InputError(
                f"nsys {words[0]} failed with exit code {done.returncode}", (done.stdout + done.stderr).strip()[-1000:], "nsys-session"
            )


@contextmanager
def serving(
    driver: Driver, command: Sequence[str], environment: Mapping[str, str], log: Path, limit_s: float, session: NsysSession | None
) -> Iterator[None]:
    """The server while it runs, under nsys where there is a session; without a command one that runs already."""
    if not command:
        wait_until_ready(driver.is_ready, limit_s, lambda: None, None)
        yield
        return
    words = session.launch_command(command) if session else command
    try:
        with running_server(words, environment, log, driver.is_ready, limit_s):
            yield
    finally:
        if session:
            session.shut_down(environment)


def load_timed(driver: Driver, workloads: Sequence[Workload], repeats: int) -> Served:
    """Runs each workload `repeats` times, after one round to warm up, and takes the difference of the server's sums over all of them."""
    measured, server = [], {}
    for workload in workloads:
        run_workload(driver, replace(workload, rounds=1))
        before = driver.statistics()
        runs = [run_workload(driver, workload) for _ in range(repeats)]
        server[workload.written] = server_times(before, driver.statistics())
        measured.append(figures(workload, runs))
    return Served(tuple(measured), server)


def load_recorded(driver: Driver, workloads: Sequence[Workload], repeats: int, recording: AbstractContextManager[None]) -> Served:
    """Records the first repeat of each workload, after one round to warm up; the figures are those of the others where there are any."""
    for workload in workloads:
        run_workload(driver, replace(workload, rounds=1))
    with recording:
        first = {workload.written: [run_workload(driver, workload)] for workload in workloads}
    rest = {workload.written: [run_workload(driver, workload) for _ in range(repeats - 1)] for workload in workloads}
    measured = tuple(figures(w, rest[w.written] or first[w.written]) for w in workloads)
    return Served(measured, {}, "idle" if repeats > 1 else "recording")


def export(session: NsysSession) -> Path:
    """The session's record as SQLite. Raises InputError where there is none, or it cannot be exported."""
    record, target = session.record.with_suffix(".nsys-rep"), session.record.with_suffix(".sqlite")
    if not record.exists():
        hint = "did the server start a process that nsys does not follow? try nsys launch by hand"
        raise InputError("nsys recorded nothing of the server", hint, slug="no-record")
    command = [session.nsys.path, "export", "--type=sqlite", "--force-overwrite=true", f"--output={target}", str(record)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=STOP_SECONDS, check=False)
    if done.returncode or not target.exists():
        raise InputError(f"{record}: nsys export failed with exit code {done.returncode}", done.stderr[-1000:], slug="export-failed")
    return target
