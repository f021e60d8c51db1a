"""Where a program's kernel time goes by class and detail, with bytes, floors and bandwidths against the ceilings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nsys_report.analysis.ceilings import Ceilings
from nsys_report.analysis.columns import CLASSES, DETAILS
from nsys_report.analysis.modules import spread_columns
from nsys_report.analysis.quantiles import Floats
from nsys_report.analysis.tables import Column, divide, module_columns, table, words
from nsys_report.analysis.view import COST_COLUMNS, Coded, Flags, Ints, View, ints

FLOOR_DETAILS = frozenset({"optimizer"})
"""Details of class other whose whole traffic is needed: an optimizer must read and write its state, and nothing can fuse it away."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Per activity: costs with 0 where unknown, and which are known."""

    values: dict[str, Ints]
    bytes_known: Flags
    flops_known: Flags
    floor: Ints
    """The fewest bytes: weights and KV cache, and all of FLOOR_DETAILS."""


def costs_of(view: View) -> Costs:
    """The cost columns of every activity."""
    found = {name: view.cost(name) for name in COST_COLUMNS}
    values = {name: v for name, (v, _) in found.items()}
    needed = view.column("class_detail").isin(FLOOR_DETAILS)
    values["bytes_upper"] = _upper(view, values["bytes_accessed"])
    floor = values["weight_bytes"] + values["kv_read_bytes"] + values["kv_write_bytes"]
    floor = np.where(needed, values["bytes_accessed"], floor)
    return Costs(values, found["bytes_accessed"][1], found["flops"][1], np.minimum(floor, values["bytes_accessed"]))


def _upper(view: View, lower: Ints) -> Ints:
    """The most bytes that each activity may move: its instruction's upper bound where that differs, on the kernel that bears the cost."""
    upper, known = ints(view.joined.facts, "bytes_upper")
    of_fact = np.append(np.where(known, upper, 0), 0)
    return np.where(lower > 0, np.maximum(of_fact[view.instruction], lower), lower)


def classes_table(view: View, costs: Costs, ceilings: Ceilings) -> pa.Table:
    """Schema CLASSES: a row per program and class."""
    kernel_class = view.column("kernel_class")
    figures = _figures(view, costs, ceilings, kernel_class.codes.astype(np.int64) + 1, len(kernel_class.words) + 1)
    names = {"kernel_class": words(figures.group - 1, kernel_class.words)}
    return table(CLASSES, {**figures.columns, **names}).take(figures.order)


def details_table(view: View, costs: Costs, ceilings: Ceilings) -> pa.Table:
    """Schema DETAILS: a row per program, class and detail."""
    kernel_class, detail = view.column("kernel_class"), view.column("class_detail")
    group, width = paired(kernel_class, detail)
    figures = _figures(view, costs, ceilings, group, (len(kernel_class.words) + 1) * width)
    names = {
        "kernel_class": words(figures.group // width - 1, kernel_class.words),
        "class_detail": words(figures.group % width - 1, detail.words),
    }
    return table(DETAILS, {**figures.columns, **names}).take(figures.order)


def paired(left: Coded, right: Coded) -> tuple[Ints, int]:
    """One code per row for two word columns, and the width to take it apart with (// and %, each then one above its code)."""
    width = len(right.words) + 1
    return (left.codes.astype(np.int64) + 1) * width + right.codes + 1, width


def bandwidth_columns(rate: NDArray[np.float64], ceilings: Ceilings) -> dict[str, Column]:
    """bytes_per_s against both ceilings; `above_measured` compares with the upper end of the measured range."""
    measured, nominal = ceilings.measured, ceilings.nominal
    return {
        "bytes_per_s": rate,
        "share_of_measured": divide(rate, measured.value if measured else None),
        "share_of_nominal": divide(rate, nominal.value if nominal else None),
        "above_measured": _above(rate, measured.high if measured else None),
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


def _figures(view: View, costs: Costs, ceilings: Ceilings, group: Ints, groups: int) -> _Figures:
    """The figures of every (module, group) that has kernels; `group` is 0 <= group < groups for every activity."""
    seen = np.flatnonzero(np.bincount(group[view.whole_work], minlength=groups))
    dense = np.full(groups, -1, np.int64)
    dense[seen] = np.arange(len(seen))
    sums = _sums(view, costs, dense[group], len(seen))
    module, column = np.nonzero(sums["launches_total"])
    there = (module.astype(np.int64), column.astype(np.int64))
    columns: dict[str, Column] = _module_figures(sums, there, view)
    columns |= _against(columns, ceilings) | module_columns([view.modules[m] for m in there[0]])
    order = np.lexsort((-columns["time_mean_ns"], there[0]))
    return _Figures(seen[there[1]], {k: v for k, v in columns.items() if not k.startswith("known_")}, order)


def _sums(view: View, costs: Costs, group: Ints, groups: int) -> dict[str, Floats]:
    """Sums over each execution's kernels by group, then over executions: arrays of shape (modules, groups).

    For every measure its median over complete executions, and its `_total`. Times, sums and counts stay exact in float64.
    One measure at a time: with 52,000 executions the matrices are what takes memory.
    """
    kernels, runs = view.whole_work, len(view.executions)
    key = (view.execution[kernels] * groups) + group[kernels]
    duration = view.duration[kernels]
    measures: dict[str, Ints | None] = {name: values[kernels] for name, values in costs.values.items()}
    measures |= {
        "floor_bytes": costs.floor[kernels],
        "time": duration,
        "launches": None,
        "known_bytes_time": np.where(costs.bytes_known[kernels], duration, 0),
        "known_flops_time": np.where(costs.flops_known[kernels], duration, 0),
    }
    out: dict[str, Floats] = {}
    members = [np.flatnonzero((view.executions.module == m) & view.executions.complete) for m in range(len(view.modules))]
    for name, values in measures.items():
        per_run = np.bincount(key, weights=values, minlength=runs * groups).reshape(runs, groups)
        out[f"{name}_total"] = np.stack([per_run[m].sum(axis=0) for m in members]) if members else np.empty((0, groups))
        for label, q in (("", 0.5), ("_p10", 0.1), ("_p90", 0.9)) if name == "time" else (("", 0.5),):
            found = [_quantile(per_run[m], q) for m in members]
            out[name + label] = np.stack(found) if found else np.empty((0, groups))
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
        "time_mean_ns": divide(one["time_total"], runs),
        "time_share": divide(one["time_total"], of_module),
        "launches_per_execution": divide(one["launches_total"], runs),
        "unknown_bytes_time_share": divide(one["time_total"] - one["known_bytes_time_total"], one["time_total"]),
        "known_bytes_time": one["known_bytes_time"],
        "known_flops_time": one["known_flops_time"],
        "flops": np.where(one["known_flops_time_total"] == 0, np.nan, one["flops"]),
    }
    for name in ("bytes_accessed", "bytes_upper", "weight_bytes", "kv_read_bytes", "kv_write_bytes", "floor_bytes"):
        figures[name] = np.where(one["known_bytes_time_total"] == 0, np.nan, one[name])
    return figures


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
        **bandwidth_columns(divide(columns["bytes_accessed"] * 1e9, columns["known_bytes_time"]), ceilings),
        "flops_per_s": divide(columns["flops"] * 1e9, columns["known_flops_time"]),
    }
