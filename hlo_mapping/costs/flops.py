"""Floating-point operations of products and of the library calls whose count is known: two for each multiply-add."""

from __future__ import annotations

import re
from math import ceil, log2, prod

from hlo_mapping.costs.products import Product, numbers_in
from hlo_mapping.dataflow import Graph
from hlo_mapping.shape import Shape


def product_flops(graph: Graph, product: Product) -> int | None:
    """Operations of one product; None where its attributes do not say.

    A split product's multiply has one for each element; the sum elsewhere has the other half.
    """
    if product.kind == "split":
        return graph.count(product.node)
    if product.kind == "convolution":
        return convolution_flops(graph, product)
    if graph.ops[product.node] == "ragged-dot":
        return _ragged_flops(graph, product)
    contracted = contracted_size(graph, product)
    return None if contracted is None else 2 * result_shape(graph, product.node).element_count * contracted


def result_shape(graph: Graph, node: int) -> Shape:
    """The shape of a product's result; of a library call's the first of its results, the others being workspace."""
    shape = graph.shapes[node]
    return next(iter(shape.leaves)) if shape.is_tuple else shape


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


def _ragged_flops(graph: Graph, product: Product) -> int | None:
    """Each row meets one group's matrix: 2 x rows x features in x features out, whatever the groups' sizes."""
    contracted = contracted_size(graph, product)
    return None if contracted is None else 2 * graph.count(product.node) * contracted


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
    valid = 1
    for axis in range(len(labels[1]) - 2):
        place = str(axis)
        sizes = (image[labels[1].index(place)], kernel[labels[2].index(place)], out[labels[3].index(place)])
        valid *= _valid_positions(*sizes, _axis_window(window, axis))
    batch, features = out[labels[3].index("b")], out[labels[3].index("f")]
    return 2 * valid * batch * features * kernel[labels[2].index("i")]


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


def transform_flops(graph: Graph, node: int) -> int | None:
    """Operations of FFTs (5 n log2 n, half for real data), triangular solves (n^2 a column) and Cholesky factors (n^3 / 3)."""
    op, instruction = graph.ops[node], graph.instructions[node]
    first = graph.shapes[graph.inputs[node][0]].dimensions if graph.inputs[node] else ()
    if op == "fft":
        length = prod(numbers_in(instruction.attribute("fft_length")))
        real = instruction.attribute("fft_type") in ("RFFT", "IRFFT")
        batch = prod(first[: len(first) - len(numbers_in(instruction.attribute("fft_length")))])
        return ceil(5 * batch * length * log2(length) / (2 if real else 1)) if length > 1 else 0
    target = instruction.custom_call_target
    if target.startswith("__cudnn$fmha"):
        return None if "Backward" in target else _attention_flops(graph, node)
    if op == "triangular-solve" or target == "__cublas$triangularSolve":
        return prod(first) * result_shape(graph, node).element_count // max(prod(first[:-1]), 1)
    if op == "cholesky" or target.startswith("cusolver_potrf"):
        return prod(first) * first[-1] // 3
    return 0 if target.startswith(("__gpu$TopK", "__cub$")) or op != "custom-call" else None


def _attention_flops(graph: Graph, node: int) -> int | None:
    """Two products of one size: queries with keys, and weights with values (4 x queries x keys x head dimension for each head)."""
    config = graph.instructions[node].backend_config.get("cudnn_fmha_backend_config", {})
    numbers = config.get("bmm1_dot_dimension_numbers")
    if numbers is None or len(graph.inputs[node]) < 2:
        return None
    keys = graph.shapes[graph.inputs[node][1]].dimensions
    used = [int(d) for part in ("rhs_batch_dimensions", "rhs_contracting_dimensions") for d in numbers.get(part, ())]
    if any(d >= len(keys) for d in used):
        return None
    length = prod(size for d, size in enumerate(keys) if d not in used)
    return 4 * graph.count(graph.inputs[node][0]) * length
