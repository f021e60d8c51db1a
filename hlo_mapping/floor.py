"""The fewest bytes that a program must move whatever is fused or reordered in it: its inputs as far as it needs them, and its results.

What one kernel writes for another to read is no part of it, gradients among it. An input that a loop reads again in each iteration
counts once for each only where the inputs of that loop cannot stay in any GPU's L2 cache. Of a KV cache count the entries that are read
and written; of a table whose gradient is scattered, and of its moments, the rows that the step touches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from hlo_mapping.classification.evidence import KV_CACHE
from hlo_mapping.classification.rules import ModuleAnalysis
from hlo_mapping.costs.calls import is_known
from hlo_mapping.costs.traffic import Traffic, device_bytes, launch_traffic
from hlo_mapping.dataflow import Graph, Kernel
from hlo_mapping.launches import launch_counts
from hlo_mapping.opcodes import ELEMENTWISE, VIEW_OPCODES

LARGEST_L2 = 128 << 20
"""Bytes that no GPU's L2 cache exceeds (B200: 126 MB)."""
_VERSIONS = frozenset({*VIEW_OPCODES, "copy", "convert", "transpose", "reshape", "phi", "dynamic-update-slice", "scatter"})
"""Operations whose result is their first operand's array in another form or version."""


def floor_bytes(facts: Sequence[Mapping[str, object]], launches: Mapping[str, int | None]) -> int:
    """The bytes of one execution from rows of facts; a lower bound where trip counts (`launches`, by instruction) are unknown."""
    counted = ((row["floor_bytes"], launches.get(str(row["hlo_instruction"])) or 1) for row in facts)
    return sum(size * times for size, times in counted if isinstance(size, int))


def least_bytes(program: ModuleAnalysis, rows: Sequence[Mapping[str, object]]) -> list[int]:
    """Of each launch the bytes that no rewriting avoids; `rows` are the launches' facts, in the order of the graph's kernels.

    What several launches read is the first one's. Of an input that a loop reads, and that can stay in a cache, each launch has its part.
    """
    graph = program.graph
    needs = _Needs(program, launch_counts(graph.module))
    found = []
    for number, row in enumerate(rows):
        cache = sum(int(row.get(name) or 0) for name in ("kv_read_bytes", "kv_write_bytes"))  # type: ignore[call-overload]
        found.append(cache + needs.inputs(number) + needs.results(number))
    return found


class _Needs:
    """What is still to be read of each input and to be written of each result."""

    def __init__(self, program: ModuleAnalysis, launches: Mapping[str, int | None]) -> None:
        self.graph, self.launches = program.graph, launches
        self.traffic = [_traffic(self.graph, kernel) for kernel in self.graph.kernels]
        self.caches = {n for n, role in program.roles.role.items() if role == KV_CACHE} | program.roles.caches
        touched = dict(_touched(self.graph))
        self.left = {
            node: int(device_bytes(shape) * touched.get(node, 1.0)) for node, shape in enumerate(self.graph.shapes) if self._is_input(node)
        }
        self.wanted = {node: int(size * touched.get(node, 1.0)) for node, size in _wanted(self.graph).items()}
        looped = {root for k, kernel in enumerate(self.graph.kernels) if kernel.loop >= 0 for root in self._reads(k)}
        self.stays = sum(self.left[root] for root in looped) <= LARGEST_L2

    def _is_input(self, node: int) -> bool:
        graph = self.graph
        stored = node in graph.parameters or (graph.ops[node] == "constant" and graph.count(node) > 1)
        return stored and node not in self.caches

    def _reads(self, kernel: int) -> dict[int, int]:
        """What a kernel reads of inputs, in whatever form they are."""
        found = defaultdict[int, int](int)
        for node, size in self.traffic[kernel].reads.items():
            root = _first_version(self.graph, node)
            if root in self.left and (root == self.graph.viewed(node) or self.graph.kernels[kernel].loop >= 0):
                found[root] += size
        return found

    def inputs(self, kernel: int) -> int:
        """Bytes of inputs that one launch is the first to read, or reads again from beyond any cache."""
        reads = self._reads(kernel)
        if self._times(kernel) != 1 and not self.stays:
            return sum(reads.values())
        return sum(self._taken(self.left, root, size, kernel) for root, size in reads.items())

    def results(self, kernel: int) -> int:
        """Bytes of results that one launch writes; copies of what came in are not needed where it is donated."""
        written = ((node, size) for node, size in self.traffic[kernel].writes.items() if node in self.wanted)
        kept = ((n, size) for n, size in written if self.graph.ops[n] != "copy" and _first_version(self.graph, n) not in self.caches)
        return sum(self._taken(self.wanted, node, size, kernel) for node, size in kept)

    def _times(self, kernel: int) -> int | None:
        """How often it runs in an execution; None where nobody knows."""
        found = self.graph.kernels[kernel]
        return self.launches.get(found.instruction.name) if found.loop >= 0 else 1

    def _taken(self, left: dict[int, int], node: int, size: int, kernel: int) -> int:
        """A launch's part of what is left of an array, which its further launches and later kernels then lack."""
        times = self._times(kernel)
        if times is None:  # at least one launch: which part of the array it takes, nobody knows
            return 0
        taken = min(size * times, left[node])
        left[node] -= taken
        return taken // max(times, 1)


def _traffic(graph: Graph, kernel: Kernel) -> Traffic:
    """What a launch moves; nothing of a call that may take parts of its operands."""
    calls = (n for n in range(kernel.first, kernel.end) if graph.ops[n] == "custom-call")
    return launch_traffic(graph, kernel) if all(is_known(graph, n) for n in calls) else Traffic()


def _first_version(graph: Graph, node: int) -> int:
    """The array that a node is a later version of, or the same in another form."""
    while graph.ops[node] in _VERSIONS and graph.inputs[node]:
        node = graph.inputs[node][0]
    return node


def _wanted(graph: Graph) -> dict[int, int]:
    """The size of each value that is a result of the module, or becomes one at the end of a loop."""
    wanted = {graph.viewed(node) for node in graph.outputs}
    for loop in graph.loops:
        wanted |= {graph.inputs[phi][1] for phi in loop.phis if phi in wanted and len(graph.inputs[phi]) > 1}
    return {node: device_bytes(graph.shapes[node]) for node in wanted}


def _touched(graph: Graph) -> Iterator[tuple[int, float]]:
    """Results, and parameters they are new versions of, that change in the rows of scattered updates alone: and which share of them.

    Told by what a result is made of, element by element: parameters, single numbers, and gradients that start from zeros.
    """
    if "scatter" not in graph.ops:
        return
    for result in graph.outputs:
        leaves = _made_of(graph, graph.viewed(result))
        scatters = [n for n in leaves if graph.ops[n] == "scatter" and _starts_from_nothing(graph, n)]
        others = leaves.difference(scatters) - graph.parameters.keys()
        if not scatters or any(graph.count(n) > 1 for n in others):
            continue
        rows = sum(graph.count(graph.inputs[n][len(graph.inputs[n]) // 2 + 1]) for n in scatters)
        share = min(rows / max(graph.count(result), 1), 1.0)
        for node in {graph.viewed(result), *(leaves & graph.parameters.keys())}:
            yield node, share


def _made_of(graph: Graph, result: int) -> set[int]:
    """The values that a result is computed from element by element, through operations that keep each element's place."""
    found, seen, todo = set[int](), set[int](), [result]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if graph.ops[node] == "broadcast":
            todo.append(graph.inputs[node][0])
        elif graph.inputs[node] and graph.ops[node] in (ELEMENTWISE | VIEW_OPCODES | {"leaf", "tuple"}):
            todo += graph.inputs[node]
        else:
            found.add(node)
    return found


def _starts_from_nothing(graph: Graph, scatter: int) -> bool:
    """Whether a scatter adds to zeros: a gradient, and no table that is updated."""
    node = graph.viewed(graph.inputs[scatter][0])
    while graph.ops[node] in ("broadcast", "convert", "copy") and graph.inputs[node]:
        node = graph.viewed(graph.inputs[node][0])
    return graph.ops[node] == "constant" and graph.count(node) == 1
