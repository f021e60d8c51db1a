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
from nsys_report.analysis.tables import Column, divide, module_columns, table, words
from nsys_report.analysis.view import COST_COLUMNS, Coded, Flags, Ints, View

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
    floor = values["weight_bytes"] + values["kv_read_bytes"] + values["kv_write_bytes"]
    floor = np.where(needed, values["bytes_accessed"], floor)
    return Costs(values, found["bytes_accessed"][1], found["flops"][1], np.minimum(floor, values["bytes_accessed"]))


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
    seen = np.unique(group[view.whole_kernel])
    dense = np.full(groups, -1, np.int64)
    dense[seen] = np.arange(len(seen))
    sums = _execution_sums(view, costs, dense[group], len(seen))
    rows: list[tuple[int, int]] = []
    parts: list[dict[str, NDArray[Any]]] = []
    for module in range(len(view.modules)):
        chosen = (view.executions.module == module) & view.executions.complete
        part, present = _module_figures({name: s[chosen] for name, s in sums.items()})
        rows += [(module, int(seen[g])) for g in present]
        parts.append(part)
    columns: dict[str, Column] = {name: np.concatenate([p[name] for p in parts]) for name in (parts[0] if parts else {})}
    columns |= _against(columns, ceilings) | module_columns([view.modules[m] for m, _ in rows])
    module, of_row = (np.array([row[i] for row in rows], np.int64) for i in range(2))
    order = np.lexsort((-columns["time_mean_ns"], module)) if rows else np.empty(0, np.int64)
    return _Figures(of_row, {k: v for k, v in columns.items() if not k.startswith("known_")}, order)


def _execution_sums(view: View, costs: Costs, group: Ints, groups: int) -> dict[str, Ints]:
    """Sums over each execution's kernels by group; arrays of shape (executions, groups)."""
    kernels, runs = view.whole_kernel, len(view.executions)
    key = (view.execution[kernels] * groups) + group[kernels]
    duration = view.duration[kernels]

    def by_group(values: Ints | None) -> Ints:
        found = np.bincount(key, weights=values, minlength=runs * groups)
        return found.astype(np.int64).reshape(runs, groups)

    sums = {name: by_group(values[kernels]) for name, values in costs.values.items()}
    return sums | {
        "time": by_group(duration),
        "launches": by_group(None),
        "floor_bytes": by_group(costs.floor[kernels]),
        "known_bytes_time": by_group(np.where(costs.bytes_known[kernels], duration, 0)),
        "known_flops_time": by_group(np.where(costs.flops_known[kernels], duration, 0)),
    }


def _module_figures(sums: dict[str, Ints]) -> tuple[dict[str, NDArray[Any]], Ints]:
    """One program's figures from its executions' sums, and the groups that it has."""
    present = np.flatnonzero(sums["launches"].any(axis=0)) if len(sums["launches"]) else np.empty(0, np.int64)
    one = {name: s[:, present] for name, s in sums.items()}
    if len(present) == 0:
        quantiles = np.empty((3, 0))
        middle = dict.fromkeys(one, np.empty(0))
    else:
        quantiles = np.quantile(one["time"], (0.5, 0.1, 0.9), axis=0)
        middle = {name: np.median(s, axis=0) for name, s in one.items()}
    total, unknown = one["time"].sum(axis=0), (one["time"] - one["known_bytes_time"]).sum(axis=0)
    no_bytes, no_flops = one["known_bytes_time"].sum(axis=0) == 0, one["known_flops_time"].sum(axis=0) == 0
    figures: dict[str, NDArray[Any]] = {
        **{k: np.asarray(v) for k, v in spread_columns("time_per_execution_ns", quantiles).items()},
        "time_mean_ns": divide(total, float(len(one["time"]))),
        "time_share": divide(total, float(total.sum())),
        "launches_per_execution": divide(one["launches"].sum(axis=0), float(len(one["time"]))),
        "unknown_bytes_time_share": divide(unknown, total),
        "known_bytes_time": middle["known_bytes_time"],
        "known_flops_time": middle["known_flops_time"],
        "flops": np.where(no_flops, np.nan, middle["flops"]),
    }
    for name in ("bytes_accessed", "weight_bytes", "kv_read_bytes", "kv_write_bytes", "floor_bytes"):
        figures[name] = np.where(no_bytes, np.nan, middle[name])
    return figures, present


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
