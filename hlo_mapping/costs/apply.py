"""The costs of one launch, as columns."""

from __future__ import annotations

from hlo_mapping.classification.rules import Launch, Verdict
from hlo_mapping.classification.uses import RESHAPING
from hlo_mapping.costs.flops import product_flops
from hlo_mapping.costs.traffic import Traffic, launch_traffic
from hlo_mapping.dataflow import Graph, Kernel


def launch_costs(launch: Launch, verdict: Verdict | None) -> dict[str, object]:
    """bytes_accessed, weight_bytes, kv_read_bytes, kv_write_bytes, flops, bounds and dot_type of one launch."""
    program, kernel = launch.program, launch.kernel
    graph = program.graph
    traffic = launch_traffic(graph, kernel)
    weights = sum(size for node, size in traffic.reads.items() if program.roles.role.get(node) == "weight")
    flops = _flops(launch)
    extra = traffic.extra
    return {
        "bytes_accessed": traffic.total,
        "weight_bytes": weights,
        **_cache_bytes(launch, traffic, verdict),
        "flops": flops,
        "bytes_upper": traffic.total + extra if extra else None,
        "bytes_note": traffic.note or None,
        "cost_source": _source(kernel, traffic),
    }


def _cache_bytes(launch: Launch, traffic: Traffic, verdict: Verdict | None) -> dict[str, object]:
    """Cache entries read and new entries written. A copy of a cache, or of a part of it beside a new entry, is traffic but neither."""
    if verdict is not None and (verdict.kernel_class, verdict.detail) == ("other", "copy"):
        return {"kv_read_bytes": 0, "kv_write_bytes": 0}
    graph, contents, roles = launch.program.graph, launch.program.contents, launch.program.roles
    read = sum(size for node, size in traffic.reads.items() if is_cache_storage(launch, node))
    written = 0
    if verdict is not None and (verdict.kernel_class, verdict.detail) == ("kv_write", "update"):
        for result, size in traffic.writes.items():
            if contents.version[result] in roles.caches and contents.written[result]:
                new = min(size, _new_bytes(graph, launch, result))
                written += new
                read = max(0, read - size) if new < size else read
    return {"kv_read_bytes": read, "kv_write_bytes": written}


def is_cache_storage(launch: Launch, node: int) -> bool:
    """Whether a buffer is a cache or a copy of one, and not entries taken from it."""
    graph, contents = launch.program.graph, launch.program.contents
    if contents.version[node] not in launch.program.roles.caches:
        return False
    while graph.ops[node] in RESHAPING:
        node = graph.inputs[node][0]
    return graph.ops[node] not in ("slice", "dynamic-slice", "gather", "select") or graph.count(node) >= graph.count(contents.version[node])


def _new_bytes(graph: Graph, launch: Launch, node: int) -> int:
    """Bytes of new entries in an update: of an update that is itself an updated part of the cache, only what is new in that."""
    contents, roles = launch.program.contents, launch.program.roles
    while graph.ops[node] in RESHAPING and launch.kernel.first <= node < launch.kernel.end:
        node = graph.inputs[node][0]
    if graph.ops[node] not in ("dynamic-update-slice", "scatter"):
        return graph.shapes[node].byte_size
    new = 0
    while graph.ops[node] in ("dynamic-update-slice", "scatter") and launch.kernel.first <= node < launch.kernel.end:
        update = graph.inputs[node][1 if graph.ops[node] == "dynamic-update-slice" else 2]
        nested = contents.version[update] in roles.caches and contents.written[update]
        new += _new_bytes(graph, launch, update) if nested else graph.shapes[update].byte_size
        node = graph.inputs[node][0]
        while graph.ops[node] in RESHAPING and launch.kernel.first <= node < launch.kernel.end:
            node = graph.inputs[node][0]
    return new


def _source(kernel: Kernel, traffic: Traffic) -> str:
    if traffic.in_place:
        return "in_place"
    if traffic.partial:
        return "slice"
    return "fusion_body" if kernel.instruction.opcode == "fusion" else "shapes"


def _flops(launch: Launch) -> int | None:
    graph: Graph = launch.program.graph
    products = launch.program.uses.products
    total = sum(graph.count(p) for p in dict.fromkeys(launch.halves) if products[p].kind == "split")
    for product in launch.products:
        flops = product_flops(graph, product)
        if flops is None:
            return None
        total += flops
    return total
