"""The order in which XLA recorded the nodes of a CUDA graph, from their ids and the times at which they ran."""

from __future__ import annotations

import numpy as np

from hlo_mapping.matching.alike import Pieces, alike
from hlo_mapping.matching.nested_graphs import bodies_in_place, nested_order

MOST_BOUNDARIES = 64
"""How many places are tried at which the ids of nodes inside other nodes may begin."""


def recorded_order(node: np.ndarray, launch_number: np.ndarray, codes: np.ndarray) -> np.ndarray | None:
    """The order in which XLA recorded graph nodes, within each launch; `node`, `launch_number` and `codes` are in time order, in which
    they stay where it is None.

    Node ids count up as nodes are recorded (the low half; the high half numbers the graph). A node that is itself a graph, as library
    calls are, leaves a gap in the ids, and what it holds is numbered after all others; it belongs into the gap, and start times say
    into which. In a launch over several graphs, as conditional nodes make, each body stands where it first began.
    """
    bounds = np.flatnonzero(np.diff(launch_number, prepend=-1, append=launch_number[-1] + 1))
    order: np.ndarray | None = None
    if not ((node[1:] >= node[:-1]) | (launch_number[1:] != launch_number[:-1])).all() or (node < 0).any():
        order = np.lexsort((np.where(node >= 0, node, np.arange(len(node))), launch_number))
    ends = (bounds[:-1], bounds[1:] - 1)
    first, last = (node[at] if order is None else node[order[at]] for at in ends)
    length = np.diff(bounds)
    odd = (last - (first >> 32 << 32) + 1 != length) & (first >= 0)
    if not odd.any():
        return order
    pieces = Pieces(bounds[:-1][odd], length[odd])
    order = np.arange(len(node)) if order is None else order
    pattern = alike(node - np.repeat(first, length), pieces, alike(codes, pieces))
    _, example = np.unique(pattern, return_index=True)
    parts = [slice(a, a + n) for a, n in zip(pieces.first[example].tolist(), pieces.length[example].tolist(), strict=True)]
    known = [_order_of_one_launch(node[part]) for part in parts]
    begin = np.cumsum([0, *map(len, known)])
    within = np.concatenate(known)
    for group, at in pieces.blocks():
        start, count = pieces.first[group], pieces.length[group]
        order[at] = np.repeat(start, count) + within[at + np.repeat(begin[pattern[group]] - start, count)]
    return order


def _order_of_one_launch(node: np.ndarray) -> np.ndarray:
    """The recorded order of one launch's nodes, given in time order, where ids have gaps, repeat, or number several graphs."""
    if (node >> 32 != node[0] >> 32).any():
        return nested_order(node, _order_of_one_launch)
    ids, first = np.unique(node, return_index=True)
    low = ids - (ids[0] >> 32 << 32)
    boundary = _children_from(low, first)
    if boundary == len(ids):
        return np.argsort(node, kind="stable")
    if len(ids) < len(node):
        return bodies_in_place(node, boundary)
    main = low[:boundary]
    # gaps among the main nodes, as numbers of main nodes before them
    holes = np.flatnonzero(np.diff(main, prepend=-1, append=main[-1] + 2) > 1)
    before = np.searchsorted(np.sort(first[:boundary]), first[boundary:])
    at = np.searchsorted(holes, before)
    low_hole, high_hole = holes[np.maximum(at - 1, 0)], holes[np.minimum(at, len(holes) - 1)]
    nearest = np.where(before - low_hole <= high_hole - before, low_hole, high_hole)
    # what is numbered later was recorded later, so it cannot stand in an earlier gap
    place = np.concatenate([np.arange(boundary) + 0.5, np.maximum.accumulate(nearest).astype(float)])
    rank = np.searchsorted(ids, node)
    return np.lexsort((node, place[rank]))


def _children_from(low: np.ndarray, first: np.ndarray) -> int:
    """From which of the ascending node ids on nodes stand inside others; their number if none does. `first` is when each began.

    Contents are numbered after all nodes of the graph itself, yet run before the last of them: the first of them breaks the order of
    time. So does concurrency, but what stands inside a node also runs in a gap of the ids; the boundary that explains most is taken.
    """
    latest = np.maximum.accumulate(first)
    late = np.flatnonzero(first[1:] < latest[:-1]) + 1
    late = late[low[late - 1] >= late]
    if len(late) > MOST_BOUNDARIES:
        late = np.sort(late[np.argsort(first[late] - latest[late - 1], kind="stable")[:MOST_BOUNDARIES]])
    disorder = np.cumsum(first < latest)
    best, fewest = len(low), float(disorder[-1])
    for b in late.tolist():
        hole = np.diff(low[:b], prepend=-1, append=low[b - 1] + 2) > 1
        before = np.searchsorted(np.sort(first[:b]), first[b:])
        beside = np.concatenate([hole[1:], [False]])[before] | np.concatenate([[False], hole[:-1]])[before]
        odd = float(disorder[b - 1]) + float(np.where(hole[before], 0.0, np.where(beside, 0.5, 1.0)).sum())
        if odd < fewest:
            best, fewest = b, odd
    return best
