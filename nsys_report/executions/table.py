"""Executions as a table: their times on the GPU and the host gap before each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hlo_mapping.matching.join import FoundExecution
from nsys_report.columns import EXECUTION_TABLE


def executions_table(activities: pa.Table, execution: np.ndarray, found: tuple[FoundExecution, ...]) -> tuple[pa.Table, np.ndarray]:
    """EXECUTION_TABLE in order of start, and for each activity row the number of its execution in that order (-1 for none).

    `execution` holds each activity row's index into `found`; executions without any activity are left out.
    """
    start = activities["start_ns"].to_numpy()
    end = activities["end_ns"].to_numpy()
    device = activities["device_id"].to_numpy()
    process = activities["process_id"].fill_null(-1).to_numpy()
    rows = np.flatnonzero(execution >= 0)
    rows = rows[np.argsort(execution[rows], kind="stable")]
    index, first = np.unique(execution[rows], return_index=True)
    if not len(rows):
        return pa.table({f.name: pa.array([], f.type) for f in EXECUTION_TABLE}, EXECUTION_TABLE), execution
    begin = np.minimum.reduceat(start[rows], first)
    finish = np.maximum.reduceat(end[rows], first)
    order = np.lexsort((finish, begin))
    number = np.full(len(found) + 1, -1)
    number[index[order]] = np.arange(len(order))
    is_kernel = _is_kernel(activities)[rows]
    kernel_time = np.add.reduceat(np.where(is_kernel, end[rows] - start[rows], 0), first)
    of = [found[i] for i in index[order].tolist()]
    columns = {
        "execution_id": np.arange(len(order)),
        "device_id": device[rows[first]][order],
        "process_id": pa.array(process[rows[first]][order], mask=process[rows[first]][order] < 0),
        "hlo_module": [f.module for f in of],
        "program_id": [None if f.number is None or _tied_number(f) else f.number for f in of],
        "start_ns": begin[order],
        "end_ns": finish[order],
        "kernel_count": np.add.reduceat(is_kernel.astype(np.int64), first)[order],
        "kernel_time_ns": kernel_time[order],
        "busy_time_ns": _busy(start[rows], end[rows], first)[order],
        "host_gap_ns": _host_gaps(start, end, device, process, begin[order], device[rows[first]][order], process[rows[first]][order], rows[first][order]),
        "cut_method": [f.method for f in of],
        "cut_confidence": [f.confidence for f in of],
        "is_complete": [f.is_complete for f in of],
        "launch_thread": [f.thread for f in of],
        "tied_modules": [", ".join(f"{name}#{n}" for name, n in f.tied) or None for f in of],
    }
    arrays = [
        (columns[f.name].cast(f.type) if isinstance(columns[f.name], pa.Array) else pa.array(columns[f.name], f.type if not pa.types.is_dictionary(f.type) else pa.string()).cast(f.type))
        for f in EXECUTION_TABLE
    ]
    return pa.table(arrays, schema=EXECUTION_TABLE), number[execution]


def _tied_number(found: FoundExecution) -> bool:
    """Whether several programs fit as well, so that its number is not known."""
    return found.method != "nvtx" and any(number != found.number for _, number in found.tied)


def _is_kernel(activities: pa.Table) -> np.ndarray:
    column = activities["activity"].combine_chunks()
    words = column.dictionary.to_pylist()
    return np.isin(column.indices.to_numpy(), [n for n, w in enumerate(words) if w == "kernel"])


def _busy(start: np.ndarray, end: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Length of the union of each group's intervals; rows are grouped, and within a group in order of start."""
    group = np.zeros(len(start), np.int64)
    group[first[1:]] = 1
    group = np.cumsum(group)
    # shift each group past all before it, so that one running maximum serves them all
    width = int(end.max() - start.min()) + 1
    shifted_start, shifted_end = start - start.min() + group * width, end - start.min() + group * width
    covered = np.maximum.accumulate(shifted_end)
    before = np.concatenate([[0], covered[:-1]])
    before[first] = shifted_start[first]
    return np.add.reduceat(np.maximum(shifted_end - np.maximum(shifted_start, before), 0), first)


def _host_gaps(
    start: np.ndarray, end: np.ndarray, device: np.ndarray, process: np.ndarray, begin: np.ndarray, of_device: np.ndarray, of_process: np.ndarray, row: np.ndarray
) -> pa.Array:
    """From the latest end of any earlier activity on the device to each execution's start, at least 0; null where there is none."""
    gaps = np.zeros(len(begin), np.int64)
    known = np.zeros(len(begin), bool)
    for key in {(d, p) for d, p in zip(of_device.tolist(), of_process.tolist(), strict=True)}:
        mine = np.flatnonzero((device == key[0]) & (process == key[1]))
        wanted = np.flatnonzero((of_device == key[0]) & (of_process == key[1]))
        latest = np.maximum.accumulate(end[mine])
        at = np.searchsorted(mine, row[wanted]) - 1
        known[wanted] = at >= 0
        gaps[wanted] = np.maximum(begin[wanted] - latest[np.maximum(at, 0)], 0)
    return pa.array(gaps, mask=~known)
