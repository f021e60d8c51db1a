"""The phase of each launch of a program that trains: forward, backward, rematerialized, optimizer, collective, input, loss or unknown.

The framework's operation names say it where they are scoped: JAX names a differentiated function's operations jvp(...), their
transposition transpose(jvp(...)), and what a checkpoint computes again rematted_computation; TensorFlow's gradient tape names its own.
Where a name has no scope, dataflow decides: a weight's gradient is a product of the layer's input and of the gradient that came back, so
what follows from the later of the two is backward, and what leads from gradients to new parameters is the optimizer's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hlo_mapping.classification.axes import summed_axes
from hlo_mapping.classification.kinds import WEIGHTS
from hlo_mapping.classification.rules import ModuleAnalysis, Verdict
from hlo_mapping.costs.products import Product
from hlo_mapping.dataflow import Graph, Kernel, reached
from hlo_mapping.opcodes import COLLECTIVES, RESHAPING

Phase: TypeAlias = Literal["forward", "backward", "rematerialized", "optimizer", "collective", "input", "loss", "unknown"]
TRAINING_PHASES: tuple[Phase, ...] = ("input", "forward", "loss", "rematerialized", "backward", "collective", "optimizer", "unknown")
"""In the order of a step."""

_REMATERIALIZED = re.compile(r"rematted_computation|(?:^|/)remat\d*(?:/|$)")
_BACKWARD = re.compile(r"transpose\(|gradient_tape/|/gradients/")
_FORWARD = re.compile(r"jvp\(|custom_vjp_call")
_XLA_REMATERIALIZED = re.compile(r"\.remat\d*(?:\.|$)")
"""How XLA's HloRematerialization names the instructions that it computes again."""


def named_phase(op_name: str) -> Phase | None:
    """The phase that an operation's name says; None where it has no scope of a pass."""
    if not op_name:
        return None
    if _BACKWARD.search(op_name):
        return "rematerialized" if _REMATERIALIZED.search(op_name) else "backward"
    return "forward" if _FORWARD.search(op_name) else None


@dataclass(frozen=True, slots=True)
class _Flow:
    """Per node of the graph, what dataflow says of it."""

    returning: list[bool]
    """Follows from a gradient that came back through the loss."""
    updating: list[bool]
    """Follows from a finished gradient of a parameter."""
    predicting: list[bool]
    """Leads to a product of the forward pass."""
    predicted: list[bool]
    """Follows from a product of the forward pass."""
    concluded: list[bool]
    """Follows from a product of the forward pass that leads to no other."""
    parametric: list[bool]
    """Follows from a model parameter."""


def phases(program: ModuleAnalysis, verdicts: Sequence[Verdict | None]) -> list[Phase]:
    """The phase of each of the program's launches, in the order of `graph.kernels`; `verdicts` are their classes."""
    flow = _flow(program)
    first_back = next((n for n, k in enumerate(program.graph.kernels) if any(flow.returning[r] for r in k.results)), None)
    found = [
        _phase(program, flow, kernel, verdict, first_back is not None and number > first_back)
        for number, (kernel, verdict) in enumerate(zip(program.graph.kernels, verdicts, strict=True))
    ]
    return _from_neighbors(program.graph, found)


def _phase(program: ModuleAnalysis, flow: _Flow, kernel: Kernel, verdict: Verdict | None, late: bool) -> Phase:
    graph = program.graph
    nodes = range(kernel.first, kernel.end)
    if any(graph.ops[n] in COLLECTIVES for n in nodes):
        return "collective"
    said = _said(kernel.instruction.metadata.op_name)
    if said is None and verdict is not None and verdict.detail == "optimizer":
        return "optimizer"
    said = said or _said_inside(program, kernel)
    if said == "forward":
        return "loss" if _is_loss(flow, kernel) else "forward"
    if said is not None:
        return said
    if _XLA_REMATERIALIZED.search(kernel.instruction.name):
        return "rematerialized"
    return _by_flow(program, flow, kernel, late)


def _said_inside(program: ModuleAnalysis, kernel: Kernel) -> Phase | None:
    """What the names of a launch's products say, else those of its results, else those of all its operations where they agree."""
    graph, nodes = program.graph, range(kernel.first, kernel.end)
    for group in ([n for n in nodes if program.uses.product(n) is not None], [r for r in kernel.results if r in nodes]):
        if found := _said(";".join(graph.instructions[n].metadata.op_name for n in group)):
            return found
    said = {p for n in nodes if (p := named_phase(graph.instructions[n].metadata.op_name)) is not None}
    return said.pop() if len(said) == 1 else None


def _said(op_name: str) -> Phase | None:
    """The phase that most of the names say that XLA joined into one with semicolons."""
    said = Counter(p for part in op_name.split(";") if (p := named_phase(part)) is not None)
    return said.most_common(1)[0][0] if said else None


def _by_flow(program: ModuleAnalysis, flow: _Flow, kernel: Kernel, late: bool) -> Phase:
    """What dataflow says of a launch whose names say nothing. `late` is whether the backward pass had begun when it ran."""
    results = kernel.results
    if any(flow.updating[r] for r in results):
        return "backward" if _finishes_gradient(program, kernel) else "optimizer"
    if any(flow.returning[r] for r in results):
        return "backward"
    if any(flow.predicting[r] for r in results):
        if any(flow.parametric[r] for r in results):
            return "rematerialized" if late else "forward"
        return "input"
    if any(flow.predicted[r] for r in results):
        return "backward" if late else "loss" if _is_loss(flow, kernel) else "forward"
    return "unknown"


def _finishes_gradient(program: ModuleAnalysis, kernel: Kernel) -> bool:
    """Whether a launch computes a gradient (a product, or the sum of one in parts) and does not apply it."""
    graph, halves = program.graph, program.kinds.halves
    made = {_before_moving(graph, r, RESHAPING) for r in kernel.results}
    return any(n in program.roles.gradients or halves.get(n, -1) in program.roles.gradients for n in made)


def _is_loss(flow: _Flow, kernel: Kernel) -> bool:
    """Whether what a forward launch makes follows from the last product of the forward pass."""
    results = kernel.results
    return bool(results) and all(flow.concluded[r] and not flow.predicting[r] for r in results)


def _flow(program: ModuleAnalysis) -> _Flow:
    graph, roles = program.graph, program.roles
    pairs = [_operands_in_order(program, program.uses.products[g]) for g in roles.gradients if g in program.uses.products]
    named = [n for n, i in enumerate(graph.instructions) if _BACKWARD.search(i.metadata.op_name)]
    returning = _forwards(graph, (*(later for _, later in pairs), *_transposed_products(program), *named))
    multiplied = [n for n in _weight_products(program) if not returning[n] and n not in roles.gradients]
    predicting = _leading_to(graph, multiplied, returning)
    last = [n for n in multiplied if not any(predicting[u] for u in graph.users[n])]
    weights = [n for n in range(len(graph.ops)) if program.kinds.kind[n] == WEIGHTS]
    return _Flow(
        returning=returning,
        updating=_forwards(graph, (*roles.gradients, *(n for n in roles.updates if returning[n]))),
        predicting=predicting,
        predicted=_forwards(graph, multiplied),
        concluded=_forwards(graph, last),
        parametric=_forwards(graph, weights),
    )


def _weight_products(program: ModuleAnalysis) -> list[int]:
    kinds = program.kinds
    return [n for n, p in program.uses.products.items() if WEIGHTS in (kinds.kind[p.left], kinds.kind[p.right])]


def _transposed_products(program: ModuleAnalysis) -> list[int]:
    """Products with a parameter that sum over other dimensions of it than its first product does: they take gradients back through it."""
    graph, contents, kinds = program.graph, program.contents, program.kinds
    first: dict[int, frozenset[int]] = {}
    found: list[int] = []
    for node in _weight_products(program):
        product = program.uses.products[node]
        operand = product.left if kinds.kind[product.left] == WEIGHTS else product.right
        sources = contents.sources(contents.pure[operand])
        axes = summed_axes(graph, product, operand, sources[0]) if len(sources) == 1 else None
        if axes and not axes & first.setdefault(sources[0], axes):
            found.append(node)
    return found


def _operands_in_order(program: ModuleAnalysis, product: Product) -> tuple[int, int]:
    """The operands of a gradient's product, the earlier first: the layer's input (a loop keeps it in a stack), then what came back."""
    left, right = (_before_moving(program.graph, o, _TAKING) for o in (product.left, product.right))
    return (left, right) if left < right else (right, left)


_TAKING = RESHAPING | {"slice", "dynamic-slice", "leaf", "pad"}


def _before_moving(graph: Graph, node: int, moving: Collection[str]) -> int:
    while graph.ops[node] in moving:
        node = graph.inputs[node][0]
    return node


def _forwards(graph: Graph, start: Iterable[int]) -> list[bool]:
    """What follows from these nodes within one iteration of a loop: not through what a loop hands to its next iteration."""
    follows = [False] * len(graph.ops)
    for node in start:
        follows[node] = True
    for node, inputs in enumerate(graph.inputs):
        if not follows[node]:
            follows[node] = any(follows[i] for i in inputs if i < node)
    return follows


def _leading_to(graph: Graph, start: Iterable[int], beyond: Sequence[bool]) -> list[bool]:
    """What leads to these nodes, in a later iteration of a loop too, but not through nodes `beyond`."""
    found = [False] * len(graph.ops)
    for node in reached((n for n in start if not beyond[n]), lambda n: (i for i in graph.inputs[n] if not beyond[i])):
        found[node] = True
    return found


def _from_neighbors(graph: Graph, found: list[Phase]) -> list[Phase]:
    """Launches of no phase (fills, copies) have that of all that use their results, else of all whose results they use."""
    out = list(found)
    for number in range(len(out) - 1, -1, -1):
        if out[number] == "unknown":
            users = {graph.kernel[u] for r in graph.kernels[number].results for u in graph.users[r]} - {number, -1}
            _take(out, number, users)
    for number, kernel in enumerate(graph.kernels):
        if out[number] == "unknown":
            _take(out, number, {graph.kernel[i] for n in range(kernel.first, kernel.end) for i in graph.inputs[n]} - {number, -1})
    return out


def _take(out: list[Phase], number: int, neighbors: Iterable[int]) -> None:
    said = {out[k] for k in neighbors} - {"unknown"}
    if len(said) == 1:
        out[number] = said.pop()
