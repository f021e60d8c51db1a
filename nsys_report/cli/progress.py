"""A line on stderr that says what is being done, while a person watches and the work is long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_S = 0.7
"""Work that is done sooner than this shows nothing."""

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of that work that is done, 0 to 1."""


@contextmanager
def progress_line(label: str = "") -> Iterator[Progress | None]:
    """Gives a function to call with each stage and how far it is, or None where stderr is not a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    began = time.monotonic()
    status = Console(stderr=True).status("")
    shown = False

    def say(stage: str, done: float) -> None:
        nonlocal shown
        status.update(f"{label}{stage} … {done:.0%}" if done else f"{label}{stage} …")
        if not shown and time.monotonic() - began > PATIENCE_S:
            status.start()
            shown = True

    try:
        yield say
    finally:
        if shown:
            status.stop()
