"""Builds nsys exports of a few rows, so that a test shows only the columns it is about."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PROCESS = (1 << 48) | (111 << 24)
"""nsys's process key of pid 111 on VM 1."""
OTHER = (1 << 48) | (112 << 24)
THREAD = PROCESS | 7
OTHER_THREAD = OTHER | 7

Row = Mapping[str, Any]

STRINGS = {1: "loop_add_fusion", 2: "gemm_fusion_dot_3", 3: "cudaLaunchKernel_v7000", 4: "cuMemcpyHtoDAsync_v2", 5: "cuGraphLaunch"}


def kernel(start: int, end: int, correlation: int | None = 1, **changes: Any) -> dict[str, Any]:
    """A row of CUPTI_ACTIVITY_KIND_KERNEL."""
    row = {
        "start": start,
        "end": end,
        "deviceId": 0,
        "contextId": 1,
        "streamId": 7,
        "correlationId": correlation,
        "globalPid": PROCESS,
        "demangledName": 1,
        "shortName": 1,
        "gridX": 4,
        "gridY": 1,
        "gridZ": 1,
        "blockX": 128,
        "blockY": 1,
        "blockZ": 1,
        "graphNodeId": None,
    }
    return row | changes


def call(start: int, end: int, correlation: int = 1, **changes: Any) -> dict[str, Any]:
    """A row of CUPTI_ACTIVITY_KIND_RUNTIME."""
    row = {"start": start, "end": end, "globalTid": THREAD, "correlationId": correlation, "nameId": 3, "returnValue": 0}
    return row | changes


def nvtx(start: int, end: int | None, text: str | None = None, **changes: Any) -> dict[str, Any]:
    """A row of NVTX_EVENTS: a push/pop range."""
    row = {"start": start, "end": end, "eventType": 59, "text": text, "textId": None, "globalTid": THREAD, "domainId": 0}
    return row | changes


def build(path: Path, tables: Mapping[str, Iterable[Row]], strings: Mapping[int, str | bytes] = STRINGS) -> Path:
    """Writes the tables; a table's columns are the keys of its first row."""
    database = sqlite3.connect(path)
    with database:
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        for number, text in strings.items():
            raw = text if isinstance(text, bytes) else text.encode()
            database.execute("INSERT INTO StringIds VALUES (?, CAST(? AS TEXT))", (number, raw))
        for table, rows in tables.items():
            insert(database, table, list(rows))
    database.close()
    return path


def insert(database: sqlite3.Connection, table: str, rows: list[Row]) -> None:
    """Creates one table."""
    names = list(rows[0])
    database.execute(f'CREATE TABLE "{table}" ({", ".join(f"{chr(34)}{n}{chr(34)}" for n in names)})')
    marks = ", ".join("?" for _ in names)
    database.executemany(f'INSERT INTO "{table}" VALUES ({marks})', [[row[n] for n in names] for row in rows])


KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
NVTX = "NVTX_EVENTS"
