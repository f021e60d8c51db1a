"""The costs of one launch, as columns."""

from __future__ import annotations

from math import ceil, log2

from hlo_mapping.classification.evidence import WEIGHT
from hlo_mapping.classification.kinds import WEIGHTS
from hlo_mapping.classification.rules import Launch, Verdict
from hlo_mapping.costs.calls import is_known, leave_out_workspace
from hlo_mapping.costs.flops import product_flops, result_shape, split_sum_flops
from hlo_mapping.costs.products import Product, before_broadcast
from hlo_mapping.costs.tiles import add_operand_rereads
from hlo_mapping.costs.traffic import Traffic, device_bytes, launch_traffic
from hlo_mapping.costs.transforms import transform_flops
from hlo_mapping.dataflow import UNKNOWN, Graph
from hlo_mapping.opcodes import RESHAPING
from hlo_mapping.shape import ELEMENT_BITS

SORT_IN_ONE_PASS = 2048
"""Elements that XLA's sort keeps in a block's shared memory; longer rows are sorted in passes through device memory."""
RADIX_SORT, RADIX_BITS = "__cub$DeviceRadixSort", 8
"""CUB's onesweep radix sort, and the bits of a digit that it sorts by in one pass (cub/device/dispatch/tuning/tuning_radix_sort.cuh)."""
CALLING = frozenset({"fusion", "call", "while", "conditional", "async-start"})
"""Operations that are left in the graph only where their computations were not opened."""
_UPDATES = ("dynamic-update-slice", "scatter")


def launch_costs(launch: Launch, verdict: Verdict | None) -> dict[str, object]:
    """bytes_accessed, weight_bytes, kv_read_bytes, kv_write_bytes, flops, the upper bound and its reason, cost_source and dot_type."""
    graph, kernel = launch.program.graph, launch.kernel
    call = next((n for n in launch.nodes if graph.ops[n] == "custom-call"), None)
    traffic = launch_traffic(graph, kernel)
    _add_sort_passes(graph, launch, traffic)
    if call is not None and graph.instructions[call].custom_call_target.startswith(RADIX_SORT):
        _add_radix_passes(graph, call, traffic)
    if len(launch.products) == 1:
        add_operand_rereads(graph, kernel, launch.products[0], traffic)
    if call is not None:
        leave_out_workspace(graph, kernel, call, traffic)
    if closed := _closed(launch):
        return {"bytes_note": closed, "cost_source": "unknown"}
    row: dict[str, object] = {"flops": _flops(launch), "dot_type": _dot_type(launch)}
    if call is not None and not is_known(graph, call):
        note = "a custom call that may read or write only parts of its operands"
        return row | {"bytes_upper": traffic.total, "bytes_note": note, "cost_source": "unknown"}
    row.update(bytes_accessed=traffic.total, weight_bytes=_weight_bytes(launch, traffic), **_cache_bytes(launch, traffic, verdict))
    row.update(bytes_upper=traffic.total + traffic.extra if traffic.extra else None, bytes_note=traffic.note or None)
    row["cost_source"] = "library" if call is not None else _source(launch, traffic)
    return row


def _closed(launch: Launch) -> str:
    """Why the text does not tell what a launch does; "" where it does."""
    graph = launch.program.graph
    reached = {*launch.nodes, *launch.outside}
    if any(graph.ops[n] == UNKNOWN for n in reached):
        return "an operand is missing in the text"
    if any(graph.ops[n] in CALLING and graph.instructions[n].called for n in launch.nodes):
        return "its computations call each other too often to be opened"
    if any(not graph.shapes[n].has_known_size for n in (*launch.outside, *launch.kernel.results)):
        return "an array of unknown size or type"
    return ""


def _source(launch: Launch, traffic: Traffic) -> str:
    if traffic.in_place:
        return "in_place"
    if traffic.partial:
        return "slice"
    return "fusion_body" if launch.kernel.instruction.opcode == "fusion" else "shapes"


def _add_sort_passes(graph: Graph, launch: Launch, traffic: Traffic) -> None:
    """A bitonic sort of a long row goes through memory up to k(k+1)/2 times, k the binary logarithm of the row's length."""
    for node in launch.nodes:
        if graph.ops[node] != "sort":
            continue
        instruction, operand = graph.instructions[node], graph.shapes[graph.inputs[node][0]]
        length = operand.dimensions[int(instruction.attribute("dimensions").strip("{}") or 0)] if operand.dimensions else 1
        if length > SORT_IN_ONE_PASS:
            steps = ceil(log2(length))
            traffic.extra += traffic.total * (steps * (steps + 1) // 2 - 1)
            traffic.note = "a sort takes several passes"


def _add_radix_passes(graph: Graph, call: int, traffic: Traffic) -> None:
    """A radix sort reads its keys once to count digits, and reads and writes keys and values once for each digit of eight bits."""
    keys, *values = (graph.shapes[i] for i in graph.inputs[call])
    passes = -(-ELEMENT_BITS.get(keys.element_type, 0) // RADIX_BITS)
    moved = keys.byte_size + sum(v.byte_size for v in values if v.dimensions == keys.dimensions)
    traffic.extra += keys.byte_size + 2 * moved * (passes - 1)
    traffic.note = f"a radix sort takes {passes} passes over its keys and values, and one to count"


def _weight_bytes(launch: Launch, traffic: Traffic) -> int:
    """Bytes read of model parameters where they are stored; converted copies and products written out are not parameters.

    A copy made before a loop and read in it stands for the parameter in every iteration, with the bytes that are stored. Of a parameter
    that lives in the host's memory the device holds nothing but the copy that is brought in.
    """
    roles = launch.program.roles
    kept = {n for n in traffic.reads if roles.role.get(n) == WEIGHT or n in roles.constants or _brought_in(launch, n)}
    stored = sum(traffic.reads[n] for n in kept)
    return stored + sum(_kept_bytes(launch, node, size) for node, size in traffic.reads.items())


def _brought_in(launch: Launch, node: int) -> bool:
    """Whether a buffer is the device's copy of a model parameter in host memory."""
    graph = launch.program.graph
    if graph.ops[node] != "copy" or launch.program.kinds.kind[node] != WEIGHTS:
        return False
    source = graph.shapes[graph.inputs[node][0]]
    return source.byte_size > 0 and device_bytes(source) == 0


def _kept_bytes(launch: Launch, node: int, size: int) -> int:
    """The stored bytes of a parameter's copy that was made outside of the launch's loop."""
    graph, contents, kinds = launch.program.graph, launch.program.contents, launch.program.kinds
    loop = launch.kernel.loop
    if (
        loop < 0
        or node in graph.parameters
        or node in launch.program.roles.constants
        or kinds.kind[node] != WEIGHTS
        or graph.inside(node, loop)
        or _brought_in(launch, node)
    ):
        return 0
    bits = [ELEMENT_BITS.get(graph.shapes[n].element_type, 0) for n in contents.sources(contents.pure[node])]
    copied = ELEMENT_BITS.get(graph.shapes[node].element_type, 0)
    return size * min(max(bits, default=0), copied) // copied if copied else 0


def _cache_bytes(launch: Launch, traffic: Traffic, verdict: Verdict | None) -> dict[str, int]:
    """Cache entries read and new entries written. A copy of a cache, or of a part of it beside a new entry, is traffic but neither."""
    kind = (verdict.kernel_class, verdict.detail) if verdict is not None else ("", "")
    if kind == ("other", "copy"):
        return {"kv_read_bytes": 0, "kv_write_bytes": 0}
    contents, roles = launch.program.contents, launch.program.roles
    read = sum(size for node, size in traffic.reads.items() if is_cache_storage(launch, node) and not _taken_out(launch, node))
    written = 0
    if kind == ("kv_write", "update"):
        updated = {r: s for r, s in traffic.writes.items() if contents.version[r] in roles.caches and contents.written[r]}
        stored = {r: s for r, s in updated.items() if is_cache_storage(launch, r) and r in launch.program.lasting}
        for result, size in stored.items():
            new = min(size, new_bytes(launch, result))
            written += new
            if new < size and len(stored) == len(updated):  # a copy in another type beside it is read out, not put back
                read = max(0, read - size)
    return {"kv_read_bytes": read, "kv_write_bytes": written}


def is_cache_storage(launch: Launch, node: int) -> bool:
    """Whether a buffer is a cache or a copy of one, and not entries taken from it."""
    graph, contents = launch.program.graph, launch.program.contents
    root = contents.version[node]
    if root not in launch.program.roles.caches:
        return False
    if graph.shapes[node].element_type != graph.shapes[root].element_type:
        return False
    while graph.ops[node] in RESHAPING:
        node = graph.inputs[node][0]
    return graph.ops[node] not in ("slice", "dynamic-slice", "gather", "select") or graph.count(node) >= graph.count(root)


def _taken_out(launch: Launch, node: int) -> bool:
    """Whether a buffer is a part that was taken out of a cache and then updated, such as a layer's entries of all layers' cache."""
    graph = launch.program.graph
    while graph.ops[node] in RESHAPING or graph.ops[node] in _UPDATES:
        node = graph.inputs[node][0]
    return not is_cache_storage(launch, node) and launch.program.contents.version[node] in launch.program.roles.caches


def new_bytes(launch: Launch, node: int) -> int:
    """Bytes of new entries in an updated cache: of an update that is itself an updated part of the cache, only what is new in that."""
    graph, contents, roles = launch.program.graph, launch.program.contents, launch.program.roles
    node = _within(launch, node)
    if graph.ops[node] == "concatenate":
        return sum(_new_part(launch, i) for i in graph.inputs[node])
    if graph.ops[node] == "select":
        fresh = [before_broadcast(graph, i)[0] for i in graph.inputs[node][1:] if contents.version[i] < 0]
        return sum(graph.count(i) for i in fresh) * ELEMENT_BITS[graph.shapes[node].element_type] // 8
    if graph.ops[node] not in _UPDATES:
        return graph.shapes[node].byte_size
    new = 0
    while graph.ops[node] in _UPDATES and launch.kernel.first <= node < launch.kernel.end:
        update = graph.inputs[node][1 if graph.ops[node] == "dynamic-update-slice" else 2]
        nested = contents.version[update] in roles.caches and contents.written[update]
        new += new_bytes(launch, update) if nested else graph.shapes[update].byte_size
        node = _within(launch, graph.inputs[node][0])
    return new


def _new_part(launch: Launch, node: int) -> int:
    """New entries in a part of a cache that is put together again: a fresh part whole, of an updated one what the launch updates."""
    graph, contents = launch.program.graph, launch.program.contents
    if contents.version[node] < 0:
        return graph.shapes[node].byte_size
    here = launch.kernel.first <= node < launch.kernel.end
    return new_bytes(launch, node) if here and contents.written[node] else 0


def _within(launch: Launch, node: int) -> int:
    """What a node of the launch was before changes of type and order in it."""
    graph = launch.program.graph
    while graph.ops[node] in RESHAPING and launch.kernel.first <= node < launch.kernel.end:
        node = graph.inputs[node][0]
    return node


def _flops(launch: Launch) -> int | None:
    """Operations of all products in it; 0 where it has none, None where one is unknown."""
    graph, uses = launch.program.graph, launch.program.uses
    finished = [uses.product(p) for p in dict.fromkeys(launch.halves)]
    total = sum(split_sum_flops(graph, product) for product in finished if product is not None and product.kind == "split")
    for product in launch.products:
        flops = product_flops(graph, product)
        if flops is None:
            return None
        total += flops
    for node in launch.nodes:
        if node not in uses.products and graph.ops[node] in ("fft", "cholesky", "triangular-solve", "custom-call"):
            flops = transform_flops(graph, node)
            if flops is None:
                return None
            total += flops
    return total


def _dot_type(launch: Launch) -> str | None:
    """Types of the largest product's operands as they are stored, and of its result."""
    if not launch.products:
        return None
    graph = launch.program.graph
    product: Product = max(launch.products, key=lambda p: product_flops(graph, p) or 0)
    left, right = (_stored_type(launch, operand) for operand in (product.left, product.right))
    return f"{left},{right}->{result_shape(graph, product.node).element_type}"


def _stored_type(launch: Launch, node: int) -> str:
    """An operand's type before conversions within the launch."""
    graph = launch.program.graph
    while launch.kernel.first <= node < launch.kernel.end and (graph.ops[node] in RESHAPING or graph.ops[node] in ("broadcast", "slice")):
        node = graph.inputs[node][0]
    return graph.shapes[node].element_type
