"""The rows of host threads: NVTX ranges (XLA's and the program's own), and the calls of the CUDA API below them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from nsys_report.analysis.arrays.view import coded
from nsys_report.analysis.idle.causes import CAUSES, EXECUTE_RANGE, causes_of_calls
from nsys_report.intervals import Ranges
from nsys_report.reports.arrays import codes, ints
from nsys_report.reports.lanes import lanes
from nsys_report.reports.timeline.looks import Looks
from nsys_report.reports.timeline.model import Ints, Look, MarkRow
from nsys_report.reports.timeline.windows import overlapping
from nsys_report.units import things

if TYPE_CHECKING:
    from nsys_report.capture.model import Capture

MOST_GROUPS = 8
"""Threads, or threads together, that are shown: those with most calls and ranges."""
LAUNCHES = "launches"
MOST_DEPTH = 6
"""Ranges within ranges that are shown."""
_THREAD = 0xFFFFFF
_FIELD = re.compile(r"[#,](hlo_op|hlo_module|name)=([^,#]+)")
_XLA = ("XlaModule:", "Thunk:", "Xla", "TSL:", "Tsl")


def host_rows(capture: Capture, shown: Ranges, looks: Looks) -> tuple[list[MarkRow], tuple[str, ...]]:
    """The rows of the threads that do most in the windows, and what is left out, in words. Threads that launch nothing and are in no
    range stand together with those that do the same."""
    calls, ranges, system = (_within(table, shown) for table in (capture.runtime, capture.nvtx, capture.os_calls))
    names, count = np.unique(np.concatenate([ints(calls, "thread"), ints(ranges, "thread")]), return_counts=True)
    groups: dict[tuple[str, int], list[int]] = {}
    in_ranges = set(ints(ranges, "thread").tolist())
    for thread in names[np.argsort(-count, kind="stable")].tolist():
        role = _role(calls.filter(pa.array(ints(calls, "thread") == thread)))
        alone = thread if role == LAUNCHES or thread in in_ranges else -1
        groups.setdefault((role, alone), []).append(thread)
    several = len(np.unique(names >> 24)) > 1
    rows: list[MarkRow] = []
    for (role, _), own in list(groups.items())[:MOST_GROUPS]:
        others = f" and {len(own) - 1} more" if len(own) > 1 else ""
        title = f"{thread_title(own[0], capture.thread_names.get(own[0]), several)}{others}: {role}"
        rows += _thread_rows(title, own, calls, ranges, looks)
        rows += _system_rows(title, own, system, looks)
    left = sum(map(len, list(groups.values())[MOST_GROUPS:]))
    return rows, (f"{things(left, 'more thread')} with few calls are left out.",) if left else ()


def _within(table: pa.Table | None, shown: Ranges) -> pa.Table:
    """The rows of a host table that lie in the windows, cut at the last one's end where they never ended."""
    if table is None or not len(table):
        return pa.table({name: pa.array([], pa.int64()) for name in ("start_ns", "end_ns", "thread")})
    start, end = ints(table, "start_ns"), ints(table, "end_ns")
    return table.take(pa.array(overlapping(start, np.where(end < 0, np.iinfo(np.int64).max, end), shown)))


def thread_title(thread: int, name: str | None, several: bool) -> str:
    """What a thread is called: its number, its name where the capture has one, its process where there are several."""
    process = f" of process {thread >> 24 & _THREAD}" if several else ""
    return f"thread {thread & _THREAD}{f' {name}' if name else ''}{process}"


def _thread_rows(group: str, threads: list[int], calls: pa.Table, ranges: pa.Table, looks: Looks) -> Iterator[MarkRow]:
    mine, own = (table.filter(pa.array(np.isin(ints(table, "thread"), threads))) for table in (calls, ranges))
    if len(own):
        yield from _rows(group, "NVTX", "range", own, _range_looks(own, looks))
    if len(mine):
        yield from _rows(group, "CUDA calls", "call", mine, _call_looks(mine, looks))


def _system_rows(group: str, threads: list[int], system: pa.Table, looks: Looks) -> Iterator[MarkRow]:
    """The calls of the operating system's runtime, where they were traced."""
    mine = system.filter(pa.array(np.isin(ints(system, "thread"), threads)))
    if len(mine):
        names = coded(mine, "name")
        made = {code: looks.number(Look(names.words[code], "h-call")) for code in np.unique(names.codes).tolist()}
        yield from _rows(group, "OS calls", "call", mine, np.array([made[code] for code in names.codes.tolist()], np.int64))


def _role(calls: pa.Table) -> str:
    """What a thread does, by its calls."""
    names = set(calls["name"].cast(pa.string()).to_pylist()) if len(calls) else set()
    if any("Launch" in name and "HostFunc" not in name for name in names):
        return LAUNCHES
    return "copies" if any("Memcpy" in name for name in names) else "waits" if any("Synchronize" in name for name in names) else "other"


def _rows(group: str, name: str, kind: str, table: pa.Table, look: Ints) -> Iterator[MarkRow]:
    start = ints(table, "start_ns")
    end = np.where(ints(table, "end_ns") < 0, start.max() + 1, np.maximum(ints(table, "end_ns"), start))
    depth = lanes(start, end, np.zeros(len(start), np.int64))
    for place in range(min(int(depth.max()) + 1, MOST_DEPTH)):
        at = np.flatnonzero(depth == place)
        yield MarkRow(group, name, kind, start[at], end[at] - start[at], look[at])


def _call_looks(calls: pa.Table, looks: Looks) -> Ints:
    """The look of each call: colored as the part of the budget that its time counts to when a device waits for it."""
    names = coded(calls, "name")
    cause = dict(zip(names.codes.tolist(), causes_of_calls(names).tolist(), strict=True))
    made = {}
    for code, of in cause.items():
        color = f"b-{CAUSES[of].category}" if of >= 0 else "h-call"
        facts = (("CUDA call", CAUSES[of].about if of >= 0 else "no device waits for it"),)
        made[code] = looks.number(Look(names.words[code] if code >= 0 else "call", color, facts=facts))
    return np.array([made[code] for code in names.codes.tolist()], np.int64)


def _range_looks(ranges: pa.Table, looks: Looks) -> Ints:
    code, texts = codes(ranges, "text")
    domain, domains = codes(ranges, "domain")
    pairs, index = np.unique(np.stack([code, domain]), axis=1, return_inverse=True)
    made = [looks.number(_range_look(texts[t] if t >= 0 else "", domains[d] if d >= 0 else None)) for t, d in pairs.T.tolist()]
    return np.array(made, np.int64)[index.reshape(-1)]


def _range_look(text: str, domain: str | None) -> Look:
    """XLA's ranges say what they are about in fields (tsl/profiler/lib/nvtx_utils.h); others are somebody's own text."""
    about = dict(_FIELD.findall(text))
    facts = (("NVTX domain", domain),) if domain else ()
    if text.startswith(EXECUTE_RANGE):
        return Look(f"execute {about.get('hlo_module', '')}", "h-xla", facts=facts)
    if text.startswith("Thunk:"):
        said = (("operation", about["name"]),) if "name" in about else ()
        return Look(about.get("hlo_op") or text, "h-thunk", None, about.get("hlo_op"), facts=(*said, *facts))
    return Look(text or "range", "h-xla" if text.startswith(_XLA) else "h-own", facts=facts)
