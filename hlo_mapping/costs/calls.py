"""What custom calls move: XLA's own library calls by what XLA documents of them, other calls as far as their operands tell.

A call of unknown meaning (FFI, Pallas, Triton) reads each operand and writes each result once, unless it also takes integers or
updates an operand in place: tables, lengths and offsets may select parts of the rest, so then only the upper bound is known.
"""

from __future__ import annotations

from hlo_mapping.costs.traffic import Traffic
from hlo_mapping.dataflow import Graph, Kernel
from hlo_mapping.kernel_kinds import is_library_call
from hlo_mapping.shape import INDEX_TYPES

_WORKSPACE_TYPES = frozenset({"s8", "u8"})


def is_known(graph: Graph, node: int) -> bool:
    """Whether a custom call's operands and results tell what it moves."""
    instruction = graph.instructions[node]
    if is_library_call(instruction.custom_call_target):
        return True
    selecting = any(graph.shapes[i].element_type in INDEX_TYPES for i in graph.inputs[node])
    return not selecting and not instruction.attribute("output_to_operand_aliasing")


def leave_out_workspace(graph: Graph, kernel: Kernel, node: int, traffic: Traffic) -> None:
    """A library call's last result, where it is an array of bytes, is its workspace: not a result, but it may be written and read."""
    if not is_library_call(graph.instructions[node].custom_call_target) or not graph.shapes[node].is_tuple:
        return
    leaves = [u for u in graph.users[node] if graph.ops[u] == "leaf"]
    shape = graph.shapes[leaves[-1]] if leaves else graph.shapes[node]
    if len(leaves) < 2 or shape.element_type not in _WORKSPACE_TYPES or len(shape.dimensions) != 1:
        return
    size = traffic.writes.pop(leaves[-1], 0)
    if size:
        traffic.extra += 2 * size
        traffic.note = "the library may use its workspace"
