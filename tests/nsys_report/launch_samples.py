"""Activities and ranges of a few rows, for tests of the cut: each row says what the test is about, the rest has defaults."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hlo_mapping.columns import ACTIVITIES, LAUNCHES
from nsys_report.capture.model import NVTX

THREAD = 7


def activities(*rows: dict[str, Any]) -> pa.Table:
    """Activities with launch columns, in the order given; a kernel launched by THREAD when it started unless a row says otherwise."""
    full = []
    for row in rows:
        start = row.get("start_ns", 0)
        base = {
            "activity": "kernel",
            "end_ns": start + 1,
            "device_id": 0,
            "stream_id": 1,
            "process_id": 1,
            "name": "k",
            "grid": "1,1,1",
            "block": "1,1,1",
        }
        launch = {"launch_thread": THREAD, "launch_start_ns": start, "launch_end_ns": start, "launch_api": "cuLaunchKernelEx"}
        full.append(base | launch | row)
    return _table(pa.schema([*ACTIVITIES, *LAUNCHES]), full)


def ranges(*rows: tuple[int, int | None, str] | tuple[int, int | None, str, int]) -> pa.Table:
    """NVTX ranges (start, end, text[, thread])."""
    return _table(
        NVTX, [{"start_ns": r[0], "end_ns": r[1], "text": r[2], "thread": r[3] if len(r) > 3 else THREAD, "event_type": 59} for r in rows]
    )


def _table(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    columns = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        columns.append(pa.array(values, pa.string() if pa.types.is_dictionary(field.type) else field.type).cast(field.type))
    return pa.table(columns, schema=schema)
