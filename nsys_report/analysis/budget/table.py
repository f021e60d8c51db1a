"""The step budget of each program, from the budgets of its executions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hlo_mapping import WORD, column
from nsys_report.analysis.arrays.schemas import MODULE_KEY, spread
from nsys_report.analysis.arrays.tables import Column, module_columns, table
from nsys_report.analysis.arrays.view import Flags, Ints, View, executions_by_module, ints
from nsys_report.analysis.budget.parts import CATEGORIES, Budget
from nsys_report.analysis.idle.causes import CAUSES as _CAUSES
from nsys_report.analysis.times.modules import intervals_to_next

CAUSES = {cause.key: cause.category for cause in _CAUSES}
"""The category of each cause of idle time."""

BUDGET = pa.schema(
    [
        *MODULE_KEY,
        column(
            "category",
            WORD,
            "the key of a category (nsys_report.analysis.budget.parts.CATEGORIES)",
        ),
        column("part", WORD, "the part within the category: class, class and detail, direction of a copy, or cause of idle time"),
        column("typical_ns", pa.float64(), "mean over the middle half of steps by wall time; the parts add up to the typical step"),
        column("mean_ns", pa.float64(), "mean over all steps; the parts add up to the mean step"),
        *spread("time_ns", "time of this part in a step"),
        column("total_ns", pa.int64(), "sum over all steps; the parts add up to their wall time exactly"),
        column("share", pa.float64(), "share of the typical step, 0 to 1"),
        column(
            "tokens_per_s_gain", pa.float64(), "tokens a second won if this part took no time; null for floors and where tokens are unknown"
        ),
    ]
)
"""A row per program and part of its step; steps are complete executions that another of the program follows."""

STEPS = pa.schema(
    [
        *MODULE_KEY,
        column("steps", pa.int64(), "complete executions that another of the program on the device follows"),
        column("is_alone", pa.bool_(), "no execution has a follower: the figures are of executions without the time after them"),
        column("typical_ns", pa.float64(), "mean wall time of the middle half of steps"),
        column("mean_ns", pa.float64(), "mean wall time"),
        *spread("wall_ns", "from one start to the next"),
        column("total_ns", pa.int64(), "sum of all steps"),
        column("typical_kernel_time_ns", pa.float64(), "kernel time of the same executions; mean; null where graphs were recorded whole"),
        column(
            "idle_ns", pa.float64(), "time of the typical step in which the device runs nothing: the budget's causes of idle time together"
        ),
        column("floor_ns", pa.float64(), "floor of the typical step: weights, KV cache and arithmetic at the ceiling"),
        column(
            "tokens_per_execution",
            pa.float64(),
            "tokens a step makes, estimated (analysis.structure.tokens); null where unknown",
        ),
        column("tokens_per_s", pa.float64(), "tokens a second of the typical step; null where unknown"),
        column("floor_tokens_per_s", pa.float64(), "tokens a second if a step took its floor; null where unknown"),
        column("cache_type", WORD, "element type of its KV cache; null where it has none, or unknown"),
        column("ceiling", pa.string(), "the bandwidth ceiling that floors were taken at, and its origin; null where none is known"),
    ]
)
"""A row per program: its steps, which the rows of BUDGET add up to."""


def budget_tables(view: View, found: Budget, tokens: Sequence[float | None], caches: Sequence[str | None]) -> tuple[pa.Table, pa.Table]:
    """Schemas BUDGET and STEPS, from tokens and cache type of each program; programs without a complete execution have no rows."""
    rows, steps = [], []
    for module in range(len(view.modules)):
        chosen, alone = steps_of(view, module)
        if len(chosen):
            rows.append(_module_rows(view, found, module, chosen, tokens[module]))
            steps.append(_module_steps(view, found, module, chosen, alone, tokens[module], caches[module]))
    budget = pa.concat_tables(rows) if rows else BUDGET.empty_table()
    return budget, pa.concat_tables(steps) if steps else STEPS.empty_table()


def middle_half(wall: Ints) -> Ints:
    """The indices of steps whose wall time lies between the quartiles; never empty for a non-empty input."""
    low, high = np.quantile(wall, (0.25, 0.75), method="closest_observation")
    return np.flatnonzero((wall >= low) & (wall <= high))


def steps_of(view: View, module: int) -> tuple[Ints, bool]:
    """A program's complete executions with a follower; all complete ones where none has."""
    followed = intervals_to_next(view)[1]
    mine = executions_by_module(view)[module]
    complete = mine[view.executions.complete[mine]]
    chosen = complete[followed[complete]]
    return (chosen, False) if len(chosen) else (complete, True)


def typical_executions(view: View, wall: Ints) -> Flags:
    """The executions that begin the typical steps of their programs: the middle half by wall time, which typical figures are means over."""
    found = np.zeros(len(view.executions), np.bool_)
    for module in range(len(view.modules)):
        chosen = steps_of(view, module)[0]
        if len(chosen):
            found[chosen[middle_half(wall[chosen])]] = True
    return found


def _module_rows(view: View, found: Budget, module: int, chosen: Ints, tokens: float | None) -> pa.Table:
    ns, wall = found.ns[chosen], found.wall[chosen]
    there = np.flatnonzero(ns.any(axis=0))
    ns = ns[:, there]
    typical = ns[middle_half(wall)].mean(axis=0)
    step = wall[middle_half(wall)].mean()
    columns: dict[str, Column] = {
        **module_columns([view.modules[module]] * len(there)),
        "category": [found.parts[i].category for i in there],
        "part": [found.parts[i].part for i in there],
        "typical_ns": typical,
        "mean_ns": ns.mean(axis=0),
        "total_ns": ns.sum(axis=0),
        "share": typical / step if step else np.full(len(there), np.nan),
    }
    for name, q in (("time_ns", 0.5), ("time_p10_ns", 0.1), ("time_p90_ns", 0.9)):
        columns[name] = np.quantile(ns, q, axis=0)
    left = step - typical
    floor = np.array([found.parts[i].category == "floor" for i in there], np.bool_)
    left[floor] = np.nan
    if tokens is not None and step > 0:
        columns["tokens_per_s_gain"] = np.where(left > 0, tokens * 1e9 / np.where(left > 0, left, 1) - tokens * 1e9 / step, np.nan)
    order = {category: i for i, category in enumerate(CATEGORIES)}
    place = np.array([order[found.parts[i].category] for i in there])
    return table(BUDGET, columns).take(np.lexsort((-typical, place)))


def _module_steps(view: View, found: Budget, module: int, chosen: Ints, alone: bool, tokens: float | None, cache: str | None) -> pa.Table:
    wall = found.wall[chosen]
    middle = middle_half(wall)
    floors = [i for i, part in enumerate(found.parts) if part.category == "floor"]
    idle = [i for i, part in enumerate(found.parts) if CAUSES.get(part.part) == part.category and part.category != "not_recorded"]
    floor, pause = (float(found.ns[chosen][middle][:, columns].sum(axis=1).mean()) for columns in (floors, idle))
    step, kernels = float(wall[middle].mean()), _kernel_time(view, chosen[middle])
    p10, median, p90 = np.quantile(wall, (0.1, 0.5, 0.9))
    known = tokens is not None and step > 0
    row = {
        **module_columns([view.modules[module]]),
        "steps": [0 if alone else len(chosen)],
        "is_alone": [alone],
        "typical_ns": [step],
        "mean_ns": [float(wall.mean())],
        "wall_ns": [float(median)],
        "wall_p10_ns": [float(p10)],
        "wall_p90_ns": [float(p90)],
        "total_ns": [int(wall.sum())],
        "typical_kernel_time_ns": [kernels],
        "idle_ns": [pause],
        "floor_ns": [floor if found.ceiling else None],
        "tokens_per_execution": [tokens],
        "tokens_per_s": [tokens * 1e9 / step if tokens is not None and known else None],
        "floor_tokens_per_s": [tokens * 1e9 / floor if tokens is not None and floor > 0 else None],
        "cache_type": [cache],
        "ceiling": [f"{found.ceiling.value / 1e9:,.0f} GB/s, {found.ceiling.origin}" if found.ceiling else None],
    }
    return table(STEPS, row)


def _kernel_time(view: View, runs: Ints) -> float | None:
    """The mean kernel time of executions; None where a graph in any was recorded whole."""
    time, known = ints(view.joined.executions, "kernel_time_ns")
    whole = view.activity.isin(frozenset({"graph"})) & np.isin(view.execution, runs)
    return None if whole.any() or not known[runs].all() else float(time[runs].mean())
