"""How the module's values are used: products, lookups, scales, and what an update of a parameter is made of.

Facts about the graph that both the roles of parameters and the classes of instructions rest on; no roles yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_mapping.classification.contents import MIXED, Contents
from hlo_mapping.classification.softmax import Attention, find_attention
from hlo_mapping.costs.products import Product, is_split_product
from hlo_mapping.dataflow import Graph, reached
from hlo_mapping.kernel_kinds import kind_of_target
from hlo_mapping.opcodes import ARITHMETIC, COLLECTIVES, ELEMENTWISE, PRODUCTS

_THROUGH = frozenset(
    {"phi", "all-reduce", "all-gather", "reduce-scatter", "leaf", "slice", "concatenate", "scatter", "dynamic-update-slice"}
)


@dataclass(slots=True)
class Uses:
    """All products, by node; lookups and scales by the pure mask that is looked up or combined."""

    products: dict[int, Product] = field(default_factory=dict)
    spread: dict[int, Product] = field(default_factory=dict)
    """Multiplies of two mixed values, one of them spread, that a reduce sums, on a side of a softmax: attention's products."""
    lookups: list[tuple[int, int]] = field(default_factory=list)
    """(node, table node): entries taken from a table at places that vary."""
    scales: list[tuple[int, int, int]] = field(default_factory=list)
    """(node, pure operand, other operand) of arithmetic between a parameter's own elements and a mixed value."""
    calls: list[int] = field(default_factory=list)
    """Custom calls whose meaning XLA does not define."""
    attention_calls: list[int] = field(default_factory=list)
    """Calls of a library's attention: queries, keys, values, and more."""
    attention: Attention = field(default_factory=Attention)

    def product(self, node: int) -> Product | None:
        """The product that a node is, of either sort."""
        return self.products.get(node) or self.spread.get(node)


def find_uses(graph: Graph, contents: Contents) -> Uses:
    """Walk all nodes once."""
    uses = Uses()
    for node, op in enumerate(graph.ops):
        inputs = graph.inputs[node]
        if op in PRODUCTS:
            uses.products[node] = Product(node, inputs[0], inputs[1], "convolution" if op == "convolution" else "dot")
        elif op == "custom-call":
            _call(graph, contents, node, uses)
        elif op in ("gather", "dynamic-slice") and any(contents.varies[i] for i in inputs[1:]):
            uses.lookups.append((node, inputs[0]))
        elif op in ARITHMETIC and len(inputs) == 2:
            _arithmetic(graph, contents, node, uses)
    uses.attention = find_attention(graph, contents, uses.products.keys() | uses.spread.keys())
    # of spread multiplies only attention's are products, and not those of statistics and their gradients
    uses.spread = {node: product for node, product in uses.spread.items() if node in uses.attention.products}
    return uses


def _call(graph: Graph, contents: Contents, node: int, uses: Uses) -> None:
    target, inputs = graph.instructions[node].custom_call_target, graph.inputs[node]
    kind = kind_of_target(target)
    if kind.product and len(inputs) >= 2:
        uses.products[node] = Product(node, inputs[0], inputs[1], kind.product)
        uses.scales.extend((node, extra, inputs[0]) for extra in inputs[2:] if contents.pure[extra] > 0)
    elif kind.flops == "attention":
        uses.attention_calls.append(node)
    elif not kind.bytes_known:
        uses.calls.append(node)


def _arithmetic(graph: Graph, contents: Contents, node: int, uses: Uses) -> None:
    a, b = graph.inputs[node]
    pa, pb = contents.pure[a], contents.pure[b]
    if graph.ops[node] == "multiply" and is_split_product(graph, node):
        (uses.products if pa > 0 or pb > 0 else uses.spread)[node] = Product(node, a, b, "split")
        return
    if pa > 0 and pb == MIXED:
        uses.scales.append((node, a, b))
    elif pb > 0 and pa == MIXED:
        uses.scales.append((node, b, a))


def elementwise_back(graph: Graph, output: int, products: dict[int, Product], halves: dict[int, int]) -> tuple[set[int], set[int]]:
    """What an output is computed from element by element (or by slicing), and the products where that ends."""

    def back(node: int) -> tuple[int, ...]:
        if halves.get(node, node) in products:
            return ()
        if graph.ops[node] == "leaf" and graph.ops[graph.inputs[node][0]] in COLLECTIVES:
            return (graph.leaf_operand(node),)
        return graph.inputs[node] if graph.ops[node] in ELEMENTWISE or graph.ops[node] in _THROUGH else ()

    seen = set(reached([output], back))
    return seen, {halves.get(node, node) for node in seen} & products.keys()
