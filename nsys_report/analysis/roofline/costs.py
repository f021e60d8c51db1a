"""What activities cost, once for each kind of activity; and executions that do the same, looked at once.

A capture holds millions of activities and few kinds of them: an instruction's kernel that bears its cost, its further kernels, work that
nobody knows. Costs, classes and flags stand in tables by kind. Executions whose work is of the same kinds, equally often, are alike:
their sums of costs are worked out once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nsys_report.analysis.arrays.view import COST_COLUMNS, Coded, Flags, Ints, View, coded, ints

_TELLING = ("bytes_accessed", "flops")
"""Columns by which the kernels of one instruction differ: its whole cost stands on one of them."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Costs:
    """Per kind: costs with 0 where unknown, and which are known. `kind` is the kind of each activity."""

    kind: Ints
    instruction: Ints
    """Row of the facts, -1 for none."""
    is_work: Flags
    """Whether activities of this kind count as the program's work (View.work)."""
    values: dict[str, Ints]
    bytes_known: Flags
    flops_known: Flags
    floor: Ints
    """The fewest bytes: what no rewriting of the program avoids; weights and KV cache where no module tells."""
    classes: Coded
    details: Coded

    def __len__(self) -> int:
        return len(self.instruction)

    @cached_property
    def group(self) -> Ints:
        """Kinds of one class and detail: class code + 1, times detail_width, plus detail code + 1."""
        return (self.classes.codes.astype(np.int64) + 1) * self.detail_width + self.details.codes + 1

    @property
    def detail_width(self) -> int:
        return len(self.details.words) + 1


def costs_of(view: View) -> Costs:
    """The kinds of a capture's activities."""
    kind, first = _kinds(view)
    rows = pa.array(first)
    activities = view.joined.complete(view.joined.activities.take(rows))
    found = {name: ints(activities, name) for name in COST_COLUMNS}
    values = {name: v for name, (v, _) in found.items()}
    instruction = view.instruction[first]
    details = coded(activities, "class_detail")
    values["bytes_upper"] = _upper(view, instruction, values["bytes_accessed"])
    own = values["weight_bytes"] + values["kv_read_bytes"] + values["kv_write_bytes"]
    floor, known = ints(view.joined.facts, "floor_bytes")
    of_fact, is_known = np.append(floor, 0)[instruction], np.append(known, False)[instruction]
    floor = np.where(is_known, np.where(values["bytes_accessed"] > 0, of_fact, 0), own)
    return Costs(
        kind=kind,
        instruction=instruction,
        is_work=view.work[first],
        values=values,
        bytes_known=found["bytes_accessed"][1],
        flops_known=found["flops"][1],
        floor=np.minimum(floor, values["bytes_accessed"]),
        classes=coded(activities, "kernel_class"),
        details=details,
    )


def _kinds(view: View) -> tuple[Ints, Ints]:
    """The kind of each activity, and an activity of each kind."""
    activities = view.joined.activities
    code = (view.instruction + 1) * 2 + view.work
    size = 2 * (len(view.joined.facts) + 1)
    if "bears_cost" in activities.column_names:
        bears = activities["bears_cost"].to_numpy()
        return _dense(code, size) if bears.all() else _dense(code * 2 + bears, size * 2)
    kind, first = _dense(code, size)
    for name in _TELLING:  # costs written beside the activities
        value, known = ints(view.joined.activities, name)
        odd = np.flatnonzero((value != value[first][kind]) | (known != known[first][kind]))
        if len(odd):
            told = pa.array(np.where(known[odd], value[odd], -1)).dictionary_encode().indices.to_numpy()
            code = kind.copy()
            code[odd] = len(first) + kind[odd] * (int(told.max()) + 1) + told
            kind, first = _dense(code, int(code.max()) + 1)
    return kind, first


def _dense(code: Ints, size: int) -> tuple[Ints, Ints]:
    """Codes renumbered without gaps, in order of code, and the first row that has each."""
    first = np.full(size, -1, np.int64)
    first[code[::-1]] = np.arange(len(code) - 1, -1, -1)
    used = np.flatnonzero(first >= 0)
    if len(used) == size:
        return code, first
    number = np.full(size, -1, np.int64)
    number[used] = np.arange(len(used))
    return number[code], first[used]


def _upper(view: View, instruction: Ints, lower: Ints) -> Ints:
    """The most bytes of each kind: its instruction's upper bound where that differs, on the kernel that bears the cost."""
    upper, known = ints(view.joined.facts, "bytes_upper")
    of_fact = np.append(np.where(known, upper, 0), 0)
    return np.where(lower > 0, np.maximum(of_fact[instruction], lower), lower)


@dataclass(frozen=True, slots=True)
class Alike:
    """Executions by pattern: those of one pattern hold work of the same kinds, each as often."""

    pattern: Ints
    """Per execution."""
    patterns: int
    owner: Ints
    """The pattern that each of `kinds` belongs to."""
    kinds: Ints
    """The kinds of the work of one execution of each pattern."""

    def sums(self, group: Ints, groups: int, weights: NDArray[np.generic] | None = None) -> Floats:
        """Sums of a cost by group of kinds, in one execution of each pattern: shape (patterns, groups). Without weights it counts."""
        key = self.owner * groups + group[self.kinds]
        found = np.bincount(key, weights=None if weights is None else weights[self.kinds], minlength=self.patterns * groups)
        return found.reshape(self.patterns, groups).astype(np.float64, copy=False)

    def totals(self, weights: NDArray[np.generic]) -> Floats:
        """The sum of a cost in each execution."""
        return np.asarray(self.sums(np.zeros(len(weights), np.int64), 1, weights)[self.pattern, 0], np.float64)


def alike(view: View, costs: Costs) -> Alike:
    """The patterns of a capture's executions; one without work has a pattern too."""
    runs, rows = len(view.executions), view.inside
    run = view.execution[rows]
    if np.any(run[1:] < run[:-1]):
        order = np.argsort(run, kind="stable")
        rows, run = rows[order], run[order]
    first = np.flatnonzero(np.diff(run, prepend=-1))
    kinds = costs.kind[rows]
    # A sum of random numbers, one for each kind, does not depend on the order; two sums that agree by chance would take luck of 2**-64.
    mark = np.random.default_rng(0).integers(0, 2**64, len(costs), np.uint64)
    digest = np.zeros(runs, np.uint64)
    if len(rows):
        digest[run[first]] = np.add.reduceat(mark[kinds], first)
    _, chosen, pattern = np.unique(digest, return_index=True, return_inverse=True)
    start, count = np.zeros(runs, np.int64), np.zeros(runs, np.int64)
    start[run[first]], count[run[first]] = first, np.diff(first, append=len(rows))
    of_pattern = count[chosen]
    owner = np.repeat(np.arange(len(chosen)), of_pattern)
    inside = np.arange(len(owner)) - np.repeat(np.cumsum(of_pattern) - of_pattern, of_pattern)
    return Alike(pattern.astype(np.int64), len(chosen), owner, kinds[np.repeat(start[chosen], of_pattern) + inside])
