"""Paths that do not say whose machine they are of: sources from their package or project on, in others' texts none."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Set

import pyarrow as pa
import pyarrow.compute as pc

_PACKAGES = re.compile(r"^.*?/(?:site|dist)-packages/|^.*?/lib/python\d[\d.]*/|^.*?/runfiles/[^/]+/")
_DRIVE = re.compile(r"^[A-Za-z]:(?=/)")
_ABSOLUTE = re.compile(r"(?<![\w/.\\~-])(?:~[\w-]*|[A-Za-z]:)?(?:[/\\][\w.@+ -]*[\w.@+-])+(?:[/\\](?=[\s'\",;:)\]]|$))?")


_HOMES = frozenset({"home", "homes", "users", "user", "people", "scratch"})
"""Folders whose entries are named after people."""
_MACHINES = frozenset(
    {"", "data", "gpfs", "lustre", "media", "mnt", "nfs", "opt", "private", "srv", "tmp", "usr", "var", "volumes", "work"}
)
"""Folders at the top, and the top itself, that are a machine's and no project's."""


def project_paths(files: Iterable[str]) -> dict[str, str]:
    """What is shown of each source file: its path within its package, or from the directory that all others have in common.

    Where those lie so far apart that only the machine's own folders are common, the directory that the nearest of them have in common.
    """
    plain = {file: _DRIVE.sub("", file.replace("\\", "/")) for file in files}
    found = {file: _PACKAGES.sub("", path) for file, path in plain.items() if _PACKAGES.match(path)}
    own = {file: posixpath.normpath(path) for file, path in plain.items() if file not in found}
    roots = _roots({posixpath.dirname(path) for path in own.values() if path.startswith("/")})
    for file, path in own.items():
        shown = posixpath.relpath(path, roots[posixpath.dirname(path)]) if path.startswith("/") else path
        found[file] = shown if not shown.startswith(("..", "~")) else posixpath.basename(path)
    return found


def _roots(directories: Set[str]) -> dict[str, str]:
    """The project's root of each absolute directory: what all have in common, unless people's folders lie right below it."""
    if not directories:
        return {}
    root = posixpath.commonpath(directories)
    is_shared = root.strip("/").lower() in _MACHINES or holds_people(root)
    if not is_shared or len(directories) == 1:
        return dict.fromkeys(directories, root)
    apart: dict[str, set[str]] = {}
    for directory in directories:
        apart.setdefault(posixpath.relpath(directory, root).partition("/")[0], set()).add(directory)
    return {directory: found for some in apart.values() for directory, found in _roots(some).items()}


def holds_people(directory: str) -> bool:
    """Whether what lies right in a directory is named after people: /home, /mnt/users."""
    return posixpath.basename(directory.rstrip("/")).lower() in _HOMES


def with_project_paths(table: pa.Table, column: str) -> pa.Table:
    """A table whose source files are shown as project_paths shows them."""
    encoded = table[column].combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    names = encoded.dictionary.to_pylist()
    shown = project_paths(names)
    values = pa.array([shown[name] for name in names], pa.string())
    at = table.schema.get_field_index(column)
    return table.set_column(at, table.schema.field(at), pc.take(values, encoded.indices))


def without_paths(text: str) -> str:
    """A text of somebody else, such as a profiler's message, without the absolute paths in it."""
    return _ABSOLUTE.sub("(path)", text)
