"""How busy each device was and what bandwidth its kernels implied, over the capture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nsys_report.capture.gpu_metrics import read_gpu_metrics
from nsys_report.intervals import before, union
from nsys_report.reports.arrays import codes, ints
from nsys_report.reports.timeline.device import group_name

if TYPE_CHECKING:
    from nsys_report.session import Session

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST_BINS = 4_000
"""Values of a counter: more than a screen has columns."""
LEAST_BIN_NS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """A figure over time: `values[i]` holds from `times[i]` (ns) to the next."""

    group: str
    name: str
    unit: str
    times: Ints
    values: Floats


def counters(session: Session, before_group: str = "") -> tuple[Counter, ...]:
    """Of each device its load, percent, and the bandwidth that the bytes of its kernels imply, GB/s, in bins of equal length."""
    view = session.results.view
    table = view.joined.complete()
    known = ints(table, "bytes_accessed")
    made = []
    for device in range(len(view.devices)):
        at = np.flatnonzero(view.device == device)
        if not len(at):
            continue
        start, end = view.start[at], np.maximum(view.end[at], view.start[at])
        edges = _edges(int(start.min()), int(end.max()))
        width = np.diff(edges)
        group = before_group + group_name(view, device)
        busy = np.diff(before(union(start, end), edges)) / width
        moved = np.diff(moved_before(start, end, np.where(view.work[at], np.maximum(known[at], 0), 0), edges)) / width
        made += [Counter(group, "busy", "%", edges[:-1], 100 * busy), Counter(group, "implied bandwidth", "GB/s", edges[:-1], moved)]
    return tuple(made)


SAMPLED = {
    "dram_read": "DRAM read, of its peak",
    "dram_write": "DRAM written, of its peak",
    "sms_active": "multiprocessors active",
    "tensor_active": "tensor cores active",
}
"""What hardware counted, where the capture has samples of it (nsys_report.capture.gpu_metrics)."""


def sampled(session: Session, before_group: str = "") -> tuple[Counter, ...]:
    """What the hardware's own counters say of each GPU, percent; empty for a capture without samples, or one that is no longer there."""
    capture = session.joined.capture
    if not any(rows for name, rows in capture.tables.items() if name.startswith("GPU_METRICS")) or not capture.path.exists():
        return ()
    table = read_gpu_metrics(capture.path)
    gpu, time, percent = (ints(table, name) for name in ("gpu_id", "timestamp_ns", "percent"))
    kind, kinds = codes(table, "metric")
    made = []
    for number in np.unique(gpu).tolist():
        for code, name in enumerate(kinds):
            at = np.flatnonzero((gpu == number) & (kind == code) & (time >= 0))
            if len(at):
                group = f"{before_group}GPU {number} of the machine: hardware counters"
                made.append(Counter(group, SAMPLED.get(name, name), "%", time[at], percent[at].astype(np.float64)))
    return tuple(made)


def _edges(low: int, high: int) -> Ints:
    bins = int(np.clip((high - low) // LEAST_BIN_NS, 1, MOST_BINS))
    return np.unique(np.linspace(low, max(high, low + bins), bins + 1).astype(np.int64))


def moved_before(start: Ints, end: Ints, moved: Ints, times: Ints) -> Floats:
    """How much had been moved before each time, where each range moves its amount evenly from its start to its end."""
    length = np.maximum(end - start, 1)
    rate = moved / length
    at = np.concatenate([start, start + length])
    order = np.argsort(at, kind="stable")
    at, change = at[order], np.concatenate([rate, -rate])[order]
    slope = np.cumsum(change)
    total = np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(at))])
    last = np.searchsorted(at, times, side="right") - 1
    inside = np.maximum(last, 0)
    return np.where(last >= 0, total[inside] + slope[inside] * (times - at[inside]), 0.0)
