"""The iterations of a program's loop: how many, what each launches, how long it takes, and how much of that the device is idle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hlo_mapping import WORD, column
from nsys_report.analysis.arrays.schemas import MODULE_KEY
from nsys_report.analysis.arrays.tables import module_columns, table
from nsys_report.analysis.arrays.view import Ints, View, ints
from nsys_report.analysis.idle.causes import CAUSES, READBACK_BYTES
from nsys_report.analysis.idle.idle_times import IdleTime
from nsys_report.analysis.structure.periods import Period
from nsys_report.analysis.structure.sequences import Sequence, block_times, blocks

LOOPS = pa.schema(
    [
        *MODULE_KEY,
        column("iterations", pa.int64(), "iterations found in one execution"),
        column("kernels_per_iteration", pa.int64(), "kernels of an iteration"),
        column("launches_per_iteration", pa.float64(), "calls that launched them, a graph's as one; null where none were recorded"),
        column("readbacks_per_iteration", pa.float64(), "copies of a few bytes to the host in the loop, over its iterations"),
        column("kernels_before", pa.int64(), "kernels of an execution before the first iteration"),
        column("kernels_after", pa.int64(), "kernels after the last iteration"),
        column("iteration_time_min_ns", pa.float64(), "kernel time of the fastest iteration"),
        column("iteration_time_ns", pa.float64(), "kernel time of an iteration; median over iterations"),
        column("iteration_time_max_ns", pa.float64(), "kernel time of the slowest iteration"),
        column("period_ns", pa.float64(), "from an iteration's first start to the next one's; median over iterations of all executions"),
        column("idle_per_iteration_ns", pa.float64(), "of that, the time in which none of the iteration's work runs; median likewise"),
        column("loop_share", pa.float64(), "share of the execution's kernel time in iterations, 0 to 1"),
        column("executions", pa.int64(), "executions with this same sequence, which the times are medians over"),
    ]
)
"""A row per program most of whose kernels the iterations of a loop launch."""

LOOP_IDLE = pa.schema(
    [
        *MODULE_KEY,
        column("category", WORD, "category of the step budget that the cause counts to"),
        column("part", WORD, "the cause (nsys_report.analysis.idle.causes)"),
        column("idle_ns", pa.float64(), "idle time of that cause within the loop's iterations, in one execution; mean"),
    ]
)
"""A row per program of LOOPS and cause of idle time."""


def loop_row(view: View, module: int, sequence: Sequence, period: Period) -> pa.Table:
    """Schema LOOPS; no row for the passes of a single instruction."""
    if len(np.unique(view.instruction[blocks(sequence, period)[0]])) < 2:
        return LOOPS.empty_table()
    of_each = block_times(sequence, period).sum(axis=1)
    length, idle = _periods(view, sequence, period)
    row = {
        "iterations": [period.count],
        "kernels_per_iteration": [period.length],
        "launches_per_iteration": [_launches(view, sequence, period)],
        "readbacks_per_iteration": [_readbacks(view, sequence, period)],
        "kernels_before": [period.start],
        "kernels_after": [len(sequence.rows) - period.start - period.length * period.count],
        "iteration_time_min_ns": [float(of_each.min())],
        "iteration_time_ns": [float(np.median(of_each))],
        "iteration_time_max_ns": [float(of_each.max())],
        "period_ns": [length],
        "idle_per_iteration_ns": [idle],
        "loop_share": [float(of_each.sum() / sequence.times.sum()) if sequence.times.sum() else None],
        "executions": [sequence.executions],
    }
    return table(LOOPS, {**module_columns([view.modules[module]]), **row})


@dataclass(frozen=True, slots=True)
class LoopWindows:
    """When a program's iterations ran, from the first one's first start to the last one's end, in each execution alike."""

    module: int
    """Index in View.modules."""
    execution: Ints
    """Rows of View.executions."""
    start: Ints
    end: Ints


def loop_windows(view: View, module: int, sequence: Sequence, period: Period) -> LoopWindows:
    """When the iterations of a sequence ran."""
    last = period.start + period.length * period.count
    rows = sequence.alike[:, period.start : last]
    return LoopWindows(module, view.execution[rows[:, 0]], view.start[rows[:, 0]], view.end[rows].max(axis=1))


def loop_idle(view: View, idle: tuple[IdleTime, ...], looped: tuple[LoopWindows, ...]) -> pa.Table:
    """Schema LOOP_IDLE: why the device was idle within the iterations."""
    found = [LOOP_IDLE.empty_table()]
    for windows in looped:
        device = view.executions.device[windows.execution]
        total = np.zeros(len(CAUSES), np.int64)
        for one in idle:
            here = device == one.device
            total += one.within(windows.start[here], windows.end[here]).sum(axis=0)
        rows = [(cause.category, cause.key, time / len(device)) for cause, time in zip(CAUSES, total.tolist(), strict=True) if time]
        columns = dict(zip(("category", "part", "idle_ns"), map(list, zip(*rows, strict=True)), strict=False))
        found += [table(LOOP_IDLE, {**module_columns([view.modules[windows.module]] * len(rows)), **columns})] if rows else []
    return pa.concat_tables(found)


def _periods(view: View, sequence: Sequence, period: Period) -> tuple[float, float]:
    """The median time from one iteration's start to the next one's, and of that the time without its work, ns."""
    rows = sequence.alike[:, period.start : period.start + period.length * period.count]
    start, reach = view.start[rows], np.maximum.accumulate(view.end[rows], axis=1)
    pause = np.maximum(start[:, 1:] - reach[:, :-1], 0)
    # An iteration's pauses are those after its first start, up to and with the one before the next iteration's.
    inside = pause[:, : period.length * (period.count - 1)].reshape(len(rows), period.count - 1, period.length)
    return float(np.median(np.diff(start[:, :: period.length], axis=1))), float(np.median(inside.sum(axis=2)))


def _launches(view: View, sequence: Sequence, period: Period) -> float | None:
    """Launching calls of an iteration, counted where they began; those of one execution over its iterations."""
    begun, known = (values[blocks(sequence, period)] for values in ints(view.joined.activities, "launch_start_ns"))
    return len(np.unique(begun[known])) / period.count if known.any() else None


def _readbacks(view: View, sequence: Sequence, period: Period) -> float:
    """Small copies to the host within the iterations, of all executions alike, over their iterations."""
    small = view.column("copy_kind").isin(frozenset({"DtoH"})) & (view.cost("bytes")[0] <= READBACK_BYTES) & (view.execution >= 0)
    rows = np.flatnonzero(small)
    looped = loop_windows(view, 0, sequence, period)
    low, high = np.zeros(len(view.executions), np.int64), np.full(len(view.executions), -1, np.int64)
    low[looped.execution], high[looped.execution] = looped.start, looped.end
    mine = (view.start[rows] >= low[view.execution[rows]]) & (view.start[rows] <= high[view.execution[rows]])
    return float(mine.sum() / (sequence.executions * period.count))
