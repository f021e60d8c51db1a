"""The timeline of an execution by stream, and which executions are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.reports.arrays import NONE, codes, ints
from nsys_report.reports.lanes import lanes
from nsys_report.reports.pictures.model import Ints, Kind, Timeline
from nsys_report.units import duration, kernel, share, size, things

if TYPE_CHECKING:
    from nsys_report.joined import Joined

MOST_BARS = 12_000
"""Bars in all timelines of a capture's page: some hundred kilobytes."""
MOST_IN_ONE = 6_000
"""Bars in one timeline; of a longer execution the longest kernels are shown."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """An execution to show (row of the executions table), and why."""

    row: int
    role: str


TYPICAL = "step of median length"
"""Role of the execution whose step, to the next one's start, has the median length."""


def choose(joined: Joined, rows: Ints, typical: int | None = None) -> list[Chosen]:
    """Of a program's complete executions (rows in order of start): the median, the slowest, the first, the one whose step has the median
    length, then the others, spread evenly."""
    if not len(rows):
        return []
    table = joined.executions.take(pa.array(rows))
    span = ints(table, "end_ns") - ints(table, "start_ns")
    time = ints(table, "kernel_time_ns")
    measure = time if time.max() > 0 else span
    middle = np.argsort(measure, kind="stable")[(len(rows) - 1) // 2]
    chosen: dict[int, str] = {}
    named = [(int(rows[at]), role) for at, role in ((middle, "median"), (span.argmax(), "slowest"), (0, "first"))]
    for row, role in named if typical is None else [*named, (typical, TYPICAL)]:
        chosen[row] = f"{chosen[row]}, {role}" if row in chosen else role
    return [Chosen(row, role) for row, role in chosen.items()] + [Chosen(int(r), "") for r in _spread(rows) if int(r) not in chosen]


def not_typical(one: Chosen | Timeline) -> bool:
    """Sorts the one whose step has the median length before all others."""
    return TYPICAL not in one.role


def _spread(rows: Ints) -> Ints:
    """The same rows, so ordered that any number of the first lie evenly over all: by bit-reversed position."""
    bits = max(int(len(rows) - 1).bit_length(), 1)
    at = np.arange(1 << bits)
    back = np.zeros_like(at)
    for bit in range(bits):
        back |= ((at >> bit) & 1) << (bits - 1 - bit)
    return rows[back[back < len(rows)]]


class ExecutionCutter:
    """Cuts the activities of single executions out of a capture; sorts the capture's rows by execution once."""

    def __init__(self, joined: Joined) -> None:
        self.joined = joined
        owner = ints(joined.activities, "execution_id")
        ids = ints(joined.executions, "execution_id")
        self.order = np.argsort(owner, kind="stable") if len(np.flatnonzero(np.diff(owner) < 0)) else np.arange(len(owner))
        owner = owner[self.order]
        self.low, self.high = np.searchsorted(owner, ids, "left"), np.searchsorted(owner, ids, "right")

    def count(self, row: int) -> int:
        """Activities of an execution."""
        return int(self.high[row] - self.low[row])

    def timeline(self, row: int, program: str, role: str = "") -> Timeline:
        """The timeline of the execution in that row of the executions table."""
        rows = np.sort(self.order[self.low[row] : self.high[row]])
        part = self.joined.complete(self.joined.activities.take(pa.array(rows)))
        record = self.joined.executions.slice(row, 1).to_pylist()[0]
        origin = record["start_ns"]
        title = _title(record, part, program, role)
        return bars(part, origin, record["end_ns"] - origin, program, title, role, record["execution_id"])


def stretch(joined: Joined, most: int = MOST_IN_ONE) -> Timeline | None:
    """The activities of a capture without executions, or the first of them; None where there are none."""
    table = joined.activities
    if not len(table):
        return None
    part = joined.complete(table.slice(0, most))
    origin, end = part["start_ns"][0].as_py(), pc.max(part["end_ns"]).as_py()
    title = f"{len(part):,} GPU activities in {duration(end - origin)}, the GPU busy for {share(_busy(part) / max(end - origin, 1))} of it"
    notes = (f"The first {len(part):,} of {len(table):,} activities of the capture.",) if len(table) > len(part) else ()
    return bars(part, origin, end - origin, "", title, "", None, notes)


def _busy(table: pa.Table) -> int:
    """Length of the union of activities in order of start, of all devices together, ns."""
    start, end = ints(table, "start_ns"), ints(table, "end_ns")
    reached = np.maximum.accumulate(np.concatenate([start[:1], end[:-1]]))
    return int(np.maximum(end - np.maximum(start, reached), 0).sum())


def bars(
    table: pa.Table, origin: int, span: int, program: str, title: str, role: str, execution: int | None, notes: tuple[str, ...] = ()
) -> Timeline:
    """Activities as bars on rows, a row for each stream and each of what overlaps on one."""
    if len(table) > MOST_IN_ONE:
        length = ints(table, "end_ns") - ints(table, "start_ns")
        kept = np.sort(np.argsort(-length, kind="stable")[:MOST_IN_ONE])
        part = length[kept].sum() / max(length.sum(), 1)
        notes = (*notes, f"The {MOST_IN_ONE:,} longest of {len(table):,} activities are shown: {share(part)} of their time.")
        table = table.take(pa.array(kept))
    start = ints(table, "start_ns")
    end = np.maximum(ints(table, "end_ns"), start)
    row, names = _rows(table, start, end)
    if any(name.endswith(")") for name in names):
        notes = (*notes, "A stream's second row, (2), holds what ran beside its first.")
    kind, kinds = _kinds(table)
    return Timeline(title, role, execution, program, origin, span, names, row, start - origin, end - start, kind, kinds, notes)


def _rows(table: pa.Table, start: Ints, end: Ints) -> tuple[Ints, tuple[str, ...]]:
    device, stream = ints(table, "device_id"), ints(table, "stream_id")
    lane = lanes(start, end, np.unique(np.stack([device, stream]), axis=1, return_inverse=True)[1].reshape(-1))
    keys, row = np.unique(np.stack([device, stream, lane]), axis=1, return_inverse=True)
    several = len(np.unique(device)) > 1
    names = [(f"GPU {d} " if several else "") + f"stream {s}" + (f" ({n + 1})" if n else "") for d, s, n in keys.T.tolist()]
    return row.reshape(-1), tuple(names)


def _kinds(table: pa.Table) -> tuple[Ints, tuple[Kind, ...]]:
    """What each bar is, as the index of a kind; bars that say the same share one."""
    columns = {name: codes(table, name) for name in ("activity", "name", "hlo_instruction", "kernel_class", "class_detail", "copy_kind")}
    moved = np.where(ints(table, "bytes_accessed") >= 0, ints(table, "bytes_accessed"), ints(table, "bytes"))
    stacked = np.stack([*(code for code, _ in columns.values()), moved])
    keys, index = np.unique(stacked, axis=1, return_inverse=True)
    vocabularies = [words for _, words in columns.values()]
    kinds = []
    for *parts, count in keys.T.tolist():
        texts = [words[code] if code >= 0 else "" for code, words in zip(parts, vocabularies, strict=True)]
        kinds.append(_kind(tuple(texts), count if count != NONE else None))
    return index.reshape(-1), tuple(kinds)


def _kind(texts: tuple[str, ...], count: int | None) -> Kind:
    """The kind of an activity of that activity, name, instruction, class, detail and kind of copy, "" for none."""
    activity, name, instruction, kernel_class, detail, copy_kind = texts
    if activity == "kernel":
        short = kernel(name)
        return Kind(instruction or short, short, kernel_class or "kernel", detail, count)
    text = copy_kind or (name if activity != "graph" else "graph")
    if activity == "memset":
        return Kind("memset", "", "memset", "", count)
    return Kind(f"copy {text}" if activity == "memcpy" else text, "", "copy" if activity == "memcpy" else "graph", "", count)


def _title(record: dict[str, object], table: pa.Table, program: str, role: str) -> str:
    """What an execution did, and what took most of it."""
    which = f"Execution {record['execution_id']} of {program}" + (f" ({role})" if role else "")
    span = duration(record["end_ns"] - record["start_ns"])  # type: ignore[operator]
    kernels = record["kernel_count"] or 0
    if not kernels:
        moved = pc.sum(table["bytes"]).as_py()
        kind, kinds = codes(table, "activity")
        graphs = int((kind == kinds.index("graph")).sum()) if "graph" in kinds else 0
        text = f"{things(graphs, 'whole graph')} in {span}, no kernel recorded" if graphs else f"no kernel in {span}"
        return f"{which}: {text}" + (f", {size(moved)} copied" if moved else "")
    text = f"{which}: {things(float(str(kernels)), 'kernel')} in {span}"
    spent = _spent(table)
    if spent:
        name, part = max(spent.items(), key=lambda pair: pair[1])
        text += f", {share(part)} of their time {name}{_mostly(table) if name == 'other' else ''}"
    return text


def _mostly(table: pa.Table) -> str:
    """What most of the time of the class "other" is, which alone says nothing."""
    mine = table.filter(pc.fill_null(pc.equal(pc.cast(table["kernel_class"], pa.string()), "other"), False))
    code, names = codes(mine, "class_detail")
    length = (ints(mine, "end_ns") - ints(mine, "start_ns"))[code >= 0]
    total = np.bincount(code[code >= 0], weights=length, minlength=len(names))
    return f" (mostly {names[int(total.argmax())]})" if len(length) else ""


def _spent(table: pa.Table) -> dict[str, float]:
    """The share of the kernel time of each class; {} where no class is known."""
    code, names = codes(table, "kernel_class")
    kind, kinds = codes(table, "activity")
    mine = (kind == (kinds.index("kernel") if "kernel" in kinds else -2)) & (code >= 0)
    length = (ints(table, "end_ns") - ints(table, "start_ns"))[mine]
    total = np.bincount(code[mine], weights=length, minlength=len(names)) if len(length) else np.zeros(0)
    whole = (ints(table, "end_ns") - ints(table, "start_ns"))[kind == (kinds.index("kernel") if "kernel" in kinds else -2)].sum()
    return {name: float(t / whole) for name, t in zip(names, total, strict=False) if t > 0} if whole else {}
