"""Softmax in the graph, and the products on both sides of one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from hlo_mapping.classification.contents import Contents
from hlo_mapping.costs.traffic import combiner
from hlo_mapping.dataflow import Graph, reached
from hlo_mapping.opcodes import RESHAPING


def is_softmax(graph: Graph, node: int) -> bool:
    """Whether an exponential is of differences from a statistic of each row: its maximum, or what a loop or a forward pass kept of it."""
    node = _through(graph, graph.inputs[node][0])
    if graph.ops[node] != "subtract":
        return False
    return _is_row_statistic(graph, graph.inputs[node][1])


def _is_row_statistic(graph: Graph, node: int) -> bool:
    """Whether a value is spread over rows, or comes from maxima of rows."""
    passed = RESHAPING | {"broadcast", "leaf", "maximum", "select", "phi"}
    return any(_is_spread_or_maximum(graph, n) for n in reached([node], lambda n: graph.inputs[n] if graph.ops[n] in passed else ()))


def _is_spread_or_maximum(graph: Graph, node: int) -> bool:
    if graph.ops[node] == "reduce":
        return combiner(graph, node) == "maximum"
    spread = graph.inputs[node][0] if graph.ops[node] == "broadcast" else node
    return bool(graph.shapes[spread].dimensions) and graph.count(spread) < graph.count(node)


def _through(graph: Graph, node: int) -> int:
    while graph.ops[node] in RESHAPING or graph.ops[node] in ("broadcast", "leaf"):
        node = graph.inputs[node][0]
    return node


@dataclass(frozen=True, slots=True)
class Attention:
    """Where a module attends: the exponentials of its softmaxes, and the products on both sides of them, by node.

    A softmax is attention's where its weights go into a product as they are. The gradient of a loss over similarities has products on both
    sides too, but what was right is subtracted in between (contrastive training); and the products of an optimizer have no exponential.
    """

    exponentials: frozenset[int] = frozenset()
    products: frozenset[int] = frozenset()


def find_attention(graph: Graph, c: Contents, products: Collection[int]) -> Attention:
    """The attention among a module's products."""
    exponentials: set[int] = set()
    around: set[int] = set()
    for node, op in enumerate(graph.ops):
        if op == "exponential" and is_softmax(graph, node):
            before, after = products_before(graph, products, node), products_after(graph, c, products, node)
            if before and after:
                exponentials.add(node)
                around |= before | after
    if around:  # a backward pass works the same weights out again, for other products
        softmaxes = (n for n, op in enumerate(graph.ops) if op == "exponential" and n not in exponentials and is_softmax(graph, n))
        exponentials |= {n for n in softmaxes if products_before(graph, products, n) & around}
    return Attention(frozenset(exponentials), frozenset(around))


def products_before(graph: Graph, products: Collection[int], node: int) -> set[int]:
    """The products that a value is computed from through elementwise work and reductions."""
    return _first_products(products, node, lambda n: graph.inputs[n])


def products_after(graph: Graph, c: Contents, products: Collection[int], node: int) -> set[int]:
    """The products that a softmax goes into, through its own division, constant or stored scales, and changes of type and order alone."""

    def onward(n: int) -> list[int]:
        return [
            u
            for u in graph.users[n]
            if u in products
            or graph.ops[u] in RESHAPING
            or graph.ops[u] in ("broadcast", "divide", "leaf", "select", "slice")
            or (graph.ops[u] == "multiply" and any(c.pure[i] >= 0 for i in graph.inputs[u]))
        ]

    return _first_products(products, node, onward)


def _first_products(products: Collection[int], node: int, onward: Callable[[int], Iterable[int]]) -> set[int]:
    return {n for n in reached([node], lambda n: () if n in products else onward(n)) if n in products}
