"""A server's log of its backend calls, as JSON lines or as text, one call a line. NUL bytes at a line's end are tolerated.

{"call": 17, "program": "decode", "rows": 4, "arrived_ns": [..], "started_ns": .., "finished_ns": .., "clock": "realtime"}
call 17 decode rows=4 arrived=12.031250,12.031300 started=12.034120 finished=12.051900
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nsys_report.errors import InputError

Clock = Literal["realtime", "monotonic"]
LATEST_REALTIME_S = 10**9
"""Seconds from which a text log's times are taken for times since 1970: a machine is not up for thirty years."""
_TEXT = re.compile(r"call (\d+) (\S+) rows=(\d+) arrived=([\d.,]*) started=([\d.]+) finished=([\d.]+)", re.ASCII)
HINT = (
    'JSON lines {"call", "program", "rows", "arrived_ns", "started_ns", "finished_ns", "clock"}, or text lines `call 17 decode rows=4 ...`'
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a backend: `rows` requests' rows, when each arrived, when the call ran. Times in ns of the log's clock."""

    number: int
    program: str
    rows: int
    arrived_ns: tuple[int, ...]
    started_ns: int
    finished_ns: int


@dataclass(frozen=True, slots=True)
class CallLog:
    """Calls in order of their start, and the clock that all of them go by."""

    calls: tuple[Call, ...]
    clock: Clock
    skipped: int
    """Lines that are no calls."""


def read_timeline(path: Path) -> CallLog:
    """Reads a log. Raises InputError where no line of it is a call, or where its calls go by several clocks."""
    try:
        lines = path.read_bytes().replace(b"\0", b"").decode(errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}", "", slug="timeline-unreadable") from error
    found = [_call(line.strip()) for line in lines if line.strip()]
    calls = [pair for pair in found if pair is not None]
    if not calls:
        raise InputError(f"{path}: no line of it is a call", f"it takes {HINT}", slug="timeline-empty")
    clocks = {clock for _, clock in calls}
    if len(clocks) > 1:
        raise InputError(
            f"{path}: its calls go by several clocks: {', '.join(sorted(clocks))}", "write one log for each", slug="timeline-clocks"
        )
    ordered = sorted((call for call, _ in calls), key=lambda call: (call.started_ns, call.number))
    return CallLog(tuple(ordered), clocks.pop(), len(found) - len(calls))


def _call(line: str) -> tuple[Call, Clock] | None:
    try:
        return _from_json(json.loads(line)) if line.startswith("{") else _from_text(line)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _from_json(read: dict[str, Any]) -> tuple[Call, Clock] | None:
    clock = read.get("clock", "realtime")
    if clock not in ("realtime", "monotonic"):
        return None
    arrived = tuple(int(t) for t in read["arrived_ns"])
    call = Call(int(read["call"]), str(read["program"]), int(read["rows"]), arrived, int(read["started_ns"]), int(read["finished_ns"]))
    return (call, clock) if _is_possible(call) else None


def _from_text(line: str) -> tuple[Call, Clock] | None:
    match = _TEXT.match(line)
    if not match:
        return None
    arrived = tuple(_ns(text) for text in match[4].split(",") if text)
    call = Call(int(match[1]), match[2], int(match[3]), arrived, _ns(match[5]), _ns(match[6]))
    clock: Clock = "realtime" if float(match[5]) >= LATEST_REALTIME_S else "monotonic"
    return (call, clock) if _is_possible(call) else None


def _ns(seconds: str) -> int:
    """Decimal seconds in ns, exactly: a float holds today's time to 200 ns only."""
    whole, _, part = seconds.partition(".")
    return int(whole or 0) * 10**9 + int((part + "0" * 9)[:9])


def _is_possible(call: Call) -> bool:
    return call.rows >= 1 and call.finished_ns >= call.started_ns and call.finished_ns < 2**63 and math.isfinite(call.started_ns)
