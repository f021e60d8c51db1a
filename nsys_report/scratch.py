"""Folders beside the outputs in which files grow until they are whole, and the removal of those that a killed run left."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nothing is locked, and nothing that another run left is removed
    fcntl = None  # type: ignore[assignment]

PREFIX = ".nsys-report-"
_LOCK = ".lock"
YOUNGEST_S = 1.0
"""A folder younger than this may belong to a run that has made it and not yet locked it."""


@contextlib.contextmanager
def scratch_folder(directory: Path) -> Iterator[Path]:
    """A folder in `directory` that is gone afterwards; those of runs that have ended without removing theirs are removed first.

    A run holds a lock on a file in its folder, which the system lets go of however the run ends. Raises OSError.
    """
    _remove_abandoned(directory)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=directory) as folder, open(Path(folder, _LOCK), "wb") as held:
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Path(folder)


def _remove_abandoned(directory: Path) -> None:
    if fcntl is None:
        return
    with os.scandir(directory) as entries:
        left = [Path(entry.path) for entry in entries if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False)]
    for folder in left:
        if _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    try:
        if time.time() - folder.stat().st_mtime < YOUNGEST_S:
            return False
        with open(folder / _LOCK, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return folder.is_dir()  # killed before it could lock anything
    except OSError:
        return False
    return True
