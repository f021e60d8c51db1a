"""Kernels by name, and copies by kind: what can be said of any capture, with or without XLA."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nsys_report.analysis.arrays.groups import dense_tuples
from nsys_report.analysis.arrays.quantiles import grouped_quantiles
from nsys_report.analysis.arrays.schemas import COPIES, KERNELS
from nsys_report.analysis.arrays.tables import Column, divide, module_columns, table, word_column
from nsys_report.analysis.arrays.view import Codes, Flags, Ints, ModuleKey, View
from nsys_report.analysis.times.modules import spread_columns

OUTSIDE = ModuleKey(None, None)


def module_of(view: View, rows: Ints | slice) -> Codes:
    """The module index of each activity, len(view.modules) for those outside executions."""
    modules = np.append(view.executions.module, len(view.modules)).astype(np.int32)
    return modules[view.execution[rows]]


def kernels_table(view: View) -> pa.Table:
    """Schema KERNELS, over the whole capture."""
    rows, name = np.flatnonzero(view.kernel), view.column("name")
    if len(rows) == 0:
        return KERNELS.empty_table()
    parts = ((module_of(view, rows), len(view.modules) + 1), (name.codes[rows] + 1, len(name.words) + 1))
    group, (of_module, of_name) = dense_tuples(parts)
    duration, size = view.duration[rows], len(of_module)
    low, *middle, high = grouped_quantiles(group, duration, size, (0.0, 0.5, 0.1, 0.9, 1.0))
    total = np.bincount(group, weights=duration, minlength=size)
    instruction = view.instruction[rows]
    joined = instruction >= 0
    names = (*view.modules, OUTSIDE)
    made = table(
        KERNELS,
        {
            **module_columns([names[m] for m in of_module]),
            "name": word_column(of_name - 1, name.words),
            "launches": np.bincount(group, minlength=size),
            "instructions": _distinct(group[joined], instruction[joined], size),
            "total_time_ns": total,
            "time_share": divide(total, float(total.sum())),
            **spread_columns("duration_ns", np.stack(middle)),
            "duration_min_ns": low,
            "duration_max_ns": high,
            "unjoined_time_ns": np.bincount(group, weights=np.where(joined, 0, duration), minlength=size),
        },
    )
    return made.sort_by([("total_time_ns", "descending"), ("launches", "descending")])


def copies_table(view: View, typical: Flags) -> pa.Table:
    """Schema COPIES: copies and memsets of each program, and those outside executions. `typical` are the executions of typical steps."""
    rows = np.flatnonzero(view.activity.isin(frozenset({"memcpy", "memset"})))
    if len(rows) == 0:
        return COPIES.empty_table()
    kind, width = view.column("copy_kind"), len(view.column("copy_kind").words) + 1
    activity = view.activity.codes[rows].astype(np.int64)
    kinds = len(view.activity.words)
    module = module_of(view, rows)
    seen = pa.array((module * kinds + activity) * width + kind.codes[rows] + 1).dictionary_encode()
    keys, group = np.asarray(seen.dictionary.to_numpy(zero_copy_only=False), np.int64), np.asarray(seen.indices.to_numpy(), np.int64)
    names = (*view.modules, OUTSIDE)
    of_group = keys // (kinds * width)
    columns: dict[str, Column] = {
        **module_columns([names[m] for m in of_group]),
        "activity": word_column(keys // width % kinds, view.activity.words),
        "copy_kind": word_column(keys % width - 1, kind.words),
        **_copy_figures(view, rows, group, of_group, typical),
    }
    return table(COPIES, columns).sort_by([("total_time_ns", "descending")])


def _copy_figures(view: View, rows: Ints, group: Ints, of_group: Ints, typical: Flags) -> dict[str, Column]:
    size, duration, moved = len(of_group), view.duration[rows], view.cost("bytes")[0][rows]
    runs = view.executions
    whole = np.append(np.bincount(runs.module[runs.complete], minlength=len(view.modules)), 0)[of_group]
    inside = view.in_complete[rows]
    owner, key_time = _per_execution(group[inside], view.execution[rows][inside], duration[inside], len(runs))
    total, in_total = np.bincount(group, weights=duration, minlength=size), np.bincount(group[inside], minlength=size)
    usual = np.append(typical, False)[view.execution[rows]]
    usually = np.append(np.bincount(runs.module[typical], minlength=len(view.modules)), 0)[of_group]
    return {
        "typical_ns": divide(np.bincount(group[usual], weights=duration[usual], minlength=size), usually),
        "count_per_execution": divide(in_total, whole),
        "bytes_per_execution": divide(np.bincount(group[inside], weights=moved[inside], minlength=size), whole),
        **spread_columns("time_per_execution_ns", grouped_quantiles(owner, key_time, size, (0.5, 0.1, 0.9))),
        "bytes_per_s": divide(np.bincount(group, weights=moved, minlength=size) * 1e9, total),
        "total_count": np.bincount(group, minlength=size),
        "total_bytes": np.bincount(group, weights=moved, minlength=size),
        "total_time_ns": total,
    }


def _per_execution(group: Ints, execution: Ints, values: Ints, executions: int) -> tuple[Ints, Ints]:
    """Sums of values by (group, execution): the group of each sum, and the sums."""
    seen = pa.array(group * executions + execution).dictionary_encode()
    keys = np.asarray(seen.dictionary.to_numpy(zero_copy_only=False), np.int64)
    sums = np.bincount(np.asarray(seen.indices.to_numpy(), np.int64), weights=values, minlength=len(keys))
    return keys // max(executions, 1), sums.astype(np.int64)


def _distinct(group: Codes, values: Ints, groups: int) -> Ints:
    """How many distinct values each group has."""
    _, (of_group, _) = dense_tuples(((group, groups), (values, int(values.max(initial=0)) + 1)))
    return np.bincount(of_group, minlength=groups).astype(np.int64)
