"""Where a program's kernel time goes by class and detail, with bytes, floors and bandwidths against the ceilings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nsys_report.analysis.arrays.quantiles import Floats
from nsys_report.analysis.arrays.schemas import CLASSES, DETAILS
from nsys_report.analysis.arrays.tables import Column, divide, module_columns, table, word_column
from nsys_report.analysis.arrays.view import Flags, Ints, View
from nsys_report.analysis.roofline.ceilings import Ceilings
from nsys_report.analysis.roofline.costs import Alike, Costs
from nsys_report.analysis.times.modules import spread_columns


@dataclass(frozen=True, slots=True)
class ClassTimes:
    """The time of each execution's work by class and detail, ns; arrays of shape (executions, groups)."""

    group: Ints
    """The group of each kind of activity (Costs); -1 for kinds that are no work, or not in an execution."""
    names: Ints
    """The code of each group, as in Costs.group."""
    time: Ints
    bytes_known: Ints
    """That of the kernels whose bytes are known."""
    flops_known: Ints


def class_times(view: View, costs: Costs) -> ClassTimes:
    """One pass over the activities, for everything that is said of classes."""
    present = np.bincount(costs.kind[view.inside], minlength=len(costs)) > 0
    names = np.unique(costs.group[present])
    group = np.where(present, np.searchsorted(names, costs.group), -1)
    cells = group * 4 + costs.bytes_known * 2 + costs.flops_known
    used = np.unique(cells[present])
    cell, width, runs = np.searchsorted(used, cells), len(used), len(view.executions)
    key = view.execution[view.inside] * width + cell[costs.kind[view.inside]]
    time = np.bincount(key, weights=view.duration[view.inside], minlength=runs * width).reshape(runs, width).astype(np.int64)

    def of_groups(chosen: Flags) -> Ints:
        found = np.zeros((runs, len(names)), np.int64)
        for column in np.flatnonzero(chosen):
            found[:, used[column] // 4] += time[:, column]
        return found

    return ClassTimes(group, names, of_groups(used >= 0), of_groups(used & 2 > 0), of_groups(used & 1 > 0))


def classes_table(view: View, costs: Costs, same: Alike, times: ClassTimes, ceilings: Ceilings, typical: Flags) -> pa.Table:
    """Schema CLASSES: a row per program and class. `typical` are the executions of typical steps."""
    of_class = times.names // costs.detail_width
    seen, column = np.unique(of_class, return_inverse=True)
    figures = _figures(view, costs, same, times, ceilings, typical, column, len(seen))
    names = {"kernel_class": word_column(seen[figures.group] - 1, costs.classes.words)}
    return table(CLASSES, {**figures.columns, **names}).take(figures.order)


def details_table(view: View, costs: Costs, same: Alike, times: ClassTimes, ceilings: Ceilings, typical: Flags) -> pa.Table:
    """Schema DETAILS: a row per program, class and detail. `typical` are the executions of typical steps."""
    figures = _figures(view, costs, same, times, ceilings, typical, np.arange(len(times.names)), len(times.names))
    code = times.names[figures.group]
    names = {
        "kernel_class": word_column(code // costs.detail_width - 1, costs.classes.words),
        "class_detail": word_column(code % costs.detail_width - 1, costs.details.words),
    }
    return table(DETAILS, {**figures.columns, **names}).take(figures.order)


def bandwidth_columns(rate: NDArray[np.float64], ceilings: Ceilings) -> dict[str, Column]:
    """bytes_per_s against both ceilings; `above_measured` compares with the upper end of the measured range."""
    measured, nominal = ceilings.measured, ceilings.nominal
    return {
        "bytes_per_s": rate,
        "share_of_measured": divide(rate, measured.value if measured else None),
        "share_of_nominal": divide(rate, nominal.value if nominal else None),
        "above_measured": _above(rate, ceilings.fastest_bytes_per_s if measured else None),
    }


def _above(rate: NDArray[np.float64], limit: float | None) -> pa.Array:
    if limit is None:
        return pa.nulls(len(rate), pa.bool_())
    return pa.array(np.nan_to_num(rate) > limit, mask=np.isnan(rate))


@dataclass(frozen=True, slots=True)
class _Figures:
    group: Ints
    columns: dict[str, Column]
    order: Ints
    """Programs in the order of their first execution, most time first within each."""


def _figures(
    view: View, costs: Costs, same: Alike, times: ClassTimes, ceilings: Ceilings, typical: Flags, column: Ints, groups: int
) -> _Figures:
    """The figures of every (module, group) that has kernels; `column` is the group that each of the times' groups is part of."""
    sums = _sums(view, costs, same, times, typical, column, groups)
    module, group = np.nonzero(sums["launches_total"])
    there = (module.astype(np.int64), group.astype(np.int64))
    columns: dict[str, Column] = _module_figures(sums, there, view)
    columns |= _against(columns, ceilings) | module_columns([view.modules[m] for m in there[0]])
    order = np.lexsort((-columns["time_mean_ns"], -columns["typical_ns"], there[0]))
    return _Figures(there[1], {k: v for k, v in columns.items() if k in DETAILS.names}, order)


def _sums(view: View, costs: Costs, same: Alike, times: ClassTimes, typical: Flags, column: Ints, groups: int) -> dict[str, Floats]:
    """Sums over each execution's kernels by group, then over executions: arrays of shape (modules, groups).

    For every measure its median over complete executions, its `_total`, and its mean over `typical` ones. Times, sums and counts stay
    exact in float64.
    """
    of_kind = np.append(column, 0)[times.group]  # kinds without a group are in no execution's work
    weights: dict[str, Ints | None] = {**costs.values, "floor_bytes": costs.floor, "launches": None}
    members = [np.flatnonzero((view.executions.module == m) & view.executions.complete) for m in range(len(view.modules))]
    usual = [mine[typical[mine]] for mine in members]
    out: dict[str, Floats] = {}
    for name, values in weights.items():
        of_pattern = same.sums(of_kind, groups, values)
        found = [_over_patterns(of_pattern, same.pattern[m]) for m in members]
        for label, rows in ((f"{name}_total", [total for total, _ in found]), (name, [median for _, median in found])):
            out[label] = np.stack(rows) if rows else np.empty((0, groups))
        out[f"{name}_typical"] = _means([of_pattern[same.pattern[m]] for m in usual], groups)
    for name, time in (("time", times.time), ("known_bytes_time", times.bytes_known), ("known_flops_time", times.flops_known)):
        per_run = _added(time, column, groups)
        out[f"{name}_total"] = np.stack([per_run[m].sum(axis=0) for m in members]) if members else np.empty((0, groups))
        out[f"{name}_typical"] = _means([per_run[m] for m in usual], groups)
        for label, q in (("", 0.5), ("_p10", 0.1), ("_p90", 0.9)) if name == "time" else (("", 0.5),):
            quantiles = [_quantile(per_run[m], q) for m in members]
            out[name + label] = np.stack(quantiles) if quantiles else np.empty((0, groups))
    return out


def _means(rows: list[Floats], groups: int) -> Floats:
    """The mean of each column over a program's executions, a row a program; 0 for a program without any."""
    return np.stack([r.mean(axis=0) if len(r) else np.zeros(groups) for r in rows]) if rows else np.empty((0, groups))


def _over_patterns(of_pattern: Floats, patterns: Ints) -> tuple[Floats, Floats]:
    """Total and median, over executions of these patterns, of what stands in a table by pattern; they mostly are of one."""
    count = np.bincount(patterns, minlength=len(of_pattern))
    there = of_pattern[count > 0]
    if len(there) and (there == there[0]).all():
        return there[0] * len(patterns), there[0]
    return np.asarray(count @ of_pattern, np.float64), _quantile(of_pattern[patterns], 0.5)


def _added(values: Ints, column: Ints, groups: int) -> Floats:
    """Columns added up by the group they are part of."""
    out = np.zeros((len(values), groups))
    for at, group in enumerate(column):
        out[:, group] += values[:, at]
    return out


def _quantile(rows: NDArray[Any], q: float) -> Floats:
    """A quantile of each column; costs are mostly the same in all executions, which need no sorting."""
    if len(rows) == 0:
        return np.zeros(rows.shape[1])
    low: Floats = rows.min(axis=0).astype(np.float64)
    varies = rows.max(axis=0) > low
    low[varies] = np.quantile(rows[:, varies], q, axis=0)
    return low


def _module_figures(sums: dict[str, Floats], there: tuple[Ints, Ints], view: View) -> dict[str, Column]:
    """The figures of the (module, group) pairs that have kernels."""
    one = {name: s[there] for name, s in sums.items()}
    runs = np.bincount(view.executions.module[view.executions.complete], minlength=len(view.modules))[there[0]]
    of_module = sums["time_total"].sum(axis=1)[there[0]]
    figures: dict[str, Column] = {
        **spread_columns("time_per_execution_ns", np.stack([one["time"], one["time_p10"], one["time_p90"]])),
        "typical_ns": one["time_typical"],
        "typical_share": divide(one["time_typical"], sums["time_typical"].sum(axis=1)[there[0]]),
        "time_mean_ns": divide(one["time_total"], runs),
        "time_share": divide(one["time_total"], of_module),
        "launches_per_execution": divide(one["launches_total"], runs),
        "unknown_bytes_time_share": divide(one["time_total"] - one["known_bytes_time_total"], one["time_total"]),
        **_typical_rates(one),
        "flops": np.where(one["known_flops_time_total"] == 0, np.nan, one["flops"]),
    }
    for name in ("bytes_accessed", "bytes_upper", "weight_bytes", "kv_read_bytes", "kv_write_bytes", "floor_bytes"):
        figures[name] = np.where(one["known_bytes_time_total"] == 0, np.nan, one[name])
    return figures


def _typical_rates(one: dict[str, Floats]) -> dict[str, Column]:
    """Bytes and flops a second of typical steps: of those who know them, over their time; of all executions for a class that is in none."""
    found: dict[str, Column] = {}
    for name, cost in (("bytes", "bytes_accessed"), ("flops", "flops")):
        time = f"known_{name}_time"
        usual = divide(one[f"{cost}_typical"] * 1e9, one[f"{time}_typical"])
        known = one[f"{time}_total"] > 0
        rate = np.where(one[f"{time}_typical"] > 0, usual, divide(one[f"{cost}_total"] * 1e9, one[f"{time}_total"]))
        found[f"{name}_rate"] = np.where(known, rate, np.nan)
    return found


def _against(columns: dict[str, Any], ceilings: Ceilings) -> dict[str, Column]:
    """Rates, floors and waste from the figures."""
    if not columns:
        return {}
    measured, nominal = ceilings.measured, ceilings.nominal
    floor = columns["floor_bytes"]
    return {
        "wasted_bytes": columns["bytes_accessed"] - floor,
        "floor_measured_ns": divide(floor * 1e9, measured.value if measured else None),
        "floor_nominal_ns": divide(floor * 1e9, nominal.value if nominal else None),
        **bandwidth_columns(columns["bytes_rate"], ceilings),
        "flops_per_s": columns["flops_rate"],
    }
