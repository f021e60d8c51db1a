"""The step budget: where every nanosecond from one execution's start to the next goes, in parts that add up exactly.

The time of an execution's own kernels is split class by class, at the measured bandwidth ceiling (the nominal one where none was
measured): what its weights and KV cache must take (floor), what the rest of its bytes takes (traffic above the floor), what arithmetic
takes beyond the bytes' time, and what is left (kernels below the roof). A class that runs above the roof has a smaller floor than its
bytes ask for: no part exceeds the time that was really spent. Kernels of unknown cost are not split. Copies on the device that an
instruction asks for count as kernels here: XLA runs a copy or a slice as either. Then come other executions' kernels,
copies that no kernel hides, and idle time by cause (nsys_report.analysis.causes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsys_report.analysis.attribution import BusyTime, Windows, own_time, windows
from nsys_report.analysis.causes import CAUSES
from nsys_report.analysis.ceilings import Ceiling, Ceilings
from nsys_report.analysis.classes import FLOOR_DETAILS, Costs, paired
from nsys_report.analysis.compute import compute_time
from nsys_report.analysis.idle import IdleTime
from nsys_report.analysis.view import Ints, View

CATEGORIES = {
    "floor": "what the step must take: weights and KV cache at the ceiling, and arithmetic beyond that",
    "traffic": "bytes moved above the floor, at the ceiling, by class and detail",
    "below_roof": "time of kernels above what their bytes and arithmetic take, by class",
    "kernels": "time of kernels whose bytes are unknown, by class",
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
class Part:
    """One row of the budget: its category, and its name within it."""

    category: str
    part: str


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of every execution. `ns` has shape (executions, parts); each row adds up to `wall` exactly."""

    parts: tuple[Part, ...]
    ns: Ints
    wall: Ints
    ceiling: Ceiling | None
    """The bandwidth ceiling that floors were taken at; None where nobody knows one, and kernels are not split."""


def budget(
    view: View,
    costs: Costs,
    idle: tuple[IdleTime, ...],
    busy: tuple[BusyTime, ...],
    ceilings: Ceilings,
    per_flop: NDArray[np.float64],
) -> Budget:
    """The budget of every execution, in the order of View.executions; parts without any time are left out.

    `per_flop` is nanoseconds_per_flop's answer.
    """
    span = windows(view)
    owned = own_time(view, span)
    own = np.bincount(view.execution[view.execution >= 0], weights=owned[view.execution >= 0], minlength=len(view.executions))
    columns: dict[Part, Ints] = {}
    for name, values in _kernel_parts(view, costs, ceilings, per_flop, owned):
        _add(columns, name, values)
    for name, values in _device_parts(view, span, own.astype(np.int64), idle, busy):
        _add(columns, name, values)
    order = {category: i for i, category in enumerate(CATEGORIES)}
    parts = sorted((p for p, v in columns.items() if v.any()), key=lambda p: (order[p.category], -int(columns[p].sum())))
    ns = np.stack([columns[p] for p in parts], axis=1) if parts else np.zeros((len(view.executions), 0), np.int64)
    return Budget(tuple(parts), ns, span.wall, ceilings.roof)


def _add(columns: dict[Part, Ints], part: Part, values: Ints) -> None:
    columns[part] = columns[part] + values if part in columns else values


def _device_parts(view: View, span: Windows, own: Ints, idle: tuple[IdleTime, ...], busy: tuple[BusyTime, ...]) -> list[tuple[Part, Ints]]:
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
    named = [(Part("other_executions", "kernels"), kernels)]
    named += [(Part("copies", name), copies[:, i]) for i, name in enumerate(("to_device", "to_host", "on_device"))]
    return named + [(Part(cause.category, cause.key), by_cause[:, code]) for code, cause in enumerate(CAUSES)]


def _kernel_parts(view: View, costs: Costs, ceilings: Ceilings, per_flop: NDArray[np.float64], owned: Ints) -> list[tuple[Part, Ints]]:
    """The owned time of each execution's kernels, split by class."""
    classes, details = view.column("kernel_class"), view.column("class_detail")
    group, width = paired(classes, details)
    rows = np.flatnonzero((view.execution >= 0) & view.work)
    whole_graphs = np.flatnonzero((view.execution >= 0) & view.activity.isin(frozenset({"graph"})))
    runs = len(view.executions)
    named = [(Part("kernels", "graphs"), _sums(view.execution[whole_graphs], owned[whole_graphs], runs))]
    known = costs.bytes_known[rows] & (ceilings.roof is not None)
    compute = compute_time(view.instruction, costs.values["flops"], per_flop)
    for code in np.flatnonzero(np.bincount(group[rows] // width)):
        name = classes.words[code - 1] if code else "unclassified"
        of_class = group[rows] // width == code
        left = rows[of_class & ~known]
        named.append((Part("kernels", name), _sums(view.execution[left], owned[left], runs)))
        if ceilings.roof is not None:
            chosen = rows[of_class & known]
            names = [details.words[d - 1] if d else "" for d in range(width)]
            named += _split(view, costs, chosen, name, group[chosen] % width, names, owned, compute, ceilings.roof.value)
    return named


def _split(
    view: View, costs: Costs, rows: Ints, name: str, detail: Ints, details: list[str], owned: Ints, compute: Ints, roof: float
) -> list[tuple[Part, Ints]]:
    """One class's kernels of known cost: floor, traffic above it, arithmetic, and what is left."""
    runs, run = len(view.executions), view.execution[rows]
    left = _sums(run, owned[rows], runs)
    parts: list[tuple[Part, Ints]] = []
    value = {k: v[rows] for k, v in costs.values.items()}
    cache = value["kv_read_bytes"] + value["kv_write_bytes"]
    state = np.maximum(costs.floor[rows] - value["weight_bytes"] - cache, 0)
    for part, count in (("weights", value["weight_bytes"]), ("kv_cache", cache), (next(iter(FLOOR_DETAILS)), state)):
        time = np.minimum(_nanoseconds(_sums(run, count, runs), roof), left)
        parts.append((Part("floor", part), time))
        left = left - time
    wasted = np.maximum(value["bytes_accessed"] - costs.floor[rows], 0)
    time = np.minimum(_nanoseconds(_sums(run, wasted, runs), roof), left)
    left = left - time
    for code, share in _shared_out(time, run, detail, wasted, len(details)):
        parts.append((Part("traffic", f"{name}: {details[code]}" if details[code] else name), share))
    beyond = np.maximum(compute[rows] - _nanoseconds(value["bytes_accessed"], roof), 0)
    time = np.minimum(_sums(run, beyond, runs), left)
    return [*parts, (Part("floor", "arithmetic"), time), (Part("below_roof", name), left - time)]


def _shared_out(total: Ints, run: Ints, detail: Ints, weights: Ints, details: int) -> list[tuple[int, Ints]]:
    """Each execution's total shared out over details in proportion to weights, in whole nanoseconds that add up to it."""
    present = np.unique(detail[weights > 0])
    if len(present) == 0:
        return []
    position = np.full(details, 0)
    position[present] = np.arange(len(present))
    table = np.bincount(run * len(present) + position[detail], weights=weights, minlength=len(total) * len(present))
    upto = np.cumsum(table.reshape(len(total), len(present)), axis=1)
    whole = np.where(upto[:, -1:] > 0, upto[:, -1:], 1)
    marks = np.floor(upto / whole * total[:, None]).astype(np.int64)
    marks[:, -1] = total
    return [(int(code), np.diff(marks, axis=1, prepend=0)[:, i]) for i, code in enumerate(present)]


def _sums(run: Ints, values: NDArray[Any], runs: int) -> Ints:
    return np.bincount(run, weights=values, minlength=runs).astype(np.int64)


def _nanoseconds(count: Ints, per_second: float) -> Ints:
    return np.floor(count * (1e9 / per_second)).astype(np.int64)
