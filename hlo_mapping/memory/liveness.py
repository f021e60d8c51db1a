"""When each value of a scheduled module is alive: from the instruction that makes it to the last that needs it.

Instructions are numbered as XLA's HloLiveRange flattens them (xla/hlo/utils/hlo_live_range.cc): what an instruction calls stands before
it. Values that pass through tuples, views and calls, into loops and out of them, are needed as long as what they become; what a loop
carries, XLA keeps in one buffer, so that it is alive from its start to the last use of the loop's result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hlo_mapping.ir import Computation, Instruction, Module
from hlo_mapping.opcodes import PASSING, VIEW_OPCODES
from hlo_mapping.shape import Shape

Key: TypeAlias = tuple[str, tuple[int, ...]]
"""A value: the instruction that makes it, and which part of its result it is."""
Parts: TypeAlias = dict[tuple[int, ...], frozenset[Key]]
"""For each array in a result, and each tuple's table of pointers, the values that may lie in its buffer."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """The order of a module's instructions, and when each value is alive: from its first place to its last, both included."""

    order: tuple[str, ...]
    ranges: Mapping[Key, tuple[int, int]]


@dataclass(slots=True)
class _Walk:
    module: Module
    order: list[str] = field(default_factory=list)
    first: dict[Key, int] = field(default_factory=dict)
    last: dict[Key, int] = field(default_factory=dict)

    def computation(self, computation: Computation, arguments: list[Parts]) -> Parts:
        """Number the instructions of a computation called with these; the parts of its result."""
        values: dict[str, Parts] = {}
        root: Parts = {}
        for i in computation.instructions:
            values[i.name] = self.instruction(i, values, arguments)
            if i.is_root:
                root = values[i.name]
        return root or values[computation.root.name]

    def instruction(self, i: Instruction, values: dict[str, Parts], arguments: list[Parts]) -> Parts:
        operands = [_part(values.get(o.name, {}), o.index) for o in i.operands]
        inner = self.called(i, operands)
        place = len(self.order)
        self.order.append(i.name)
        for operand in operands:
            self.use(operand if i.opcode != "get-tuple-element" else _taken(i, operand), place)
        made = self.result(i, operands, inner, arguments)
        for keys in made.values():
            for key in keys:
                self.first.setdefault(key, place)
                self.last[key] = max(self.last.get(key, place), place)
        return made

    def called(self, i: Instruction, operands: list[Parts]) -> list[Parts]:
        """What the computations return that an instruction runs before it is done; fusions and reducers have no buffers of their own."""
        by_name = self.module.by_name
        if i.opcode == "while":
            condition, body = (by_name[name] for name in i.called[:2])
            carried = _merged([operands[0], _own(i)])
            for keys in carried.values():
                for key in keys:
                    self.first.setdefault(key, len(self.order))
            self.computation(condition, [carried])
            return [carried, self.computation(body, [carried])]
        if i.opcode == "conditional":
            return [self.computation(by_name[name], [operand]) for name, operand in zip(i.called, operands[1:], strict=False)]
        if i.opcode in ("call", "async-start") and i.called:
            return [self.computation(by_name[i.called[0]], operands)]
        return []

    def result(self, i: Instruction, operands: list[Parts], inner: list[Parts], arguments: list[Parts]) -> Parts:
        op = i.opcode
        if op == "parameter" and arguments:
            number = i.parameter_number or 0
            return _merged([_own(i), arguments[number] if number < len(arguments) else {}])
        if op == "tuple":
            table = {(): frozenset({(i.name, ())})}
            return table | {(n, *index): keys for n, operand in enumerate(operands) for index, keys in operand.items()}
        if op == "get-tuple-element":
            return _part(operands[0], (int(i.attribute("index", "0")),))
        if op in PASSING or op in VIEW_OPCODES:
            return operands[0] if operands else {}
        if op.endswith("-done"):
            return _merged([_part(operands[0], (1,)) or operands[0], _own(i)])
        if op == "async-start":
            results = {(1, *index): keys for index, keys in (inner[0] if inner else {}).items()}
            return _merged([results, _own(i), *({(0, n, *k): v for k, v in o.items()} for n, o in enumerate(operands))])
        return _merged([_own(i), *inner])

    def use(self, parts: Parts, place: int) -> None:
        for keys in parts.values():
            for key in keys:
                self.last[key] = max(self.last.get(key, place), place)


def schedule(module: Module) -> Liveness:
    """The order and the ranges of a module whose text is in the order it runs."""
    walk = _Walk(module)
    returned = walk.computation(module.entry, [])
    end = len(walk.order) - 1
    walk.use(returned, end)
    for parameter in module.entry.parameters:  # the caller's, all the time
        for key in _own(parameter).values():
            walk.use({(): key}, end)
            for one in key:
                walk.first[one] = 0
    return Liveness(tuple(walk.order), {key: (first, walk.last.get(key, first)) for key, first in walk.first.items()})


def _taken(i: Instruction, operand: Parts) -> Parts:
    """What a get-tuple-element needs: the table of pointers and the part it takes."""
    wanted = int(i.attribute("index", "0"))
    return {index: keys for index, keys in operand.items() if not index or index[0] == wanted}


def _own(i: Instruction) -> Parts:
    return {index: frozenset({(i.name, index)}) for index in _indices(i.shape)}


def _indices(shape: Shape) -> list[tuple[int, ...]]:
    if not shape.is_tuple:
        return [()]
    return [(), *((n, *rest) for n, element in enumerate(shape.elements) for rest in _indices(element))]


def _part(parts: Parts, index: tuple[int, ...]) -> Parts:
    size = len(index)
    return {key[size:]: keys for key, keys in parts.items() if key[:size] == index} if size else parts


def _merged(several: list[Parts]) -> Parts:
    out: Parts = {}
    for parts in several:
        for index, keys in parts.items():
            out[index] = out.get(index, frozenset()) | keys
    return out
