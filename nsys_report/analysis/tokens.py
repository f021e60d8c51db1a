"""How many tokens one execution of a program makes, estimated from its products and loop conditions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlo_mapping.shape import BITS
from nsys_report.analysis.causes import READBACK_BYTES
from nsys_report.analysis.costs import Alike, Costs
from nsys_report.analysis.view import View, ints


def tokens_per_execution(view: View, costs: Costs, same: Alike, stored: Sequence[str | None]) -> list[float | None]:
    """Per program: token rows that its weights are multiplied with, times the iterations of a loop whose condition is read back.

    A product of R rows with a weight matrix of E values takes 2·R·E flops, so R follows from flops and weight bytes; the median by
    weight bytes over the program's products is taken. None for a program that writes no KV cache or has no such product.
    `stored` is the type of each fact's weights (storage.weight_types).
    A loop of known trip count shows no read-back: its iterations are not counted.
    """
    rows = _rows(view, costs, stored)
    loops = _iterations(view)
    writes = _writes_cache(view, costs, same)
    return [r * n if r is not None and w else None for r, n, w in zip(rows, loops, writes, strict=True)]


def _rows(view: View, costs: Costs, stored: Sequence[str | None]) -> list[float | None]:
    facts = view.joined.facts
    flops, weight = ints(facts, "flops")[0], ints(facts, "weight_bytes")[0]
    size = np.array([BITS.get(t or "", 0) / 8 for t in stored])
    usable = (flops > 0) & (weight > 0) & (size > 0)
    ratio = np.where(usable, flops * size / np.where(usable, 2 * weight, 1), 0.0)
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


def _writes_cache(view: View, costs: Costs, same: Alike) -> list[bool]:
    runs = view.executions
    written = np.where(runs.complete, same.totals(costs.values["kv_write_bytes"]), 0)
    return [bool(n > 0) for n in np.bincount(runs.module, weights=written, minlength=len(view.modules))]
