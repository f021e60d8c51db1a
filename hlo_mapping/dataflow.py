"""The whole module as one flat graph of values: fusions, calls and branches opened up, loops closed by phi nodes.

A node is one array (or one instruction with several results, followed by a `leaf` node for each of them). Tuples, get-tuple-element,
async wrappers and barriers leave no node: a use points straight at the node that made the value. What a fusion reads is therefore the
nodes outside it that its own nodes point at, whatever lies between. `kernel` says which launch computes a node; -1 where none does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from hlo_mapping.errors import HloError
from hlo_mapping.ir import Alias, Computation, Instruction, Module, Operand
from hlo_mapping.opcodes import DONES, NO_WORK, PASSING, STARTS, VIEW_OPCODES
from hlo_mapping.shape import Shape
from hlo_mapping.text.calls import expanded_sizes

Tree: TypeAlias = "int | tuple[Tree, ...]"
"""The nodes of a value: one, or one tree for each element of a tuple."""

UNKNOWN = "unknown"
"""The operation of a value that the text does not say."""
MOST_NODES, NODES_PER_INSTRUCTION = 200_000, 20
"""Calls are opened in place as long as the graph stays below this, or below so many nodes for each instruction of the module: where
computations call others twice, and those again, what is behind a call is left closed, and its work is unknown."""


@dataclass(slots=True)
class Kernel:
    """One instruction that launches work, in one computation that is executed."""

    instruction: Instruction
    computation: str
    first: int
    """Its nodes are numbered from here to `end`."""
    end: int = 0
    results: tuple[int, ...] = ()
    """The node of each array of its result, in order."""
    loop: int = -1
    """The innermost while loop around it, as a number in Graph.loops."""
    in_condition: bool = False
    """Whether it computes a while loop's condition."""


@dataclass(slots=True)
class Loop:
    """One while instruction. Its body's and condition's nodes are numbered from `first` to `end`."""

    instruction: Instruction
    outer: int
    first: int = 0
    end: int = 0
    phis: tuple[int, ...] = ()

    @property
    def trip_count(self) -> int | None:
        """How often the body runs, where the compiler knows."""
        return self.instruction.trip_count


@dataclass(slots=True)
class Graph:
    """Nodes by number; a node's inputs come before it, but for the second input of a loop's phi."""

    module: Module
    ops: list[str] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    inputs: list[tuple[int, ...]] = field(default_factory=list)
    kernel: list[int] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    parameters: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    """Entry parameter number and tuple index, by node."""
    outputs: tuple[int, ...] = ()
    """The node of each array of the module's result."""
    users: list[list[int]] = field(default_factory=list)

    def count(self, node: int) -> int:
        """Elements of a node's array."""
        return self.shapes[node].element_count

    def inside(self, node: int, loop: int) -> bool:
        """Whether a node is computed in a loop's body or condition."""
        return self.loops[loop].first <= node < self.loops[loop].end

    def leaf_operand(self, leaf: int) -> int:
        """The operand of the same place as a result: of collectives and others that handle each operand by itself."""
        operation = self.inputs[leaf][0]
        operands = self.inputs[operation]
        return operands[min(leaf - operation - 1, len(operands) - 1)] if operands else operation

    def viewed(self, node: int) -> int:
        """The node whose bytes this node names, through bitcasts."""
        while self.ops[node] in VIEW_OPCODES:
            node = self.inputs[node][0]
        return node


def reached(starts: Iterable[int], onward: Callable[[int], Iterable[int]]) -> Iterator[int]:
    """Every node that can be reached from some, themselves among them, each once; `onward` gives the nodes next to one, and is not asked
    before the caller has looked at that one. The last found are looked at first."""
    stack, seen = list(starts), set[int]()
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            yield node
            stack.extend(onward(node))


def build_graph(module: Module) -> Graph:
    """The graph of everything that the module's entry computation executes. HloError where it uses what the module does not hold."""
    graph = Graph(module)
    builder = _Builder(graph)
    arguments = [builder.entry_parameter(p) for p in module.entry.parameters]
    try:
        result = builder.computation(module.entry, arguments, -1)
    except (KeyError, IndexError, ValueError) as error:
        where = module.source or module.name
        raise HloError(f"{where}: the module is not whole: {error}", "Dump it again; a run that was cut short leaves such files.") from None
    builder.settle()
    graph.outputs = tuple(builder.find(n) for n in _leaves(result))
    graph.users = [[] for _ in graph.ops]
    for node, inputs in enumerate(graph.inputs):
        for source in inputs:
            graph.users[source].append(node)
    return graph


def _leaves(tree: Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else [n for part in tree for n in _leaves(part)]


def _at(tree: Tree, index: tuple[int, ...]) -> Tree:
    for i in index:
        if isinstance(tree, int):
            break
        tree = tree[i]
    return tree


class _Builder:
    """Walks computations in the order they run and numbers their values."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.same: dict[int, int] = {}
        self.loop = -1
        self.in_condition = False
        self.sizes = expanded_sizes(graph.module.by_name)
        self.most = max(MOST_NODES, NODES_PER_INSTRUCTION * sum(len(c.instructions) for c in graph.module.computations))

    def opens(self, *names: str) -> bool:
        """Whether there is room to open the computations that an instruction calls."""
        return len(self.graph.ops) + sum(self.sizes[name] for name in names) <= self.most

    def node(self, op: str, shape: Shape, inputs: tuple[int, ...], kernel: int, instruction: Instruction) -> int:
        g = self.graph
        g.ops.append(op)
        g.shapes.append(shape)
        g.inputs.append(inputs)
        g.kernel.append(kernel)
        g.instructions.append(instruction)
        return len(g.ops) - 1

    def find(self, node: int) -> int:
        while node in self.same:
            node = self.same[node]
        return node

    def settle(self) -> None:
        """Point every use of a phi that turned out to be loop-invariant at what the loop started from."""
        if self.same:
            self.graph.inputs = [tuple(self.find(i) for i in inputs) for inputs in self.graph.inputs]
        for kernel in self.graph.kernels:
            kernel.results = tuple(self.find(n) for n in kernel.results)

    def entry_parameter(self, instruction: Instruction) -> Tree:
        return self._parameter(instruction, instruction.shape, ())

    def _parameter(self, instruction: Instruction, shape: Shape, index: tuple[int, ...]) -> Tree:
        if shape.is_tuple:
            return tuple(self._parameter(instruction, e, (*index, i)) for i, e in enumerate(shape.elements))
        node = self.node("parameter", shape, (), -1, instruction)
        self.graph.parameters[node] = (instruction.parameter_number or 0, index)
        return node

    def computation(self, computation: Computation, arguments: list[Tree], kernel: int) -> Tree:
        """Number the values of a computation called with `arguments`; the tree of its root."""
        values: dict[str, Tree] = {}
        root: Tree = ()
        for instruction in computation.instructions:
            value = self.instruction(instruction, values, arguments, kernel, computation)
            values[instruction.name] = value
            if instruction.is_root:
                root = value
        return root if any(i.is_root for i in computation.instructions) else values[computation.root.name]

    def instruction(self, i: Instruction, values: dict[str, Tree], arguments: list[Tree], kernel: int, home: Computation) -> Tree:
        op = i.opcode
        if op == "parameter":
            return self._argument(i, arguments)
        operands = [_operand(values, o) for o in i.operands]
        if op == "tuple":
            return tuple(operands)
        if op == "get-tuple-element":
            return _at(operands[0], (int(i.attribute("index", "0")),))
        if op in PASSING:
            return operands[0]
        if op.endswith("-done") and op not in DONES:
            return _done(operands[0])
        if op in DONES:
            return self._fit(operands[0], i.shape, i)
        if op in ("while", "conditional", "call", "async-start"):
            return self._control(i, operands, kernel, home)
        if op.endswith("-update") and op not in STARTS:
            return operands[0]
        return self._work(i, operands, kernel, home)

    def _argument(self, i: Instruction, arguments: list[Tree]) -> Tree:
        """What a computation is called with; where the call has fewer operands than it takes, nobody knows what."""
        number = i.parameter_number or 0
        return arguments[number] if number < len(arguments) else self._leafed(self.node(UNKNOWN, i.shape, (), -1, i), i.shape, -1, i)

    def _fit(self, tree: Tree, shape: Shape, i: Instruction) -> Tree:
        """A value as a tree of this shape: one node that stands for a whole tuple stands for each part, and what is missing is unknown."""
        if not shape.is_tuple:
            return tree if isinstance(tree, int) else (_leaves(tree) or [self.node(UNKNOWN, shape, (), -1, i)])[0]
        parts = [tree] * len(shape.elements) if isinstance(tree, int) else [*tree[: len(shape.elements)]]
        parts += [self.node(UNKNOWN, e, (), -1, i) for e in shape.elements[len(parts) :]]
        return tuple(self._fit(part, e, i) for part, e in zip(parts, shape.elements, strict=True))

    def _control(self, i: Instruction, operands: list[Tree], kernel: int, home: Computation) -> Tree:
        by_name = self.graph.module.by_name
        if not self.opens(*i.called):
            return self._work(i, operands, kernel, home)
        if i.opcode == "while":
            return self._while(i, self._fit(operands[0], i.shape, i), kernel)
        if i.opcode == "conditional":
            branches = [self.computation(by_name[c], [o], kernel) for c, o in zip(i.called, operands[1:], strict=False)]
            return self._join(i, i.shape, branches)
        if not i.called:
            return self._work(i, operands, kernel, home)
        result = self.computation(by_name[i.called[0]], operands, kernel)
        return result if i.opcode == "call" else (tuple(operands), result)

    def _join(self, i: Instruction, shape: Shape, branches: list[Tree]) -> Tree:
        """The value of a conditional: any of its branches'."""
        if shape.is_tuple:
            parts = [[_at(b, (n,)) for b in branches] for n in range(len(shape.elements))]
            return tuple(self._join(i, e, p) for e, p in zip(shape.elements, parts, strict=True))
        nodes = tuple(dict.fromkeys(n for b in branches for n in _leaves(b)))
        return nodes[0] if len(nodes) == 1 else self.node("phi", shape, nodes, -1, i)

    def _while(self, i: Instruction, start: Tree, kernel: int) -> Tree:
        g = self.graph
        condition, body = (g.module.by_name[c] for c in i.called[:2])
        number, outer = len(g.loops), self.loop
        loop = Loop(i, outer)
        g.loops.append(loop)
        carried = self._phis(i, start)
        loop.first, self.loop = len(g.ops), number
        self.in_condition, was = True, self.in_condition
        self.computation(condition, [carried], kernel)
        self.in_condition = was
        back = self._fit(self.computation(body, [carried], kernel), i.shape, i)
        loop.end, self.loop = len(g.ops), outer
        loop.phis = tuple(self._close(p, b) for p, b in zip(_leaves(carried), _leaves(back), strict=True))
        loop.phis = tuple(p for p in loop.phis if p not in self.same)
        return carried

    def _phis(self, i: Instruction, tree: Tree) -> Tree:
        if isinstance(tree, int):
            return self.node("phi", self.graph.shapes[tree], (tree,), -1, i)
        return tuple(self._phis(i, part) for part in tree)

    def _close(self, phi: int, back: int) -> int:
        """Give a loop's phi what the body returns; one that the body returns as it came is what the loop started from."""
        start = self.graph.inputs[phi][0]
        if self.find(back) in (phi, self.find(start)):
            self.same[phi] = start
        else:
            self.graph.inputs[phi] = (start, back)
        return phi

    def _work(self, i: Instruction, operands: list[Tree], kernel: int, home: Computation) -> Tree:
        g = self.graph
        if kernel >= 0 or i.opcode in NO_WORK:
            return self._value(i, operands, kernel)
        launch = Kernel(i, home.name, len(g.ops), loop=self.loop, in_condition=self.in_condition)
        g.kernels.append(launch)
        value = self._value(i, operands, len(g.kernels) - 1)
        launch.end = len(g.ops)
        launch.results = tuple(_leaves(_done(value) if i.opcode.endswith("-start") and i.opcode not in STARTS else value))
        return value

    def _value(self, i: Instruction, operands: list[Tree], kernel: int) -> Tree:
        if i.opcode == "fusion" and self.opens(*i.called):
            return self.computation(self.graph.module.by_name[i.called[0]], operands, kernel)
        inputs = tuple(n for o in operands for n in _leaves(o))
        op, shape = i.opcode, i.shape
        if op == "slice":
            inputs = (self._part_of_concatenation(i, inputs[0]),)
        if op in STARTS:
            element = STARTS[op]
            op, shape = op.removesuffix("-start"), shape.elements[element] if element is not None and shape.is_tuple else shape
        elif op.endswith("-start"):
            op = op.removesuffix("-start")
            return self._started(i, op, operands, inputs, kernel)
        return self._leafed(self.node(op, shape, inputs, kernel, i), shape, kernel, i)

    def _part_of_concatenation(self, i: Instruction, source: int) -> int:
        """What a slice takes of a concatenation, where it lies in one of the parts: XLA's horizontal fusions join values to split them."""
        g = self.graph
        if g.ops[source] != "concatenate":
            return source
        axis = int(g.instructions[source].attribute("dimensions").strip("{}") or 0)
        ranges = [
            part.split(":") for part in i.attribute("slice").replace("{", "").replace("[", "").replace("}", "").rstrip("]").split("],")
        ]
        first, last = int(ranges[axis][0]), int(ranges[axis][1])
        start = 0
        for part in g.inputs[source]:
            end = start + g.shapes[part].dimensions[axis]
            if start <= first and last <= end:
                return part
            start = end
        return source

    def _started(self, i: Instruction, op: str, operands: list[Tree], inputs: tuple[int, ...], kernel: int) -> Tree:
        """An operation printed as OP-start: its shape is (operands, result, context...), as async-start's."""
        shape = i.shape.elements[1] if i.shape.is_tuple and len(i.shape.elements) > 1 else i.shape
        if i.called and op == "fusion" and self.opens(*i.called):
            return (tuple(operands), self.computation(self.graph.module.by_name[i.called[0]], operands, kernel))
        return (tuple(operands), self._leafed(self.node(op, shape, inputs, kernel, i), shape, kernel, i))

    def _leafed(self, node: int, shape: Shape, kernel: int, i: Instruction) -> Tree:
        if not shape.is_tuple:
            return node
        return tuple(self._leafed(self.node("leaf", e, (node,), kernel, i), e, kernel, i) for e in shape.elements)


def _operand(values: dict[str, Tree], operand: Operand) -> Tree:
    return _at(values[operand.name], operand.index)


def _done(started: Tree) -> Tree:
    """What an async-done returns: the second element of (operands, result, context...)."""
    return started[1] if isinstance(started, tuple) and len(started) > 1 else started


def donated(module: Module) -> frozenset[tuple[int, tuple[int, ...]]]:
    """The parameters (number, tuple index) whose buffers the program may overwrite."""
    return frozenset((a.parameter, a.parameter_index) for a in module.aliases) | frozenset(module.donors)


def aliases_by_output(module: Module) -> dict[tuple[int, ...], Alias]:
    """The alias of each output leaf that reuses a parameter's buffer, by output tuple index."""
    return {a.output_index: a for a in module.aliases}
