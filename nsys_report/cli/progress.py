"""A line on stderr that says what is being done, while a person watches and the work is long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_S = 0.7
"""Work that is done sooner than this shows nothing."""

LEAST_DONE, LEAST_ELAPSED_S = 0.05, 3.0
"""From here on the time that is left is told: before, it would be a guess."""

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
        status.update(f"{label}{progress_text(stage, done, time.monotonic() - began)}")
        if not shown and time.monotonic() - began > PATIENCE_S:
            status.start()
            shown = True

    try:
        yield say
    finally:
        if shown:
            status.stop()


def progress_text(stage: str, done: float, elapsed_s: float) -> str:
    """What is being done, how much of all the work that is, and, of long work, how long the rest takes at the rate so far."""
    if not done:
        return f"{stage} …"
    left = elapsed_s * (1 - done) / done
    known = done >= LEAST_DONE and elapsed_s >= LEAST_ELAPSED_S and left >= 1
    about = f"{left:.0f} s" if left < 100 else f"{left / 60:.0f} min"
    return f"{stage} … {done:.0%}" + (f", about {about} left" if known else "")
