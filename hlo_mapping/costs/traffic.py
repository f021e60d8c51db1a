"""The least a launch moves through memory: which part of each buffer it reads, and what it writes.

Within a launch the need for elements runs backwards from what is written: an elementwise operation needs as many elements of its
operands as are needed of it, a slice or gather only what it takes, a reduction all that it reduces. Values inside a launch cost
nothing. A dynamic-update-slice or scatter at the root of a launch works in place on a buffer that comes from outside (XLA's copy
insertion sees to it), so it writes its update and reads nothing of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_mapping.costs.opcodes import COLLECTIVES, ELEMENTWISE, WHOLE
from hlo_mapping.dataflow import VIEWS, Graph, Kernel
from hlo_mapping.shape import BITS, Shape

HOST_MEMORY = 5
"""The memory space, S(5) in a layout, of buffers in the host's memory."""
INLINE_ELEMENTS = 8
"""A constant inside a fusion with more elements than this is an array in memory that the kernel reads; smaller ones are in its code."""


@dataclass(slots=True)
class Traffic:
    """Bytes of one launch: `reads` by the node of the buffer read, `writes` by the node of the result written."""

    reads: dict[int, int] = field(default_factory=dict)
    writes: dict[int, int] = field(default_factory=dict)
    in_place: dict[int, int] = field(default_factory=dict)
    """For a result written in place, the node of the buffer it was before."""
    extra: int = 0
    """Bytes it may move beyond these."""
    note: str = ""
    """Why it may move more."""
    partial: bool = False
    """Whether some operand is read in part."""

    @property
    def total(self) -> int:
        return sum(self.reads.values()) + sum(self.writes.values())


def byte_count(shape: Shape, elements: int) -> int:
    """Bytes of so many elements of an array of this type; packed types share bytes."""
    return -(-elements * BITS.get(shape.element_type, 0) // 8)


def device_bytes(shape: Shape) -> int:
    """Bytes of an array in the device's memory: none of one that the host holds."""
    return 0 if shape.layout is not None and shape.layout.memory_space == HOST_MEMORY else shape.byte_size


def launch_traffic(graph: Graph, kernel: Kernel) -> Traffic:
    """The least that a fusion, or a single operation whose operands are all read, moves."""
    traffic = Traffic()
    need: dict[int, int] = {}
    for result in dict.fromkeys(kernel.results):
        _write(graph, kernel, result, need, traffic)
    for node in range(kernel.end - 1, kernel.first - 1, -1):
        wanted = need.get(node, 0)
        if wanted or (node in need and graph.shapes[node].is_tuple):
            for source, elements in _needs(graph, node, wanted, traffic):
                _add(graph, need, source, elements)
    _read(graph, kernel, need, traffic)
    return traffic


def _add(graph: Graph, need: dict[int, int], node: int, elements: int) -> None:
    need[node] = min(graph.count(node), need.get(node, 0) + elements)


def _read(graph: Graph, kernel: Kernel, need: dict[int, int], traffic: Traffic) -> None:
    """Sum the need for each buffer outside, whatever bitcasts name it, up to its size."""
    touched: dict[int, int] = {}
    for node, elements in need.items():
        if graph.ops[node] == "constant":
            if kernel.first <= node < kernel.end and graph.count(node) <= INLINE_ELEMENTS:
                continue
        elif kernel.first <= node < kernel.end:
            continue
        base = graph.viewed(node)
        touched[base] = touched.get(base, 0) + byte_count(graph.shapes[node], elements)
    for base, size in touched.items():
        whole = device_bytes(graph.shapes[base])
        traffic.partial |= size < whole
        if min(size, whole):
            traffic.reads[base] = min(size, whole)


def _write(graph: Graph, kernel: Kernel, result: int, need: dict[int, int], traffic: Traffic) -> None:
    """Count what is written for one result and set down what it needs."""
    updates = updates_in_place(graph, kernel, result)
    copies = kernel.results.count(result)
    if updates is None:
        _add(graph, need, result, graph.count(result))
        traffic.writes[result] = device_bytes(graph.shapes[result]) * copies
        return
    base, nodes = updates
    traffic.in_place[result] = base
    traffic.writes[result] = 0
    for node in nodes:
        for source, elements in _update_needs(graph, node):
            _add(graph, need, source, elements)
        update = graph.inputs[node][_update_position(graph, node)]
        traffic.writes[result] += byte_count(graph.shapes[result], min(graph.count(update), graph.count(result)))


def updates_in_place(graph: Graph, kernel: Kernel, result: int) -> tuple[int, list[int]] | None:
    """The buffer a result was before and the updates made to it (last first), where it is updated in place."""
    node, updates = result, []
    while kernel.first <= node < kernel.end:
        if graph.ops[node] in VIEWS:
            node = graph.inputs[node][0]
        elif graph.ops[node] == "dynamic-update-slice" or (graph.ops[node] == "scatter" and not graph.shapes[node].is_tuple):
            updates.append(node)
            node = graph.inputs[node][0]
        else:
            return None
    return (graph.viewed(node), updates) if updates else None


def _update_position(graph: Graph, node: int) -> int:
    return 1 if graph.ops[node] == "dynamic-update-slice" else 2


def _update_needs(graph: Graph, node: int) -> list[tuple[int, int]]:
    """What an update in place needs: the update, its indices, and for a combining scatter the elements it combines with."""
    inputs = graph.inputs[node]
    needs = [(source, graph.count(source)) for source in inputs[1:]]
    if graph.ops[node] == "scatter" and combiner(graph, node) != "parameter":
        needs.append((inputs[0], min(graph.count(inputs[0]), graph.count(inputs[2]))))
    return needs


def combiner(graph: Graph, node: int) -> str:
    """The opcode that a reduction's or scatter's computation ends in; "parameter" for one that keeps an operand."""
    called = graph.instructions[node].called
    computation = graph.module.by_name.get(called[-1]) if called else None
    return computation.root.opcode if computation is not None else ""


def _needs(graph: Graph, node: int, wanted: int, traffic: Traffic) -> list[tuple[int, int]]:
    """(operand, elements) that a node needs so that `wanted` of its elements are there."""
    op, inputs, size = graph.ops[node], graph.inputs[node], graph.count(node)
    if op in ELEMENTWISE:
        return [(i, wanted) for i in inputs]
    if op == "ragged-dot" or "groupedMatmul" in graph.instructions[node].custom_call_target:
        return _grouped_needs(graph, node, traffic)
    if op in WHOLE or op in COLLECTIVES or graph.shapes[node].is_tuple or op == "leaf":
        return [(i, graph.count(i)) for i in inputs]
    if op in ("slice", "pad", "broadcast", "concatenate"):
        return [(i, _share(wanted, size, graph.count(i)) if op == "concatenate" else wanted) for i in inputs]
    if op == "dynamic-slice":
        return [(inputs[0], wanted), *((i, 1) for i in inputs[1:])]
    if op == "dynamic-update-slice":
        return [(inputs[0], wanted), (inputs[1], wanted), *((i, 1) for i in inputs[2:])]
    if op == "gather":
        return _gather_needs(graph, node, wanted, traffic)
    if op in ("reduce", "reduce-window"):
        return [(i, _share(wanted, size, graph.count(i))) for i in inputs]
    return [(i, graph.count(i)) for i in inputs]


def _grouped_needs(graph: Graph, node: int, traffic: Traffic) -> list[tuple[int, int]]:
    """A product whose rows each meet one of several matrices: no more matrices than there are rows."""
    rows, matrices, *rest = graph.inputs[node]
    groups, count = graph.shapes[matrices].dimensions[:1], graph.shapes[rows].dimensions[:1]
    needed = graph.count(matrices)
    if groups and count and 0 < count[0] < groups[0]:
        needed = needed * count[0] // groups[0]
    if groups and groups[0] > 1:
        traffic.note = "rows may share fewer matrices than this"
    return [(rows, graph.count(rows)), (matrices, needed), *((i, graph.count(i)) for i in rest)]


def _gather_needs(graph: Graph, node: int, wanted: int, traffic: Traffic) -> list[tuple[int, int]]:
    table, indices = graph.inputs[node][:2]
    repeats = wanted - graph.count(table)
    if repeats > 0:
        traffic.extra += byte_count(graph.shapes[table], repeats)
        traffic.note = "a gather may read entries again"
    return [(table, wanted), (indices, _share(wanted, graph.count(node), graph.count(indices)))]


def _share(wanted: int, size: int, operand: int) -> int:
    """So much of an operand as the wanted part of a result of `size` elements is of the whole, rounded up."""
    return operand if wanted >= size else -(-wanted * operand // size)
