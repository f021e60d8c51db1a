"""The step budget: where every nanosecond from one execution's start to the next goes, in parts that add up exactly.

The time of an execution's own kernels is split class by class, at the measured bandwidth ceiling (the nominal one where none was
measured): what no rewriting avoids (floor: inputs, weights, KV cache and results, and what arithmetic takes beyond the time of all of
them), what the rest of its bytes takes (traffic above the floor), and what is left (kernels below the roof). A class that runs above the
roof has a smaller floor than its bytes ask for: no part exceeds the time that was really spent. Kernels of unknown cost are not split.
Copies on the device that an instruction asks for count as kernels here: XLA runs a copy or a slice as either. Then come other
executions' kernels, copies that no kernel hides, and idle time by cause (nsys_report.analysis.idle.causes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsys_report.analysis.arrays.view import Flags, Ints, View
from nsys_report.analysis.idle.causes import CAUSES
from nsys_report.analysis.idle.idle_times import IdleTime
from nsys_report.analysis.roofline.ceilings import Ceiling, Ceilings
from nsys_report.analysis.roofline.classes import ClassTimes
from nsys_report.analysis.roofline.compute import compute_time
from nsys_report.analysis.roofline.costs import Alike, Costs
from nsys_report.analysis.times.attribution import BusyTime, Windows, unowned_time, windows

CATEGORIES = {
    "floor": "what the step must take: inputs, weights, KV cache and results at the ceiling, and arithmetic beyond that",
    "traffic": "bytes moved above the floor, at the ceiling, by class and detail",
    "below_roof": "time of kernels above what their bytes and arithmetic take, by class",
    "kernels": "time of kernels whose bytes are unknown, by class",
    "not_recorded": "work in branches and loop bodies of graphs that the capture holds no record of",
    "other_executions": "kernels of other executions, or of none, that ran in between",
    "copies": "copies that no kernel hides, and the time to issue them",
    "idle": "the device's pauses between activities that had been launched in time, and loop conditions read back",
    "launch": "calls that launch kernels and graphs, and the first kernel's latency",
    "host": "host work, allocation and waiting while the device had nothing to do",
    "compile": "compiling and loading programs",
    "profiler": "the profiler's own work",
}
"""The budget's categories in the order they are shown."""


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """One row of the budget: its category, and its name within it."""

    category: str
    part: str


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of every execution. `ns` has shape (executions, parts); each row adds up to `wall` exactly."""

    parts: tuple[BudgetRow, ...]
    ns: Ints
    wall: Ints
    ceiling: Ceiling | None
    """The bandwidth ceiling that floors were taken at; None where nobody knows one, and kernels are not split."""


def budget(
    view: View,
    costs: Costs,
    same: Alike,
    times: ClassTimes,
    idle: tuple[IdleTime, ...],
    busy: tuple[BusyTime, ...],
    ceilings: Ceilings,
    per_flop: NDArray[np.float64],
) -> Budget:
    """The budget of every execution, in the order of View.executions; parts without any time are left out.

    `per_flop` is nanoseconds_per_flop's answer.
    """
    span = windows(view)
    owned = _owned(view, costs, times, span)
    columns: dict[BudgetRow, Ints] = {}
    for name, values in _kernel_parts(costs, same, times, owned, ceilings, per_flop):
        _add(columns, name, values)
    for name, values in _device_parts(view, span, owned.all.sum(axis=1) + owned.graphs, idle, busy):
        _add(columns, name, values)
    order = {category: i for i, category in enumerate(CATEGORIES)}
    parts = sorted((p for p, v in columns.items() if v.any()), key=lambda p: (order[p.category], -int(columns[p].sum())))
    ns = np.stack([columns[p] for p in parts], axis=1) if parts else np.zeros((len(view.executions), 0), np.int64)
    return Budget(tuple(parts), ns, span.wall, ceilings.roof)


@dataclass(frozen=True, slots=True)
class _Owned:
    """The owned time of each execution's work, ns: by class and detail (executions, groups of ClassTimes), and of whole graphs."""

    all: Ints
    known: Ints
    """That of the kernels whose bytes are known."""
    graphs: Ints


def _owned(view: View, costs: Costs, times: ClassTimes, span: Windows) -> _Owned:
    """What the classes' times leave when overlaps are counted once."""
    rows, lost = unowned_time(view, span)
    runs, groups = times.time.shape
    graphs = np.flatnonzero(view.activity.isin(frozenset({"graph"})) & (view.execution >= 0))
    of_graphs = _sums(view.execution[graphs], view.duration[graphs], runs)
    whole = view.work[rows]
    of_graphs -= _sums(view.execution[rows[~whole]], lost[~whole], runs)
    rows, lost = rows[whole], lost[whole]
    kind = costs.kind[rows]
    cell = view.execution[rows] * groups + times.group[kind]
    known = costs.bytes_known[kind]
    return _Owned(
        times.time - _sums(cell, lost, runs * groups).reshape(runs, groups),
        times.bytes_known - _sums(cell[known], lost[known], runs * groups).reshape(runs, groups),
        of_graphs,
    )


def _add(columns: dict[BudgetRow, Ints], part: BudgetRow, values: Ints) -> None:
    columns[part] = columns[part] + values if part in columns else values


def _device_parts(
    view: View, span: Windows, own: Ints, idle: tuple[IdleTime, ...], busy: tuple[BusyTime, ...]
) -> list[tuple[BudgetRow, Ints]]:
    """Other executions' kernels, copies and idle time in each execution's window."""
    runs = len(view.executions)
    kernels, copies = np.zeros(runs, np.int64), np.zeros((runs, 3), np.int64)
    by_cause = np.zeros((runs, len(CAUSES)), np.int64)
    for device in range(len(view.devices)):
        mine = np.flatnonzero(view.executions.device == device)
        all_kernels, *rest = busy[device].within(span.start[mine], span.end[mine])
        kernels[mine] = all_kernels - own[mine]
        copies[mine] = np.stack(rest, axis=1)
        by_cause[mine] = idle[device].within(span.start[mine], span.end[mine])
    named = [(BudgetRow("other_executions", "kernels"), kernels)]
    named += [(BudgetRow("copies", name), copies[:, i]) for i, name in enumerate(("to_device", "to_host", "on_device"))]
    return named + [(BudgetRow(cause.category, cause.key), by_cause[:, code]) for code, cause in enumerate(CAUSES)]


def _kernel_parts(
    costs: Costs, same: Alike, times: ClassTimes, owned: _Owned, ceilings: Ceilings, per_flop: NDArray[np.float64]
) -> list[tuple[BudgetRow, Ints]]:
    """The owned time of each execution's kernels, split by class."""
    named = [(BudgetRow("kernels", "graphs"), owned.graphs)]
    compute = compute_time(costs.instruction, costs.values["flops"], per_flop)
    of_class = times.names // costs.detail_width
    arithmetic = _Arithmetic(costs, same, compute, ceilings.roof.value) if ceilings.roof is not None else None
    for code in np.unique(of_class):
        name = costs.classes.words[code - 1] if code else "unclassified"
        columns = np.flatnonzero(of_class == code)
        known = owned.known[:, columns].sum(axis=1)
        if arithmetic is None:
            named.append((BudgetRow("kernels", name), owned.all[:, columns].sum(axis=1)))
            continue
        named.append((BudgetRow("kernels", name), owned.all[:, columns].sum(axis=1) - known))
        mine = np.isin(times.group, columns) & costs.bytes_known
        if mine.any():
            named += _split(costs, same, mine, name, known, arithmetic)
    return named


class _Arithmetic:
    """What the floor's arithmetic takes beyond the floor's bytes: the two overlap, wherever in the program either is.

    An execution's floor is the longer of all its floor bytes' time and all its arithmetic's; classes share what arithmetic adds by what
    theirs takes beyond their own bytes.
    """

    def __init__(self, costs: Costs, same: Alike, compute: Ints, roof: float) -> None:
        self.costs, self.same, self.compute, self.roof = costs, same, compute, roof
        every = costs.bytes_known
        whole = np.maximum(same.totals(np.where(every, compute, 0)) - same.totals(np.where(every, costs.floor, 0)) * (1e9 / roof), 0)
        kinds = [costs.classes.codes == code for code in np.unique(costs.classes.codes)]
        beyond = sum((self._beyond(every & mine) for mine in kinds), start=np.zeros(len(whole)))
        self.share = np.divide(whole, beyond, out=np.zeros(len(whole)), where=beyond > 0)

    def _beyond(self, mine: Flags) -> NDArray[np.float64]:
        """Of one class, arithmetic beyond its own floor bytes, ns, by execution."""
        floor = self.same.totals(np.where(mine, self.costs.floor, 0)) * (1e9 / self.roof)
        return np.maximum(self.same.totals(np.where(mine, self.compute, 0)) - floor, 0)

    def of_class(self, mine: Flags) -> Ints:
        """A class's part of what arithmetic adds to the floor."""
        return np.floor(self._beyond(mine) * self.share).astype(np.int64)


def _split(costs: Costs, same: Alike, mine: Flags, name: str, left: Ints, arithmetic: _Arithmetic) -> list[tuple[BudgetRow, Ints]]:
    """One class's kernels of known cost: floor, traffic above it, and what is left. `mine` are its kinds, `left` its time."""
    roof = arithmetic.roof

    def total(values: Ints) -> Ints:
        return same.totals(np.where(mine, values, 0)).astype(np.int64)

    parts: list[tuple[BudgetRow, Ints]] = []
    moved = costs.values["bytes_accessed"]
    cache = np.minimum(costs.values["kv_read_bytes"] + costs.values["kv_write_bytes"], costs.floor)
    weight = np.minimum(costs.values["weight_bytes"], costs.floor - cache)
    rest, updates = costs.floor - cache - weight, costs.details.isin(frozenset({"optimizer"}))
    state, entering = np.where(updates, rest, 0), np.where(updates, 0, rest)
    for part, count in (("weights", weight), ("kv_cache", cache), ("optimizer", state), ("inputs_and_results", entering)):
        time = np.minimum(_nanoseconds(total(count), roof), left)
        parts.append((BudgetRow("floor", part), time))
        left = left - time
    time = np.minimum(arithmetic.of_class(mine), left)
    parts.append((BudgetRow("floor", "arithmetic"), time))
    left = left - time
    wasted = np.where(mine, np.maximum(moved - costs.floor, 0), 0)
    time = np.minimum(_nanoseconds(total(wasted), roof), left)
    left = left - time
    for code, share in _shared_out(time, costs, same, wasted):
        detail = costs.details.words[code - 1] if code else ""
        parts.append((BudgetRow("traffic", f"{name}: {detail}" if detail else name), share))
    return [*parts, (BudgetRow("below_roof", name), left)]


def _shared_out(total: Ints, costs: Costs, same: Alike, weights: Ints) -> list[tuple[int, Ints]]:
    """Each execution's total shared out over details in proportion to weights, in whole nanoseconds that add up to it."""
    detail = costs.details.codes + 1
    present = np.unique(detail[same.kinds[weights[same.kinds] > 0]])
    if len(present) == 0:
        return []
    position = np.zeros(costs.detail_width, np.int64)
    position[present] = np.arange(len(present))
    table = same.sums(position[detail], len(present), weights)[same.pattern]
    upto = np.cumsum(table, axis=1)
    whole = np.where(upto[:, -1:] > 0, upto[:, -1:], 1)
    marks = np.floor(upto / whole * total[:, None]).astype(np.int64)
    marks[:, -1] = total
    return [(int(code), np.diff(marks, axis=1, prepend=0)[:, i]) for i, code in enumerate(present)]


def _sums(run: Ints, values: NDArray[Any], runs: int) -> Ints:
    return np.bincount(run, weights=values, minlength=runs).astype(np.int64)


def _nanoseconds(count: Ints, per_second: float) -> Ints:
    return np.floor(count * (1e9 / per_second)).astype(np.int64)
