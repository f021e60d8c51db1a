"""Who writes and who reads the values of a program, launch by launch: what rules ask of its dataflow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hlo_mapping import VIEW_OPCODES, Graph, HloError, Kernel, Module, build_graph

_CONSTANTS = frozenset({"constant", "iota", "broadcast"})


MOST_BYTES = 2**50
"""No array is larger: a text that says so is wrong."""


@dataclass(frozen=True, slots=True)
class Passed:
    """An array that one launch writes and others read."""

    writer: str
    """The HLO instruction."""
    readers: tuple[str, ...]
    bytes: int
    shape: str
    is_result: bool
    """Whether the program also returns it, so that it must be written."""


@dataclass(frozen=True)
class Flow:
    """The dataflow of one module, by HLO instruction."""

    graph: Graph

    @cached_property
    def kernels(self) -> Mapping[str, Kernel]:
        """The launch of each instruction; of a computation that is called several times, the first."""
        found: dict[str, Kernel] = {}
        for kernel in self.graph.kernels:
            found.setdefault(kernel.instruction.name, kernel)
        return found

    def opcodes(self, name: str) -> list[str]:
        """What an instruction computes, opened up: the opcodes of its fusion's body, or its own."""
        kernel = self.kernels.get(name)
        return self.graph.ops[kernel.first : kernel.end] if kernel is not None else []

    def nodes(self, name: str, opcode: str) -> list[int]:
        """The nodes of one opcode in an instruction."""
        kernel = self.kernels.get(name)
        return [n for n in range(kernel.first, kernel.end) if self.graph.ops[n] == opcode] if kernel is not None else []

    def trip_count(self, name: str) -> int | None:
        """How often the loop around an instruction runs, where the compiler knows; None outside loops too."""
        kernel = self.kernels.get(name)
        return self.graph.loops[kernel.loop].trip_count if kernel is not None and kernel.loop >= 0 else None

    def is_in_loop(self, name: str) -> bool:
        """Whether an instruction stands in the body of a while loop."""
        kernel = self.kernels.get(name)
        return kernel is not None and kernel.loop >= 0

    def reads(self, name: str) -> set[int]:
        """The nodes outside an instruction that it reads, through views."""
        kernel = self.kernels.get(name)
        if kernel is None:
            return set()
        inputs = {i for node in range(kernel.first, kernel.end) for i in self.graph.inputs[node]}
        return {self.graph.viewed(i) for i in inputs if not kernel.first <= i < kernel.end}

    def arguments(self, name: str) -> set[tuple[int, tuple[int, ...]]]:
        """The entry parameters (number, index in a tuple) that an instruction reads as they came in."""
        return {self.graph.parameters[node] for node in self.reads(name) if node in self.graph.parameters}

    def argument_bytes(self, place: tuple[int, tuple[int, ...]]) -> int:
        """The size of an entry parameter."""
        return next((self.graph.shapes[node].byte_size for node, where in self.graph.parameters.items() if where == place), 0)

    def tied(self, name: str) -> set[str]:
        """The instructions that an instruction's operands need or that need its result, itself among them; all where it is unknown."""
        kernel = self.kernels.get(name)
        if kernel is None:
            return set(self.kernels)
        own = range(kernel.first, kernel.end)
        nodes = self._reached(own, self.graph.inputs) | self._reached(own, self.graph.users)
        return {self.graph.kernels[k].instruction.name for k in {self.graph.kernel[n] for n in nodes} if k >= 0}

    def _reached(self, start: Iterable[int], edges: Sequence[Sequence[int]]) -> set[int]:
        seen, todo = set(start), list(start)
        while todo:
            for node in edges[todo.pop()]:
                if node not in seen:
                    seen.add(node)
                    todo.append(node)
        return seen

    @cached_property
    def passed(self) -> tuple[Passed, ...]:
        """Every array that a launch writes for another one to read."""
        return tuple(self._passed())

    def _passed(self) -> Iterator[Passed]:
        outputs = {self.graph.viewed(node) for node in self.graph.outputs}
        for number, kernel in enumerate(self.graph.kernels):
            for node in kernel.results:
                if self.graph.kernel[node] != number:
                    continue
                readers = tuple(sorted({self.graph.kernels[k].instruction.name for k in self._readers(node, number)}))
                shape = self.graph.shapes[node]
                if readers and shape.byte_size < MOST_BYTES:
                    yield Passed(kernel.instruction.name, readers, shape.byte_size, shape.text(layouts=False), node in outputs)

    def _readers(self, node: int, writer: int) -> set[int]:
        """The launches that read a value, through views, loops' carried values and branches."""
        found: set[int] = set()
        seen, todo = {node}, [node]
        while todo:
            for user in self.graph.users[todo.pop()]:
                kernel = self.graph.kernel[user]
                if kernel >= 0 and kernel != writer:
                    found.add(kernel)
                elif kernel < 0 and user not in seen and self.graph.ops[user] in (*VIEW_OPCODES, "phi"):
                    seen.add(user)
                    todo.append(user)
        return found

    @cached_property
    def _state(self) -> list[tuple[bool, bool]]:
        """Of each node whether it depends on what its innermost loop carries from one iteration to the next, and on its counter."""
        graph = self.graph
        counters = {phi for loop in graph.loops for phi in loop.phis if _counts(graph, phi)}
        of_loop = {phi: number for number, loop in enumerate(graph.loops) for phi in loop.phis}
        found: list[set[int]] = []
        for node, inputs in enumerate(graph.inputs):
            mine = {phi for i in inputs if i < node for phi in found[i]}
            if node in of_loop:
                mine = mine | {node}
            found.append(mine)
        innermost = self._innermost
        return [
            (
                any(of_loop[phi] == loop and phi not in counters for phi in mine),
                any(of_loop[phi] == loop and phi in counters for phi in mine),
            )
            for mine, loop in zip(found, innermost, strict=True)
        ]

    @cached_property
    def _innermost(self) -> list[int]:
        """The innermost loop of each node, -1 outside."""
        found = [-1] * len(self.graph.ops)
        for number, loop in enumerate(self.graph.loops):  # inner loops come after the outer ones
            for node in range(loop.first, loop.end):
                found[node] = number
        return found

    def dependence(self, name: str) -> str:
        """What an instruction in a loop needs of the iteration: "nothing", "counter" (its number alone) or "state"."""
        kernel = self.kernels[name]
        nodes = [self._state[n] for n in range(kernel.first, kernel.end) if self.graph.ops[n] not in _CONSTANTS]
        if any(state for state, _ in nodes):
            return "state"
        return "counter" if any(counter for _, counter in nodes) else "nothing"


def _counts(graph: Graph, phi: int) -> bool:
    """Whether a loop carries in this place its number: an integer scalar that the body adds a constant to."""
    if graph.shapes[phi].dimensions or len(graph.inputs[phi]) != 2:
        return False
    back = graph.inputs[phi][1]
    return (
        graph.ops[back] == "add" and phi in graph.inputs[back] and all(i == phi or graph.ops[i] == "constant" for i in graph.inputs[back])
    )


def flow_of(module: Module | None) -> Flow | None:
    """The dataflow of a module; None without one, or where its text is not whole."""
    if module is None:
        return None
    try:
        return Flow(build_graph(module))
    except HloError:
        return None
