"""Products in the graph: their operands, and the sums that finish products which XLA wrote out in parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from hlo_mapping.costs.traffic import combiner
from hlo_mapping.dataflow import Graph
from hlo_mapping.opcodes import RESHAPING


@dataclass(slots=True)
class Product:
    """A node that multiplies two operands and sums: a dot, convolution, library product, or a multiply that a reduce sums later."""

    node: int
    left: int
    right: int
    kind: str
    """dot, convolution, split (a multiply whose sum is a separate reduce) or call (a custom call of unknown meaning)."""

    def other(self, operand: int) -> int:
        return self.right if operand == self.left else self.left


def before_broadcast(graph: Graph, node: int) -> tuple[int, bool]:
    """What a value was before it was spread over more elements, and whether it was."""
    spread = False
    while graph.ops[node] in RESHAPING or graph.ops[node] == "broadcast":
        source = graph.inputs[node][0]
        spread |= graph.ops[node] == "broadcast" and graph.count(source) < graph.count(node)
        node = source
    return node, spread


def is_split_product(graph: Graph, node: int) -> bool:
    """Whether a multiply is the first half of a product: a spread vector times a matrix, summed and not used in any other way."""
    a, b = graph.inputs[node]
    if a == b or not graph.users[node]:
        return False
    (left, left_spread), (right, right_spread) = before_broadcast(graph, a), before_broadcast(graph, b)
    if not (left_spread or right_spread) or min(graph.count(left), graph.count(right)) < 2:
        return False
    return sums(graph, node) is not None


def sums(graph: Graph, node: int) -> list[int] | None:
    """The adding reduces that take this value, if it goes nowhere else but through changes of type and order; None if it does."""
    found: list[int] = []
    for user in graph.users[node]:
        op = graph.ops[user]
        if op == "reduce" and graph.inputs[user][0] == node and combiner(graph, user) == "add":
            found.append(user)
        elif op in RESHAPING:
            further = sums(graph, user)
            if further is None:
                return None
            found += further
        else:
            return None
    return found or None


def second_halves(graph: Graph, products: Iterable[Product]) -> dict[int, int]:
    """Reduces that finish a product begun elsewhere, with the product: of a split multiply, or of partial sums over a batch dimension."""
    halves: dict[int, int] = {}
    for product in products:
        if product.kind == "split":
            halves.update(dict.fromkeys(sums(graph, product.node) or (), product.node))
        elif product.kind == "dot":
            for result in partial_results(graph, product.node):
                for reduce in sums(graph, result) or ():
                    if _over_batch(graph, product.node, reduce):
                        halves[reduce] = product.node
    return halves


def partial_results(graph: Graph, node: int) -> list[int]:
    """The node itself, or of an operation with several results the first."""
    if not graph.shapes[node].is_tuple:
        return [node]
    return [u for u in graph.users[node] if graph.ops[u] == "leaf"][:1]


def _over_batch(graph: Graph, product: int, reduce: int) -> bool:
    """Whether a reduce sums a dimension that a product treated as a batch dimension: partial sums over slices of its length."""
    batches = batch_sizes(graph, product)
    operand = graph.inputs[reduce][0]
    factor = graph.count(operand) // max(graph.count(reduce), 1)
    (summed, *more) = numbers_in(graph.instructions[reduce].attribute("dimensions")) or [-1]
    if more or summed < 0 or summed >= len(batches):
        return False
    if summed > 0:
        return graph.shapes[operand].dimensions[: len(batches)] == tuple(batches)
    return bool(batches) and (factor in batches or factor == prod(batches))


@dataclass(frozen=True, slots=True)
class DotNumbers:
    """Which dimensions of a product's left operand are summed, run in step with the right's, and fall into groups of varying size."""

    contracting: tuple[int, ...] | None
    """None where a library call does not say."""
    batch: tuple[int, ...] = ()
    ragged: tuple[int, ...] = ()

    @property
    def sums_ragged(self) -> bool:
        """Whether the rows of a group are what is summed: the result has one part for each group."""
        return bool(set(self.ragged) & set(self.contracting or ()))


def dot_numbers(graph: Graph, node: int) -> DotNumbers:
    """The dimension numbers of a product; of a library call from its configuration (xla/service/gpu/backend_configs.proto)."""
    instruction = graph.instructions[node]
    if graph.ops[node] != "custom-call":
        names = ("lhs_contracting_dims", "lhs_batch_dims", "lhs_ragged_dims")
        return DotNumbers(*(tuple(numbers_in(instruction.attribute(name))) for name in names))
    config = instruction.backend_config
    grouped = config.get("grouped_gemm_backend_config") or {}
    numbers = (grouped or config).get("gemm_backend_config", {}).get("dot_dimension_numbers")
    if numbers is None:
        return DotNumbers(None)
    ragged = grouped.get("ragged_dot_dimension_numbers", {}).get("lhs_ragged_dimensions", ())
    parts = (numbers.get("lhs_contracting_dimensions", ()), numbers.get("lhs_batch_dimensions", ()), ragged)
    return DotNumbers(*(tuple(map(int, part)) for part in parts))


def batch_sizes(graph: Graph, product: int) -> list[int]:
    """Sizes of a dot's batch dimensions, of the library's too."""
    left = graph.shapes[graph.inputs[product][0]].dimensions
    return [left[d] for d in dot_numbers(graph, product).batch if d < len(left)]


def numbers_in(text: str) -> list[int]:
    """The numbers of an attribute such as {0,2}."""
    return [int(part) for part in text.strip("{}").replace(" ", "").split(",") if part]
