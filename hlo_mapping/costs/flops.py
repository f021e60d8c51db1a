"""Floating-point operations of products and of the library calls whose count is known: two for each multiply-add."""

from __future__ import annotations

import re
from math import prod

from hlo_mapping.costs.products import Product, dot_numbers
from hlo_mapping.dataflow import Graph
from hlo_mapping.shape import Shape

COMPLEX_MULTIPLY, COMPLEX_ADD = 6, 2
"""Real operations in one operation on complex numbers."""


def product_flops(graph: Graph, product: Product) -> int | None:
    """Operations of one product; None where its attributes do not say.

    A split product's multiply has one for each element; the sum elsewhere has the other half. Numbers are complex where both operands
    are: a multiply-add of those takes four multiplications and four additions of real numbers.
    """
    if product.kind == "split":
        return graph.count(product.node) * (COMPLEX_MULTIPLY if is_complex(graph, product) else 1)
    factor = (COMPLEX_MULTIPLY + COMPLEX_ADD) // 2 if is_complex(graph, product) else 1
    if product.kind == "convolution":
        flops = convolution_flops(graph, product)
    elif dot_numbers(graph, product.node).ragged:
        flops = _ragged_flops(graph, product)
    else:
        contracted = contracted_size(graph, product)
        flops = None if contracted is None else 2 * result_shape(graph, product.node).element_count * contracted
    return None if flops is None else flops * factor


def split_sum_flops(graph: Graph, product: Product) -> int:
    """Operations of the reduce that sums a split product: one addition for each element."""
    return graph.count(product.node) * (COMPLEX_ADD if is_complex(graph, product) else 1)


def is_complex(graph: Graph, product: Product) -> bool:
    """Whether a product multiplies complex numbers."""
    return all(graph.shapes[n].element_type in ("c64", "c128") for n in (product.left, product.right))


def result_shape(graph: Graph, node: int) -> Shape:
    """The shape of a product's result; of a library call's the first of its results, the others being workspace."""
    shape = graph.shapes[node]
    return next(iter(shape.leaves), shape) if shape.is_tuple else shape


def contracted_size(graph: Graph, product: Product) -> int | None:
    """The product of the sizes of the dimensions that are summed."""
    shape, dimensions = graph.shapes[product.left], dot_numbers(graph, product.node).contracting
    if dimensions is None or any(d >= len(shape.dimensions) for d in dimensions):
        return None
    return prod(shape.dimensions[d] for d in dimensions)


def _ragged_flops(graph: Graph, product: Product) -> int | None:
    """Each row belongs to one group, whatever the groups' sizes: 2 x rows x features in x features out.

    Where the rows are what is summed (the gradient of a layer of experts' matrices) each group's result sums its own rows alone, so the
    groups share one sum over all rows; XLA's HloCostAnalysis counts it once for each group.
    """
    contracted = contracted_size(graph, product)
    if contracted is None:
        return None
    shape = result_shape(graph, product.node)
    groups = shape.dimensions[0] if dot_numbers(graph, product.node).sums_ragged and shape.dimensions else 1
    return 2 * shape.element_count * contracted // max(groups, 1)


_WINDOW = re.compile(r"(\w+)=([-\dx_]+)")


def convolution_flops(graph: Graph, product: Product) -> int | None:
    """Operations of a convolution: those of its window's positions that lie on the input, not on padding or between dilated elements.

    XLA's cuDNN calls for gradients keep the forward convolution's window and labels, so the three shapes change places.
    """
    instruction = graph.instructions[product.node]
    labels = re.fullmatch(r"([\w?]+)_([\w?]+)->([\w?]+)", instruction.attribute("dim_labels"))
    if labels is None:
        return None
    first, second = graph.shapes[product.left].dimensions, graph.shapes[product.right].dimensions
    result = result_shape(graph, product.node).dimensions
    target = instruction.custom_call_target
    image, kernel, out = first, second, result
    if "BackwardInput" in target:
        image, kernel, out = result, second, first
    elif "BackwardFilter" in target:
        image, kernel, out = first, result, second
    window = dict(_WINDOW.findall(instruction.attribute("window")))
    places = [str(axis) for axis in range(sum(letter.isdigit() for letter in labels[1]))]
    if any(len(sizes) != len(names) for sizes, names in zip((image, kernel, out), labels.groups(), strict=True)) or any(
        p not in names for p in places for names in labels.groups()
    ):
        return None
    valid = 1
    for axis, place in enumerate(places):
        sizes = (image[labels[1].index(place)], kernel[labels[2].index(place)], out[labels[3].index(place)])
        valid *= _valid_positions(*sizes, _axis_window(window, axis))
    return 2 * valid * _sizes(out, labels[3], "bf?") * _sizes(kernel, labels[2], "i?")


def _sizes(dimensions: tuple[int, ...], labels: str, wanted: str) -> int:
    """The product of the dimensions with these labels; ? is a part of the features that cuDNN keeps innermost (vectorized)."""
    return prod(size for size, label in zip(dimensions, labels, strict=True) if label in wanted)


def _axis_window(window: dict[str, str], axis: int) -> tuple[int, int, int, int]:
    """Stride, low padding, and dilation of input and kernel along one axis."""

    def part(name: str, default: str) -> str:
        return window[name].split("x")[axis] if name in window else default

    low = part("pad", "0_0").split("_")[0]
    return int(part("stride", "1")), int(low), int(part("lhs_dilate", "1")), int(part("rhs_dilate", "1"))


def _valid_positions(image: int, kernel: int, out: int, window: tuple[int, int, int, int]) -> int:
    """Pairs of output and kernel positions along one axis that meet an element of the input."""
    stride, low, dilate, spread = window
    count = 0
    for k in range(kernel):
        offset = k * spread - low
        if dilate == 1:
            first = max(0, -(offset // stride)) if offset < 0 else 0
            last = (image - 1 - offset) // stride
            count += max(0, min(out - 1, last) - first + 1)
        else:
            count += sum((o * stride + offset) % dilate == 0 and 0 <= o * stride + offset < (image - 1) * dilate + 1 for o in range(out))
    return count
