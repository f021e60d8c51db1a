"""Which instructions of the program before XLA's passes an optimized instruction came of.

XLA's passes keep an instruction's op_name and source where they replace it by others (OpMetadata, xla/xla_data.proto), and its inliner
puts a call's op_name before those of what it called (CallInliner, xla/service/call_inliner.cc). Layers of one model share both; which
layer is told by the parameters of the program that an instruction depends on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from hlo_mapping.ir import Computation, Instruction, Module

Method = Literal["parameters", "most parameters", "name"]
MOST_INSTANCES = 200_000
"""Instructions looked at, those of a computation once for each call of it; programs call a handful."""
DEEPEST_CALL = 64
_SILENT = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast"})
_INLINED = frozenset({"call", "while", "conditional", "fusion", "async-start"})
Key = tuple[str, str, int]
"""op_name, source file and line."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What one optimized instruction came of, by op_name and source. `candidates` fit equally well.

    `method`: `parameters` where they depend on the same of the program's parameters as well; `most parameters` where on nearly the same,
    which no others do (XLA's passes drop what does not matter, and fold what is known); `name` where nothing tells them apart.
    """

    key: Key
    candidates: tuple[Instruction, ...]
    method: Method

    @property
    def distance(self) -> int:
        """How little is known: smaller is surer."""
        return ("parameters", "most parameters", "name").index(self.method)


@dataclass(frozen=True, slots=True)
class Origins:
    """The program before XLA's passes, by what its instructions can be told by."""

    by_key: Mapping[Key, Mapping[str, tuple[Instruction, int]]]
    """For each key instructions by name, each with the parameters that it depends on (as bits)."""
    after: Mapping[str, tuple[tuple[Key, int], ...]]
    """For each optimized instruction that stands in no fusion the keys within it, and what each depends on."""

    def of(self, name: str) -> tuple[Origin, ...]:
        """The origins of an optimized instruction, in the order written; () for one without op_name, or of another program."""
        found: dict[Key, Origin] = {}
        for key, parameters in self.after.get(name, ()):
            if candidates := self.by_key.get(key):
                origin = _nearest(key, candidates, parameters)
                if key not in found or origin.distance < found[key].distance:
                    found[key] = origin
        return tuple(found.values())


def _nearest(key: Key, candidates: Mapping[str, tuple[Instruction, int]], parameters: int) -> Origin:
    apart = {name: (depends ^ parameters).bit_count() for name, (_, depends) in candidates.items()}
    least = min(apart.values())
    near = tuple(instruction for name, (instruction, _) in candidates.items() if apart[name] == least)
    if least == 0:
        return Origin(key, near, "parameters")
    return Origin(key, near, "most parameters" if len(near) < len(candidates) else "name")


def find_origins(before: Module, after: Module) -> Origins:
    """Looks through both modules once. Names repeat in neither (HLO's verifier sees to that)."""
    by_key: dict[Key, dict[str, tuple[Instruction, int]]] = {}
    for use in _Walk(before).uses():
        for key in use.told_by():
            by_key.setdefault(key, {}).setdefault(use.instruction.name, (use.instruction, use.depends))
    within: dict[str, dict[tuple[Key, int], None]] = {}
    for use in _Walk(after).uses():
        for key in use.told_by():
            within.setdefault(use.launched, {})[key, use.depends] = None
    return Origins(by_key, {name: tuple(keys) for name, keys in within.items()})


@dataclass(frozen=True, slots=True)
class _Use:
    """An instruction where it is reached: through which calls, and on which of the entry's parameters it depends."""

    instruction: Instruction
    depends: int
    launched: str
    """Itself, or the fusion around it."""
    prefix: str

    def told_by(self) -> Iterator[Key]:
        """As the text says it, and as the inliner would."""
        metadata = self.instruction.metadata
        if self.instruction.opcode in _SILENT or not metadata.op_name:
            return
        yield metadata.op_name, metadata.source_file, metadata.source_line
        if self.prefix:
            yield f"{self.prefix}/{metadata.op_name}", metadata.source_file, metadata.source_line


@dataclass(slots=True)
class _Walk:
    """Goes through a module from its entry, into what is called. A call that is too deep or too much is not entered."""

    module: Module
    left: int = field(default=MOST_INSTANCES)

    def uses(self) -> Iterator[_Use]:
        entry = self.module.entry
        given = [1 << (parameter.parameter_number or 0) for parameter in entry.parameters]
        yield from self._computation(entry, given, "", "", 0)

    def _computation(self, computation: Computation, given: list[int], prefix: str, fusion: str, depth: int) -> Iterator[_Use]:
        depends: dict[str, int] = {}
        for instruction in computation.instructions:
            self.left -= 1
            if self.left < 0:
                return
            mine = 0
            for operand in instruction.operands:
                mine |= depends.get(operand.name, 0)
            number = instruction.parameter_number
            if number is not None and number < len(given):
                mine = given[number]
            depends[instruction.name] = mine
            yield _Use(instruction, mine, fusion or instruction.name, prefix)
            if instruction.opcode in _INLINED and depth < DEEPEST_CALL:
                yield from self._called(
                    instruction, [depends.get(operand.name, 0) for operand in instruction.operands], prefix, fusion, depth
                )

    def _called(self, caller: Instruction, operands: list[int], prefix: str, fusion: str, depth: int) -> Iterator[_Use]:
        is_call = caller.opcode == "call"
        inner = "/".join(filter(None, (prefix, caller.metadata.op_name))) if is_call else prefix
        around = fusion or (caller.name if caller.opcode in ("fusion", "async-start") else "")
        for place, name in enumerate(caller.called):
            called = self.module.by_name.get(name)
            if called is not None:
                given = operands[place + 1 : place + 2] if caller.opcode == "conditional" else operands
                yield from self._computation(called, given, inner, around, depth + 1)
