"""What values are made of: which entry parameters a value still is, and which buffer it is a later version of.

`pure` is a set of sources as bits: a value that holds nothing but their elements, moved, converted or combined with constants and each
other elementwise. MIXED is everything else: results of products and reductions, activations, values looked up by an index that varies.
`version` follows one buffer through copies, views and partial updates: a cache after a write is a version of the cache before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hlo_mapping.costs.products import numbers_in
from hlo_mapping.costs.traffic import combiner
from hlo_mapping.dataflow import Graph
from hlo_mapping.opcodes import COLLECTIVES, ELEMENTWISE, MOVING, TAKING
from hlo_mapping.shape import INDEX_TYPES

MIXED = -1
"""A value that is no longer any parameter's own."""


@dataclass(slots=True)
class Write:
    """A node that replaces part of a buffer: `root` is the buffer's first version, `varies` whether the place depends on the inputs."""

    node: int
    root: int
    kind: str
    varies: bool


@dataclass(slots=True)
class Contents:
    """Per node: sources, whether its value depends on the program's inputs, and the buffer it is a version of (-1 for none)."""

    pure: list[int]
    varies: list[bool]
    version: list[int]
    written: list[bool]
    bits: dict[int, int]
    """The bit of each source, by its node: entry parameters, and loop-carried buffers that are written in part."""
    nodes: list[int]
    """The sources in the order of their bits."""
    writes: list[Write] = field(default_factory=list)
    updated: int = 0
    """The bits of all buffers that are written in part."""

    def sources(self, mask: int) -> list[int]:
        """The nodes whose bits are set, in the order of their bits; none for MIXED."""
        found: list[int] = []
        while mask > 0:
            low = mask & -mask
            found.append(self.nodes[low.bit_length() - 1])
            mask ^= low
        return found


def trace(graph: Graph) -> Contents:
    """Follow every value of a module from its entry parameters."""
    size = len(graph.ops)
    bits = {node: 1 << i for i, node in enumerate(graph.parameters)}
    contents = Contents([0] * size, [False] * size, [-1] * size, [False] * size, bits, list(bits))
    _settle(graph, contents, _version)
    contents.writes = [w for node in range(size) if (w := _write_at(graph, contents, node)) is not None]
    for write in contents.writes:
        if write.root not in bits:
            bits[write.root] = 1 << len(bits)
            contents.nodes.append(write.root)
        contents.updated |= bits[write.root]
    _settle(graph, contents, _source)
    return contents


def _settle(graph: Graph, contents: Contents, visit: Callable[[Graph, Contents, int, bool], bool]) -> None:
    """Visit all nodes in order until what goes around the loops no longer changes."""
    phis = [p for loop in graph.loops for p in loop.phis]
    for node in range(len(graph.ops)):
        visit(graph, contents, node, False)
    for _ in range(8):
        changed = [p for p in phis if visit(graph, contents, p, True)]
        if not changed:
            break
        last = max(loop.end for loop in graph.loops)
        for node in range(min(changed) + 1, max(last, max(changed) + 1)):
            if graph.ops[node] != "phi" or len(graph.inputs[node]) < 2 or graph.inputs[node][1] < node:
                visit(graph, contents, node, False)
    for node in range(len(graph.ops)):
        if graph.ops[node] != "phi":
            visit(graph, contents, node, False)


def _loop_phi(graph: Graph, node: int) -> bool:
    return graph.ops[node] == "phi" and graph.instructions[node].opcode == "while"


def _version(graph: Graph, c: Contents, node: int, again: bool) -> bool:
    """Set the version (and varies) of a node; whether it changed."""
    before = (c.version[node], c.written[node], c.varies[node])
    inputs = graph.inputs[node]
    op = graph.ops[node]
    c.varies[node] = op == "parameter" or op.startswith("rng") or any(c.varies[i] for i in (inputs if again or op != "phi" else inputs[:1]))
    version, written = -1, False
    if op == "parameter":
        version = node
    elif _loop_phi(graph, node):
        version, written = _phi_version(graph, c, node, again)
    elif op == "phi":
        found = {c.version[i] for i in inputs}
        version, written = (found.pop() if len(found) == 1 else -1), any(c.written[i] for i in inputs)
    elif op in MOVING or op == "dynamic-slice":
        version, written = c.version[inputs[0]], c.written[inputs[0]]
    elif op == "gather" and _long(graph, node) == _long(graph, inputs[0]):
        version, written = c.version[inputs[0]], c.written[inputs[0]]  # rows in another order, as beams are
    elif op in ("dynamic-update-slice", "scatter"):
        version, written = _updated(graph, c, inputs[:2] if op == "dynamic-update-slice" else inputs[:1])
    elif op == "select":
        version, written = _selected(graph, c, inputs[1], inputs[2])
    elif op == "concatenate":
        version, written = _concatenated(graph, c, node)
    c.version[node], c.written[node] = version, written and version >= 0
    return before != (c.version[node], c.written[node], c.varies[node])


def _long(graph: Graph, node: int) -> list[int]:
    """The sizes of a value's dimensions but those of 1, by size."""
    return sorted(d for d in graph.shapes[node].dimensions if d > 1)


def _phi_version(graph: Graph, c: Contents, node: int, again: bool) -> tuple[int, bool]:
    start = graph.inputs[node][0]
    version, written = (c.version[start] if c.version[start] >= 0 else node), c.written[start]
    if not again or len(graph.inputs[node]) < 2:
        return version, written
    back = graph.inputs[node][1]
    found = c.version[back]
    if found == version:
        return version, written or c.written[back]
    if found in graph.parameters and c.written[back] and version == node:
        return found, True
    if c.version[node] in graph.parameters and found == c.version[node]:
        return found, True
    return node, c.written[back] and found == node


def _updated(graph: Graph, c: Contents, parts: tuple[int, ...]) -> tuple[int, bool]:
    """After an update: the buffer's own version; of a buffer that began empty, that of an updated part put back into it."""
    if len(parts) > 1 and c.written[parts[1]] and c.version[parts[1]] in graph.parameters and c.version[parts[0]] not in graph.parameters:
        return c.version[parts[1]], True
    return c.version[parts[0]], True


def _selected(graph: Graph, c: Contents, a: int, b: int) -> tuple[int, bool]:
    """A masked write keeps the version of the side that has one, unless the other is a constant fill."""
    va, vb = c.version[a], c.version[b]
    if va == vb:
        return va, c.written[a] or c.written[b]
    if va >= 0 and vb >= 0:
        return -1, False
    other = b if va >= 0 else a
    return (max(va, vb), True) if c.varies[other] else (max(va, vb), c.written[a] or c.written[b])


def _concatenated(graph: Graph, c: Contents, node: int) -> tuple[int, bool]:
    """A buffer shifted by one entry and another put at its end keeps its version, if it keeps its shape."""
    found = {c.version[i] for i in graph.inputs[node]} - {-1}
    if len(found) != 1:
        return -1, False
    (root,) = found
    if all(c.version[i] == root for i in graph.inputs[node]) and graph.count(node) < graph.shapes[root].element_count:
        return root, any(c.written[i] for i in graph.inputs[node])  # parts of a buffer on their way back into it
    if graph.shapes[root].element_count != graph.count(node) or root == node:
        return -1, False
    return root, any(c.version[i] < 0 for i in graph.inputs[node]) or any(c.written[i] for i in graph.inputs[node])


def _write_at(graph: Graph, c: Contents, node: int) -> Write | None:
    op, root = graph.ops[node], c.version[node]
    if root < 0 or not c.written[node] or graph.shapes[root].element_type in INDEX_TYPES:
        return None
    inputs = graph.inputs[node]
    if op == "dynamic-update-slice":
        return Write(node, root, op, any(c.varies[i] for i in inputs[2:])) if graph.count(inputs[1]) < graph.count(inputs[0]) else None
    if op == "scatter":
        kind = op if combiner(graph, node) == "parameter" else "scatter-combine"
        return Write(node, root, kind, c.varies[inputs[1]])
    if op == "select" and c.version[inputs[1]] != c.version[inputs[2]]:
        return Write(node, root, op, c.varies[inputs[0]])
    if op == "concatenate" and any(c.version[i] < 0 for i in inputs):
        return Write(node, root, op, False)
    return None


def _source(graph: Graph, c: Contents, node: int, again: bool) -> bool:
    """Set the sources of a node; whether they changed."""
    before = c.pure[node]
    c.pure[node] = _pure(graph, c, node, again)
    return before != c.pure[node]


def _pure(graph: Graph, c: Contents, node: int, again: bool) -> int:
    op, inputs = graph.ops[node], graph.inputs[node]
    if (bit := c.bits.get(node)) is not None:
        return bit
    if c.written[node] and c.version[node] in c.bits:
        return c.bits[c.version[node]]
    if op == "phi":
        return _union(c, inputs if again or not _loop_phi(graph, node) else inputs[:1])
    if op in TAKING:
        varies = any(c.varies[i] for i in inputs[1:]) and not takes_matrices(graph, node)
        return _looked_up(c, inputs[0]) if varies else c.pure[inputs[0]]
    if op == "select":
        return _union(c, inputs[1:])
    if op == "leaf":
        source = graph.leaf_operand(node)
        return c.pure[source] if graph.ops[inputs[0]] in MOVING else (MIXED if c.pure[inputs[0]] else 0)
    if op in MOVING or op in ("broadcast", "pad"):
        return c.pure[inputs[0]]
    return _pure_of_operands(c, op, inputs)


def _pure_of_operands(c: Contents, op: str, inputs: tuple[int, ...]) -> int:
    """The sources of what combines several values."""
    if op == "dynamic-update-slice":
        return _union(c, inputs[:2])
    if op == "compare":
        return MIXED if any(c.pure[i] for i in inputs) else 0
    if op in ELEMENTWISE or op == "concatenate":
        return _union(c, inputs)
    return MIXED if op in COLLECTIVES or any(c.pure[i] for i in inputs) else 0


def _looked_up(c: Contents, table: int) -> int:
    """Entries taken at places that vary: still a written buffer's own, but no longer a table's."""
    mask = c.pure[table]
    return mask if mask > 0 and mask & ~c.updated == 0 else MIXED


def takes_matrices(graph: Graph, node: int) -> bool:
    """Whether a gather or dynamic-slice takes whole matrices (experts, adapters, layers) and not rows."""
    sizes = graph.instructions[node].attribute("slice_sizes" if graph.ops[node] == "gather" else "dynamic_slice_sizes")
    return sum(size > 1 for size in numbers_in(sizes)) >= 2


def _union(c: Contents, nodes: tuple[int, ...]) -> int:
    mask = 0
    for node in nodes:
        mask |= c.pure[node]
    return mask
