"""The host gap before each execution, split by cause; the parts of a gap add up to it to the nanosecond."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hlo_mapping import WORD, column
from nsys_report.analysis.arrays.quantiles import grouped_quantiles
from nsys_report.analysis.arrays.schemas import MODULE_KEY, spread
from nsys_report.analysis.arrays.tables import divide, module_columns, table
from nsys_report.analysis.arrays.view import Ints, View, ints
from nsys_report.analysis.idle.causes import CAUSES, CODES
from nsys_report.analysis.idle.idle_times import IdleTime
from nsys_report.analysis.times.modules import spread_columns

HOST_GAPS = pa.schema(
    [
        *MODULE_KEY,
        column("cause", WORD, "why the device was idle before the execution (nsys_report.analysis.idle.causes)"),
        column("category", WORD, "part of the step budget that the cause counts to"),
        column("about", pa.string(), "the cause in words"),
        column("executions", pa.int64(), "complete executions that have a gap"),
        column("executions_with_cause", pa.int64(), "those whose gap has this cause"),
        column("mean_ns", pa.float64(), "mean over the executions that have a gap; the causes' means add up to the mean gap"),
        *spread("time_ns", "time of this cause before an execution"),
        column("total_ns", pa.int64(), "sum over complete executions"),
        column("share", pa.float64(), "share of the program's host gaps, 0 to 1"),
    ]
)
"""A row per program and cause, most time first within the program; causes without time have no row."""

GAP_PARTS = pa.schema(
    [
        column("execution_id", pa.int64(), "the execution"),
        column("host_gap_ns", pa.int64(), "its host gap; null for the first on its device"),
        *(column(f"{cause.key}_ns", pa.int64(), cause.about) for cause in CAUSES),
    ]
)
"""A row per execution: its host gap and the parts of it, which add up to it."""


def gap_parts(view: View, idle: tuple[IdleTime, ...]) -> pa.Table:
    """Schema GAP_PARTS, in the order of the executions."""
    gap, known, parts = _parts(view, idle)
    columns = {f"{cause.key}_ns": pa.array(parts[:, code], mask=~known) for code, cause in enumerate(CAUSES)}
    return table(GAP_PARTS, {"execution_id": view.executions.id, "host_gap_ns": pa.array(gap, mask=~known), **columns})


def host_gaps(view: View, parts: pa.Table) -> pa.Table:
    """Schema HOST_GAPS, over complete executions, from the table of gap_parts."""
    gap, known = ints(parts, "host_gap_ns")
    chosen = np.flatnonzero(known & view.executions.complete)
    module = view.executions.module[chosen]
    count = np.bincount(module, minlength=len(view.modules))
    total_gap = np.bincount(module, weights=gap[chosen], minlength=len(view.modules))
    made = []
    for cause in CAUSES:
        values = ints(parts, f"{cause.key}_ns")[0][chosen]
        total = np.bincount(module, weights=values, minlength=len(view.modules))
        rows = np.flatnonzero(total > 0)
        figures = {
            **module_columns([view.modules[m] for m in rows]),
            "cause": [cause.key] * len(rows),
            "category": [cause.category] * len(rows),
            "about": [cause.about] * len(rows),
            "executions": count[rows],
            "executions_with_cause": np.bincount(module, weights=values > 0, minlength=len(view.modules))[rows],
            "mean_ns": divide(total[rows], count[rows]),
            **spread_columns("time_ns", grouped_quantiles(module, values, len(view.modules), (0.5, 0.1, 0.9))[:, rows]),
            "total_ns": total[rows],
            "share": divide(total[rows], total_gap[rows]),
        }
        made.append((rows, table(HOST_GAPS, figures)))
    rows = np.concatenate([r for r, _ in made])
    whole = pa.concat_tables([t for _, t in made])
    return whole.take(np.lexsort((-whole["total_ns"].to_numpy(), rows)))


def _parts(view: View, idle: tuple[IdleTime, ...]) -> tuple[Ints, np.ndarray, Ints]:
    """Gap, whether there is one, and its parts by cause; the gap is the window that ends at the execution's start."""
    runs = view.executions
    gap, known = ints(view.joined.executions, "host_gap_ns")
    parts = np.zeros((len(runs), len(CAUSES)), np.int64)
    for one in idle:
        mine = np.flatnonzero((runs.device == one.device) & known)
        parts[mine] = one.within(runs.start[mine] - gap[mine], runs.start[mine])
    # Nothing is left where gaps and activities come from the same rows; a gap given otherwise must still be accounted for.
    parts[:, CODES["unexplained"]] += np.where(known, gap - parts.sum(axis=1), 0)
    return gap, known, parts
