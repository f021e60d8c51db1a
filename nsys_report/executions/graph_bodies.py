"""Kernels in the bodies of conditional graph nodes, given the launch of the graph around them.

What runs inside a CUDA graph's while or conditional node is recorded without a correlation id, on a stream of its own and under the
number of its body's graph. It ran because the graph around the body was launched, and on its device the launch before it is the one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.capture.arrays import integers

LAUNCH = ("launch_thread", "launch_start_ns", "launch_end_ns", "launch_api")


def adopt_graph_bodies(activities: pa.Table) -> pa.Table:
    """The activities with launch columns filled in for kernels of graph bodies; in time order before and after.

    A body belongs to the graph whose launched kernels most often ran last before the body's; each of its kernels to that graph's
    latest launch. Where no launched kernel of a graph came before, nothing is filled in.
    """
    node = integers(activities["graph_node_id"])
    launched = activities["launch_start_ns"].is_valid().to_numpy()
    orphans = np.flatnonzero((node >= 0) & ~launched)
    if not len(orphans):
        return activities
    parents = np.flatnonzero((node >= 0) & launched)
    place = integers(activities["process_id"]) * (1 << 16) + integers(activities["device_id"])
    graph = node >> 32
    adopted = np.full(len(activities), -1)
    for where in np.unique(place[orphans]):
        mine, theirs = orphans[place[orphans] == where], parents[place[parents] == where]
        if len(theirs):
            adopted[mine] = _parents_of(mine, theirs, graph)
    return _with_launches(activities, adopted)


def _parents_of(orphans: np.ndarray, parents: np.ndarray, graph: np.ndarray) -> np.ndarray:
    """For each orphan row the row of a launched kernel of the graph around it, -1 for none. Rows are in time order."""
    found = np.full(len(orphans), -1)
    for body in np.unique(graph[orphans]):
        chosen = np.flatnonzero(graph[orphans] == body)
        before = np.searchsorted(parents, orphans[chosen]) - 1
        known = before >= 0
        if not known.any():
            continue
        around, times = np.unique(graph[parents[before[known]]], return_counts=True)
        of_graph = parents[graph[parents] == around[np.argmax(times)]]
        at = np.searchsorted(of_graph, orphans[chosen]) - 1
        found[chosen[at >= 0]] = of_graph[at[at >= 0]]
    return found


def _with_launches(activities: pa.Table, adopted: np.ndarray) -> pa.Table:
    rows = np.where(adopted >= 0, adopted, np.arange(len(adopted)))
    take = pa.array(rows, pa.int64())
    for name in LAUNCH:
        column = activities[name].combine_chunks()
        activities = activities.set_column(activities.column_names.index(name), name, pc.take(column, take))
    return activities
