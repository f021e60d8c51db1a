"""When a capture's session started, by the machine's clocks: what ties other logs to it. Not part of a Capture, which names no day."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nsys_report.capture.catalogue import Integer
from nsys_report.capture.stores import open_source


@dataclass(frozen=True, slots=True)
class SessionStart:
    """ns since 1970, and ns of the monotonic clock, at the zero of the capture's times; None where the capture does not say."""

    realtime_ns: int | None
    monotonic_ns: int | None


def read_session_start(path: Path) -> SessionStart:
    """From TARGET_INFO_SESSION_START_TIME and ANALYSIS_DETAILS, whose startTime is the system's clock. Raises InputError."""
    source = open_source(path)
    try:
        found: list[int | None] = []
        for table, name in (("TARGET_INFO_SESSION_START_TIME", "utcEpochNs"), ("ANALYSIS_DETAILS", "startTime")):
            there = name in source.columns.get(table, ())
            values = source.read(table, [Integer(name)])[name].to_pylist() if there else []
            found.append(next((int(v) for v in values if v), None))
        return SessionStart(*found)
    finally:
        source.close()
