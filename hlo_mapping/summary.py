"""What one program of a dump is, in figures: its parameters by role, its kernels by kind, its products by type, its memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from hlo_mapping.classification.overrides import RoleOverrides
from hlo_mapping.classification.roles import ParameterRole, parameter_roles
from hlo_mapping.dots import Dot, operands_of, products_in
from hlo_mapping.dump.buffers import read_buffer_assignment
from hlo_mapping.dump.program import Program
from hlo_mapping.facts import instruction_facts
from hlo_mapping.ir import Computation, Instruction, Module
from hlo_mapping.opcodes import ENTERED, INLINED, NO_WORK
from hlo_mapping.skeleton import skeleton

STAGING = frozenset({"convert", "slice", "relayout", "concatenate", "copy", "precompute"})
"""Details of the class weights whose result is nothing but model parameters, in a buffer of their own."""


@dataclass(frozen=True, slots=True)
class Temporary:
    """A value that lives in the program's scratch memory."""

    instruction: str
    shape: str
    bytes: int


@dataclass(frozen=True, slots=True)
class StagedWeight:
    """An instruction that writes model parameters, converted or rearranged, into a buffer of their own. Bytes are of one execution."""

    instruction: str
    detail: str
    """convert, slice, relayout, concatenate, copy or precompute."""
    source: str
    """Shape of its largest operand, without layout."""
    result: str
    bytes_read: int
    bytes_written: int


@dataclass(frozen=True, slots=True)
class ProgramSummary:
    """One program in figures; sizes are bytes. None is what the dump does not say."""

    number: int
    name: str
    instructions: int
    """Instructions that launch work, outside fusions."""
    parameters: tuple[ParameterRole, ...]
    kinds: tuple[tuple[str, int], ...]
    """Fusions by kind, library and custom calls by target, other work by opcode, most frequent first."""
    dots: tuple[tuple[Dot, int], ...]
    """Products, each with how many there are alike, most frequent first."""
    staged: tuple[StagedWeight, ...]
    """Most bytes written first."""
    shapes: tuple[str, ...]
    """Of the arrays among its parameters, then of those in its result, without layouts."""
    temporary_bytes: int | None
    temporaries: tuple[Temporary, ...]
    """The largest values in scratch memory, largest first."""
    skeleton: str
    """The same for programs that differ in nothing but the sizes of dimensions."""

    def bytes_of(self, role: str) -> int:
        """Bytes of the parameters of one role."""
        return sum(p.bytes for p in self.parameters if p.role == role)

    @property
    def donated_bytes(self) -> int:
        return sum(p.bytes for p in self.parameters if p.donated)

    @property
    def fusions(self) -> int:
        return sum(n for kind, n in self.kinds if kind.startswith("fusion "))

    @property
    def calls(self) -> int:
        """Library and custom calls."""
        return sum(n for kind, n in self.kinds if kind.startswith("call "))


def summarize(program: Program, overrides: RoleOverrides | None = None, temporaries: int = 200) -> ProgramSummary | None:
    """The summary of a program, with so many of its temporaries; None where it has no module that can be read."""
    module = program.module
    if module is None:
        return None
    launching = tuple(_launching(module))
    outside = [i for computation in launching for i in computation.instructions if i.opcode not in NO_WORK]
    size, values = _scratch(program, temporaries)
    return ProgramSummary(
        number=program.number,
        name=program.name,
        instructions=len(outside),
        parameters=parameter_roles(module, overrides),
        kinds=tuple(Counter(map(_kind, outside)).most_common()),
        dots=tuple(_dots(module, launching)),
        staged=tuple(_staged(program, overrides)),
        shapes=tuple(leaf.text(layouts=False) for i in (*module.entry.parameters, module.entry.root) for leaf in i.shape.leaves),
        temporary_bytes=size,
        temporaries=values,
        skeleton=skeleton(program) or "",
    )


def _launching(module: Module) -> Iterator[Computation]:
    """The computations whose instructions launch work of their own: the entry, and bodies, conditions and branches below it."""
    waiting, seen = [module.entry_name], set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in module.by_name:
            continue
        seen.add(name)
        yield module.by_name[name]
        for instruction in module.by_name[name].instructions:
            if instruction.opcode not in INLINED:
                waiting.extend(instruction.called)


def _kind(instruction: Instruction) -> str:
    if instruction.opcode == "fusion":
        return f"fusion {instruction.attribute('kind', 'of no kind')}"
    if instruction.opcode == "custom-call":
        return f"call {instruction.custom_call_target}"
    return instruction.opcode


def _dots(module: Module, launching: Iterable[Computation]) -> Iterable[tuple[Dot, int]]:
    """Products that are executed, inside fusions and library calls too, whatever algorithm the autotuner chose for a call."""
    found: Counter[Dot] = Counter()
    for computation in launching:
        for instruction in computation.instructions:
            if instruction.opcode not in ENTERED:
                found.update(replace(dot, library_algorithm="") for dot in products_in(module, computation, instruction))
    return found.most_common()


def _staged(program: Program, overrides: RoleOverrides | None) -> Iterable[StagedWeight]:
    """What the classes call weights and no product or lookup: parameters that only change type, order or place."""
    facts, module = instruction_facts(program, overrides), program.module
    found = []
    for row in facts.select(["hlo_instruction", "kernel_class", "class_detail", "bytes_accessed", "weight_bytes"]).to_pylist():
        instruction = module.instruction(row["hlo_instruction"]) if module is not None else None
        if row["kernel_class"] != "weights" or row["class_detail"] not in STAGING or instruction is None or module is None:
            continue
        read, written = row["weight_bytes"] or 0, instruction.shape.byte_size
        operands = operands_of(module, instruction.name)
        source = max(operands, key=lambda o: o.shape.byte_size).shape.text(layouts=False) if operands else ""
        found.append(StagedWeight(instruction.name, row["class_detail"], source, instruction.shape.text(layouts=False), read, written))
    return sorted(found, key=lambda w: -w.bytes_written)


def _scratch(program: Program, most: int) -> tuple[int | None, tuple[Temporary, ...]]:
    """Bytes of scratch memory, and the largest arrays in it (a tuple there is a table of pointers)."""
    allocations = read_buffer_assignment(program)
    if not allocations:
        return None, ()
    scratch = [a for a in allocations if a.temp]
    values = sorted((v for a in scratch for v in a.values if not v.is_phi and not v.shape.startswith("(")), key=lambda v: (-v.size, v.name))
    named = tuple(Temporary(v.name, v.shape, v.size) for v in values[:most])
    return sum(a.size for a in scratch), named
