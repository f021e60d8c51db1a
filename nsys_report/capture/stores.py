"""Which store of an nsys export a path is."""

from __future__ import annotations

from pathlib import Path

from nsys_report.capture.exported import SUFFIXES, exported
from nsys_report.capture.source import Source
from nsys_report.capture.sqlite import SqliteSource
from nsys_report.capture.sqlite_checks import EXPORT_HINT, unreadable
from nsys_report.errors import InputError
from nsys_report.packed import unpacked_capture


def open_source(path: Path) -> Source:
    """The store at the path: an export as SQLite, Parquet or Arrow, packed or not, or a report that nsys exports first.

    Raises InputError when there is none that can be read.
    """
    try:
        is_directory = path.is_dir()
        if is_directory:
            next(path.iterdir(), None)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise unreadable(path, error) from error
    return _open_folder(path) if is_directory else _open_file(path)


def _open_file(path: Path) -> Source:
    stored = unpacked_capture(path)
    if stored.suffix in SUFFIXES and stored.is_file():
        stored = exported(stored)
    try:
        return SqliteSource(stored, path)
    except InputError as error:
        raise InputError(error.message.replace(str(stored), str(path)), error.hint, error.slug) from error


def _open_folder(path: Path) -> Source:
    from nsys_report.capture.folder import FORMATS

    for kind in FORMATS:
        if any(path.glob(f"*{kind.ending}")):
            return kind(path)
    databases = sorted(path.glob("*.sqlite"))
    if databases:
        raise InputError(f"{path}: a directory, not a capture", f"did you mean {databases[0]}?", slug="capture-directory")
    if any(path.glob("module_*.txt")):
        hint = "this looks like an XLA dump: give the capture first and the dump with --xla-dump"
        raise InputError(f"{path}: a directory, not a capture", hint, slug="capture-directory")
    raise InputError(f"{path}: a directory without Parquet or Arrow files, not a capture", EXPORT_HINT, slug="capture-directory")
