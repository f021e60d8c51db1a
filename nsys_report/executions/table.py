"""Executions as a table: their times on the GPU and the host gap before each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hlo_mapping import JoinedExecution
from nsys_report.capture.model import Place
from nsys_report.columns import EXECUTION_TABLE
from nsys_report.intervals import grouped_union_length


@dataclass(frozen=True, slots=True)
class _Timeline:
    """The activities' columns that executions are measured with, in the table's order, which is time order."""

    start: np.ndarray
    end: np.ndarray
    device: np.ndarray
    process: np.ndarray
    is_kernel: np.ndarray
    is_graph: np.ndarray
    """Whole graph launches, recorded without their kernels."""


def executions_table(
    activities: pa.Table, execution: np.ndarray, found: tuple[JoinedExecution, ...], shared: Mapping[Place, Place] | None = None
) -> tuple[pa.Table, np.ndarray]:
    """EXECUTION_TABLE in order of start, and for each activity row the number of its execution in that order (-1 for none).

    `execution` holds each activity row's index into `found`; executions without any activity are left out. `shared` are the places on GPUs
    that several processes use (capture.model.shared_places): a gap on such a GPU ends with any process's work.
    """
    rows = np.flatnonzero(execution >= 0)
    if not len(rows):
        return EXECUTION_TABLE.empty_table(), execution
    group = execution[rows]
    if (group[1:] < group[:-1]).any():
        order = np.argsort(group, kind="stable")
        rows, group = rows[order], group[order]
    first = np.flatnonzero(np.diff(group, prepend=-1))
    index = group[first]
    timeline = _timeline(activities)
    measured = _measure(timeline, rows, first)
    order = np.lexsort((measured["end_ns"], measured["start_ns"]))
    number = np.full(len(found) + 1, -1)
    number[index[order]] = np.arange(len(order))
    columns: dict[str, object] = {name: values[order] for name, values in measured.items()}
    columns["execution_id"] = np.arange(len(order))
    columns["process_id"] = pa.array(measured["process_id"][order], mask=measured["process_id"][order] < 0)
    columns["device_id"] = pa.array(measured["device_id"][order], mask=measured["device_id"][order] < 0)
    columns["host_gap_ns"] = _host_gaps(timeline, rows[first][order], shared or {})
    # a graph recorded whole hides its kernels: how many it had, and how long they took, nobody knows
    hidden = measured["whole_graphs"][order] > 0
    for name in ("kernel_count", "kernel_time_ns"):
        columns[name] = pa.array(measured[name][order], mask=hidden)
    columns |= _identities([found[i] for i in index[order].tolist()])
    return pa.table([_column(columns[f.name], f.type) for f in EXECUTION_TABLE], schema=EXECUTION_TABLE), number[execution]


def _timeline(activities: pa.Table) -> _Timeline:
    kind = activities["activity"].combine_chunks()
    words = {word: n for n, word in enumerate(kind.dictionary.to_pylist())}
    codes = kind.indices.to_numpy()
    return _Timeline(
        activities["start_ns"].to_numpy(),
        activities["end_ns"].to_numpy(),
        activities["device_id"].fill_null(-1).to_numpy(),
        activities["process_id"].fill_null(-1).to_numpy(),
        codes == words.get("kernel", -1),
        codes == words.get("graph", -1),
    )


def _measure(timeline: _Timeline, rows: np.ndarray, first: np.ndarray) -> dict[str, np.ndarray]:
    """Place, span, kernels and busy time of each execution; `rows` are grouped by execution, `first` where each group begins."""
    start, end, is_kernel = timeline.start[rows], timeline.end[rows], timeline.is_kernel[rows]
    return {
        "device_id": timeline.device[rows[first]],
        "process_id": timeline.process[rows[first]],
        "start_ns": np.minimum.reduceat(start, first),
        "end_ns": np.maximum.reduceat(end, first),
        "kernel_count": np.add.reduceat(is_kernel.astype(np.int64), first),
        "whole_graphs": np.add.reduceat(timeline.is_graph[rows].astype(np.int64), first),
        "kernel_time_ns": np.add.reduceat(np.where(is_kernel, end - start, 0), first),
        "busy_time_ns": grouped_union_length(np.repeat(np.arange(len(first)), np.diff(first, append=len(start))), start, end, len(first)),
    }


def _identities(found: list[JoinedExecution]) -> dict[str, pa.Array]:
    """What the cut says of each execution; of executions alike, which are one value, it is asked once."""
    alike = {id(f): f for f in found}
    place = {key: n for n, key in enumerate(alike)}
    of_row = pa.array(np.fromiter((place[id(f)] for f in found), np.int64, len(found)))
    columns: dict[str, list[object]] = {
        "hlo_module": [f.module for f in alike.values()],
        "program_id": [None if f.number is None or _tied_number(f) else f.number for f in alike.values()],
        "cut_method": [f.method for f in alike.values()],
        "cut_confidence": [f.confidence for f in alike.values()],
        "is_complete": [f.is_complete for f in alike.values()],
        "launch_thread": [f.thread for f in alike.values()],
        "tied_modules": [", ".join(f"{name}#{n}" for name, n in f.tied) or None for f in alike.values()],
    }
    return {name: _column(values, EXECUTION_TABLE.field(name).type).take(of_row) for name, values in columns.items()}


def _column(values: object, kind: pa.DataType) -> pa.Array:
    """Values as a column of a type; words go by way of strings."""
    if isinstance(values, pa.Array):
        return values.cast(kind)
    return pa.array(values, pa.string() if pa.types.is_dictionary(kind) else kind).cast(kind)


def _tied_number(found: JoinedExecution) -> bool:
    """Whether several programs fit as well, so that its number is not known."""
    return found.method != "nvtx" and any(number != found.number for _, number in found.tied)


def _host_gaps(timeline: _Timeline, first: np.ndarray, shared: Mapping[Place, Place]) -> pa.Array:
    """From the latest end of any earlier activity on the device to each execution's start, at least 0; null where there is none.

    `first` is the row of each execution's first activity.
    """
    gaps = np.zeros(len(first), np.int64)
    known = np.zeros(len(first), bool)
    place = timeline.process * (1 << 16) + timeline.device
    for (process, device), (other, ordinal) in shared.items():
        place[place == process * (1 << 16) + device] = other * (1 << 16) + ordinal
    for where in np.unique(place[first]):
        mine = np.flatnonzero(place == where)
        wanted = np.flatnonzero(place[first] == where)
        latest = np.maximum.accumulate(timeline.end[mine])
        at = np.searchsorted(mine, first[wanted]) - 1
        known[wanted] = at >= 0
        gaps[wanted] = np.maximum(timeline.start[first[wanted]] - latest[np.maximum(at, 0)], 0)
    return pa.array(gaps, mask=~known)
