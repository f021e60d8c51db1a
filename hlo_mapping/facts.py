"""One row per instruction that launches work: its class, its costs, and where it came from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from hlo_mapping.classification.caches import lasting_versions
from hlo_mapping.classification.contents import trace
from hlo_mapping.classification.kinds import find_kinds
from hlo_mapping.classification.overrides import RoleOverrides
from hlo_mapping.classification.roles import infer_roles
from hlo_mapping.classification.rules import Launch, ModuleAnalysis, Verdict, classify, look_at
from hlo_mapping.classification.uses import find_uses
from hlo_mapping.columns import FACTS
from hlo_mapping.costs.possible import without_impossible
from hlo_mapping.dataflow import Kernel, build_graph
from hlo_mapping.dump.program import Program
from hlo_mapping.errors import HloError
from hlo_mapping.floor import least_bytes
from hlo_mapping.ir import Module, OpMetadata
from hlo_mapping.launch_costs import launch_costs
from hlo_mapping.naming.names import Naming, name_launches
from hlo_mapping.phases import phases
from hlo_mapping.program_kind import ProgramKind, program_kind

UNFORESEEN = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, StopIteration, TypeError, ValueError)
"""What reading text of a form that no rule expects may raise."""


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """What one program's HLO says: a row per instruction (schema `columns.FACTS`), and what kind of program it is (None without HLO)."""

    instructions: pa.Table
    kind: ProgramKind | None = None


def program_facts(program: Program, overrides: RoleOverrides | None = None) -> ProgramFacts:
    """Facts of every instruction that can launch work, in every computation that is executed, and the program's kind.

    Costs are of one execution of the instruction: one iteration of the loop around it. A program without a module has no rows.
    """
    if program.module is None:
        return ProgramFacts(FACTS.empty_table())
    return analyze_module(program.module, program.number, overrides)


def instruction_facts(program: Program, overrides: RoleOverrides | None = None) -> pa.Table:
    """The instructions of `program_facts` alone."""
    return program_facts(program, overrides).instructions


def module_facts(module: Module, number: int, overrides: RoleOverrides | None = None) -> pa.Table:
    """The instructions' facts of one module."""
    return analyze_module(module, number, overrides).instructions


def analyze_module(module: Module, number: int, overrides: RoleOverrides | None = None) -> ProgramFacts:
    """The facts of one module."""
    with _followed(module):
        analyzed = analyze(module, overrides)
        launches = [look_at(analyzed, kernel) for kernel in analyzed.graph.kernels]
        verdicts = [_verdict(launch) for launch in launches]
        rows = [_row_or_unknown(launch, verdict) for launch, verdict in zip(launches, verdicts, strict=True)]
        for row, least in zip(rows, least_bytes(analyzed, rows), strict=True):
            row["floor_bytes"] = min(least, moved) if isinstance(moved := row.get("bytes_accessed"), int) else None
        kind = program_kind(analyzed, rows)
        if kind.kind == "training":
            for row, phase in zip(rows, phases(analyzed, verdicts), strict=True):
                row["phase"] = phase
        _add_names(launches, verdicts, rows)
    return ProgramFacts(_table(module, number, rows), kind)


def _add_names(launches: list[Launch], verdicts: list[Verdict | None], rows: list[dict[str, object]]) -> None:
    """What people call the instructions; where that cannot be told, classes and costs stand without names."""
    try:
        names = name_launches(launches, verdicts, [str(row["op_name"] or "") for row in rows], [_phase(row) for row in rows])
    except UNFORESEEN:
        return
    for row, naming in zip(rows, names, strict=True):
        row.update(_named(naming))


def _phase(row: dict[str, object]) -> str | None:
    phase = row.get("phase")
    return None if phase is None else str(phase)


def _named(naming: Naming) -> dict[str, object]:
    return {
        "label": naming.label or None,
        "pattern": naming.pattern or None,
        "layer": naming.layer or None,
        "parameters": ", ".join(naming.parameters) or None,
        "parameter": naming.parameter or None,
        "scope": naming.scope or None,
    }


@contextmanager
def _followed(module: Module) -> Iterator[None]:
    """What no rule foresaw in a program is an error about this program, not the end of the report."""
    try:
        yield
    except UNFORESEEN as error:
        message = f"{module.source or module.name}: what its values are cannot be followed ({type(error).__name__}: {error})"
        raise HloError(message, "Please report it with this file; all that needs no classes stands.") from error


def _table(module: Module, number: int, rows: list[dict[str, object]]) -> pa.Table:
    columns = {name: [row.get(name) for row in rows] for name in FACTS.names}
    columns["program_id"] = [number] * len(rows)
    columns["hlo_module"] = [module.name] * len(rows)
    return pa.table({f.name: _array(columns[f.name], f.type) for f in FACTS}, schema=FACTS)


def _array(values: list[object], kind: pa.DataType) -> pa.Array:
    """Values as a column; numbers that no 64 bits hold, which only a damaged text has, are unknown."""
    if pa.types.is_integer(kind):
        values = [None if isinstance(value, int) and not -(2**63) <= value < 2**63 else value for value in values]
    return pa.array(values, pa.string()).dictionary_encode() if pa.types.is_dictionary(kind) else pa.array(values, kind)


def analyze(module: Module, overrides: RoleOverrides | None = None) -> ModuleAnalysis:
    """The module's graph, and what its values and parameters are."""
    graph = build_graph(module)
    contents = trace(graph)
    uses = find_uses(graph, contents)
    roles = infer_roles(graph, contents, uses, overrides)
    kinds = find_kinds(graph, contents, uses, roles)
    return ModuleAnalysis(graph, contents, uses, roles, kinds, lasting_versions(graph, contents, roles))


def _verdict(launch: Launch) -> Verdict | None:
    try:
        return classify(launch)
    except UNFORESEEN:
        return None


def _row_or_unknown(launch: Launch, verdict: Verdict | None) -> dict[str, object]:
    """The facts of one instruction; of one whose costs no rule can read its name and class alone, and why."""
    try:
        return without_impossible(_row(launch, verdict, launch_costs(launch, verdict)))
    except UNFORESEEN as error:
        note = f"the instruction cannot be read ({type(error).__name__}: {error})"
        return _row(launch, verdict, {"bytes_note": note, "cost_source": "unknown"})


def _row(launch: Launch, verdict: Verdict | None, costs: dict[str, object]) -> dict[str, object]:
    kernel = launch.kernel
    metadata = _metadata(launch.program, kernel)
    row = dict(costs)
    row.update(hlo_instruction=kernel.instruction.name, opcode=kernel.instruction.opcode)
    if verdict is not None:
        row.update(kernel_class=verdict.kernel_class, class_detail=verdict.detail, class_rule=verdict.rule)
    row.update(op_name=metadata.op_name or None, source_file=metadata.source_file or None, source_line=metadata.source_line or None)
    return row


def _metadata(program: ModuleAnalysis, kernel: Kernel) -> OpMetadata:
    """The instruction's own metadata, or where a fusion has none that of the last operation in it that has."""
    if kernel.instruction.metadata.op_name:
        return kernel.instruction.metadata
    for node in range(kernel.end - 1, kernel.first - 1, -1):
        if program.graph.instructions[node].metadata.op_name:
            return program.graph.instructions[node].metadata
    return kernel.instruction.metadata
