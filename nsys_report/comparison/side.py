"""One side of a comparison: each program's figures per execution, from the analyses of its captures.

A figure counts the complete executions that another of the program on the device follows (all complete ones where none is followed), so
that what lies between two executions is in it. The time of instructions is the sum of their kernels' durations; where kernels overlap,
a negative part `overlap` makes the parts add up to the step to the nanosecond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nsys_report.analysis.arrays.view import ints
from nsys_report.analysis.budget.table import steps_of
from nsys_report.analysis.program_rows import rows_of_program
from nsys_report.analysis.structure.sequences import Sequence, typical_sequences

if TYPE_CHECKING:
    from hlo_mapping import Program
    from nsys_report.analysis.arrays.view import Ints, View
    from nsys_report.analysis.results import AnalysisResults
    from nsys_report.session import Session

KERNEL_PARTS = frozenset({"floor", "traffic", "below_roof", "kernels"})
"""Categories of the budget that are the program's own kernels, here split by instruction instead."""


@dataclass(frozen=True, slots=True)
class Samples:
    """A program's executions in one capture: `quantities` per execution, `times` by instruction (rows of both are executions).

    `times` has shape (instructions, executions). `parts` are the rest of the step.
    """

    name: str
    number: int | None
    program: Program | None
    quantities: dict[str, NDArray[np.int64]]
    instructions: tuple[tuple[bool, str], ...]
    """Whether it is a kernel that was joined to no instruction, and the name."""
    times: NDArray[np.int64]
    parts: dict[tuple[str, str], NDArray[np.int64]]
    facts: dict[str, dict[str, Any]]
    """Rows of the table of instructions, by name."""
    layers: dict[str, str]
    """Which layer an instruction stands in, where layers repeat."""
    told: dict[str, str]
    """What else the capture tells of the program, in words: how it is launched, its layers."""
    busy: int
    """Time of all its executions: what programs are ranked by."""

    @property
    def label(self) -> str:
        return f"{self.name}#{self.number}" if self.number is not None else self.name

    @property
    def count(self) -> int:
        """Executions."""
        return int(self.times.shape[1])


def program_samples(analysis: Session) -> tuple[Samples, ...]:
    """The programs of one capture that ran a complete execution, most time first."""
    results = analysis.results
    found = [_samples(analysis, module, sequence) for module, sequence in enumerate(typical_sequences(results.view))]
    return tuple(sorted((s for s in found if s is not None), key=lambda s: -s.busy))


def _samples(analysis: Session, module: int, sequence: Sequence | None) -> Samples | None:
    results = analysis.results
    view, key = results.view, results.view.modules[module]
    chosen, _ = steps_of(view, module)
    if not len(chosen):
        return None
    names, times = _instruction_times(view, chosen)
    budgets = results.budgets
    own = [i for i, part in enumerate(budgets.parts) if part.category in KERNEL_PARTS]
    parts = {
        (part.category, part.part): budgets.ns[chosen, i]
        for i, part in enumerate(budgets.parts)
        if part.category not in KERNEL_PARTS and budgets.ns[chosen, i].any()
    }
    parts["overlap", "kernels that ran at the same time"] = budgets.ns[chosen][:, own].sum(axis=1) - times.sum(axis=0)
    table = analysis.joined.executions
    return Samples(
        key.hlo_module or "?",
        key.program_id,
        analysis.joined.programs.get(key.program_id) if key.program_id is not None else None,
        _quantities(view, table, chosen, budgets.wall, budgets.ns, parts),
        names,
        times,
        parts,
        _facts(results, key.hlo_module, key.program_id),
        _layers(results, module, sequence),
        _told(view, results, module, chosen),
        int(ints(table, "busy_time_ns")[0][view.executions.module == module].sum()),
    )


def _quantities(view: View, table: Any, chosen: Ints, wall: Ints, ns: Ints, parts: dict[tuple[str, str], Ints]) -> dict[str, Ints]:
    found = {"step_ns": wall[chosen]}
    for name in ("kernel_time_ns", "busy_time_ns", "host_gap_ns"):
        values, known = ints(table, name)
        if known[chosen].all() or name == "host_gap_ns":
            found[name] = values[chosen][known[chosen]]
    for name, categories in (("idle_ns", ("idle", "launch", "host", "compile", "profiler")), ("copies_ns", ("copies",))):
        found[name] = sum((v for (c, _), v in parts.items() if c in categories), np.zeros(len(chosen), np.int64))
    return found


def _instruction_times(view: View, chosen: Ints) -> tuple[tuple[tuple[bool, str], ...], Ints]:
    """Durations of the work of each instruction, and of each kernel name that was joined to none, in each chosen execution."""
    place = np.full(len(view.executions) + 1, -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    rows = view.inside[place[view.execution[view.inside]] >= 0]
    kernels = view.column("name")
    unit = np.where(view.instruction[rows] >= 0, view.instruction[rows], -2 - kernels.codes[rows])
    code, which = np.unique(unit, return_inverse=True)
    sums = np.bincount(which * len(chosen) + place[view.execution[rows]], view.duration[rows], len(code) * len(chosen))
    names = view.joined.facts["hlo_instruction"].to_pylist() if len(view.joined.facts) else []
    units = tuple((False, names[c]) if c >= 0 else (True, kernels.words[-2 - c] if c < -1 else "unknown") for c in code.tolist())
    return units, sums.astype(np.int64).reshape(len(code), len(chosen))


def _layers(results: AnalysisResults, module: int, sequence: Sequence | None) -> dict[str, str]:
    """The layer of each instruction, numbered from the first that is like the others; what an instruction first runs in counts."""
    view = results.view
    key = view.modules[module].hlo_module, view.modules[module].program_id
    row = next(iter(rows_of_program(results.layers, *key).to_pylist()), None)
    if row is None or sequence is None or row["iterations"] != 1:
        return {}
    names = view.joined.facts["hlo_instruction"].to_pylist()
    end = row["kernels_before"] + row["layers"] * row["kernels_per_layer"]
    found: dict[str, str] = {}
    for place, instruction in enumerate(view.instruction[sequence.rows].tolist()):
        layer = f"layer {(place - row['kernels_before']) // row['kernels_per_layer']}"
        if instruction >= 0:
            found.setdefault(
                names[instruction], "before layers" if place < row["kernels_before"] else "after layers" if place >= end else layer
            )
    return found


def _told(view: View, results: AnalysisResults, module: int, chosen: Ints) -> dict[str, str]:
    """How the program's kernels are launched, and in how many layers and iterations."""
    key = view.modules[module]
    mine = np.zeros(len(view.executions) + 1, np.bool_)
    mine[chosen] = True
    kernels = np.flatnonzero(view.kernel & mine[view.execution])
    in_graphs = int(ints(view.joined.activities, "graph_node_id")[1][kernels].sum())
    told = {"kernels in CUDA graphs": "all" if in_graphs == len(kernels) else "none" if not in_graphs else "some"} if len(kernels) else {}
    for row in rows_of_program(results.layers, key.hlo_module, key.program_id).to_pylist():
        told["layers"] = str(row["layers"] + row["ragged_layers"]) + (
            f" in {row['iterations']} iterations" if row["iterations"] > 1 else ""
        )
    return told


def _facts(results: AnalysisResults, module: str | None, number: int | None) -> dict[str, dict[str, Any]]:
    rows = rows_of_program(results.instructions, module, number).to_pylist()
    return {r["hlo_instruction"]: r for r in rows if r["hlo_instruction"]}
