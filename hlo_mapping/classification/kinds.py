"""What every value holds once the parameters' roles are known, and which values lie between the two products of attention."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_mapping.classification.contents import Contents, takes_matrices
from hlo_mapping.classification.evidence import INPUT, KV_CACHE, STATE, WEIGHT, Roles
from hlo_mapping.classification.uses import Uses
from hlo_mapping.costs.products import Product, second_halves
from hlo_mapping.dataflow import Graph, reached
from hlo_mapping.opcodes import ARITHMETIC, COLLECTIVES, PRODUCTS, RESHAPING
from hlo_mapping.shape import INDEX_TYPES

WEIGHTS, CACHE, INDEX, ACTIVATION = 1, 2, 4, 8
"""Kinds of value as bits: parameters' own elements, a cache's, what follows from integers of the inputs, and everything computed."""
_OF_ROLE = {WEIGHT: WEIGHTS, KV_CACHE: CACHE}


@dataclass(slots=True)
class Kinds:
    """Per node its kind; `scores` and `to_values` mark what comes after a product of activations and what leads into the next one.

    Both stay within one iteration of a loop; `factors` are scores that loops carry on, such as a running softmax's maximum and sum.
    """

    kind: list[int]
    scores: list[bool]
    factors: list[bool]
    to_values: list[bool]
    trigonometric: list[bool]
    """Sines and cosines of positions, also while they are scaled, spread and joined."""
    weighted: list[bool]
    """Attention's weighted sums, also while they are scaled with factors of its softmax."""
    halves: dict[int, int] = field(default_factory=dict)
    """Reduces that finish a product begun by another node."""
    softened: list[bool] = field(default_factory=list)
    """Scores after the exponential of attention's softmax."""
    gradient: set[int] = field(default_factory=set)
    """Gradients of parameters, and what follows from them without another product."""

    def attended(self, node: int) -> bool:
        """Whether a value lies between attention's products: scores, softmax."""
        return self.scores[node] and self.to_values[node]


def find_kinds(graph: Graph, contents: Contents, uses: Uses, roles: Roles) -> Kinds:
    """Follow kinds from the entry parameters, then attention's scores forwards and its values backwards."""
    size = len(graph.ops)
    halves = second_halves(graph, [*uses.products.values(), *uses.spread.values()])
    kinds = Kinds([0] * size, [False] * size, [False] * size, [False] * size, [False] * size, [False] * size, halves, [False] * size)
    for _ in range(4 if graph.loops else 1):  # a phi comes before the body that gives it its kind, an outer loop's before an inner one's
        before = list(kinds.kind)
        for node in range(size):
            kinds.kind[node] = _kind(graph, contents, uses, roles, kinds, node)
        if before == kinds.kind:
            break
    for _ in range(2 if graph.loops else 1):
        for node in range(size):
            _mark_forwards(graph, uses, roles, kinds, node)
        for node in range(size - 1, -1, -1):
            kinds.to_values[node] = any(_leads_to_values(graph, uses, kinds, node, user) for user in graph.users[node])
    kinds.gradient = _after_gradients(graph, uses, roles)
    return kinds


def _mark_forwards(graph: Graph, uses: Uses, roles: Roles, kinds: Kinds, node: int) -> None:
    inputs = graph.inputs[node]
    kinds.scores[node] = node not in roles.gradients and _is_score(graph, uses, kinds, node)
    earlier = inputs if graph.ops[node] != "phi" else tuple(i for i in inputs if i < node)
    kinds.softened[node] = kinds.scores[node] and (node in uses.attention.exponentials or any(kinds.softened[i] for i in earlier))
    computed = uses.product(node) is None and kinds.kind[node] & (ACTIVATION | INDEX) != 0
    kinds.factors[node] = kinds.scores[node] or (computed and any(kinds.factors[i] for i in inputs))
    kinds.weighted[node] = _is_weighted(graph, uses, kinds, node)
    shifted = graph.ops[node] in ("add", "subtract")  # a window such as Hann's, which turns nothing
    turning = graph.ops[node] in ("sine", "cosine") or (not shifted and any(kinds.trigonometric[i] for i in inputs))
    kinds.trigonometric[node] = turning and kinds.kind[node] & ACTIVATION == 0


def _after_gradients(graph: Graph, uses: Uses, roles: Roles) -> set[int]:
    """Everything computed from gradient products, and from sums and scatters on the way to an update, up to the next product."""
    sums = [n for n in roles.updates if graph.ops[n] in ("reduce", "scatter")]
    return set(reached((*roles.gradients, *sums), lambda n: (u for u in graph.users[n] if u not in uses.products)))


def _kind(graph: Graph, c: Contents, uses: Uses, roles: Roles, kinds: Kinds, node: int) -> int:
    op, inputs, kind = graph.ops[node], graph.inputs[node], kinds.kind
    if op == "parameter":
        return _parameter_kind(graph, roles, node)
    if node in roles.constants:
        return WEIGHTS
    if c.version[node] in roles.caches and (c.written[node] or op == "phi"):
        return CACHE
    if op in ("gather", "dynamic-slice"):
        looked_up = kind[inputs[0]] == WEIGHTS and any(c.varies[i] for i in inputs[1:]) and not takes_matrices(graph, node)
        return ACTIVATION if looked_up else kind[inputs[0]]
    if op == "compare" or op.startswith("rng"):
        return INDEX if op != "compare" or any(kind[i] for i in inputs) else 0
    if op == "leaf" and graph.ops[inputs[0]] in COLLECTIVES:
        return kind[graph.leaf_operand(node)]
    found = 0
    for source in _elements(op, inputs):
        found |= kind[source]
    if op in PRODUCTS or op == "custom-call" or uses.product(node) is not None:
        return WEIGHTS if found == WEIGHTS and op != "custom-call" else ACTIVATION
    return _merged(found)


def _elements(op: str, inputs: tuple[int, ...]) -> tuple[int, ...]:
    """The operands whose elements a result holds, not those that say where."""
    if op == "select":
        return inputs[1:]
    return inputs[:2] if op == "dynamic-update-slice" else inputs


def _merged(found: int) -> int:
    if found & ACTIVATION:
        return ACTIVATION
    if found & CACHE:
        return CACHE
    return INDEX if found & INDEX else found


def _parameter_kind(graph: Graph, roles: Roles, node: int) -> int:
    role = roles.role[node]
    if role in (INPUT, STATE):
        return INDEX if graph.shapes[node].element_type in INDEX_TYPES or graph.count(node) == 1 else ACTIVATION
    return _OF_ROLE[role]


def is_weight_product(kinds: Kinds, product: Product) -> bool:
    """Whether an operand is a model parameter's own elements, as stored, moved or dequantised."""
    return WEIGHTS in (kinds.kind[product.left], kinds.kind[product.right])


def _mixes_cache(graph: Graph, kinds: Kinds, node: int) -> bool:
    """Whether arithmetic brings entries of a cache and activations together."""
    found = [kinds.kind[i] for i in graph.inputs[node]]
    return graph.ops[node] in (*ARITHMETIC, "select") and CACHE in found and ACTIVATION in found and kinds.kind[node] == ACTIVATION


def _is_score(graph: Graph, uses: Uses, kinds: Kinds, node: int) -> bool:
    inputs = graph.inputs[node]
    scored = any(kinds.scores[i] for i in (inputs if graph.ops[node] != "phi" else [i for i in inputs if i < node]))
    product = uses.product(node)
    if product is not None:
        return not is_weight_product(kinds, product) and not scored and kinds.kind[node] == ACTIVATION
    if kinds.kind[node] & (ACTIVATION | INDEX) == 0:
        return False
    return scored or _mixes_cache(graph, kinds, node)


def _is_weighted(graph: Graph, uses: Uses, kinds: Kinds, node: int) -> bool:
    """Whether a value is the second product of attention, or one combined with nothing but factors of its softmax."""
    inputs, op = graph.inputs[node], graph.ops[node]
    product = uses.product(node)
    if product is not None:
        return not is_weight_product(kinds, product) and any(kinds.softened[i] for i in inputs)
    if op in RESHAPING or op == "leaf":
        return kinds.weighted[inputs[0]]
    if op in ("phi", "add", "multiply", "divide", "reduce"):
        found = [i for i in inputs if kinds.kind[i]]
        return any(kinds.weighted[i] for i in found) and all(kinds.weighted[i] or kinds.factors[i] for i in found)
    return op == "broadcast" and kinds.weighted[inputs[0]]


def _leads_to_values(graph: Graph, uses: Uses, kinds: Kinds, node: int, user: int) -> bool:
    """Whether this use of a value, softened by a softmax, is a product of activations or leads to one, in the same iteration of a loop."""
    if graph.ops[user] == "phi" and node > user:
        return False
    product = uses.product(user)
    if product is not None:
        return kinds.softened[node] and not is_weight_product(kinds, product) and kinds.kind[user] == ACTIVATION
    return kinds.to_values[user]
