"""Programs that iterate without a model: samplers, whose state is kept or dropped as a whole, and solvers around one array."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hlo_mapping.classification.contents import Contents
from hlo_mapping.classification.evidence import WEIGHT, Roles, folded
from hlo_mapping.classification.uses import Uses, elementwise_back
from hlo_mapping.costs.products import second_halves
from hlo_mapping.dataflow import Graph, reached
from hlo_mapping.opcodes import ELEMENTWISE, RESHAPING
from hlo_mapping.shape import ELEMENT_BITS, INDEX_TYPES


def why_no_model(graph: Graph, c: Contents, uses: Uses, roles: Roles) -> str:
    """What says that products in a loop are a sampler's or a solver's, with no model's parameter among them; "" where nothing does."""
    if roles.trained or roles.gradients or roles.caches or not graph.loops:
        return ""
    if any(accepts_or_rejects(graph, loop) for loop in range(len(graph.loops))):
        return "a loop keeps or drops its new state as a whole against a random number, as Markov chains do"
    return "every product is in a loop, and nothing there bends its result as layers do" if _solves(graph, c, uses, roles) else ""


def _solves(graph: Graph, c: Contents, uses: Uses, roles: Roles) -> bool:
    """Whether arrays that look like weights are multiplied in loops alone, as they are stored, and no activation follows."""
    found: set[int] = set()
    for product in uses.products.values():
        for operand in (product.left, product.right):
            arrays = _model_arrays(graph, c, roles, operand)
            kernel = graph.kernel[product.node]
            if arrays and (kernel < 0 or graph.kernels[kernel].loop < 0 or _is_quantized(graph, arrays)):
                return False
            found.update(arrays)
    tables = {n for _, table in uses.lookups for n in c.sources(c.pure[table]) if roles.role.get(n) == WEIGHT}
    return bool(found) and not tables and not _bends(graph, uses)


def _is_quantized(graph: Graph, arrays: list[int]) -> bool:
    return any(ELEMENT_BITS.get(graph.shapes[n].element_type, 0) <= 8 for n in arrays)


_ACTIVATIONS = frozenset({"tanh", "logistic", "erf", "maximum", "exponential", "exponential-minus-one", "log-plus-one"})


def _bends(graph: Graph, uses: Uses) -> bool:
    """Whether an activation is applied to what a product makes: a layer or a recurrent cell, and no solver."""
    halves = second_halves(graph, uses.products.values())
    bent = [n for n, op in enumerate(graph.ops) if op in _ACTIVATIONS and graph.count(n) > 1]
    return any(elementwise_back(graph, n, uses.products, halves)[1] for n in bent)


def _model_arrays(graph: Graph, c: Contents, roles: Roles, operand: int) -> list[int]:
    """The parameters taken for weights, or the folded constant, that an operand holds."""
    sources = c.sources(c.pure[operand])
    if sources and all(roles.role.get(n) == WEIGHT for n in sources):
        return sources
    return [n for n in (folded(graph, operand),) if n in roles.constants]


def accepts_or_rejects(graph: Graph, number: int) -> bool:
    """Whether a loop's new state is kept or dropped as a whole (or chain by chain), by truth values that random bits decide."""
    for phi in graph.loops[number].phis:
        if len(graph.inputs[phi]) < 2 or graph.shapes[phi].element_type in INDEX_TYPES or graph.count(phi) < 2:
            continue
        for node in made_of(graph, graph.inputs[phi][1:], ()):
            if graph.ops[node] == "select" and _keeps_or_drops(graph, node) and _is_random(graph, graph.inputs[node][0]):
                return True
    return False


def _keeps_or_drops(graph: Graph, select: int) -> bool:
    """Whether a choice is made for many elements at once, between something new and what a loop carried."""
    choice, *sides = graph.inputs[select]
    spread = graph.count(as_made(graph, choice)) < graph.count(select)
    return spread and any(graph.ops[as_made(graph, side)] == "phi" for side in sides)


def _is_random(graph: Graph, node: int) -> bool:
    """Whether a value is made of random bits: XLA's generators, or threefry's rotations that are written out."""
    return any(graph.ops[n].startswith("rng") or graph.ops[n] == "xor" for n in made_of(graph, (node,), ()))


def as_made(graph: Graph, node: int) -> int:
    """What a value was before changes of type, order and number of equal elements."""
    while graph.ops[node] in RESHAPING or graph.ops[node] == "broadcast":
        node = graph.inputs[node][0]
    return node


_CARRYING = ELEMENTWISE | {"leaf", "slice", "dynamic-slice", "dynamic-update-slice", "gather", "concatenate", "broadcast", "pad", "phi"}


def made_of(graph: Graph, start: Iterable[int], stop: Collection[int]) -> set[int]:
    """Everything that values are made of by moving and combining elements, up to and with what does more, and `stop`."""
    return set(reached(start, lambda n: graph.inputs[n] if n not in stop and graph.ops[n] in _CARRYING else ()))
