"""How the module's values are used: products, lookups, scales, and what an update of a parameter is made of.

Facts about the graph that both the roles of parameters and the classes of instructions rest on; no roles yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_mapping.classification.contents import MIXED, Contents, numbers_in
from hlo_mapping.costs.opcodes import ELEMENTWISE, PRODUCTS, is_library_call, is_product_call
from hlo_mapping.costs.traffic import combiner
from hlo_mapping.dataflow import Graph

RESHAPING = frozenset({"bitcast", "reshape", "transpose", "copy", "convert", "bitcast-convert", "reduce-precision"})
"""The same elements in another type or order."""
_THROUGH = frozenset({"phi", "all-reduce", "all-gather", "reduce-scatter", "leaf", "slice", "concatenate", "scatter"})
_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "maximum", "minimum", "power"})


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


@dataclass(slots=True)
class Uses:
    """All products, by node; lookups and scales by the pure mask that is looked up or combined."""

    products: dict[int, Product] = field(default_factory=dict)
    lookups: list[tuple[int, int]] = field(default_factory=list)
    """(node, table node): entries taken from a table at places that vary."""
    scales: list[tuple[int, int, int]] = field(default_factory=list)
    """(node, pure operand, other operand) of arithmetic between a parameter's own elements and a mixed value."""
    calls: list[int] = field(default_factory=list)
    """Custom calls whose meaning XLA does not define."""


def find_uses(graph: Graph, contents: Contents) -> Uses:
    """Walk all nodes once."""
    uses = Uses()
    for node, op in enumerate(graph.ops):
        inputs = graph.inputs[node]
        if op in PRODUCTS:
            uses.products[node] = Product(node, inputs[0], inputs[1], "convolution" if op == "convolution" else "dot")
        elif op == "custom-call":
            _call(graph, node, uses)
        elif op in ("gather", "dynamic-slice") and any(contents.varies[i] for i in inputs[1:]):
            uses.lookups.append((node, inputs[0]))
        elif op in _ARITHMETIC and len(inputs) == 2:
            _arithmetic(graph, contents, node, uses)
    return uses


def _call(graph: Graph, node: int, uses: Uses) -> None:
    target, inputs = graph.instructions[node].custom_call_target, graph.inputs[node]
    if is_product_call(target) and len(inputs) >= 2:
        uses.products[node] = Product(node, inputs[0], inputs[1], "convolution" if "conv" in target else "dot")
    elif not is_library_call(target):
        uses.calls.append(node)


def _arithmetic(graph: Graph, contents: Contents, node: int, uses: Uses) -> None:
    a, b = graph.inputs[node]
    pa, pb = contents.pure[a], contents.pure[b]
    if graph.ops[node] == "multiply" and (pa > 0 or pb > 0) and is_split_product(graph, node):
        uses.products[node] = Product(node, a, b, "split")
        return
    if pa > 0 and pb == MIXED:
        uses.scales.append((node, a, b))
    elif pb > 0 and pa == MIXED:
        uses.scales.append((node, b, a))


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


def second_halves(graph: Graph, uses: Uses) -> dict[int, int]:
    """Reduces that finish a product begun elsewhere, with the product: of a split multiply, or of partial sums over a batch dimension."""
    halves: dict[int, int] = {}
    for product in uses.products.values():
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
    """Whether a reduce sums the leading dimension that a product treated as a batch dimension: partial sums over slices of its length."""
    batches = batch_sizes(graph, product)
    operand = graph.inputs[reduce][0]
    factor = graph.count(operand) // max(graph.count(reduce), 1)
    if graph.instructions[reduce].attribute("dimensions").replace(" ", "") != "{0}":
        return False
    return bool(batches) and (factor in batches or factor == _product(batches))


def _product(sizes: list[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def batch_sizes(graph: Graph, product: int) -> list[int]:
    """Sizes of a dot's batch dimensions, of the library's too."""
    instruction, left = graph.instructions[product], graph.shapes[graph.inputs[product][0]].dimensions
    if graph.ops[product] == "custom-call":
        numbers = instruction.backend_config.get("gemm_backend_config", {}).get("dot_dimension_numbers", {})
        dimensions = [int(d) for d in numbers.get("lhs_batch_dimensions", ())]
    else:
        dimensions = numbers_in(instruction.attribute("lhs_batch_dims"))
    return [left[d] for d in dimensions if d < len(left)]


def elementwise_back(graph: Graph, output: int, products: dict[int, Product], halves: dict[int, int]) -> tuple[set[int], set[int]]:
    """What an output is computed from element by element (or by slicing), and the products where that ends."""
    seen: set[int] = set()
    ends: set[int] = set()
    stack = [output]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        product = halves.get(node, node)
        if product in products:
            ends.add(product)
        elif graph.ops[node] in ELEMENTWISE or graph.ops[node] in _THROUGH:
            stack.extend(graph.inputs[node])
    return seen, ends
