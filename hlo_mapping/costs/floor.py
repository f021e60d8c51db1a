"""The fewest bytes that a program must move whatever is fused or reordered in it: its inputs as far as it needs them, and its results.

What one kernel writes for another to read is no part of it, gradients among it. An input that a loop reads again in each iteration
counts once for each only where the inputs of that loop cannot stay in any GPU's L2 cache.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from hlo_mapping.costs.calls import is_known
from hlo_mapping.costs.traffic import Traffic, device_bytes, launch_traffic
from hlo_mapping.dataflow import Graph, Kernel, build_graph
from hlo_mapping.ir import Module

LARGEST_L2 = 128 << 20
"""Bytes that no GPU's L2 cache exceeds (B200: 126 MB)."""


def floor_bytes(module: Module, launches: Mapping[str, int | None]) -> int:
    """The bytes of one execution; a lower bound where trip counts (`launches`, by instruction) or calls are unknown."""
    graph = build_graph(module)
    made = [(kernel, _traffic(graph, kernel), launches.get(kernel.instruction.name) or 1) for kernel in graph.kernels]
    return _inputs(graph, made) + _results(graph, made)


def _traffic(graph: Graph, kernel: Kernel) -> Traffic:
    """What a launch moves; nothing of a call that may take parts of its operands."""
    calls = (n for n in range(kernel.first, kernel.end) if graph.ops[n] == "custom-call")
    return launch_traffic(graph, kernel) if all(is_known(graph, n) for n in calls) else Traffic()


def _inputs(graph: Graph, made: list[tuple[Kernel, Traffic, int]]) -> int:
    """Parameters and large constants, each up to its size; in loops that read more than a cache holds, in each iteration."""
    outside, inside = defaultdict[int, int](int), defaultdict[int, int](int)
    for kernel, traffic, times in made:
        for node, size in traffic.reads.items():
            if node in graph.parameters or graph.ops[node] == "constant":
                (inside if kernel.loop >= 0 else outside)[node] += size * times
    whole = {node: device_bytes(graph.shapes[node]) for node in {*outside, *inside}}
    if sum(whole[node] for node in inside) > LARGEST_L2:
        return sum(max(inside[node], min(whole[node], inside[node] + outside[node])) for node in whole)
    return sum(min(whole[node], inside[node] + outside[node]) for node in whole)


def _results(graph: Graph, made: list[tuple[Kernel, Traffic, int]]) -> int:
    """What is written of the module's results, each up to its size; copies of what came in are not needed where it is donated."""
    wanted = set(graph.outputs)
    for loop in graph.loops:
        wanted |= {graph.inputs[phi][1] for phi in loop.phis if phi in wanted and len(graph.inputs[phi]) > 1}
    written = defaultdict[int, int](int)
    for kernel, traffic, times in made:
        for node, size in traffic.writes.items():
            if node in wanted and graph.ops[node] != "copy":
                written[node] += size * (times if kernel.loop >= 0 else 1)
    return sum(min(size, device_bytes(graph.shapes[node])) for node, size in written.items())
