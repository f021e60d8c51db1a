"""What a typical step of each program runs, a row per instruction: its time, bytes, floor and roof, and its names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hlo_mapping import FACTS, WORD, column
from nsys_report.analysis.arrays.schemas import MODULE_KEY
from nsys_report.analysis.arrays.tables import Column, divide, module_columns, table, word_column
from nsys_report.analysis.arrays.view import Flags, Ints, View, coded, work_by_module
from nsys_report.analysis.roofline.ceilings import Ceilings
from nsys_report.analysis.roofline.compute import compute_time
from nsys_report.analysis.roofline.costs import Costs

NAMES = ("label", "pattern", "layer", "parameter", "scope", "source_file", "source_line", "opcode", "phase", "kernel_class", "class_detail")
"""What the facts say of each instruction's origin."""

WORK = pa.schema(
    [
        *MODULE_KEY,
        column("hlo_instruction", pa.string(), "the instruction; null sums up what was not joined"),
        column("instruction_id", pa.int32(), "row of the facts table; null where not joined"),
        column("kernel_name", WORD, "name of one of its kernels"),
        column("launches", pa.float64(), "kernels and own copies in a typical step"),
        column("time_ns", pa.float64(), "their time in a typical step: mean over the middle half of steps, as in the budget"),
        column("time_share", pa.float64(), "that as a share of the program's, 0 to 1"),
        column("bytes_accessed", pa.float64(), "bytes they must move at least; null where unknown"),
        column("floor_ns", pa.float64(), "the least time of what cannot be done without, as in the budget; null where unknown"),
        column("roof_ns", pa.float64(), "their least time: bytes or arithmetic at the ceiling; null where unknown"),
        column("known_ns", pa.float64(), "the time of those of them whose roof is known"),
        *(FACTS.field(name) for name in NAMES),
    ]
)
"""A row per program and instruction; the times of a program add up to its kernels and own copies in a typical step."""


def typical_work(view: View, costs: Costs, typical: Flags, ceilings: Ceilings, per_flop: NDArray[np.float64]) -> pa.Table:
    """Schema WORK, most time first within each program. `typical` says which executions begin typical steps (budget.table);
    `per_flop` is roofline.compute.nanoseconds_per_flop's answer."""
    made = [_of_module(view, costs, typical, ceilings, per_flop, module) for module in range(len(view.modules))]
    return pa.concat_tables([WORK.empty_table(), *made]).unify_dictionaries()


def _of_module(view: View, costs: Costs, typical: Flags, ceilings: Ceilings, per_flop: NDArray[np.float64], module: int) -> pa.Table:
    steps = int((typical & (view.executions.module == module)).sum())
    rows = work_by_module(view)[module]
    rows = rows[typical[view.execution[rows]]]
    if not len(rows):
        return WORK.empty_table()
    kinds, of_row = np.unique(costs.kind[rows], return_inverse=True)
    count = np.bincount(of_row, minlength=len(kinds)) / steps
    time = np.bincount(of_row, weights=view.duration[rows], minlength=len(kinds)) / steps
    instructions, group = np.unique(costs.instruction[kinds], return_inverse=True)

    def sums(values: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(group, weights=values, minlength=len(instructions)).astype(np.float64, copy=False)

    known = costs.bytes_known[kinds]
    moved = costs.values["bytes_accessed"][kinds] * count * known
    arithmetic = compute_time(costs.instruction[kinds], costs.values["flops"][kinds], per_flop) * count
    columns: dict[str, Column] = {
        **module_columns([view.modules[module]] * len(instructions)),
        "launches": sums(count),
        "time_ns": sums(time),
        "time_share": divide(sums(time), float(time.sum())),
        "bytes_accessed": np.where(sums(known) > 0, sums(moved), np.nan),
        "known_ns": np.zeros(len(instructions)),
        "kernel_name": _kernel_names(view, rows, group[of_row], len(instructions)),
        **_facts(view, instructions),
    }
    if ceilings.roof is not None:
        at_roof = 1e9 / ceilings.roof.value
        needed = costs.floor[kinds] * count * known
        has_known = sums(known) > 0
        columns["known_ns"] = sums(time * known)
        columns["roof_ns"] = np.where(has_known, np.maximum(sums(moved) * at_roof, sums(arithmetic * known)), np.nan)
        columns["floor_ns"] = np.where(has_known, sums(needed * at_roof + np.maximum(arithmetic * known - moved * at_roof, 0)), np.nan)
    return table(WORK, columns).take(np.argsort(-sums(time), kind="stable"))


def _kernel_names(view: View, rows: Ints, group: Ints, groups: int) -> pa.Array:
    name = view.column("name")
    first = np.zeros(groups, np.int64)
    first[group[::-1]] = rows[::-1]
    return word_column(name.codes[first], name.words)


def _facts(view: View, instructions: Ints) -> dict[str, Column]:
    facts = view.joined.facts
    at = pa.array(instructions, pa.int32(), mask=instructions < 0)
    found: dict[str, Column] = {"instruction_id": at, "hlo_instruction": facts["hlo_instruction"].take(at)}
    for name in NAMES:
        if pa.types.is_dictionary(FACTS.field(name).type):
            one = coded(facts, name)
            found[name] = word_column(np.where(instructions >= 0, np.append(one.codes, -1)[instructions], -1), one.words)
        else:
            found[name] = facts[name].take(at)
    return found
