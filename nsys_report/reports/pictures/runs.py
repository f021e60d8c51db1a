"""Executions over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from nsys_report.reports.arrays import ints, plain_words
from nsys_report.reports.pictures.model import Ints, Runs
from nsys_report.units import count, duration, things

if TYPE_CHECKING:
    from nsys_report.joined import Joined
    from nsys_report.reports.present import Record

Titles = Mapping[tuple[str | None, int | None], str]
"""Name of each program by module name and number."""

MOST_MARKS = 2_000
"""Marks in the picture; consecutive executions of a lane share one where there are more."""


def runs_picture(joined: Joined, titles: Titles, first: Record | None, step: Record | None, most: int = MOST_MARKS) -> Runs | None:
    """The executions of a capture, a lane for each program and device; None without any.

    `titles` names the programs; the title is about the program of `first`, a row of the table of modules, and `step`, its
    row of the table of steps.
    """
    table = joined.executions
    if not len(table):
        return None
    start, end = ints(table, "start_ns"), ints(table, "end_ns")
    lane, lanes = _lanes(table, titles)
    group = _groups(lane, len(lanes), most)
    marks = np.unique(group, return_index=True)[1]
    order = np.lexsort((start, group))
    edges = np.searchsorted(group[order], np.arange(group.max() + 2))
    origin = int(start.min())
    shares = np.diff(edges)
    runs = Runs(
        _title(titles, first, step),
        lanes,
        lane[marks],
        np.minimum.reduceat(start[order], edges[:-1]) - origin,
        np.maximum.reduceat(end[order], edges[:-1]) - origin,
        _medians(ints(table, "kernel_time_ns"), group),
        _medians(ints(table, "host_gap_ns"), group),
        np.maximum.reduceat((end - start)[order], edges[:-1]),
        ints(table, "execution_id")[marks],
        shares,
        np.asarray(table["is_complete"].fill_null(True).to_numpy(), np.bool_)[marks],
        origin,
        _notes(shares),
    )
    return _by_start(runs)


def _by_start(runs: Runs) -> Runs:
    order = np.argsort(runs.start_ns, kind="stable")
    names = ("lane", "start_ns", "end_ns", "kernel_time_ns", "gap_ns", "slowest_ns", "execution_id", "count", "is_complete")
    return replace(runs, **{name: getattr(runs, name)[order] for name in names})


def _lanes(table: pa.Table, titles: Titles) -> tuple[Ints, tuple[str, ...]]:
    """The lane of each execution: its program, with the device where there are several; most time first."""
    names, numbers = plain_words(table, "hlo_module"), table["program_id"].to_pylist()
    devices = ints(table, "device_id")
    several = len(np.unique(devices)) > 1
    keys = list(zip(names, numbers, devices.tolist(), strict=True))
    seen: dict[tuple[str | None, int | None, int], int] = {}
    lane = np.array([seen.setdefault(key, len(seen)) for key in keys], np.int64)
    labels = [titles.get((n, p), n or "unknown program") + (f", GPU {d}" if several else "") for n, p, d in seen]
    time = np.maximum(ints(table, "kernel_time_ns"), 0)
    time = time if time.any() else np.maximum(ints(table, "busy_time_ns"), 0)
    time = np.bincount(lane, weights=time, minlength=len(seen))
    place = np.empty(len(seen), np.int64)
    place[np.lexsort((np.arange(len(seen)), -time))] = np.arange(len(seen))
    ordered = sorted(range(len(seen)), key=lambda i: place[i])
    return place[lane], tuple(labels[i] for i in ordered)


def _groups(lane: Ints, lanes: int, most: int) -> Ints:
    """The mark of each execution: one each where there is room, else consecutive ones of a lane together."""
    together = max(1, -(-len(lane) // max(most - lanes, 1)))
    number = np.empty(len(lane), np.int64)
    for code in range(lanes):
        mine = np.flatnonzero(lane == code)
        number[mine] = np.arange(len(mine)) // together
    return np.unique(lane * (len(lane) + 1) + number, return_inverse=True)[1].reshape(-1)


def _medians(values: Ints, group: Ints) -> np.ndarray:
    """The median of each group's values that are there, -1 where none is."""
    out = np.full(group.max() + 1, -1.0)
    known = values >= 0
    order = np.lexsort((values[known], group[known]))
    codes, at, size = np.unique(group[known][order], return_index=True, return_counts=True)
    sorted_ = values[known][order]
    out[codes] = (sorted_[at + (size - 1) // 2] + sorted_[at + size // 2]) / 2
    return out


def _title(titles: Titles, record: Record | None, step: Record | None) -> str:
    """How often a program ran, its typical step, and how much of that is kernels and idle time."""
    if record is None:
        return "Executions over time"
    name = titles.get((record["hlo_module"], record["program_id"]), record["hlo_module"] or "unknown program")
    text = f"{count(record['executions'])} executions of {name}" if record["executions"] != 1 else f"One execution of {name}"
    if step is not None and not step["is_alone"]:
        text += f": {duration(step['typical_ns'])} a step"
    if step is not None and step["typical_kernel_time_ns"]:
        text += f", {duration(step['typical_kernel_time_ns'])} of kernels" + (" in it" if not step["is_alone"] else " each")
    elif record["busy_time_ns"]:
        text += f", {duration(record['busy_time_ns'])} of GPU work each, no kernel recorded"
    return text if step is None or step["is_alone"] else f"{text}, the GPU idle for {duration(step['idle_ns'])}"


def _notes(shares: Ints) -> tuple[str, ...]:
    most = int(shares.max())
    if most == 1:
        return ()
    said = f"A mark stands for up to {things(most, 'consecutive execution')} of a program, and shows their medians; triangles: the slowest."
    return (said,)
