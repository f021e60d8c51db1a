"""Long captures made of short ones: what a capture did, again and again, no two times alike."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
TIMES = ("start", "end", "timestamp", "rawTimestamp")
"""Columns that are moments."""
GAP_NS = 1_000_000
LOST_EVERY, LOST_OF = 997, 100
"""From every so many copies one kernel in so many is missing."""


def repeat(source: Path, target: Path, copies: int) -> int:
    """Writes a capture that does what another does so many times, under correlation ids of their own; how many kernels it has.

    No two times are alike: each kernel ends up to 5 % earlier, and now and then one is missing.
    """
    shutil.copyfile(source, target)
    with sqlite3.connect(target) as base:
        base.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {table: [row[1] for row in base.execute(f'PRAGMA table_info("{table}")')] for table in tables}
        timed = [table for table, names in columns.items() if "start" in names and len(names) > 2]
        span = GAP_NS + max(_highest(base, table, "end" if "end" in columns[table] else "start") for table in timed)
        ids = 1 + max(_highest(base, table, "correlationId") for table in timed if "correlationId" in columns[table])
        _copy(base, {table: columns[table] for table in timed}, copies, span, ids)
        base.execute(f'UPDATE {KERNELS} SET "end" = "end" - ((rowid * 7919) % 1000) * ("end" - start) / 20000')
        base.execute(f"DELETE FROM {KERNELS} WHERE rowid % {LOST_EVERY} = 0 AND (start / {span}) % {LOST_OF} = 7")
        return int(base.execute(f"SELECT count(*) FROM {KERNELS}").fetchone()[0])


def _highest(base: sqlite3.Connection, table: str, column: str) -> int:
    return base.execute(f'SELECT max("{column}") FROM "{table}"').fetchone()[0] or 0


def _copy(base: sqlite3.Connection, columns: Mapping[str, Sequence[str]], copies: int, span: int, ids: int) -> None:
    rows = {table: base.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in columns}
    made = 1
    while made < copies:  # as many again each time
        more = min(made, copies - made)
        for table, names in columns.items():
            shifted = ", ".join(_shifted(name, made * span, made * ids) for name in names)
            base.execute(f'INSERT INTO "{table}" SELECT {shifted} FROM "{table}" ORDER BY rowid LIMIT {rows[table] * more}')
        made += more


def _shifted(column: str, ns: int, ids: int) -> str:
    if column in TIMES:
        return f'"{column}" + {ns}'
    return f'"{column}" + {ids}' if column == "correlationId" else f'"{column}"'


def without_ranges(source: Path, target: Path) -> None:
    """A capture without XLA's NVTX ranges, which is joined by what it launches alone."""
    shutil.copyfile(source, target)
    with sqlite3.connect(target) as base:
        base.execute("DROP TABLE IF EXISTS NVTX_EVENTS")
