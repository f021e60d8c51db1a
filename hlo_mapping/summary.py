"""What one program of a dump is, in figures: its parameters by role, its kernels by kind, its products by type, its memory."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hlo_mapping.classification.overrides import RoleOverrides
from hlo_mapping.classification.roles import ParameterRole, parameter_roles
from hlo_mapping.dataflow import NO_WORK
from hlo_mapping.dump.buffers import read_buffer_assignment
from hlo_mapping.dump.program import Program
from hlo_mapping.ir import Computation, Instruction, Module

INLINED = frozenset({"fusion", "reduce", "reduce-window", "scatter", "select-and-scatter", "sort", "map", "all-reduce", "reduce-scatter"})
"""Opcodes whose called computations are part of their own kernel."""
PRODUCTS = frozenset({"dot", "ragged-dot", "scaled-dot", "convolution"})


@dataclass(frozen=True, slots=True)
class Dot:
    """Products of one kind: types as `bf16,bf16->f32`, the precision and algorithm that they ask for ("" for the default)."""

    opcode: str
    types: str
    precision: str
    algorithm: str
    count: int


@dataclass(frozen=True, slots=True)
class Temporary:
    """A value that lives in the program's scratch memory."""

    instruction: str
    shape: str
    bytes: int


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
    dots: tuple[Dot, ...]
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
    outside = [i for computation in _launching(module) for i in computation.instructions if i.opcode not in NO_WORK]
    size, values = _scratch(program, temporaries)
    return ProgramSummary(
        number=program.number,
        name=program.name,
        instructions=len(outside),
        parameters=parameter_roles(module, overrides),
        kinds=tuple(Counter(map(_kind, outside)).most_common()),
        dots=tuple(_dots(module)),
        temporary_bytes=size,
        temporaries=values,
        skeleton=_skeleton(module),
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


def _dots(module: Module) -> Iterator[Dot]:
    """Products anywhere in the module, also inside fusions, by type, precision and algorithm; most frequent first."""
    found: Counter[tuple[str, str, str, str]] = Counter()
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.opcode in PRODUCTS:
                operands = [computation.by_name.get(o.name) for o in instruction.operands[:2]]
                types = ",".join(o.shape.element_type if o is not None else "?" for o in operands)
                precision = instruction.attribute("operand_precision").strip("{}")
                key = (instruction.opcode, f"{types}->{instruction.shape.element_type}", precision, instruction.attribute("algorithm"))
                found[key] += 1
    for (opcode, types, precision, algorithm), count in found.most_common():
        yield Dot(opcode, types, precision, algorithm, count)


def _scratch(program: Program, most: int) -> tuple[int | None, tuple[Temporary, ...]]:
    """Bytes of scratch memory, and the largest values in it."""
    allocations = read_buffer_assignment(program)
    if not allocations:
        return None, ()
    scratch = [a for a in allocations if a.temp]
    values = sorted((v for a in scratch for v in a.values if not v.is_phi), key=lambda v: (-v.size, v.name))
    named = tuple(Temporary(v.name, v.shape, v.size) for v in values[:most])
    return sum(a.size for a in scratch), named


def _skeleton(module: Module) -> str:
    """A digest of opcodes, element types and ranks in order, of every computation."""
    digest = hashlib.blake2b(digest_size=8)
    for computation in module.computations:
        for i in computation.instructions:
            leaves = ",".join(f"{leaf.element_type}{len(leaf.dimensions)}" for leaf in i.shape.leaves)
            digest.update(f"{i.opcode} {leaves} {len(i.operands)};".encode())
    return digest.hexdigest()
