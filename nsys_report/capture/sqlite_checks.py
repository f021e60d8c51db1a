"""Is this file a whole, readable SQLite database? Asked before the first query, because a damaged one fails with riddles."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from pathlib import Path
from urllib.parse import quote

from nsys_report.errors import InputError

EXPORT_HINT = "make one with: nsys export --type sqlite REPORT.nsys-rep"
_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_KNOWN_STARTS = {
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"HloModule": "HLO text",
    b"{": "JSON text",
    b"\x89HDF": "an HDF5 file",
}


def check_file(path: Path) -> bytes:
    """The 100-byte header of a whole SQLite file; raises InputError for anything else."""
    try:
        found = path.stat()
        size = found.st_size
        if not stat.S_ISREG(found.st_mode):  # a pipe would be waited for
            raise InputError(f"{path}: not a file on a disk but a pipe or device", "write it to a file first", slug="capture-unreadable")
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", "check the path to the capture", slug="capture-missing") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise unreadable(path, error) from error
    if size == 0:
        raise InputError(f"{path}: the file is empty (0 bytes): the export did not finish", EXPORT_HINT, slug="capture-empty")
    if not header.startswith(_MAGIC):
        raise InputError(f"{path}: not an SQLite database; found {_what_starts(header)}", EXPORT_HINT, slug="capture-not-sqlite")
    _check_size(path, header, size)
    return header


def unreadable(path: Path, error: OSError | ValueError) -> InputError:
    """The error for a path that the system does not open."""
    reason = getattr(error, "strerror", None) or str(error)
    return InputError(f"{path}: cannot be read: {reason}", "check the path, and that you may read it", slug="capture-unreadable")


def _what_starts(header: bytes) -> str:
    for start, kind in _KNOWN_STARTS.items():
        if header.startswith(start):
            return kind
    if not header.strip(b"\0"):
        return "only zero bytes: the export was interrupted"
    if len(header) < _HEADER_BYTES:
        return f"{len(header)} bytes beginning with {header[:16]!r}"
    return f"a file beginning with {header[:16]!r}"


def _check_size(path: Path, header: bytes, size: int) -> None:
    """SQLite's header counts the pages (bytes 28 to 31) and their size (16 and 17, where 1 means 65536): a copy cut short has fewer."""
    if len(header) < _HEADER_BYTES:
        raise InputError(f"{path}: the file ends within its own header, after {size} bytes", _COPY_HINT, slug="capture-truncated")
    page = int.from_bytes(header[16:18], "big")
    page = 65536 if page == 1 else page
    pages = int.from_bytes(header[28:32], "big")
    counted = header[24:28] == header[92:96]  # otherwise an old writer left the page count stale
    if counted and pages and size < pages * page:
        raise InputError(
            f"{path}: the file is cut short: its header promises {pages * page:,} bytes, {size:,} are there",
            _COPY_HINT,
            slug="capture-truncated",
        )


_COPY_HINT = "copy it again, or export it again with nsys export --type sqlite --force-overwrite true"


def damaged(path: Path, reason: str) -> InputError:
    """The error for a database that fails while it is read; where the driver or the file system is the reason, that says so."""
    if "dlopen" in reason or "Could not load" in reason:
        return InputError(f"{path}: the driver that reads it does not load: {reason}", "install adbc-driver-sqlite again", slug="driver")
    if "unable to open database file" in reason:
        hint = "check that you may read the file and its folder"
        return InputError(f"{path}: SQLite cannot open it: {reason}", hint, slug="capture-unreadable")
    return InputError(f"{path}: the database is damaged: {reason}", _COPY_HINT, slug="capture-damaged")


def read_only_uri(path: Path, header: bytes) -> str:
    """An SQLite URI that reads the file and writes nothing beside it; raises InputError while another program is writing it.

    `immutable` keeps SQLite from locking or creating files, but also from seeing a write-ahead log: for a file that has one, see
    copy_with_log. A file in WAL mode without a log is not probed, because even a read-only connection would create one.
    """
    base = _uri(path)
    if header[18:20] == b"\x01\x01":
        _probe_lock(path, f"{base}?mode=ro")
    return f"{base}?mode=ro&immutable=1"


def has_log(path: Path) -> bool:
    """Whether a write-ahead log that holds something lies beside the file."""
    return _holds_something(path, "-wal")


def copy_with_log(path: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder with a copy of a database and its write-ahead log: SQLite reads a log only where it may write an index beside it."""
    folder = tempfile.TemporaryDirectory(prefix="nsys-report-")
    try:
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", Path(folder.name, f"{path.name}{suffix}"))
    except OSError as error:
        folder.cleanup()
        raise InputError(
            f"{path}: it has a write-ahead log and is read from a copy, which cannot be made: {error.strerror or error}",
            f"make room in {tempfile.gettempdir()} (or set TMPDIR), or merge the log: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'",
            slug="capture-log",
        ) from error
    return folder


def copied_uri(folder: Path, path: Path) -> str:
    """An SQLite URI of the copy in a folder."""
    return f"{_uri(folder / path.name)}?mode=rw"


def _uri(path: Path) -> str:
    return "file://" + quote(os.fsencode(path.resolve()))


def _holds_something(path: Path, suffix: str) -> bool:
    try:
        return os.stat(f"{path}{suffix}").st_size > 0
    except OSError:
        return False


def _probe_lock(path: Path, uri: str) -> None:
    connection = sqlite3.connect(uri, uri=True, timeout=0.2)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise InputError(
                f"{path}: the database is locked: another program is writing it",
                "wait for the export to finish; on a network filesystem copy the file to a local disk first",
                slug="capture-locked",
            ) from error
        if _holds_something(path, "-journal"):
            raise InputError(
                f"{path}: a journal lies beside it: a program that was writing the database did not finish",
                "export it again with nsys export --type sqlite --force-overwrite true",
                slug="capture-unfinished",
            ) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter of a message that quotes damaged text
        raise damaged(path, str(error)) from error
    finally:
        connection.close()
