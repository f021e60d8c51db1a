"""Lines of the program's own source, where somebody gives the directory that it lies in; nothing outside of it is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from nsys_report.errors import InputError

AROUND = 2
"""Lines before and after the one asked for."""
LONGEST_LINE, LARGEST_FILE, MOST_FILES = 200, 4_000_000, 50_000
SKIPPED = frozenset({".git", "__pycache__", "node_modules", ".venv", "venv", ".tox", ".mypy_cache"})


@dataclass(frozen=True)
class Sources:
    """A directory of source files. Raises InputError, when it is made by `open_sources`, for what is none."""

    root: Path

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        found: dict[str, list[Path]] = {}
        for number, path in enumerate(_files(self.root)):
            if number >= MOST_FILES:
                break
            found.setdefault(path.name, []).append(path)
        return found

    def find(self, name: str) -> Path | None:
        """The file that a path in a dump names: the one in the directory that has most of the path's end in common; None if several do."""
        wanted = PurePosixPath(name.replace("\\", "/")).parts
        if not wanted or ".." in wanted:
            return None
        best = sorted((_common_end(wanted, path.relative_to(self.root).parts), path) for path in self._by_name.get(wanted[-1], ()))
        if not best or (len(best) > 1 and best[-1][0] == best[-2][0]):
            return None
        return best[-1][1]

    def snippet(self, name: str, line: int) -> str:
        """The line with those around it, each with its number, `>` before the one asked for; "" where it is not there."""
        path = self.find(name)
        if path is None or line < 1:
            return ""
        try:
            if not path.resolve().is_relative_to(self.root) or path.stat().st_size > LARGEST_FILE:
                return ""
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        if line > len(lines):
            return ""
        first, last = max(line - AROUND, 1), min(line + AROUND, len(lines))
        width = len(str(last))
        shown = ((n, lines[n - 1][:LONGEST_LINE].rstrip()) for n in range(first, last + 1))
        return "\n".join(f"{'>' if n == line else ' '} {n:>{width}}  {text}" for n, text in shown)


def open_sources(directory: Path) -> Sources:
    """The sources in a directory. Raises InputError where it is none."""
    if not directory.is_dir():
        what = "a file" if directory.exists() else "not there"
        raise InputError(f"--source {directory} is {what}", "give the directory that the program's source lies in", "no-source-directory")
    return Sources(directory.resolve())


def _files(directory: Path) -> Iterator[Path]:
    """The files in a directory and below it, in order of path; links to directories are not followed."""
    for path in sorted(directory.iterdir()):
        if path.is_dir():
            if path.name not in SKIPPED and not path.is_symlink():
                yield from _files(path)
        elif path.suffix == ".py":
            yield path


def _common_end(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many last parts two paths share."""
    count = 0
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if a != b:
            break
        count += 1
    return count
