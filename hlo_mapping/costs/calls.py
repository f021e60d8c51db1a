"""What custom calls move: XLA's own library calls by what XLA documents of them, other calls as far as their operands tell.

A call of unknown meaning (FFI, Pallas, Triton) reads each operand and writes each result once, unless it also takes integers or
updates an operand in place: tables, lengths and offsets may select parts of the rest, so then only the upper bound is known.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlo_mapping.costs.opcodes import INDEX_TYPES, is_library_call
from hlo_mapping.costs.traffic import Traffic
from hlo_mapping.dataflow import Graph, Kernel

_WORKSPACE_TYPES = frozenset({"s8", "u8"})


@dataclass(frozen=True, slots=True)
class CallTraffic:
    """Bytes by buffer; `known` is False where they are an upper bound only."""

    traffic: Traffic
    known: bool


def call_traffic(graph: Graph, kernel: Kernel, node: int) -> CallTraffic:
    """The traffic of a launch that is one custom call."""
    target = graph.instructions[node].custom_call_target
    traffic = Traffic()
    for source in graph.inputs[node]:
        base = graph.viewed(source)
        traffic.reads[base] = min(graph.shapes[base].byte_size, traffic.reads.get(base, 0) + graph.shapes[source].byte_size)
    if is_library_call(target):
        workspace = _workspace(graph, kernel)
        traffic.writes = {r: graph.shapes[r].byte_size for r in kernel.results if r != workspace}
        if workspace is not None and graph.shapes[workspace].byte_size:
            traffic.extra, traffic.note = 2 * graph.shapes[workspace].byte_size, "the library may use its workspace"
        return CallTraffic(traffic, True)
    traffic.writes = {r: graph.shapes[r].byte_size for r in kernel.results}
    selecting = any(graph.shapes[i].element_type in INDEX_TYPES for i in graph.inputs[node])
    in_place = bool(graph.instructions[node].attribute("output_to_operand_aliasing"))
    return CallTraffic(traffic, not (selecting or in_place))


def _workspace(graph: Graph, kernel: Kernel) -> int | None:
    """The last of several results, where it is an array of bytes."""
    if len(kernel.results) < 2:
        return None
    shape = graph.shapes[kernel.results[-1]]
    return kernel.results[-1] if shape.element_type in _WORKSPACE_TYPES and len(shape.dimensions) == 1 else None
