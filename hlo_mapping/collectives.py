"""What a collective of a module moves, and between whom."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hlo_mapping.ir import Computation, Instruction, Module
from hlo_mapping.opcodes import base_opcode, is_collective
from hlo_mapping.replica_groups import Groups, replica_groups, source_target_groups

PAIRED = frozenset({"collective-permute", "send", "recv"})
"""Kinds whose partners are told by pairs of source and target."""


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective instruction."""

    instruction: str
    kind: str
    """Its opcode without -start: all-reduce, all-gather, reduce-scatter, all-to-all, collective-permute, ..."""
    bytes: int | None
    """The size that its bandwidth is counted with, as nccl-tests counts it: the buffer of an all-reduce, the whole array of an
    all-gather (what each device has afterwards) or reduce-scatter (what each brings); None where a shape has no known size."""
    groups: Groups | None
    """The devices of each group by XLA's numbers (partitions, or replicas); None where the text does not say."""
    operands: int
    """Arrays that it moves in one go: more than one where XLA combined several."""
    least_operand_bytes: int | None
    """The smallest of them."""
    op_name: str = ""
    source: str = ""
    """file:line of the line it came from, "" where the dump does not say."""

    @property
    def group_size(self) -> int | None:
        """The devices of its largest group."""
        return max(map(len, self.groups)) if self.groups else None


def module_collectives(module: Module) -> tuple[Collective, ...]:
    """The collectives of a module, of those printed in halves the half that launches, then fusions that are made of one, by their name."""
    participants = _participants(module)
    found: dict[str, tuple[Collective, ...]] = {}
    for computation in module.computations:
        found[computation.name] = tuple(
            _collective(instruction, computation, participants)
            for instruction in computation.instructions
            if is_collective(instruction.opcode) and not instruction.opcode.endswith("-done")
        )
    fused = (
        replace(inner, instruction=instruction.name)
        for computation in module.computations
        for instruction in computation.instructions
        if instruction.opcode == "fusion"
        for called in instruction.called
        for inner in found.get(called, ())
    )
    return (*(c for several in found.values() for c in several), *fused)


def _participants(module: Module) -> int:
    """Devices that run the module together: replicas times partitions, of which one is 1 in programs of JAX."""
    counts = [module.attribute(name) for name in ("replica_count", "num_partitions")]
    replicas, partitions = (int(c) if c.isdecimal() and len(c) < 8 else 1 for c in counts)
    return replicas * partitions


def _collective(instruction: Instruction, computation: Computation, participants: int) -> Collective:
    kind = base_opcode(instruction.opcode)
    pairs = instruction.attribute("source_target_pairs")
    groups = source_target_groups(pairs) if pairs else replica_groups(instruction.attribute("replica_groups") or "{}", participants)
    sizes = _operand_bytes(instruction, computation)
    total = sum(sizes) if sizes else None
    if total is not None and kind == "all-gather":
        total = total * max(map(len, groups)) if groups else None
    origin = instruction.metadata
    place = f"{origin.source_file}:{origin.source_line}" if origin.source_file and origin.source_line else origin.source_file
    return Collective(instruction.name, kind, total, groups, len(instruction.operands), min(sizes or [0]) or None, origin.op_name, place)


def _operand_bytes(instruction: Instruction, computation: Computation) -> list[int] | None:
    """The bytes of each operand; None where one is not there or has no known size."""
    found = []
    for operand in instruction.operands:
        definition = computation.by_name.get(operand.name)
        shape = definition.shape.at(operand.index) if definition is not None else None
        if shape is None or not shape.has_known_size:
            return None
        found.append(shape.byte_size)
    return found or None
