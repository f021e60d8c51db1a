"""How many tokens one execution of a program makes, from its lookups, its head and its loops.

A program makes tokens where it looks entries up in a table (the embedding), keeps a KV cache, and multiplies with a matrix that has as many
rows or columns as the table has entries (the head). Each row that the head is multiplied with makes one token, as often as it is launched:
in a loop's body once an iteration. Where a head runs in a loop, one outside of it belongs to the prompt, of whose rows the last alone is
sampled: as many tokens as the loop has rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlo_mapping import ELEMENT_BITS, Module, operand_leaves
from nsys_report.analysis.arrays.view import Floats, View, ints
from nsys_report.analysis.idle.causes import READBACK_BYTES
from nsys_report.analysis.roofline.costs import Alike, Costs
from nsys_report.analysis.roofline.storage import ALMOST_ALL, module_of

LOOKED_UP = 4
"""A matrix so many times larger than what an instruction moves in all is looked up in, not read."""


def tokens_per_execution(view: View, costs: Costs, same: Alike, stored: Sequence[str | None]) -> list[float | None]:
    """Tokens that an execution of each program makes; None for one that makes none, or of which nobody can say.

    A program that is told to be of another kind than decoding (hlo_mapping.program_kind) makes none, whatever it looks up and multiplies
    with. Nor does a prefill count: what it samples is the first token of a prompt, and as a rate that says nothing of its work.
    `stored` is the type of each fact's weights (storage.weight_types). Of a program whose module the dump lacks, the rows that its weights
    are multiplied with count, times the iterations of a loop whose condition is read back.
    """
    ratio, usable = _ratios(view, stored)
    launches = _launches(view)
    cached = _uses_cache(view, costs, same)
    modules = [module_of(view.joined, key.program_id) for key in view.modules]
    rows, loops = _rows(view, costs, ratio, usable), _iterations(view)
    found: list[float | None] = []
    for number, module in enumerate(modules):
        row = rows[number]
        kind = view.joined.kinds.get(view.modules[number].program_id or -1)
        if not cached[number] or (kind is not None and kind.kind != "decoding"):
            found.append(None)
        elif module is not None:
            found.append(_made(view, number, module, ratio, launches[number]))
        else:
            found.append(row * loops[number] if row is not None else None)
    return found


def _made(view: View, number: int, module: Module, ratio: Floats, launches: Floats) -> float | None:
    """The tokens of a program, by the heads that it launches: rows times launches."""
    facts, (programs, known) = view.joined.facts, ints(view.joined.facts, "program_id")
    mine = np.flatnonzero(known & (programs == view.modules[number].program_id))
    names = facts["hlo_instruction"].take(mine).to_pylist()
    weights = ints(facts, "weight_bytes")[0][mine]
    moved, counted = (values[mine] for values in ints(facts, "bytes_accessed"))
    entries = _entries(module, [(name, count) for name, count, fine in zip(names, moved.tolist(), counted, strict=True) if fine])
    heads = [
        (float(launches[fact]), float(ratio[fact]))
        for fact, name, weight in zip(mine.tolist(), names, weights.tolist(), strict=True)
        if ratio[fact] > 0 and launches[fact] > 0 and entries in _sizes_of_weights(module, name, weight)
    ]
    if not heads:
        return None
    looped = [rows for times, rows in heads if times > 1]
    return sum(times * max(round(rows if times > 1 or not looped else min(max(looped), rows)), 1) for times, rows in heads)


def _entries(module: Module, instructions: Sequence[tuple[str, int]]) -> int | None:
    """The entries of the largest table that an instruction (name, bytes that it moves) looks up in; None where there is no table.

    A table is a matrix of which an instruction moves less than a part.
    """
    tables = [
        leaf
        for name, moved in instructions
        for leaf in operand_leaves(module, name)
        if sum(d > 1 for d in leaf.dimensions) == 2 and leaf.byte_size > LOOKED_UP * max(moved, 1)
    ]
    largest = max(tables, key=lambda leaf: leaf.byte_size, default=None)
    return max(largest.dimensions) if largest is not None else None


def _sizes_of_weights(module: Module, name: str, weight_bytes: int) -> set[int]:
    """The sizes of the operand that holds an instruction's weights."""
    leaves = operand_leaves(module, name)
    return {d for leaf in leaves if leaf.byte_size >= ALMOST_ALL * weight_bytes for d in leaf.dimensions}


def _launches(view: View) -> list[Floats]:
    """For each program how often each fact's instruction is launched in a complete execution, on average."""
    activities = view.joined.activities
    bears = activities["bears_cost"].to_numpy() if "bears_cost" in activities.column_names else np.ones(len(activities), np.bool_)
    module = np.append(view.executions.module, -1)[view.execution]
    counted = view.in_complete & bears & (view.instruction >= 0)
    found = []
    for number in range(len(view.modules)):
        runs = max(int(((view.executions.module == number) & view.executions.complete).sum()), 1)
        mine = view.instruction[counted & (module == number)]
        found.append(np.bincount(mine, minlength=len(view.joined.facts)) / runs)
    return found


def _ratios(view: View, stored: Sequence[str | None]) -> tuple[Floats, np.ndarray]:
    """For each fact the rows that its weights meet, 0 where it has none: of R rows and E values a product takes 2RE flops."""
    facts = view.joined.facts
    flops, weight = ints(facts, "flops")[0], ints(facts, "weight_bytes")[0]
    size = np.array([ELEMENT_BITS.get(t or "", 0) / 8 for t in stored])
    usable = (flops > 0) & (weight > 0) & (size > 0)
    return np.where(usable, flops * size / np.where(usable, 2 * weight, 1), 0.0), usable


def _rows(view: View, costs: Costs, ratio: Floats, usable: np.ndarray) -> list[float | None]:
    """For each program the median of the rows of its products, by weight bytes."""
    facts = view.joined.facts
    weight = ints(facts, "weight_bytes")[0]
    ran = np.zeros(len(facts), np.bool_)
    of_kind = np.bincount(costs.kind[view.in_complete], minlength=len(costs)) > 0
    ran[costs.instruction[of_kind & (costs.instruction >= 0)]] = True
    number, known = ints(facts, "program_id")
    out: list[float | None] = []
    for key in view.modules:
        mine = np.flatnonzero(usable & ran & known & (number == (key.program_id if key.program_id is not None else -1)))
        out.append(max(round(_weighted_median(ratio[mine], weight[mine])), 1) if len(mine) else None)
    return out


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values)
    reach = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reach, reach[-1] / 2)])


def _iterations(view: View) -> list[int]:
    """Iterations of a loop whose condition comes back each time: one fewer than read-backs, as the last one ends it; else 1."""
    runs = view.executions
    rows = np.flatnonzero(view.column("copy_kind").isin(frozenset({"DtoH"})))
    rows = rows[(view.execution[rows] >= 0) & (view.cost("bytes")[0][rows] <= READBACK_BYTES)]
    per_run = np.bincount(view.execution[rows], minlength=len(runs))
    medians = [np.median(per_run[(runs.module == m) & runs.complete]) if np.any((runs.module == m) & runs.complete) else 0
               for m in range(len(view.modules))]  # fmt: skip
    return [max(int(m) - 1, 1) for m in medians]


def _uses_cache(view: View, costs: Costs, same: Alike) -> list[bool]:
    """For each program whether it reads or writes a KV cache."""
    runs = view.executions
    touched = np.where(runs.complete, same.totals(costs.values["kv_write_bytes"] + costs.values["kv_read_bytes"]), 0)
    return [bool(n > 0) for n in np.bincount(runs.module, weights=touched, minlength=len(view.modules))]
