"""A row per program and HLO instruction: its time per execution, its cost, and how it was matched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hlo_mapping import COSTS, FACTS
from nsys_report.analysis.arrays.groups import coded_floats, dense_tuples
from nsys_report.analysis.arrays.quantiles import grouped_quantiles
from nsys_report.analysis.arrays.schemas import INSTRUCTIONS
from nsys_report.analysis.arrays.tables import Column, divide, module_columns, table, word_column
from nsys_report.analysis.arrays.view import Codes, Flags, Ints, View, coded
from nsys_report.analysis.roofline.ceilings import Ceilings
from nsys_report.analysis.roofline.classes import bandwidth_columns
from nsys_report.analysis.roofline.costs import Costs
from nsys_report.analysis.times.modules import spread_columns

_ELSEWHERE = {"hlo_module", "program_id", "hlo_instruction", "bytes_upper", "floor_bytes", *(c.name for c in COSTS)}
_FROM_FACTS = [f.name for f in FACTS if f.name not in _ELSEWHERE]


@dataclass(frozen=True, slots=True)
class Groups:
    """Activities of complete executions by (module, instruction), -1 for kernels that were not joined."""

    rows: Ints
    """The activities, as indices."""
    group: Codes
    """The group of each of `rows`."""
    module: Ints
    """Per group."""
    instruction: Ints
    """Per group: row of the facts, -1 for none."""

    def __len__(self) -> int:
        return len(self.module)


def group_by_instruction(view: View) -> Groups:
    """The groups, by program, then instruction. Copies joined to no instruction are left to the copies table."""
    rows = np.flatnonzero(view.in_complete & (view.kernel | (view.instruction >= 0)))
    modules, width = max(len(view.modules), 1), len(view.joined.facts) + 1
    of_execution = np.append(view.executions.module, 0).astype(np.int32)
    parts = ((of_execution[view.execution[rows]], modules), (view.instruction[rows].astype(np.int32) + 1, width))
    group, (module, instruction) = dense_tuples(parts)
    return Groups(rows, group, module, instruction - 1)


def instructions_table(
    view: View, costs: Costs, groups: Groups, ceilings: Ceilings, stored: Sequence[str | None], typical: Flags
) -> pa.Table:
    """Schema INSTRUCTIONS; figures over complete executions. `stored` is the type of each fact's weights (storage.weight_types),
    `typical` are the executions of typical steps.
    """
    if len(groups) == 0:
        return INSTRUCTIONS.empty_table()
    duration = view.duration[groups.rows]
    slots, cells = _slots(view, groups), _cells(view, costs, groups, duration)
    columns = _times(groups, slots, cells, duration, costs)
    usual = _usual(view, costs, groups, cells, duration, typical)
    columns |= {"typical_ns": usual.mean, "typical_share": usual.share} | _costs(costs, cells, usual, columns, ceilings)
    columns |= _names(view, groups, cells) | _facts(view, groups)
    columns["weight_type"] = [stored[i] if i >= 0 else None for i in groups.instruction]
    columns |= module_columns([view.modules[m] for m in groups.module])
    made = table(INSTRUCTIONS, columns)
    return made.take(np.lexsort((-np.asarray(columns["time_mean_ns"]), -usual.mean, groups.module)))


@dataclass(frozen=True, slots=True)
class _Slots:
    """A slot for each group and complete execution of its program, group by group."""

    slot: Ints
    """Of each of Groups.rows."""
    whole: Ints
    """Per group: complete executions of its program."""
    owner: Ints
    """Per slot: its group."""
    filled: Flags
    """Per slot: whether the group has an activity there."""


def _slots(view: View, groups: Groups) -> _Slots:
    runs = view.executions
    whole = np.bincount(runs.module[runs.complete], minlength=len(view.modules))[groups.module]
    offset = np.cumsum(whole) - whole
    slot = offset[groups.group] + _rank_in_module(view)[view.execution[groups.rows]]
    filled = np.zeros(int(whole.sum()), np.bool_)
    filled[slot] = True
    return _Slots(slot, whole, np.repeat(np.arange(len(groups)), whole), filled)


@dataclass(frozen=True, slots=True)
class _Cells:
    """Activities of one group, kind (Costs), name, sort, method and confidence: how many, and their time."""

    group: Ints
    kind: Ints
    name: Ints
    activity: Ints
    method: Ints
    confidence: NDArray[np.float64]
    count: Ints
    time: Ints

    def sums(self, values: NDArray[Any], groups: int) -> NDArray[np.float64]:
        """Sums by group of a value of each cell."""
        return np.bincount(self.group, weights=values, minlength=groups).astype(np.float64, copy=False)


def _cells(view: View, costs: Costs, groups: Groups, duration: Ints) -> _Cells:
    """One pass over the activities for everything but the spread of times."""
    rows, name, method = groups.rows, view.column("name"), view.column("match_method")
    values, confidence = coded_floats(view.joined.activities["match_confidence"])
    told, of_told = dense_tuples(
        (
            (name.codes[rows] + 1, len(name.words) + 1),
            (view.activity.codes[rows] + 1, len(view.activity.words) + 1),
            (method.codes[rows] + 1, len(method.words) + 1),
            (confidence[rows] + 1, len(values) + 1),
        )
    )
    kind, of_kind = dense_tuples(((groups.group, len(groups)), (costs.kind[rows], len(costs))))
    cell, (kinds, tolds) = dense_tuples(((kind, len(of_kind[0])), (told, len(of_told[0]))))
    return _Cells(
        group=of_kind[0][kinds],
        kind=of_kind[1][kinds],
        name=of_told[0][tolds] - 1,
        activity=of_told[1][tolds] - 1,
        method=of_told[2][tolds] - 1,
        confidence=np.append(np.nan, values)[of_told[3][tolds]],
        count=np.bincount(cell, minlength=len(kinds)),
        time=np.bincount(cell, weights=duration, minlength=len(kinds)).astype(np.int64),
    )


def _times(groups: Groups, slots: _Slots, cells: _Cells, duration: Ints, costs: Costs) -> dict[str, Column]:
    """Times per execution, those without the instruction left out."""
    size = len(groups)
    time = np.bincount(slots.slot, weights=duration, minlength=len(slots.owner)).astype(np.int64)
    owner, time = (slots.owner, time) if slots.filled.all() else (slots.owner[slots.filled], time[slots.filled])
    ran = np.bincount(owner, minlength=size)
    low, *middle, high = grouped_quantiles(owner, time, size, (0.0, 0.5, 0.1, 0.9, 1.0))
    work_time = cells.sums(np.where(costs.is_work[cells.kind], cells.time, 0), size)
    of_module = np.bincount(groups.module, weights=work_time)[groups.module]
    return {
        "executions": ran,
        "launches_per_execution": cells.sums(cells.count, size) / ran,
        **spread_columns("time_per_execution_ns", np.stack(middle)),
        "time_min_ns": low,
        "time_max_ns": high,
        "time_mean_ns": cells.sums(cells.time, size) / slots.whole,
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


@dataclass(frozen=True, slots=True)
class _Usual:
    """Of each group: its time in a typical step, the share of its program's, and the time of an execution that bytes are of."""

    mean: NDArray[np.float64]
    share: NDArray[np.float64]
    known: dict[str, NDArray[np.float64]]
    """Time of a launch whose `bytes` or `flops` are known: in typical executions, in all where it is in none of them."""


def _usual(view: View, costs: Costs, groups: Groups, cells: _Cells, duration: Ints, typical: Flags) -> _Usual:
    size, module = len(groups), view.executions.module
    inside = typical[view.execution[groups.rows]]
    group, time, kind = groups.group[inside], duration[inside], costs.kind[groups.rows[inside]]

    def total(chosen: Flags) -> NDArray[np.float64]:
        return np.bincount(group, weights=np.where(chosen, time, 0), minlength=size).astype(np.float64)

    of_each = np.bincount(module[typical], minlength=len(view.modules))[groups.module]
    work, launched = total(costs.is_work[kind]), np.bincount(group, minlength=size)
    of_module = np.bincount(groups.module, weights=work)[groups.module]
    known = {}
    for name, flags in (("bytes", costs.bytes_known), ("flops", costs.flops_known)):
        every = cells.sums(np.where(flags[cells.kind], cells.time, 0), size) / cells.sums(cells.count, size)
        each = np.where(launched > 0, divide(total(flags[kind]), launched), every)
        known[name] = each
    mean = np.where(of_each > 0, divide(total(np.ones(len(time), np.bool_)), of_each), 0.0)
    return _Usual(mean, np.where(cells.sums(costs.is_work[cells.kind], size) > 0, divide(work, of_module), np.nan), known)


def _costs(costs: Costs, cells: _Cells, usual: _Usual, times: dict[str, Column], ceilings: Ceilings) -> dict[str, Column]:
    ran, launches = np.asarray(times["executions"]), np.asarray(times["launches_per_execution"], np.float64)
    size = len(ran)

    def per_execution(values: Ints, known: Flags) -> NDArray[np.float64]:
        has = cells.sums(known[cells.kind], size) > 0
        return np.where(has, cells.sums(values[cells.kind] * cells.count, size) / ran, np.nan)

    columns: dict[str, Column] = {name: per_execution(costs.values[name], costs.bytes_known) for name in costs.values if name != "flops"}
    columns["flops"] = per_execution(costs.values["flops"], costs.flops_known)
    known_time = cells.sums(np.where(costs.bytes_known[cells.kind], cells.time, 0), size)
    # Of typical steps, not of all: a single slow one must not lower the bandwidth.
    rate = np.where(known_time > 0, divide(np.asarray(columns["bytes_accessed"]) * 1e9, usual.known["bytes"] * launches), np.nan)
    has_work = cells.sums(costs.is_work[cells.kind], size) > 0
    columns |= bandwidth_columns(np.where(has_work, rate, np.nan), ceilings)
    columns["flops_per_s"] = divide(np.asarray(columns["flops"]) * 1e9, usual.known["flops"] * launches)
    return columns


def _names(view: View, groups: Groups, cells: _Cells) -> dict[str, Column]:
    name, size = view.column("name"), len(groups)
    least = np.full(size, np.inf)
    np.minimum.at(least, cells.group, np.nan_to_num(cells.confidence, nan=np.inf))
    kernels, most = heaviest(cells.group, cells.name, cells.time, size)
    method = view.column("match_method")
    return {
        "kernel_name": word_column(most, name.words),
        "kernels": kernels,
        "activity": word_column(heaviest(cells.group, cells.activity, cells.time, size)[1], view.activity.words),
        "match_method": word_column(heaviest(cells.group, cells.method, cells.time, size)[1], method.words),
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
        columns[name] = word_column(codes, column.words)
    return columns | {name: facts[name].take(at) for name in _FROM_FACTS if name not in columns}
