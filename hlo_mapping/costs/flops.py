"""Floating-point operations of products, by their dimensions: two for each multiply-add."""

from __future__ import annotations

from math import prod

from hlo_mapping.classification.contents import numbers_in
from hlo_mapping.classification.uses import Product, batch_sizes
from hlo_mapping.dataflow import Graph


def product_flops(graph: Graph, product: Product) -> int | None:
    """Operations of one product; None where its attributes do not say."""
    if product.kind == "split":
        return graph.count(product.node)
    if product.kind == "convolution":
        return convolution_flops(graph, product)
    contracted = contracted_size(graph, product)
    if contracted is None:
        return None
    return 2 * result_count(graph, product.node) * contracted


def result_count(graph: Graph, node: int) -> int:
    """Elements of a product's result; of a library call's the first of its results, the others being workspace."""
    shape = graph.shapes[node]
    return shape.element_count if not shape.is_tuple else next(iter(shape.leaves)).element_count


def contracted_size(graph: Graph, product: Product) -> int | None:
    """The product of the sizes of the dimensions that are summed."""
    instruction, shape = graph.instructions[product.node], graph.shapes[product.left]
    if graph.ops[product.node] == "custom-call":
        numbers = instruction.backend_config.get("gemm_backend_config", {}).get("dot_dimension_numbers")
        if numbers is None:
            return None
        dimensions = [int(d) for d in numbers.get("lhs_contracting_dimensions", ())]
    else:
        dimensions = numbers_in(instruction.attribute("lhs_contracting_dims"))
    if any(d >= len(shape.dimensions) for d in dimensions):
        return None
    return prod(shape.dimensions[d] for d in dimensions)


def convolution_flops(graph: Graph, product: Product) -> int | None:
    """Filled in later."""
    return None


__all__ = ["batch_sizes", "contracted_size", "convolution_flops", "product_flops", "result_count"]
