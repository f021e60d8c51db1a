"""A copy of a capture whose kernels take longer: planted slowdowns, in the order of the original."""

from __future__ import annotations

import bisect
import shutil
import sqlite3
from collections.abc import Container
from pathlib import Path

TIMED = ("CUPTI_ACTIVITY_KIND_%", "NVTX_EVENTS")


def plant(source: Path, target: Path, factor: float, starts: Container[int] | None = None) -> Path:
    """Kernels (those that start at `starts`, or all) take `factor` as long; all that comes later is later by as much."""
    shutil.copy(source, target)
    db = sqlite3.connect(target)
    kernels = db.execute("SELECT rowid, start, end FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start").fetchall()
    ends, grown, total, own = [], [0], 0, {}
    for row, start, end in kernels:
        if starts is None or start in starts:
            own[row] = round((end - start) * (factor - 1))
            total += own[row]
            ends.append(end)
            grown.append(total)

    def later(at: int) -> int:
        return at + grown[bisect.bisect_right(ends, at)]

    names = "SELECT name FROM sqlite_master WHERE type = 'table' AND (name LIKE ? OR name = ?)"
    for (table,) in db.execute(names, TIMED).fetchall():
        rows = db.execute(f"SELECT rowid, start, end FROM {table}").fetchall() if "start" in _columns(db, table) else []
        is_kernel = table.endswith("_KERNEL")
        moved = [
            (later(start), None if end is None else later(start) + end - start + own.get(row, 0) if is_kernel else later(end), row)
            for row, start, end in rows
            if start is not None
        ]
        db.executemany(f"UPDATE {table} SET start = ?, end = ? WHERE rowid = ?", moved)
    db.commit()
    db.close()
    return target


def _columns(db: sqlite3.Connection, table: str) -> set[str]:
    found = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
    return found if "end" in found else set()
