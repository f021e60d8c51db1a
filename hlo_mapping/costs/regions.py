"""Which box of an operand's elements a box of a result needs, for operations that say so with their attributes.

A box is a (start, limit) for each dimension: the smallest that holds all elements needed. Strided and scattered needs have fewer
elements than their box. None is a box that nobody knows: anywhere in the array.
"""

from __future__ import annotations

import re
from math import prod
from typing import TypeAlias

from hlo_mapping.dataflow import Graph
from hlo_mapping.opcodes import ELEMENTWISE
from hlo_mapping.text.attributes import integers, slices

Box: TypeAlias = "tuple[tuple[int, int], ...]"

REORDERING = frozenset({"bitcast", "reshape", "bitcast-convert", "transpose", "reverse"})
"""Elementwise operations whose elements do not keep their places."""
_WINDOW = re.compile(r"(\w+)=([-\dx_]+)")


def whole(dimensions: tuple[int, ...]) -> Box:
    """The box of a whole array."""
    return tuple((0, size) for size in dimensions)


def volume(box: Box) -> int:
    """Elements in a box."""
    return prod(max(0, limit - start) for start, limit in box)


def around(a: Box | None, b: Box | None) -> Box | None:
    """The box around two boxes."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple((min(x, y), max(u, v)) for (x, u), (y, v) in zip(a, b, strict=True))


def operand_box(graph: Graph, node: int, position: int, box: Box | None) -> Box | None:
    """The box of the operand at a position that a box of the node's result needs; None where it may lie anywhere."""
    op, source = graph.ops[node], graph.shapes[graph.inputs[node][position]].dimensions
    if box is None or graph.shapes[node].is_tuple or len(box) != len(graph.shapes[node].dimensions):
        return None
    if op in ELEMENTWISE:
        return box if op not in REORDERING and source == graph.shapes[node].dimensions else None
    attribute = graph.instructions[node].attribute
    if op == "slice":
        return _sliced(slices(attribute("slice")), box)
    if op == "broadcast":
        return _spread(integers(attribute("dimensions")), box, source)
    if op == "pad" and position == 0:
        return _padded(attribute("padding"), box, source)
    if op == "concatenate":
        return _concatenated(graph, node, position, integers(attribute("dimensions")), box)
    if op == "reduce" and position < len(graph.inputs[node]) // 2:
        return _reduced(integers(attribute("dimensions")), box, source)
    if op == "reduce-window" and position < len(graph.inputs[node]) // 2:
        return _windowed(dict(_WINDOW.findall(attribute("window"))), box, source)
    return None


def window_elements(graph: Graph, node: int, box: Box | None) -> int | None:
    """Elements that a reduce-window's windows cover for a box of its result: fewer than their box where the stride is above the window."""
    source = graph.shapes[graph.inputs[node][0]].dimensions
    window = dict(_WINDOW.findall(graph.instructions[node].attribute("window")))
    covered = _windowed(window, box, source) if box is not None and len(box) == len(source) else None
    if covered is None or box is None:
        return None
    total = 1
    for axis, ((start, limit), (low, high)) in enumerate(zip(box, covered, strict=True)):
        _, size, stride, _ = _axis(window, axis)
        total *= min(high - low, (limit - start) * min(size, stride)) if stride > size else high - low
    return total


def _sliced(ranges: tuple[tuple[int, int, int], ...], box: Box) -> Box | None:
    if len(ranges) != len(box):
        return None
    return tuple(
        (first + start * step, first + (limit - 1) * step + 1) for (first, _, step), (start, limit) in zip(ranges, box, strict=True)
    )


def _spread(dimensions: tuple[int, ...], box: Box, source: tuple[int, ...]) -> Box | None:
    if len(dimensions) != len(source) or any(d >= len(box) for d in dimensions):
        return None
    return tuple(box[d] for d in dimensions)


def _padded(text: str, box: Box, source: tuple[int, ...]) -> Box | None:
    parts = [integers(part.replace("_", " ")) for part in text.split("x")]
    if len(parts) != len(box) or any(len(p) > 2 and p[2] for p in parts):
        return None
    places = zip(box, parts, source, strict=True)
    return tuple((min(max(0, start - p[0]), size), max(0, min(size, limit - p[0]))) for (start, limit), p, size in places)


def _concatenated(graph: Graph, node: int, position: int, dimensions: tuple[int, ...], box: Box) -> Box | None:
    if len(dimensions) != 1 or dimensions[0] >= len(box):
        return None
    axis, inputs = dimensions[0], graph.inputs[node]
    before = sum(graph.shapes[i].dimensions[axis] for i in inputs[:position])
    size, (start, limit) = graph.shapes[inputs[position]].dimensions[axis], box[axis]
    part = (min(max(0, start - before), size), max(0, min(size, limit - before)))
    return (*box[:axis], part, *box[axis + 1 :])


def _reduced(dimensions: tuple[int, ...], box: Box, source: tuple[int, ...]) -> Box | None:
    if len(source) != len(box) + len(dimensions) or not {*dimensions} <= {*range(len(source))}:
        return None
    kept = iter(box)
    return tuple((0, size) if axis in dimensions else next(kept) for axis, size in enumerate(source))


def _windowed(window: dict[str, str], box: Box, source: tuple[int, ...]) -> Box | None:
    if len(box) != len(source) or "lhs_dilate" in window or "rhs_dilate" in window:
        return None
    places = []
    for axis, ((start, limit), length) in enumerate(zip(box, source, strict=True)):
        low, size, stride, _ = _axis(window, axis)
        first, last = start * stride - low, (limit - 1) * stride - low + size
        places.append((min(max(0, first), length), max(0, min(length, last))))
    return tuple(places)


def _axis(window: dict[str, str], axis: int) -> tuple[int, int, int, int]:
    """Low padding, size, stride and high padding of a window along one axis."""

    def part(name: str, default: str) -> str:
        parts = window.get(name, "").split("x")
        return parts[axis] if axis < len(parts) and parts[axis] else default

    low, _, high = part("pad", "0_0").partition("_")
    return int(low), int(part("size", "1")), int(part("stride", "1")), int(high or 0)
