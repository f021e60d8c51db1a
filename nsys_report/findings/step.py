"""What rules look at: each program's step with its budget, its instructions and its module, and the capture around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from hlo_mapping import Detail, KernelClass, Module, Program, read_debug_options
from nsys_report.analysis.arrays.rows import LoopRow, ModuleRow, RoofRow, StepRow
from nsys_report.analysis.arrays.view import Flags, ModuleKey, View, make_view
from nsys_report.analysis.idle.causes import CAUSES
from nsys_report.analysis.idle.idle_times import idle_times
from nsys_report.analysis.results import AnalysisResults
from nsys_report.analysis.times.attribution import unowned_time, windows
from nsys_report.capture.health import Health
from nsys_report.findings.flow import Flow, flow_of
from nsys_report.findings.ledger import FLOOR, OF_INSTRUCTIONS, Account, instruction_shares, make_accounts
from nsys_report.findings.model import Record as Record
from nsys_report.findings.model import Source
from nsys_report.findings.thresholds import threshold
from nsys_report.intervals import grouped_union_length
from nsys_report.joined import Joined


@dataclass(frozen=True)
class Step:
    """One program that takes a fair share of the device's time. Times are of one step, ns."""

    key: ModuleKey
    number: int
    """Its index in View.modules."""
    executions: int
    """Complete ones, which the figures are over."""
    wall_ns: float
    """The typical step: from one execution's start to the next one's."""
    kernel_ns: float
    """Kernel time; where whole graphs are recorded instead of kernels, theirs."""
    busy_ns: float
    """The time in which any of them runs: less than `kernel_ns` where kernels overlap."""
    kernels: float
    tokens: float | None
    typical: Mapping[tuple[str, str], float]
    """The typical step's budget, by category and part; of a program without steady steps what lies within an execution alone."""
    mean: Mapping[tuple[str, str], float]
    """The mean step's budget: of what happens in few steps, this is its price."""
    outside: Mapping[tuple[str, str], float]
    """Of a program without steady steps the rest of the typical step's budget: what lies between its executions."""
    instructions: tuple[Record, ...]
    """Rows of the table of instructions that are joined, most time first."""
    roofs: Mapping[int, RoofRow]
    """Rows of the roofline by instruction id."""
    program: Program | None
    is_steady: bool
    """Whether it repeats at about the same pace, so that the time between two executions is a step's and not anything's."""
    idle_inside: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Idle time within an execution, from its first activity to its last, by row of the budget; mean."""
    owned: Mapping[int, float] = field(default_factory=dict)
    """Of instructions that overlap others, the share of their time in which no earlier one runs, by instruction id; 1 for the rest."""

    @cached_property
    def accounts(self) -> Mapping[Source, Account]:
        """What the step's time above its floor consists of, for findings to claim (nsys_report.findings.ledger)."""
        spent = {int(record["instruction_id"]): self.spent(record) for record in self.instructions}
        return make_accounts(self.typical, self.mean, self.outside, instruction_shares(self.instructions, spent, self.roofs, self.typical))

    @property
    def module(self) -> Module | None:
        """Its optimized module, where the dump has it."""
        return self.program.module if self.program is not None else None

    @property
    def name(self) -> str:
        """The program's name for sentences."""
        return self.key.hlo_module or "unknown program"

    @cached_property
    def _flags(self) -> Mapping[str, tuple[str, ...]]:
        return read_debug_options(self.program) if self.program is not None else {}

    def flag_values(self, name: str) -> tuple[str, ...]:
        """All values of a flag of XLA that repeats; () where it has its default, or nobody knows."""
        return self._flags.get(name, ())

    def flag(self, name: str) -> str | None:
        """The value of a flag of XLA that the program was compiled with; None where it has its default, or nobody knows."""
        return next(iter(self._flags.get(name, ())), None)

    @cached_property
    def flow(self) -> Flow | None:
        """Who writes and who reads its values; None without a module."""
        return flow_of(self.module)

    def opcode_list(self, record: Record) -> list[str]:
        """What an instruction computes: its opcode, or those of its fusion's body."""
        return (self.flow.opcodes(record["hlo_instruction"]) if self.flow is not None else []) or [record["opcode"] or ""]

    def opcodes(self, record: Record) -> frozenset[str]:
        """The same, each once."""
        return frozenset(self.opcode_list(record))

    def target(self, record: Record) -> str:
        """The target of a custom call; "" for everything else."""
        instruction = self.module.instruction(record["hlo_instruction"]) if self.module is not None else None
        return instruction.custom_call_target if instruction is not None else ""

    def roof_ns(self, record: Record) -> float:
        """What an instruction's bytes and arithmetic take at the roof, no more than it takes; 0 where they are unknown."""
        roof = self.roofs.get(record["instruction_id"])
        return min(float(roof["roof_time_ns"]), self.spent(record)) if roof is not None else 0.0

    def arithmetic_ns(self, record: Record) -> float:
        """What an instruction's arithmetic takes at the ceiling of its types; 0 where bytes limit it or nothing is known."""
        roof = self.roofs.get(record["instruction_id"])
        return float(roof["roof_time_ns"]) if roof is not None and roof["roof"] == "compute" else 0.0

    def part(self, *names: tuple[str, str]) -> float:
        """The typical time of parts of the budget, together."""
        return sum(self.typical.get(name, 0.0) for name in names)

    def inside(self, *names: tuple[str, str]) -> dict[Source, float]:
        """Claims on the shares of rows of idle time that lie within executions (see ledger.all_of)."""
        shares = {name: min(self.idle_inside.get(name, 0.0) / self.mean[name], 1.0) for name in names if self.mean.get(name)}
        return {("part", *name): share for name, share in shares.items() if share and ("part", *name) in self.accounts}

    def of_category(self, category: str) -> float:
        """The typical time of a whole category of the budget."""
        return float(sum(time for (one, _), time in self.typical.items() if one == category))

    def spent(self, record: Record) -> float:
        """What an instruction takes in a typical step, ns; what it shares with an earlier one is that one's."""
        return self.owned.get(record["instruction_id"], 1.0) * self.running(record)

    def running(self, record: Record) -> float:
        """How long an instruction runs in a typical step, ns, whatever runs beside it: as the table of instructions has it."""
        return float(record["typical_ns"])

    def where(self, wanted: Callable[[Record], bool]) -> list[Record]:
        """The instructions that satisfy a condition, most time first."""
        return [record for record in self.instructions if wanted(record)]

    def of(self, kernel_class: KernelClass, *details: Detail) -> list[Record]:
        """The instructions of a class, and of some details of it where any are named."""
        return self.where(lambda r: r["kernel_class"] == kernel_class and (not details or r["class_detail"] in details))


@dataclass(frozen=True)
class Context:
    """The capture as a whole, and the programs in it that are worth looking at."""

    joined: Joined
    results: AnalysisResults
    health: Health
    view: View
    steps: tuple[Step, ...]
    helpers: tuple[Step, ...] = ()
    """Programs that take next to no time of the device and yet have long steps: they run once in each step of another."""

    @property
    def roof(self) -> float | None:
        """The bandwidth that bytes are judged by, bytes a second."""
        return self.results.ceilings.roof.value if self.results.ceilings.roof else None

    def bytes_ns(self, count: float) -> float:
        """What bytes take at the roof, ns; 0 without one."""
        return count * 1e9 / self.roof if self.roof else 0.0

    @cached_property
    def shared(self) -> float:
        """The time that the programs' steps cover over what each covers, added up: under 1 where steps of several programs overlap."""
        numbers = [step.number for step in self.steps if step.is_steady]
        apart = sum(self._covered([number]) for number in numbers)
        return self._covered(numbers) / apart if apart else 1.0

    def _covered(self, programs: list[int]) -> int:
        span, runs = windows(self.view), self.view.executions
        mine = np.isin(runs.module, programs)
        lengths = grouped_union_length(runs.device[mine], span.start[mine], span.end[mine], len(self.view.devices))
        return int(lengths.sum())

    @cached_property
    def overlapping(self) -> bool:
        """Whether any two activities of a device overlap in time."""
        for device in range(len(self.view.devices)):
            rows = self.view.on(device)
            start, end = self.view.start[rows], self.view.end[rows]
            if len(start) and np.any(start[1:] < np.maximum.accumulate(end)[:-1]):
                return True
        return False

    @property
    def multiprocessors(self) -> int | None:
        """Of the GPU, or of the slice of it that the process sees; None where the capture does not say."""
        gpus = getattr(getattr(self.joined.capture, "info", None), "gpus", ())
        return gpus[0].sm_count if gpus else None

    @cached_property
    def _blocks(self) -> dict[tuple[int, int], int]:
        """Blocks of a launch by program (View.modules) and instruction id: of the first complete execution's first launch."""
        view = self.view
        grid = view.column("grid")
        rows = np.flatnonzero(view.kernel & view.in_complete & (view.instruction >= 0) & (grid.codes >= 0))
        module = view.executions.module[view.execution[rows]]
        _, first = np.unique(module * (len(self.joined.facts) + 1) + view.instruction[rows], return_index=True)
        size = [int(np.prod([int(n) for n in word.split(",")])) if word else 0 for word in grid.words]
        return {(int(module[i]), int(view.instruction[rows[i]])): size[grid.codes[rows[i]]] for i in first}

    def blocks(self, step: Step, record: Record) -> int | None:
        """Thread blocks of one launch of an instruction; None where the capture does not say."""
        return self._blocks.get((step.number, int(record["instruction_id"])))

    def pauses(self, step: Step, longest: float) -> tuple[float, float]:
        """Gaps of up to `longest` ns between activities of a program's executions: how many in one, and their time in one, ns."""
        view, number, total = self.view, 0, 0
        mine = self.in_step(step)
        for device in range(len(view.devices)):
            rows = view.on(device)
            gap, execution = view.start[rows][1:] - np.maximum.accumulate(view.end[rows])[:-1], view.execution[rows]
            inside = mine[rows][1:] & (execution[1:] == execution[:-1]) & (gap > 0) & (gap <= longest)
            number, total = number + int(inside.sum()), total + int(gap[inside].sum())
        return number / step.executions, total / step.executions

    def loop(self, step: Step) -> LoopRow | None:
        """The loop that a program spends most of its kernel time in (schema loops.LOOPS); None where there is none."""
        return next(iter(_rows_of(self.view, self.results.loops, step.key)), None)

    def in_step(self, step: Step) -> Flags:
        """The activities of a program's complete executions."""
        module = np.append(self.view.executions.module, -1)
        return np.asarray(self.view.in_complete & (module[self.view.execution] == step.number), np.bool_)


def make_context(joined: Joined, results: AnalysisResults, health: Health) -> Context:
    """Gather what the rules need; a damaged capture has no steps, since nothing of the device can be said from it."""
    view = results.view if results.view.joined is joined else make_view(joined)
    if health.is_damaged:
        return Context(joined, results, health, view, ())
    rows = {_key(row): row for row in results.steps.to_pylist()}
    modules = [row for row in results.modules.to_pylist() if _key(row) in rows]
    worth = _worth_looking_at(modules)
    longest = max((rows[_key(row)]["typical_ns"] for row in modules), default=0.0)
    least = threshold("programs", "least_step") * longest
    helping = [row for row in modules if row not in worth and rows[_key(row)]["typical_ns"] >= least]
    owned = _owned_shares(view)
    steps, helpers = (tuple(_step(joined, results, view, row, rows[_key(row)], owned) for row in some) for some in (worth, helping))
    return Context(joined, results, health, view, steps, helpers)


def _worth_looking_at(modules: Sequence[ModuleRow]) -> list[ModuleRow]:
    """The programs with a fair share of the busy time, largest first."""
    busy = {_key(row): (row["busy_time_ns"] or 0.0) * row["executions"] for row in modules}
    least = threshold("programs", "least_kernel_share") * sum(busy.values())
    worth = [row for row in modules if row["complete_executions"] and busy[_key(row)] >= least > 0]
    return sorted(worth, key=lambda row: -busy[_key(row)])


def _owned_shares(view: View) -> dict[int, dict[int, float]]:
    """Of instructions that overlap others in complete executions, the share of their time that is theirs alone, by program."""
    rows, lost = unowned_time(view, windows(view))
    kept = view.in_complete[rows] & (view.instruction[rows] >= 0)
    if not kept.any():
        return {}
    width = len(view.joined.facts)
    code = np.append(view.executions.module, 0)[view.execution].astype(np.int64) * width + view.instruction
    wanted, of = np.unique(code[rows[kept]], return_inverse=True)
    every = np.flatnonzero(view.in_complete & (view.instruction >= 0) & np.isin(code, wanted))
    total = np.bincount(np.searchsorted(wanted, code[every]), weights=view.duration[every], minlength=len(wanted))
    share = 1 - np.bincount(of, weights=lost[kept], minlength=len(wanted)) / np.maximum(total, 1)
    found: dict[int, dict[int, float]] = {}
    for one, left in zip(wanted.tolist(), share.tolist(), strict=True):
        found.setdefault(one // width, {})[one % width] = max(left, 0.0)
    return found


def _step(
    joined: Joined, results: AnalysisResults, view: View, module: ModuleRow, step: StepRow, owned: Mapping[int, Mapping[int, float]]
) -> Step:
    key = ModuleKey(*_key(module))
    instructions = [row for row in _rows_of(view, results.instructions, key) if row["instruction_id"] is not None]
    roofs = {row["instruction_id"]: row for row in _rows_of(view, results.roofline, key) if row["instruction_id"] is not None}
    steady = _is_steady(step)
    typical, mean = _budget(results, view, key)
    outside: dict[tuple[str, str], float] = {}
    inside = _idle_inside(results, view, view.modules.index(key)) | _copies_inside(view, view.modules.index(key))
    if not steady:
        typical, outside = _inside(typical, inside)
        mean = typical
    return Step(
        key=key,
        number=view.modules.index(key),
        executions=module["complete_executions"],
        wall_ns=step["typical_ns"] if steady else module["span_ns"],
        kernel_ns=step["typical_kernel_time_ns"] or module["kernel_time_ns"] or module["busy_time_ns"] or 0.0,
        busy_ns=module["busy_time_ns"] or module["kernel_time_ns"] or 0.0,
        kernels=module["kernels_per_execution"] or 0.0,
        tokens=step["tokens_per_execution"] if steady else None,
        typical=typical,
        mean=mean,
        outside=outside,
        instructions=tuple(instructions),
        roofs=roofs,
        program=joined.programs.get(key.program_id) if key.program_id is not None else None,
        is_steady=steady,
        idle_inside=inside,
        owned=owned.get(view.modules.index(key), {}),
    )


def _is_steady(step: StepRow) -> bool:
    return bool(step["steps"] > 1 and 0 < step["wall_p90_ns"] <= threshold("programs", "steady") * step["wall_p10_ns"])


def _budget(results: AnalysisResults, view: View, key: ModuleKey) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """The typical and the mean step's parts."""
    rows = _rows_of(view, results.budget, key)
    typical, mean = ({(row["category"], row["part"]): row[name] for row in rows} for name in ("typical_ns", "mean_ns"))
    return typical, mean


def _inside(
    typical: Mapping[tuple[str, str], float], idle: Mapping[tuple[str, str], float]
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """A budget split into what lies within executions, work and idle time, and the rest."""
    within = {row: ns if row[0] in (FLOOR, *OF_INSTRUCTIONS) else min(ns, idle.get(row, 0.0)) for row, ns in typical.items()}
    return {row: ns for row, ns in within.items() if ns}, {row: ns - within[row] for row, ns in typical.items() if ns > within[row]}


def _idle_inside(results: AnalysisResults, view: View, number: int) -> dict[tuple[str, str], float]:
    """Idle time by cause within a program's complete executions, on average."""
    runs = view.executions
    mine = (runs.module == number) & runs.complete
    total = np.zeros(len(CAUSES))
    for idle in results.idle if results.view is view else idle_times(view):
        here = mine & (runs.device == idle.device)
        total += idle.within(runs.start[here], runs.end[here]).sum(axis=0)
    return {(cause.category, cause.key): time / int(mine.sum()) for cause, time in zip(CAUSES, total.tolist(), strict=True) if time}


def _copies_inside(view: View, number: int) -> dict[tuple[str, str], float]:
    """The copies to the host within a program's complete executions, such as a loop's conditions, in one on average."""
    runs = view.executions
    mine = np.append((runs.module == number) & runs.complete, False)
    rows = mine[view.execution] & view.column("copy_kind").isin(frozenset({"DtoH"}))
    time = float(view.duration[rows].sum())
    return {("copies", "to_host"): time / int(mine.sum())} if time else {}


def _key(row: ModuleRow | StepRow) -> tuple[str | None, int | None]:
    return row["hlo_module"], row["program_id"]


def _rows_of(view: View, table: pa.Table, key: ModuleKey) -> list[Any]:
    """One program's rows, in the order of the table."""
    whole, places = _by_program(view, table)
    return list(whole.take(pa.array(places.get((key.hlo_module, key.program_id), []), pa.int64())).to_pylist())


def _by_program(view: View, table: pa.Table) -> tuple[pa.Table, dict[tuple[str | None, int | None], list[int]]]:
    """A table in one piece, and the rows of each program; found once for each table of a view's results."""
    name = f"rows by program of table {id(table)}"
    if name not in view.kept:
        found: dict[tuple[str | None, int | None], list[int]] = {}
        for row, key in enumerate(zip(table["hlo_module"].to_pylist(), table["program_id"].to_pylist(), strict=True)):
            found.setdefault(key, []).append(row)
        view.kept[name] = (table.combine_chunks(), found, table)  # the table itself too: while it is there, nothing else has its id
    whole, places, _ = view.kept[name]
    return whole, places
