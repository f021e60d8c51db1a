"""The order of a graph launch over several graphs: conditional nodes hold graphs of their own, which run in their place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def nested_order(node: np.ndarray, order_of_graph: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The order in which the nodes of one launch stand in its program, each body after the node that ran right before it began.

    `node` holds node ids in time order (high half the graph, low half the node), repeated where a body ran more than once.
    `order_of_graph` orders the nodes of a single graph, given in time order.
    """
    graph = node >> 32
    graphs, first = np.unique(graph, return_index=True)
    inside: dict[int, list[int]] = {}
    top = []
    for g, f in sorted(zip(graphs.tolist(), first.tolist(), strict=True), key=lambda item: item[1]):
        if f == 0:
            top.append(g)
        else:
            inside.setdefault(int(node[f - 1]), []).append(g)
    own = {g: _distinct(node[graph == g], order_of_graph) for g in graphs.tolist()}
    rank: dict[int, int] = {}
    stack = [iter(own[g]) for g in reversed(top)]
    while stack:
        n = next(stack[-1], None)
        if n is None:
            stack.pop()
            continue
        rank[n] = len(rank)
        stack += [iter(own[g]) for g in reversed(inside.get(n, ()))]
    ids, position = np.unique(node, return_inverse=True)
    keys = np.array([rank[n] for n in ids.tolist()])
    return np.lexsort((np.arange(len(node)), keys[position]))


def _distinct(nodes: np.ndarray, order_of_graph: Callable[[np.ndarray], np.ndarray]) -> list[int]:
    """The distinct nodes of one graph in its order."""
    _, first = np.unique(nodes, return_index=True)
    once = nodes[np.sort(first)]
    return [int(n) for n in once[order_of_graph(once)]]
