"""What each instruction that launches work computes, in fingerprints that no instruction's name or number enters.

A kernel's fingerprint is taken over the values that it computes, whether they stand in a fusion or alone; what it reads from outside
stands there with its shape. Left out is what a compile decides anew or numbers: names, layouts, metadata, backend_config.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

from hlo_mapping.dataflow import Graph, Kernel, build_graph
from hlo_mapping.ir import Instruction, Module
from hlo_mapping.opcodes import NO_WORK
from hlo_mapping.shape import Shape

Atom: TypeAlias = tuple[str, str]
"""An operation (its opcode, or `product`) and the op_name of the code it came from."""

UNSTABLE = frozenset({"metadata", "backend_config", "calls", "to_apply", "body", "condition", "frontend_attributes", "operand_precision"})
"""Attributes that name other computations, or that a compile decides anew."""
MOVING = frozenset({"bitcast", "reshape", "broadcast", "transpose", "copy", "constant", "iota", "convert", "phi", "tuple"})
"""Operations that count little when works are compared: every fusion has some."""
HEAVY = frozenset({"product", "reduce", "scatter", "gather", "sort", "dynamic-update-slice", "reduce-window", "fft", "custom-call"})
COMPILED = re.compile(r"^(?:p?jit\([^()]*\)/)+")
SCRATCH = "s8"
"""Element type of the workspace that library calls return beside their result."""
LIBRARIES = ("gemm", "cublas", "conv", "cudnn", "matmul", "dot")
"""What the targets of library calls that compute products hold (xla/service/gpu/cublas_cudnn.cc)."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one launching instruction; `sources` are the works whose values it reads, by place, -1 for a parameter."""

    instruction: str
    kind: str
    """`fusion`, `product`, `call TARGET` or the opcode."""
    exact: str
    """Equal where operations, shapes and operands are."""
    outline: str
    """Equal where nothing but sizes differs."""
    depth: int
    """Loops around it."""
    atoms: Counter[Atom]
    sources: tuple[int, ...]
    shape: str
    """Of its result, without layouts."""
    elements: int
    """Of the largest array of its result."""
    code: str
    """The op_name of what it computes, from the compiled function on; "" where the text has none."""


def works_of(module: Module) -> tuple[Work, ...]:
    """The launching instructions of a module in the order written, which a scheduled module runs in. HloError for a damaged one."""
    graph = build_graph(module)
    return tuple(_work(graph, kernel) for kernel in graph.kernels)


def _work(graph: Graph, kernel: Kernel) -> Work:
    nodes = [n for n in range(kernel.first, kernel.end) if graph.kernel[n] == graph.kernel[kernel.first]] or [kernel.first]
    inside = set(nodes)
    sources = tuple(dict.fromkeys(graph.kernel[s] for n in nodes for s in graph.inputs[n] if s not in inside))
    instruction = kernel.instruction
    return Work(
        instruction.name,
        _kind(instruction, graph, nodes),
        _fingerprint(graph, nodes, sizes=True),
        _fingerprint(graph, nodes, sizes=False),
        _depth(graph, kernel.loop),
        Counter(
            (_operation(graph.instructions[n], graph.ops[n]), scope(graph.instructions[n].metadata.op_name))
            for n in nodes
            if graph.ops[n] != "leaf"
        ),
        sources,
        instruction.shape.text(layouts=False),
        max((leaf.element_count for leaf in instruction.shape.leaves if leaf.element_type != SCRATCH), default=0),
        _code(instruction, graph, nodes),
    )


def _fingerprint(graph: Graph, nodes: list[int], sizes: bool) -> str:
    """A digest of the values computed, each from those it is made of; independent of the order in which they are written."""
    labels: dict[int, str] = {}
    for node in nodes:
        read = [labels.get(s) or f"<{_shape(graph.shapes[s], sizes)}>" for s in graph.inputs[node]]
        instruction = graph.instructions[node]
        attributes = [f"{k}={v}" for k, v in instruction.attributes if k not in UNSTABLE] if sizes else []
        literal = instruction.literal if sizes and graph.ops[node] == "constant" else ""
        labels[node] = digest(graph.ops[node], _shape(graph.shapes[node], sizes), *attributes, literal or "", *read)
    return digest(*sorted(labels.values()))


def digest(*parts: str) -> str:
    return hashlib.blake2b("\x1f".join(parts).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _shape(shape: Shape, sizes: bool) -> str:
    if sizes:
        return shape.text(layouts=False)
    return ",".join(f"{leaf.element_type}{len(leaf.dimensions)}" for leaf in shape.leaves)


def _operation(instruction: Instruction, op: str) -> str:
    """The operation, a product by one name whether XLA or a library computes it."""
    if op in ("dot", "convolution", "ragged-dot"):
        return "product"
    if op == "custom-call" and any(word in instruction.custom_call_target.lower() for word in LIBRARIES):
        return "product"
    return op


def _kind(instruction: Instruction, graph: Graph, nodes: list[int]) -> str:
    if instruction.opcode == "custom-call":
        return f"call {instruction.custom_call_target}"
    if instruction.opcode == "fusion":
        return "product fusion" if any(graph.ops[n] in ("dot", "convolution") for n in nodes) else "fusion"
    return instruction.opcode


def _code(instruction: Instruction, graph: Graph, nodes: list[int]) -> str:
    names = (graph.instructions[n].metadata.op_name for n in reversed(nodes) if graph.ops[n] not in NO_WORK)
    return scope(instruction.metadata.op_name or next((name for name in names if name), ""))


def scope(op_name: str) -> str:
    """An op_name without the functions that were compiled as a whole: `jit(step)/attention/dot_general` is `attention/dot_general`."""
    return COMPILED.sub("", op_name)


def _depth(graph: Graph, loop: int) -> int:
    depth = 0
    while loop >= 0:
        depth, loop = depth + 1, graph.loops[loop].outer
    return depth


def weight(atom: Atom) -> float:
    """How much an operation counts when two works are compared."""
    return 4.0 if atom[0] in HEAVY else 0.3 if atom[0] in MOVING else 1.0


def amount(atoms: Counter[Atom]) -> float:
    """The weights of all operations together."""
    return sum(weight(atom) * times for atom, times in atoms.items())
