"""How often a tiled product reads its operands, by the tiles that the compiler chose.

A block computes one tile of the result and reads the rows of one operand and the columns of the other that it needs, so an operand is
read once for each tile along the dimensions that it does not have. Which of that reaches memory is up to the L2 cache: an upper bound.
"""

from __future__ import annotations

from hlo_mapping.costs.products import Product, batch_sizes, numbers_in
from hlo_mapping.costs.traffic import Traffic
from hlo_mapping.dataflow import Graph, Kernel

NOTE = "tiles of the result read operands again where the L2 cache does not hold them"


def add_operand_rereads(graph: Graph, kernel: Kernel, product: Product, traffic: Traffic) -> None:
    """Add to a launch's extra bytes what its tiles may read again, where the compiler says how large they are."""
    tiles = _tile_counts(graph, kernel, product)
    if tiles is None:
        return
    batch, left_free, _ = _dimensions(graph, product)
    per_left = _product(tiles[len(batch) + left_free :])
    per_right = _product(tiles[len(batch) : len(batch) + left_free])
    sizes = _operand_bytes(graph, kernel, product, traffic)
    extra = sizes[0] * (per_left - 1) + sizes[1] * (per_right - 1)
    if extra > 0:
        traffic.extra += extra
        traffic.note = traffic.note or NOTE


def _product(numbers: list[int]) -> int:
    total = 1
    for number in numbers:
        total *= number
    return total


def _dimensions(graph: Graph, product: Product) -> tuple[list[int], int, int]:
    """A dot's batch sizes, and how many free dimensions its operands have."""
    instruction = graph.instructions[product.node]
    batch = batch_sizes(graph, product.node)
    contracted = len(numbers_in(instruction.attribute("lhs_contracting_dims")))
    left, right = (len(graph.shapes[n].dimensions) - len(batch) - contracted for n in (product.left, product.right))
    return batch, left, right


def _tile_counts(graph: Graph, kernel: Kernel, product: Product) -> list[int] | None:
    """Tiles along each dimension of the dot's result; None where the compiler's tiles are not those of that shape."""
    if graph.ops[product.node] != "dot" or len(kernel.results) != 1:
        return None
    config = kernel.instruction.backend_config.get("fusion_backend_config", {}).get("block_level_fusion_config", {})
    chosen = config.get("output_tiles") or []
    result, shape = graph.shapes[kernel.results[0]].dimensions, graph.shapes[product.node].dimensions
    sizes = [int(s) for s in chosen[0].get("sizes", ())] if len(chosen) == 1 else []
    if len(sizes) != len(result) or [d for d in result if d > 1] != [d for d in shape if d > 1]:
        return None
    counts = iter([-(-d // max(s, 1)) for d, s in zip(result, sizes, strict=True) if d > 1])
    return [next(counts) if d > 1 else 1 for d in shape]


def _operand_bytes(graph: Graph, kernel: Kernel, product: Product, traffic: Traffic) -> tuple[int, int]:
    """Bytes that the launch reads for each operand of its product."""
    return _read_for(graph, kernel, product.left, traffic), _read_for(graph, kernel, product.right, traffic)


def _read_for(graph: Graph, kernel: Kernel, operand: int, traffic: Traffic) -> int:
    stack, seen, total = [operand], set[int](), 0
    while stack:
        node = stack.pop()
        base = node if kernel.first <= node < kernel.end else graph.viewed(node)
        if base in seen:
            continue
        seen.add(base)
        if kernel.first <= base < kernel.end:
            stack.extend(graph.inputs[base])
        else:
            total += traffic.reads.get(base, 0)
    return total
