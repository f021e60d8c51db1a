"""How a program's executions differ: spread, slow ones and what in them was slow, drift with the execution's number, two levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hlo_mapping import WORD, column
from nsys_report.analysis.arrays.quantiles import Floats
from nsys_report.analysis.arrays.schemas import MODULE_KEY
from nsys_report.analysis.arrays.tables import Column, module_columns, table
from nsys_report.analysis.arrays.trends import Drift, TwoLevels, drift, two_levels
from nsys_report.analysis.arrays.view import Flags, Ints, View, executions_by_module, ints
from nsys_report.analysis.roofline.instructions import Groups
from nsys_report.analysis.times.modules import intervals_to_next

SLOW_DEVIATIONS = 4.0
"""An execution is slow when it lies so many scaled median absolute deviations above the median, and by SLOW_SHARE at least."""
SLOW_SHARE = 0.05
MAD_SCALE = 1.4826
"""What makes a median absolute deviation a standard deviation of a normal distribution."""
MOST_SLOW = 20
"""Slow executions listed per program and measure, the slowest first."""
MOST_EXCESSES = 5
"""Instructions named per slow execution."""

MEASURES = ("kernel_time_ns", "busy_time_ns", "span_ns", "host_gap_ns", "interval_ns")

REPEATS = pa.schema(
    [
        *MODULE_KEY,
        column("measure", WORD, "kernel_time_ns, busy_time_ns, span_ns, host_gap_ns or interval_ns, as in the table of modules"),
        column("executions", pa.int64(), "complete executions that have it"),
        column("min_ns", pa.int64(), "least"),
        column("p10_ns", pa.float64(), "10th percentile, linear between order statistics"),
        column("median_ns", pa.float64(), "median"),
        column("p90_ns", pa.float64(), "90th percentile"),
        column("max_ns", pa.int64(), "most"),
        column("mean_ns", pa.float64(), "mean"),
        column("mad_ns", pa.float64(), "median absolute deviation"),
        column("slow_executions", pa.int64(), "executions more than 4 scaled deviations, and 5 %, above the median"),
        column("slow_excess_ns", pa.int64(), "their time above the median, summed"),
        column("drift_ns_per_execution", pa.float64(), "Theil-Sen slope over the execution's number; null under 8 executions"),
        column("drift_low_ns", pa.float64(), "lower end of its 99 % interval"),
        column("drift_high_ns", pa.float64(), "upper end of its 99 % interval"),
        column("drifts", pa.bool_(), "the interval excludes 0, and the drift moves the median by 1 % over the capture"),
        column("is_bimodal", pa.bool_(), "two levels apart from each other; null under 12 executions"),
        column("lower_level_ns", pa.float64(), "mean of the lower level; null unless bimodal"),
        column("upper_level_ns", pa.float64(), "mean of the upper level"),
        column("upper_share", pa.float64(), "share of executions on the upper level"),
    ]
)
"""A row per program and measure."""

SLOW = pa.schema(
    [
        *MODULE_KEY,
        column("execution_id", pa.int64(), "the slow execution"),
        column("measure", WORD, "in what it was slow: kernel_time_ns, host_gap_ns or interval_ns"),
        column("time_ns", pa.int64(), "its time"),
        column("excess_ns", pa.float64(), "above the program's median"),
        column("hlo_instruction", pa.string(), "an instruction that took longer than its median (of kernel_time_ns); null for the rest"),
        column("instruction_excess_ns", pa.float64(), "above that instruction's median"),
    ]
)
"""Slow executions, with the instructions that took more than their median in them; several rows per execution."""


@dataclass(frozen=True, slots=True)
class Series:
    """One measure of one program's complete executions, in order of start."""

    rows: Ints
    """Rows of the executions table."""
    values: Ints


def repeats_table(view: View) -> pa.Table:
    """Schema REPEATS."""
    rows = [_row(view, module, name, s) for module in range(len(view.modules)) for name, s in _series(view, module)]
    columns: dict[str, Column] = {name: [r[name] for r in rows] for name in REPEATS.names if name not in ("hlo_module", "program_id")}
    return table(REPEATS, columns | module_columns([view.modules[r["module"]] for r in rows]))


def slow_table(view: View, groups: Groups) -> pa.Table:
    """Schema SLOW: at most MOST_SLOW executions per program and measure."""
    rows: list[dict[str, Any]] = []
    for module in range(len(view.modules)):
        for name, series in _series(view, module):
            if name in ("kernel_time_ns", "host_gap_ns", "interval_ns"):
                rows += _slow_rows(view, groups, module, name, series)
    keys = [view.modules[r["module"]] for r in rows]
    columns: dict[str, Column] = {name: [r.get(name) for r in rows] for name in SLOW.names if name not in ("hlo_module", "program_id")}
    return table(SLOW, columns | module_columns(keys))


def slow(values: Ints) -> Flags:
    """Which values lie far above the median: SLOW_DEVIATIONS scaled deviations and SLOW_SHARE of it."""
    median = np.median(values)
    spread = MAD_SCALE * np.median(np.abs(values - median))
    return np.asarray(values > max(median + SLOW_DEVIATIONS * spread, (1 + SLOW_SHARE) * median), np.bool_)


def _series(view: View, module: int) -> list[tuple[str, Series]]:
    """The measures that a program's complete executions have."""
    runs, table_ = view.executions, view.joined.executions
    mine = executions_by_module(view)[module]
    mine = mine[runs.complete[mine]]
    found = []
    for name in MEASURES:
        if name == "interval_ns":
            values, known = intervals_to_next(view)
        elif name == "span_ns":
            values, known = runs.end - runs.start, np.ones(len(runs), np.bool_)
        else:
            values, known = ints(table_, name)
        rows = mine[known[mine]]
        if len(rows) and (name != "kernel_time_ns" or values[rows].any()):  # of a program without kernels there is nothing to say
            found.append((name, Series(rows, values[rows])))
    return found


def _row(view: View, module: int, name: str, series: Series) -> dict[str, Any]:
    values = series.values
    low, p10, median, p90, high = np.quantile(values, (0.0, 0.1, 0.5, 0.9, 1.0))
    far = slow(values)
    return {
        "module": module,
        "measure": name,
        "executions": len(values),
        "min_ns": int(low),
        "p10_ns": float(p10),
        "median_ns": float(median),
        "p90_ns": float(p90),
        "max_ns": int(high),
        "mean_ns": float(values.mean()),
        "mad_ns": float(np.median(np.abs(values - median))),
        "slow_executions": int(far.sum()),
        "slow_excess_ns": int((values[far] - median).sum()),
        **_drift_columns(drift(_per_device_number(view, series.rows), values), float(median), len(values)),
        **_level_columns(two_levels(values), len(values)),
    }


def _drift_columns(found: Drift | None, median: float, count: int) -> dict[str, Any]:
    if found is None:
        return dict.fromkeys(("drift_ns_per_execution", "drift_low_ns", "drift_high_ns", "drifts"))
    matters = abs(found.slope) * count >= 0.01 * median
    return {
        "drift_ns_per_execution": found.slope,
        "drift_low_ns": found.low,
        "drift_high_ns": found.high,
        "drifts": (found.low > 0 or found.high < 0) and matters,
    }


def _level_columns(found: TwoLevels | None, count: int) -> dict[str, Any]:
    empty = dict.fromkeys(("lower_level_ns", "upper_level_ns", "upper_share"))
    if found is None:
        return {"is_bimodal": None if count < 12 else False, **empty}
    return {"is_bimodal": True, "lower_level_ns": found.lower, "upper_level_ns": found.upper, "upper_share": found.upper_share}


def _per_device_number(view: View, rows: Ints) -> Ints:
    """The number of each execution among those of its device."""
    number = np.zeros(len(rows), np.int64)
    for device in np.unique(view.executions.device[rows]):
        here = view.executions.device[rows] == device
        number[here] = np.arange(here.sum())
    return number


def _slow_rows(view: View, groups: Groups, module: int, name: str, series: Series) -> list[dict[str, Any]]:
    median = float(np.median(series.values))
    far = np.flatnonzero(slow(series.values))
    far = far[np.argsort(-series.values[far], kind="stable")][:MOST_SLOW]
    if len(far) == 0:
        return []
    excess = _excesses(view, groups, module, series.rows, far) if name == "kernel_time_ns" else [[] for _ in far]
    rows: list[dict[str, Any]] = []
    for i, named in zip(far, excess, strict=True):
        base = {
            "module": module,
            "execution_id": int(view.executions.id[series.rows[i]]),
            "measure": name,
            "time_ns": int(series.values[i]),
            "excess_ns": float(series.values[i] - median),
        }
        rows += [{**base, "hlo_instruction": what, "instruction_excess_ns": ns} for what, ns in named] or [base]
    return rows


def _excesses(view: View, groups: Groups, module: int, rows: Ints, far: Ints) -> list[list[tuple[str | None, float]]]:
    """For each slow execution the instructions furthest above their own median, with the excess in ns."""
    position = np.full(len(view.executions), -1, np.int64)
    position[rows] = np.arange(len(rows))
    chosen = (groups.module[groups.group] == module) & view.kernel[groups.rows]
    members, group = groups.rows[chosen], groups.group[chosen]
    names, dense = np.unique(group, return_inverse=True)
    key = dense * len(rows) + position[view.execution[members]]
    time = np.bincount(key, weights=view.duration[members], minlength=len(names) * len(rows)).reshape(len(names), len(rows))
    above: Floats = time[:, far] - np.median(time, axis=1, keepdims=True)
    labels = view.joined.facts["hlo_instruction"]
    out = []
    for column_ in above.T:
        top = [i for i in np.argsort(-column_, kind="stable")[:MOST_EXCESSES] if column_[i] > 0]
        facts = [int(groups.instruction[names[i]]) for i in top]
        out.append([(labels[f].as_py() if f >= 0 else None, float(column_[i])) for f, i in zip(facts, top, strict=True)])
    return out
