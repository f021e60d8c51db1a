"""Softmax in the graph, and the products on both sides of one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from hlo_mapping.classification.contents import Contents
from hlo_mapping.costs.products import RESHAPING
from hlo_mapping.costs.traffic import combiner
from hlo_mapping.dataflow import Graph


def is_softmax(graph: Graph, node: int) -> bool:
    """Whether an exponential is of differences from a maximum."""
    node = _through(graph, graph.inputs[node][0])
    if graph.ops[node] != "subtract":
        return False
    maximum = _through(graph, graph.inputs[node][1])
    return graph.ops[maximum] == "reduce" and combiner(graph, maximum) == "maximum"


def _through(graph: Graph, node: int) -> int:
    while graph.ops[node] in RESHAPING or graph.ops[node] in ("broadcast", "leaf"):
        node = graph.inputs[node][0]
    return node


def products_before(graph: Graph, products: Collection[int], node: int) -> set[int]:
    """The products that a value is computed from through elementwise work and reductions."""
    return _reach(graph, products, [node], lambda n: graph.inputs[n])


def products_after(graph: Graph, c: Contents, products: Collection[int], node: int) -> set[int]:
    """The products that a softmax goes into, through its own division and changes of type and order alone."""

    def onward(n: int) -> list[int]:
        return [
            u
            for u in graph.users[n]
            if u in products
            or graph.ops[u] in RESHAPING
            or graph.ops[u] in ("broadcast", "divide", "leaf", "select", "slice")
            or (graph.ops[u] == "multiply" and any(c.pure[i] == 0 for i in graph.inputs[u]))
        ]

    return _reach(graph, products, [node], onward)


def _reach(graph: Graph, products: Collection[int], stack: list[int], step: Callable[[int], Iterable[int]]) -> set[int]:
    seen: set[int] = set()
    found: set[int] = set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in products:
            found.add(node)
        else:
            stack.extend(step(node))
    return found
