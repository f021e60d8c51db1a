"""Where histories are kept: JSON lines that are appended under a lock, or SQLite where many write."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from nsys_report.errors import InputError
from nsys_report.history.model import Record, record_of

PATIENCE_S = 30.0
"""How long a writer waits for the others."""
DATABASES = frozenset({".sqlite", ".sqlite3", ".db"})
"""Endings of a file that is a database; every other is JSON lines."""


class Store(Protocol):
    """A history on disk."""

    def read(self) -> tuple[Record, ...]:
        """All records, oldest first; none where there is no file. Raises InputError for one that cannot be read."""

    def append(self, records: Sequence[Record]) -> None:
        """Adds records, all or none, whoever else writes."""


def open_store(path: Path) -> Store:
    """The history at `path`, by its ending. Raises InputError where there is no folder for it: a typing error makes none."""
    if not path.absolute().parent.is_dir():
        raise InputError(f"there is no directory {path.parent} for the history", "make it first, or check the path", slug="history")
    return SqliteStore(path) if path.suffix.lower() in DATABASES else LinesStore(path)


class LinesStore:
    """JSON lines. Writers take turns by a lock file beside it; what they add goes out in one write, behind a whole line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[Record, ...]:
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return ()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the history {self.path}: {error}", "check the path", slug="history") from None
        return tuple(self._record(line, number) for number, line in enumerate(lines, 1) if line.strip())

    def _record(self, line: str, number: int) -> Record:
        where = f"line {number} of {self.path}"
        try:
            return record_of(json.loads(line), where)
        except json.JSONDecodeError as error:
            raise InputError(f"{where} is no JSON: {error}", "take that line out, or restore the file", slug="history") from None

    def append(self, records: Sequence[Record]) -> None:
        text = "".join(json.dumps(r.document(), ensure_ascii=False, allow_nan=False) + "\n" for r in records).encode()
        if not text:
            return
        try:
            with FileLock(f"{self.path}.lock", timeout=PATIENCE_S):
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
                try:
                    _write_whole(descriptor, text)
                finally:
                    os.close(descriptor)
        except Timeout:
            raise InputError(f"the history {self.path} is locked by another run", f"wait, or remove {self.path}.lock", "history") from None
        except OSError as error:
            raise InputError(f"cannot write the history {self.path}: {error.strerror}", "check the path and the disk", "history") from None


def _write_whole(descriptor: int, text: bytes) -> None:
    """Adds lines and lets them reach the disk; what cannot be written whole is taken back, and so is a line that a crash left half."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        text = b"\n" + text
    try:
        written = os.write(descriptor, text)
        if written != len(text):
            raise OSError(28, "the disk is full")
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


class SqliteStore:
    """One table of records, in the order they came."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[Record, ...]:
        if not self.path.exists():
            return ()
        try:
            with closing(self._open()) as db:
                rows = db.execute("SELECT id, record FROM records ORDER BY id").fetchall()
        except sqlite3.Error as error:
            raise InputError(f"cannot read the history {self.path}: {error}", "is it one of nsys-report's?", slug="history") from None
        return tuple(record_of(json.loads(text), f"record {number} of {self.path}") for number, text in rows)

    def append(self, records: Sequence[Record]) -> None:
        rows = [(r.case, r.recorded_at, json.dumps(r.document(), ensure_ascii=False, allow_nan=False)) for r in records]
        try:
            with closing(self._open()) as db, db:
                db.execute("BEGIN IMMEDIATE")
                db.executemany("INSERT INTO records (name, recorded_at, record) VALUES (?, ?, ?)", rows)
        except sqlite3.Error as error:
            raise InputError(f"cannot write the history {self.path}: {error}", "check the path and the disk", slug="history") from None

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=PATIENCE_S, isolation_level=None)
        table = "id INTEGER PRIMARY KEY, name TEXT NOT NULL, recorded_at TEXT NOT NULL, record TEXT NOT NULL"
        db.execute(f"CREATE TABLE IF NOT EXISTS records ({table})")
        return db
