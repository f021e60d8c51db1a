"""A row per program and HLO instruction: its time per execution, its cost, and how it was matched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hlo_mapping.columns import COSTS, FACTS
from nsys_report.analysis.ceilings import Ceilings
from nsys_report.analysis.classes import Costs, bandwidth_columns
from nsys_report.analysis.columns import INSTRUCTIONS
from nsys_report.analysis.modules import spread_columns
from nsys_report.analysis.quantiles import grouped_quantiles
from nsys_report.analysis.tables import Column, divide, module_columns, table, words
from nsys_report.analysis.view import Flags, Ints, View, coded

_FROM_FACTS = [
    f.name for f in FACTS if f.name not in {"hlo_module", "program_id", "hlo_instruction", "bytes_upper", *(c.name for c in COSTS)}
]


@dataclass(frozen=True, slots=True)
class Groups:
    """Activities of complete executions by (module, instruction), -1 for kernels that were not joined."""

    rows: Ints
    """The activities, as indices."""
    group: Ints
    """The group of each of `rows`."""
    module: Ints
    """Per group."""
    instruction: Ints
    """Per group: row of the facts, -1 for none."""

    def __len__(self) -> int:
        return len(self.module)


def group_by_instruction(view: View) -> Groups:
    """The groups, in order of first appearance. Copies joined to no instruction are left to the copies table."""
    rows = np.flatnonzero(view.in_complete & (view.kernel | (view.instruction >= 0)))
    width = int(view.instruction.max(initial=-1)) + 2
    module = view.executions.module[view.execution[rows]] if len(rows) else np.empty(0, np.int64)
    seen = pa.array(module * width + view.instruction[rows] + 1).dictionary_encode()
    keys = np.asarray(seen.dictionary.to_numpy(zero_copy_only=False), np.int64)
    return Groups(rows, np.asarray(seen.indices.to_numpy(), np.int64), keys // width, keys % width - 1)


def instructions_table(view: View, costs: Costs, ceilings: Ceilings, stored: Sequence[str | None]) -> pa.Table:
    """Schema INSTRUCTIONS; figures over complete executions. `stored` is the type of each fact's weights (storage.weight_types)."""
    groups = group_by_instruction(view)
    if len(groups) == 0:
        return INSTRUCTIONS.empty_table()
    duration = view.duration[groups.rows]
    columns = _times(view, groups, duration)
    columns |= _costs(view, costs, groups, duration, np.asarray(columns["executions"]), ceilings)
    columns |= _names(view, groups, duration) | _facts(view, groups)
    columns["weight_type"] = [stored[i] if i >= 0 else None for i in groups.instruction]
    columns |= module_columns([view.modules[m] for m in groups.module])
    made = table(INSTRUCTIONS, columns)
    return made.take(np.lexsort((-np.asarray(columns["time_mean_ns"]), groups.module)))


def _times(view: View, groups: Groups, duration: Ints) -> dict[str, Column]:
    """Times per execution: the executions of each group are laid out one after another, those without the instruction left out."""
    runs, size = view.executions, len(groups)
    whole = np.bincount(runs.module[runs.complete], minlength=len(view.modules))[groups.module]
    rank = _rank_in_module(view)
    offset = np.cumsum(whole) - whole
    slot = offset[groups.group] + rank[view.execution[groups.rows]]
    count = np.bincount(slot, minlength=int(whole.sum()))
    time = np.bincount(slot, weights=duration, minlength=int(whole.sum())).astype(np.int64)
    filled = count > 0
    owner = np.repeat(np.arange(size), whole)[filled]
    ran = np.bincount(owner, minlength=size)
    total = np.bincount(groups.group, weights=duration, minlength=size)
    low, *middle, high = grouped_quantiles(owner, time[filled], size, (0.0, 0.5, 0.1, 0.9, 1.0))
    work_time = np.bincount(groups.group, weights=np.where(view.work[groups.rows], duration, 0), minlength=size)
    of_module = np.bincount(groups.module, weights=work_time, minlength=len(view.modules))[groups.module]
    return {
        "executions": ran,
        "launches_per_execution": np.bincount(groups.group, minlength=size) / ran,
        **spread_columns("time_per_execution_ns", np.stack(middle)),
        "time_min_ns": low,
        "time_max_ns": high,
        "time_mean_ns": total / whole,
        "time_share": np.where(work_time > 0, divide(work_time, of_module), np.nan),
    }


def _rank_in_module(view: View) -> Ints:
    """The number of each complete execution among the complete ones of its program."""
    runs = view.executions
    rank = np.zeros(len(runs), np.int64)
    for module in range(len(view.modules)):
        chosen = np.flatnonzero((runs.module == module) & runs.complete)
        rank[chosen] = np.arange(len(chosen))
    return rank


def _costs(view: View, costs: Costs, groups: Groups, duration: Ints, ran: Ints, ceilings: Ceilings) -> dict[str, Column]:
    rows, size = groups.rows, len(groups)

    def per_execution(values: Ints, known: Flags) -> NDArray[np.float64]:
        has = np.bincount(groups.group, weights=known[rows], minlength=size) > 0
        return np.where(has, np.bincount(groups.group, weights=values[rows], minlength=size) / ran, np.nan)

    columns: dict[str, Column] = {name: per_execution(costs.values[name], costs.bytes_known) for name in costs.values if name != "flops"}
    columns["flops"] = per_execution(costs.values["flops"], costs.flops_known)
    work = view.work[rows]
    known_time = np.bincount(groups.group, weights=np.where(costs.bytes_known[rows], duration, 0), minlength=size)
    # Of a median execution, not of all: a single slow one must not lower the bandwidth.
    middle = _median_time(view, groups, np.where(costs.bytes_known[rows], duration, 0))
    rate = np.where(known_time > 0, divide(np.asarray(columns["bytes_accessed"]) * 1e9, middle), np.nan)
    has_work = np.bincount(groups.group, weights=work, minlength=size) > 0
    columns |= bandwidth_columns(np.where(has_work, rate, np.nan), ceilings)
    columns["flops_per_s"] = divide(np.asarray(columns["flops"]) * 1e9, middle)
    return columns


def _median_time(view: View, groups: Groups, duration: Ints) -> NDArray[np.float64]:
    return np.asarray(_times(view, groups, duration)["time_per_execution_ns"], np.float64)


def _names(view: View, groups: Groups, duration: Ints) -> dict[str, Column]:
    name, activity, method = view.column("name"), view.activity, view.column("match_method")
    confidence = view.joined.activities["match_confidence"].to_numpy() if len(view.start) else np.empty(0)
    least = np.full(len(groups), np.inf)
    np.minimum.at(least, groups.group, np.nan_to_num(confidence[groups.rows].astype(np.float64), nan=np.inf))
    kernels, most = heaviest(groups.group, name.codes[groups.rows], duration, len(groups))
    return {
        "kernel_name": words(most, name.words),
        "kernels": kernels,
        "activity": words(heaviest(groups.group, activity.codes[groups.rows], duration, len(groups))[1], activity.words),
        "match_method": words(heaviest(groups.group, method.codes[groups.rows], duration, len(groups))[1], method.words),
        "match_confidence": np.where((groups.instruction >= 0) & np.isfinite(least), least, np.nan),
    }


def heaviest(group: Ints, codes: NDArray[Any], weights: Ints, groups: int) -> tuple[Ints, Ints]:
    """Per group: the number of distinct codes, and the code with most weight (-1 for a group without rows)."""
    width = int(codes.max(initial=-1)) + 2
    seen = pa.array(group * width + codes + 1).dictionary_encode()
    keys = np.asarray(seen.dictionary.to_numpy(zero_copy_only=False), np.int64)
    sums = np.bincount(np.asarray(seen.indices.to_numpy(), np.int64), weights=weights, minlength=len(keys))
    order = np.lexsort((keys, -sums))
    best = np.full(groups, -1, np.int64)
    best[(keys[order] // width)[::-1]] = (keys[order] % width - 1)[::-1]
    return np.bincount(keys // width, minlength=groups).astype(np.int64), best


def _facts(view: View, groups: Groups) -> dict[str, Column]:
    """What the facts say of each group's instruction; class and detail too."""
    facts = view.joined.facts
    at = pa.array(groups.instruction, pa.int64(), mask=groups.instruction < 0)
    columns: dict[str, Column] = {"instruction_id": at.cast(pa.int32()), "hlo_instruction": facts["hlo_instruction"].take(at)}
    for name in ("kernel_class", "class_detail", "opcode", "class_rule", "cost_source", "dot_type"):
        column = coded(facts, name)
        codes = np.where(groups.instruction >= 0, np.append(column.codes, -1)[groups.instruction], -1)
        columns[name] = words(codes, column.words)
    return columns | {name: facts[name].take(at) for name in _FROM_FACTS if name not in columns}
