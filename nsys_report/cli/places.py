"""Where a command may write: never onto, into or beside what it reads, nor twice to one place. Asked before the long work."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click


def keep_apart(outputs: Mapping[str, Path | None], inputs: Sequence[Path | None]) -> None:
    """Raises UsageError where an output, by the name of its option, is an input or lies in one, or is another output."""
    taken: list[tuple[str, Path]] = []
    for option, path in outputs.items():
        if path is None or str(path) == "-" or path.is_char_device():
            continue
        refuse_inputs(option, path, [given for given in inputs if given is not None])
        for other, place in taken:
            if is_same(path, place):
                raise click.UsageError(f"{option} {path} and {other} {place} would write the same file: name another place")
        taken.append((option, path))


def refuse_inputs(option: str, path: Path, inputs: Sequence[Path], thing: str = "place") -> None:
    """Raises UsageError where a path is an input or lies in one."""
    for given in inputs:
        if _lies_in(path, given):
            where = "is an input" if is_same(path, given) else f"lies in the input {given}"
            raise click.UsageError(f"{option} {path} {where}: name another {thing}")


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths are one file or directory, also by another name."""
    return os.path.realpath(one) == os.path.realpath(other) or (one.exists() and other.exists() and os.path.samefile(one, other))


def _lies_in(path: Path, given: Path) -> bool:
    """Whether a path is an input, lies within one, or is what SQLite keeps beside one."""
    beside = (f"{given.name}-wal", f"{given.name}-shm", f"{given.name}-journal")
    within = any(is_same(above, given) for above in (path, *path.absolute().parents))
    return within or (path.name in beside and is_same(path.parent, given.parent))
