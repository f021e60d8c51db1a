"""Which dimensions of a parameter a product sums over, whatever views and copies lie between the two."""

from __future__ import annotations

from hlo_mapping.costs.products import Product, numbers_in
from hlo_mapping.dataflow import Graph
from hlo_mapping.opcodes import RESHAPING
from hlo_mapping.shape import Shape

_SAME_AXES = frozenset({"copy", "convert", "bitcast-convert", "reduce-precision", "slice", "dynamic-slice"})
_SIDES = ("lhs", "rhs")


def summed_axes(graph: Graph, product: Product, operand: int, source: int) -> frozenset[int] | None:
    """The dimensions of `source` that a product sums over through one of its operands; None where that cannot be told.

    A dimension that is part of a summed one, as when XLA sums in parts, counts as summed.
    """
    axes = _summed(graph, product, operand)
    node = operand
    while axes is not None and node != source:
        if graph.ops[node] not in RESHAPING | _SAME_AXES:
            return None
        below = graph.inputs[node][0]
        axes = _through(graph, node, graph.shapes[below], graph.shapes[node], axes)
        node = below
    return axes


def _summed(graph: Graph, product: Product, operand: int) -> frozenset[int] | None:
    """The contracting dimensions of a dot's or a library product's operand."""
    instruction, side = graph.instructions[product.node], _SIDES[operand != product.left]
    if graph.ops[product.node] == "dot":
        return frozenset(numbers_in(instruction.attribute(f"{side}_contracting_dims")))
    numbers = instruction.backend_config.get("gemm_backend_config", {}).get("dot_dimension_numbers")
    return None if numbers is None else frozenset(int(d) for d in numbers.get(f"{side}_contracting_dimensions", ()))


def _through(graph: Graph, node: int, before: Shape, after: Shape, axes: frozenset[int]) -> frozenset[int] | None:
    """The dimensions of a view's source that hold these dimensions of the view."""
    if graph.ops[node] == "transpose":
        order = numbers_in(graph.instructions[node].attribute("dimensions"))
        return frozenset(order[a] for a in axes)
    if graph.ops[node] in _SAME_AXES or before == after:
        return axes if len(before.dimensions) == len(after.dimensions) else None
    physical = graph.ops[node] == "bitcast"
    old, new = (_order(s) if physical else list(range(len(s.dimensions))) for s in (before, after))
    found: set[int] = set()
    for olds, news in _groups([before.dimensions[d] for d in old], [after.dimensions[d] for d in new]):
        if any(new[n] in axes and after.dimensions[new[n]] > 1 for n in news):
            found |= _held(before, after, [old[o] for o in olds], [new[n] for n in news], axes)
    return frozenset(found)


def _held(before: Shape, after: Shape, olds: list[int], news: list[int], axes: frozenset[int]) -> set[int]:
    """Of dimensions that were split or merged into others, those that overlap the wanted ones; both lists run from major to minor."""
    if len(olds) > 1 and len(news) > 1:
        return set(olds)  # sizes that do not divide each other: every new dimension runs through all old ones
    found: set[int] = set()
    stop = 1
    spans: dict[int, tuple[int, int]] = {}
    for o in reversed(olds):
        spans[o] = (stop, stop * before.dimensions[o])
        stop *= before.dimensions[o]
    start = 1
    for n in reversed(news):
        end = start * after.dimensions[n]
        if n in axes and end > start:
            found |= {o for o, (low, high) in spans.items() if low < end and start < high}
        start = end
    return found


def _order(shape: Shape) -> list[int]:
    """Dimensions from major to minor."""
    rank = len(shape.dimensions)
    return list(reversed(shape.layout.minor_to_major)) if shape.layout is not None and shape.layout.minor_to_major else list(range(rank))


def _groups(old: list[int], new: list[int]) -> list[tuple[list[int], list[int]]]:
    """The shortest runs of both lists of sizes whose products agree."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        olds: list[int] = []
        news: list[int] = []
        a = b = 1
        while True:
            if a <= b and i < len(old) and (a < b or not olds):
                a, i = a * old[i], i + 1
                olds.append(i - 1)
            elif j < len(new) and (b < a or not news):
                b, j = b * new[j], j + 1
                news.append(j - 1)
            else:
                break
            if a == b and olds and news:
                break
        groups.append((olds, news))
        if not olds and not news:
            break
    return groups
