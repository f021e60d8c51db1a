"""Paths that do not say whose machine they are of: sources from their package or project on, in others' texts none."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

_PACKAGES = re.compile(r"^.*?/(?:site|dist)-packages/|^.*?/lib/python\d[\d.]*/|^.*?/runfiles/[^/]+/")
_DRIVE = re.compile(r"^[A-Za-z]:(?=/)")
_ABSOLUTE = re.compile(r"(?<![\w/.\\~-])(?:~[\w-]*|[A-Za-z]:)?(?:[/\\][\w.@+ -]*[\w.@+-])+(?:[/\\](?=[\s'\",;:)\]]|$))?")


def project_paths(files: Iterable[str]) -> dict[str, str]:
    """What is shown of each source file: its path within its package, or from the directory that all others have in common."""
    plain = {file: _DRIVE.sub("", file.replace("\\", "/")) for file in files}
    found = {file: _PACKAGES.sub("", path) for file, path in plain.items() if _PACKAGES.match(path)}
    own = {file: posixpath.normpath(path) for file, path in plain.items() if file not in found}
    absolute = [posixpath.dirname(path) for path in own.values() if path.startswith("/")]
    root = posixpath.commonpath(absolute) if absolute else "/"
    for file, path in own.items():
        shown = posixpath.relpath(path, root) if path.startswith("/") else path
        found[file] = shown if not shown.startswith("..") else posixpath.basename(path)
    return found


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
