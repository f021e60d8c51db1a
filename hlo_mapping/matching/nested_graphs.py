"""The order of a graph launch with conditional nodes: the bodies that they hold run in their place, once, often or not at all.

A body is numbered after all nodes of the graph around it, or as a graph of its own; where it stands, the launch that ran right before
it first began tells.
"""

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
    return _emit(node, [own[g] for g in top], {n: [own[g] for g in held] for n, held in inside.items()})


def bodies_in_place(node: np.ndarray, boundary: int) -> np.ndarray:
    """The same for a launch of one graph, whose nodes from the `boundary`-th distinct id on stand inside others."""
    ids, first = np.unique(node, return_index=True)
    inside: dict[int, list[list[int]]] = {}
    run: list[int] = []
    for n, f in zip(ids[boundary:].tolist(), first[boundary:].tolist(), strict=True):
        before = int(node[f - 1]) if f else -1
        if run and before == run[-1]:
            run.append(n)
        else:
            run = [n]
            inside.setdefault(before, []).append(run)
    return _emit(node, [*inside.get(-1, []), ids[:boundary].tolist()], inside)


def _emit(node: np.ndarray, top: list[list[int]], inside: dict[int, list[list[int]]]) -> np.ndarray:
    """Positions of `node` in the order of the sequences at the top, each followed at once by what stands after one of its nodes."""
    rank: dict[int, int] = {}
    stack = [iter(sequence) for sequence in reversed(top)]
    while stack:
        n = next(stack[-1], None)
        if n is None:
            stack.pop()
            continue
        rank[n] = len(rank)
        stack += [iter(held) for held in reversed(inside.get(n, ()))]
    ids, position = np.unique(node, return_inverse=True)
    keys = np.array([rank.get(n, len(rank)) for n in ids.tolist()])
    return np.lexsort((np.arange(len(node)), keys[position]))


def _distinct(nodes: np.ndarray, order_of_graph: Callable[[np.ndarray], np.ndarray]) -> list[int]:
    """The distinct nodes of one graph in its order."""
    _, first = np.unique(nodes, return_index=True)
    once = nodes[np.sort(first)]
    return [int(n) for n in once[order_of_graph(once)]]
