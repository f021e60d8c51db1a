"""A server process: started, waited for, and ended with everything that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from nsys_report.errors import InputError

READY_INTERVAL_S = 0.2
PATIENCE_S = 20.0
"""After the signal to end, before it is killed."""
LOG_LINES = 10


@contextmanager
def running_server(
    command: Sequence[str], environment: Mapping[str, str], log: Path, is_ready: Callable[[], bool], limit_s: float
) -> Iterator[subprocess.Popen[bytes]]:
    """The server while it runs, ready for requests. Raises InputError where it ends or is not ready in `limit_s` seconds."""
    with open(log, "wb") as output:
        try:
            process = subprocess.Popen(
                command, env=dict(environment), stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:
            raise InputError(f"{command[0]}: cannot be run: {error.strerror or error}", "", slug="server-broken") from error
        try:
            wait_until_ready(is_ready, limit_s, lambda: process.poll(), log)
            yield process
        finally:
            end(process)


def wait_until_ready(is_ready: Callable[[], bool], limit_s: float, ended: Callable[[], int | None], log: Path | None) -> None:
    """Asks until the server is ready. Raises InputError where it has ended, or the time is over."""
    until = time.monotonic() + limit_s
    while not is_ready():
        code = ended()
        if code is not None:
            raise InputError(f"the server ended with exit code {code} before it was ready", _end_of(log), slug="server-ended")
        if time.monotonic() > until:
            raise InputError(f"the server is not ready after {limit_s:g} s", _end_of(log), slug="server-not-ready")
        time.sleep(READY_INTERVAL_S)


def end(process: subprocess.Popen[bytes]) -> None:
    """Asks the process and all of its group to end, and makes them after a while."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            continue
        break
    process.wait()


def _end_of(log: Path | None) -> str:
    if log is None:
        return "is it running at that address?"
    lines = log.read_text(encoding="utf-8", errors="replace").replace("\0", "").splitlines()
    return "it said last:\n" + "\n".join(lines[-LOG_LINES:])
