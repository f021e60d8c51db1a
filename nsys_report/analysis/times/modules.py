"""A row per program: how often it ran, how long an execution takes, and how long the GPU waited before it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nsys_report.analysis.arrays.quantiles import Floats, grouped_quantiles
from nsys_report.analysis.arrays.schemas import MODULES
from nsys_report.analysis.arrays.tables import Column, divide, module_columns, table
from nsys_report.analysis.arrays.view import Flags, Ints, View, ints, once_per_view


def modules_table(view: View) -> pa.Table:
    """Schema MODULES; figures over complete executions, null for a program without one.

    Kernels and their time are null where a graph was recorded as a whole: what is inside is not on record.
    """
    runs, count = view.executions, len(view.modules)
    whole, seen = runs.complete, ~_with_whole_graphs(view)
    kernel_time = _column(view, "kernel_time_ns")[0]
    total = np.bincount(runs.module, weights=kernel_time, minlength=count).astype(np.float64)
    total[runs.module[~seen]] = np.nan
    all_kernels = int(view.duration[view.kernel].sum())
    kinds = [view.joined.kinds.get(key.program_id) if key.program_id is not None else None for key in view.modules]
    columns: dict[str, Column] = {
        **module_columns(view.modules),
        "program_kind": [kind.kind if kind else None for kind in kinds],
        "program_kind_confidence": [kind.confidence if kind else None for kind in kinds],
        "executions": np.bincount(runs.module, minlength=count),
        "complete_executions": np.bincount(runs.module[whole], minlength=count),
        "devices": _distinct_devices(view),
        "total_kernel_time_ns": total,
        "kernel_time_share": divide(total, float(all_kernels)),
    }
    true = np.ones(len(runs), np.bool_)
    for name, values, known in (
        ("kernels_per_execution", _column(view, "kernel_count")[0], seen),
        ("kernel_time_ns", kernel_time, seen),
        ("busy_time_ns", _column(view, "busy_time_ns")[0], true),
        ("span_ns", runs.end - runs.start, true),
        ("host_gap_ns", *_column(view, "host_gap_ns")),
        ("interval_ns", *intervals_to_next(view)),
    ):
        columns |= spread_columns(name, _quantiles(view, values, known & whole))
    busy = np.bincount(runs.module, weights=_column(view, "busy_time_ns")[0], minlength=count)
    return table(MODULES, columns).take(pa.array(np.lexsort((-np.bincount(runs.module, minlength=count), -busy))))


def _with_whole_graphs(view: View) -> Flags:
    """Which executions hold a graph launch that was recorded as a whole."""
    found = np.zeros(len(view.executions) + 1, np.bool_)
    found[view.execution[view.activity.isin(frozenset({"graph"}))]] = True
    return found[:-1]


@once_per_view
def intervals_to_next(view: View) -> tuple[Ints, Flags]:
    """From each execution's start to the next start of its program on its device, and which executions have a next one."""
    runs = view.executions
    interval, known = np.zeros(len(runs), np.int64), np.zeros(len(runs), np.bool_)
    order = np.lexsort((runs.start, runs.device, runs.module))
    here, following = order[:-1], order[1:]
    same = (runs.module[here] == runs.module[following]) & (runs.device[here] == runs.device[following])
    interval[here[same]] = runs.start[following[same]] - runs.start[here[same]]
    known[here[same]] = True
    return interval, known


def spread_columns(name: str, quantiles: Floats) -> dict[str, Column]:
    """The columns of columns.spread(name) from rows (median, p10, p90)."""
    stem, unit = (name.removesuffix("_ns"), "_ns") if name.endswith("_ns") else (name, "")
    return {name: quantiles[0], f"{stem}_p10{unit}": quantiles[1], f"{stem}_p90{unit}": quantiles[2]}


def _quantiles(view: View, values: Ints, chosen: Flags) -> Floats:
    return grouped_quantiles(view.executions.module[chosen], values[chosen], len(view.modules), (0.5, 0.1, 0.9))


def _column(view: View, name: str) -> tuple[Ints, Flags]:
    return ints(view.joined.executions, name)


def _distinct_devices(view: View) -> Ints:
    runs, width = view.executions, max(len(view.devices), 1)
    pairs = np.unique(runs.module * width + runs.device)
    return np.bincount(pairs // width, minlength=len(view.modules)).astype(np.int64)
