"""The least a launch moves through memory: which part of each buffer it reads, and what it writes.

Within a launch the need for elements runs backwards from what is written: an elementwise operation needs as many elements of its
operands as are needed of it, a slice or gather only what it takes, a reduction all that it reduces. Values inside a launch cost
nothing. A dynamic-update-slice or scatter at the root of a launch works in place on a buffer that comes from outside (XLA's copy
insertion sees to it), so it writes its update and reads nothing of the rest.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hlo_mapping.costs.regions import Box, around, operand_box, volume, whole, window_elements
from hlo_mapping.dataflow import Graph, Kernel
from hlo_mapping.opcodes import COLLECTIVES, ELEMENTWISE, VIEW_OPCODES, WHOLE
from hlo_mapping.shape import ELEMENT_BITS, HOST_MEMORY, Shape

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
    return -(-elements * ELEMENT_BITS.get(shape.element_type, 0) // 8)


def device_bytes(shape: Shape) -> int:
    """Bytes of an array in the device's memory: none of one that the host holds."""
    return 0 if shape.layout is not None and shape.layout.memory_space == HOST_MEMORY else shape.byte_size


def launch_traffic(graph: Graph, kernel: Kernel) -> Traffic:
    """The least that a fusion, or a single operation whose operands are all read, moves."""
    traffic, need, taken = Traffic(), _Needs(graph), set[tuple[object, ...]]()
    for result in dict.fromkeys(kernel.results):
        _write(graph, kernel, result, need, traffic)
    for node in range(kernel.end - 1, kernel.first - 1, -1):
        wanted = need.elements.get(node, 0)
        if wanted or (node in need.elements and graph.shapes[node].is_tuple):
            box = need.boxes[node]
            if graph.ops[node] in ("dynamic-slice", "gather"):
                same = (graph.inputs[node], graph.shapes[node].dimensions, graph.instructions[node].attribute("dynamic_slice_sizes"))
                if same in taken:  # the same part of the same array once more
                    continue
                taken.add(same)
            for position, (source, elements) in enumerate(_needs(graph, node, wanted, box, traffic)):
                need.add(source, elements, operand_box(graph, node, position, box) if position < len(graph.inputs[node]) else None)
    _read(graph, kernel, need.elements, traffic)
    _read_indices(graph, kernel, traffic)
    return traffic


@dataclass(slots=True)
class _Needs:
    """How many elements of each node are needed, and the box that they lie in."""

    graph: Graph
    elements: dict[int, int] = field(default_factory=dict)
    boxes: dict[int, Box | None] = field(default_factory=dict)

    def add(self, node: int, elements: int, box: Box | None) -> None:
        """Need more of a node. Two needs together are at most the box around both: what overlaps is needed once."""
        if node in self.elements:
            elements, box = elements + self.elements[node], around(box, self.boxes[node])
        most = self.graph.count(node) if box is None else min(self.graph.count(node), volume(box))
        self.elements[node], self.boxes[node] = min(elements, most), box

    def add_whole(self, node: int) -> None:
        """Need all of a node."""
        self.add(node, self.graph.count(node), whole(self.graph.shapes[node].dimensions))


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


def _read_indices(graph: Graph, kernel: Kernel, traffic: Traffic) -> None:
    """Of an update or slice that is a launch of its own each index is an operand of its own, though one scalar may serve for several."""
    if kernel.end - kernel.first != 1 or graph.ops[kernel.first] not in ("dynamic-update-slice", "dynamic-slice"):
        return
    indices = Counter(graph.viewed(i) for i in graph.inputs[kernel.first] if not graph.shapes[i].dimensions)
    for node, times in indices.items():
        traffic.reads[node] = traffic.reads.get(node, 0) * times


def _write(graph: Graph, kernel: Kernel, result: int, need: _Needs, traffic: Traffic) -> None:
    """Count what is written for one result and set down what it needs."""
    updates = updates_in_place(graph, kernel, result)
    copies = kernel.results.count(result)
    if updates is None:
        need.add_whole(result)
        traffic.writes[result] = device_bytes(graph.shapes[result]) * copies
        return
    base, nodes = updates
    traffic.in_place[result] = base
    traffic.writes[result] = 0
    for update_made in nodes:
        for source, elements in _update_needs(graph, update_made):
            box = whole(graph.shapes[source].dimensions)
            need.add(source, elements, box if elements == graph.count(source) else None)
        update = update_made.update
        traffic.writes[result] += byte_count(graph.shapes[result], min(graph.count(update), graph.count(result)))


@dataclass(frozen=True, slots=True)
class Update:
    """One update in place: its node, the buffer that is updated and the value that goes into it."""

    node: int
    buffer: int
    update: int


def updates_in_place(graph: Graph, kernel: Kernel, result: int) -> tuple[int, list[Update]] | None:
    """The buffer a result was before and the updates made to it (last first), where it is updated in place."""
    node, updates = result, list[Update]()
    while kernel.first <= node < kernel.end:
        if graph.ops[node] in VIEW_OPCODES:
            node = graph.inputs[node][0]
        elif (made := _update(graph, node)) is not None:
            updates.append(made)
            node = made.buffer
        else:
            return None
    return (graph.viewed(node), updates) if updates else None


def _update(graph: Graph, node: int) -> Update | None:
    """The update that makes a node: a scatter of several arrays has as many buffers first and updates last, and a leaf for each."""
    inputs = graph.inputs[node]
    if graph.ops[node] == "dynamic-update-slice":
        return Update(node, inputs[0], inputs[1])
    if graph.ops[node] == "scatter" and not graph.shapes[node].is_tuple:
        return Update(node, inputs[0], inputs[2])
    if graph.ops[node] == "leaf" and graph.ops[inputs[0]] == "scatter":
        scatter, operands = inputs[0], graph.inputs[inputs[0]]
        arrays, number = (len(operands) - 1) // 2, node - inputs[0] - 1
        return (
            Update(scatter, operands[number], operands[arrays + 1 + number])
            if len(operands) == 2 * arrays + 1 and number < arrays
            else None
        )
    return None


def _update_needs(graph: Graph, made: Update) -> list[tuple[int, int]]:
    """What an update in place needs: the update, its indices, and for a combining scatter the elements it combines with."""
    inputs = graph.inputs[made.node]
    if graph.ops[made.node] == "dynamic-update-slice":
        return [(source, graph.count(source)) for source in inputs[1:]]
    indices = inputs[(len(inputs) - 1) // 2]
    needs = [(made.update, graph.count(made.update)), (indices, graph.count(indices))]
    if combiner(graph, made.node) != "parameter":
        needs.append((made.buffer, min(graph.count(made.buffer), graph.count(made.update))))
    return needs


def combiner(graph: Graph, node: int) -> str:
    """The opcode that a reduction's or scatter's computation ends in; "parameter" for one that keeps an operand."""
    called = graph.instructions[node].called
    computation = graph.module.by_name.get(called[-1]) if called else None
    return computation.root.opcode if computation is not None else ""


def _needs(graph: Graph, node: int, wanted: int, box: Box | None, traffic: Traffic) -> list[tuple[int, int]]:
    """(operand, elements) that a node needs so that `wanted` of its elements, within a box, are there."""
    op, inputs = graph.ops[node], graph.inputs[node]
    if op in ELEMENTWISE:
        return [(i, wanted) for i in inputs]
    if op == "ragged-dot" or (op == "custom-call" and "groupedMatmul" in graph.instructions[node].custom_call_target):
        return _grouped_needs(graph, node, traffic)
    if op in WHOLE or op in COLLECTIVES or graph.shapes[node].is_tuple or op == "leaf":
        return [(i, graph.count(i)) for i in inputs]
    if op == "slice":
        return [(inputs[0], wanted)]
    if op in ("pad", "broadcast", "concatenate"):
        return [(i, _placed(graph, node, position, wanted, box)) for position, i in enumerate(inputs)]
    if op == "dynamic-slice":
        return [(inputs[0], wanted), *((i, 1) for i in inputs[1:])]
    if op == "dynamic-update-slice":
        return [(inputs[0], wanted), (inputs[1], wanted), *((i, 1) for i in inputs[2:])]
    if op == "gather":
        return _gather_needs(graph, node, wanted, traffic)
    if op in ("reduce", "reduce-window"):
        return [(i, _reduced(graph, node, position, wanted, box)) for position, i in enumerate(inputs)]
    return [(i, graph.count(i)) for i in inputs]


def _placed(graph: Graph, node: int, position: int, wanted: int, box: Box | None) -> int:
    """Elements of one operand of a pad, broadcast or concatenation: those in the box that the result's box lies over."""
    count = graph.count(graph.inputs[node][position])
    found = operand_box(graph, node, position, box)
    if found is not None:
        return min(wanted, volume(found))
    return _share(wanted, graph.count(node), count) if graph.ops[node] == "concatenate" else min(wanted, count)


def _reduced(graph: Graph, node: int, position: int, wanted: int, box: Box | None) -> int:
    """Elements of one operand of a reduction: all under the windows of the result's box; of an unknown box its share."""
    count, found = graph.count(graph.inputs[node][position]), operand_box(graph, node, position, box)
    if found is None or wanted < volume(box or ()):  # some of the box alone
        return _share(wanted, graph.count(node), count)
    covered = window_elements(graph, node, box) if graph.ops[node] == "reduce-window" else None
    return min(count, covered if covered is not None else volume(found))


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
