"""Weights: operands of products with activations, tables that entries are looked up in, scales and biases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isqrt

from hlo_mapping.classification.axes import summed_axes
from hlo_mapping.classification.contents import MIXED, Contents
from hlo_mapping.classification.evidence import INPUT, STATE, WEIGHT, Roles, folded, partners_of, replaced, returned
from hlo_mapping.classification.uses import Uses
from hlo_mapping.costs.products import Product, batch_sizes, before_broadcast, numbers_in
from hlo_mapping.dataflow import Graph, reached
from hlo_mapping.opcodes import COLLECTIVES, RESHAPING
from hlo_mapping.shape import INDEX_TYPES

GROUP = 3
"""So many parameters of one shape and use are a layer's parameters, not a step's inputs."""


def find_product_weights(graph: Graph, c: Contents, uses: Uses, roles: Roles) -> set[int]:
    """Give weights and inputs by the products they are operands of; the set of all such weights."""
    caches = sum(c.bits[n] for n in roles.caches if n in c.bits)
    evidence = _Evidence(_taken_by_calls(graph, c, uses, roles, caches), partners_of(c, uses, roles), roles)
    contests = [product for product in uses.products.values() if _are_both_given(graph, c, uses, product, caches, evidence)]
    strength = evidence.strength
    inputs = evidence.inputs | {n for p in contests for n in _loser(graph, c, p, evidence)}
    for product in contests:
        for operand in (product.left, product.right):
            strength.update(n for n in c.sources(c.pure[operand]) if n not in inputs)
    strength.update(evidence.selected - inputs)
    weights = {n for n in strength if n not in inputs and n in graph.parameters}
    weights = _that_others_meet(graph, c, uses, weights, contests) | (weights & roles.trained)
    for node in sorted(inputs):
        roles.give(node, STATE if returned(graph, c, node) else INPUT, "multiplied with a weight as its activation")
    for node in sorted(weights):
        roles.give(node, WEIGHT, "an operand of products with activations")
    return {n for n in weights if roles.role[n] == WEIGHT}


def _are_both_given(graph: Graph, c: Contents, uses: Uses, product: Product, caches: int, evidence: _Evidence) -> bool:
    """Whether both operands are parameters'; where one is, what the product says of it goes into `evidence`."""
    left, right = evidence.roles.own(c.pure[product.left]), evidence.roles.own(c.pure[product.right])
    left, right = (MIXED if mask > 0 and mask & caches else mask for mask in (left, right))
    if left > 0 and right > 0:
        return not left & right
    if left > 0 or right > 0:
        mask, operand = (left, product.left) if left > 0 else (right, product.right)
        _weigh(graph, c, uses, product, operand, c.sources(mask & ~caches), evidence)
    return False


def _weigh(graph: Graph, c: Contents, uses: Uses, product: Product, operand: int, sources: list[int], evidence: _Evidence) -> None:
    """Add what a product of a parameter (`operand`, its sources) and something computed says of the parameter."""
    roles = evidence.roles
    if roles.constants & {folded(graph, product.left), folded(graph, product.right)}:
        evidence.inputs.update(sources)
    elif found := _with_this_gradient(graph, c, uses, roles, product, operand, evidence.partners):
        evidence.derived |= found
    elif sources and (product.node not in roles.gradients or set(sources) & roles.trained):
        if is_selection(graph, product.other(operand)):
            evidence.selected.update(sources)
        else:
            evidence.strength.update(sources)
            evidence.rows.add(_rows(graph, product, operand))


def _that_others_meet(graph: Graph, c: Contents, uses: Uses, weights: set[int], contests: list[Product]) -> set[int]:
    """Those weights that meet, in one product at least, a value that does not follow from themselves.

    An array that only ever meets what was computed from it is a state that acts on itself, as bodies do through their distances.
    """
    bits = {node: 1 << i for i, node in enumerate(graph.parameters)}
    depends = _dependence(graph, bits) if weights else []
    met = {n for p in contests for operand in (p.left, p.right) for n in c.sources(c.pure[operand])}
    for product in uses.products.values():
        for operand in (product.left, product.right):
            other = depends[product.other(operand)] if weights else 0
            met.update(n for n in c.sources(c.pure[operand]) if not other & bits.get(n, 0))
    met.update(n for call in uses.calls for i in graph.inputs[call] for n in c.sources(c.pure[i]))
    return weights & met


def _dependence(graph: Graph, bits: Mapping[int, int]) -> list[int]:
    """For each node the entry parameters that its value depends on, as bits; of what loops carry, in the first iteration."""
    depends = [0] * len(graph.ops)
    for node in range(len(depends)):
        found, inputs = bits.get(node, 0), graph.inputs[node]
        if graph.ops[node] == "leaf" and graph.ops[inputs[0]] in COLLECTIVES:
            inputs = (graph.leaf_operand(node),)
        for source in inputs:
            if source < node:
                found |= depends[source]
        depends[node] = found
    return depends


def _with_this_gradient(
    graph: Graph, c: Contents, uses: Uses, roles: Roles, product: Product, operand: int, partners: dict[int, set[int]]
) -> set[int]:
    """The parameters whose gradient a product of a parameter with something computed is: of its shape, and met by it directly.

    A gradient sums over the other dimensions of the parameter than the product in which the two met: another layer that uses the same
    square weights makes results of the input's shape too, but sums over the same ones.
    """
    batch = len(batch_sizes(graph, product.node)) if product.kind == "dot" else 0
    shape = next(iter(graph.shapes[product.node].leaves)).dimensions[batch:]  # without the slices of a sum in parts
    sources = c.sources(roles.own(c.pure[operand]))
    met = {n for s in sources for n in partners.get(s, ())}
    alike = {n for n in met if sorted(graph.shapes[n].dimensions) == sorted(shape)}
    return {n for n in alike if not any(_sums_as_where_met(graph, c, uses, product, operand, s, n) for s in sources)}


def _sums_as_where_met(graph: Graph, c: Contents, uses: Uses, product: Product, operand: int, source: int, other: int) -> bool:
    """Whether a product sums over dimensions of a parameter that a product with another parameter itself sums over."""
    mine = summed_axes(graph, product, operand, source)
    for meeting in uses.products.values() if mine else ():
        for a, b in ((meeting.left, meeting.right), (meeting.right, meeting.left)):
            if c.sources(c.pure[a]) == [source] and c.sources(c.pure[b]) == [other]:
                theirs = summed_axes(graph, meeting, a, source)
                if theirs is not None and mine is not None and mine & theirs:
                    return True
    return False


def is_selection(graph: Graph, node: int) -> bool:
    """Whether a value holds nothing but zeros and ones that comparisons gave.

    A product with it picks rows, of an activation as well as of a table, and so says little of what it picks from.
    """
    made_of = reached([node], lambda n: graph.inputs[n] if graph.ops[n] in _SELECTIONS else ())
    ops = {graph.ops[n] for n in made_of} - _SELECTIONS - {"constant"}
    return ops == {"compare"}


_SELECTIONS = RESHAPING | {"multiply", "and", "or", "not", "broadcast", "slice", "concatenate", "pad"}


def _taken_by_calls(graph: Graph, c: Contents, uses: Uses, roles: Roles, caches: int) -> Counter[int]:
    """Floating-point parameters that custom calls of unknown meaning take beside something computed."""
    strength: Counter[int] = Counter()
    for call in uses.calls:
        masks = [roles.own(c.pure[i]) for i in graph.inputs[call]]
        if MIXED in masks:
            taken = [n for mask in masks if mask > 0 and not mask & caches for n in c.sources(mask)]
            strength.update(n for n in taken if graph.shapes[n].element_type not in INDEX_TYPES and graph.count(n) > 1)
    return strength


def _rows(graph: Graph, product: Product, weight: int) -> int:
    """Rows of activations that a product has, taking one operand as its weight: sqrt(activation x result / weight) for two matrices."""
    result = graph.shapes[product.node]
    size = next(iter(result.leaves)).element_count
    batch = 1
    for b in batch_sizes(graph, product.node) if product.kind == "dot" else ():
        batch *= b
    return isqrt(graph.count(product.other(weight)) * size // max(graph.count(weight) * batch, 1))


@dataclass(slots=True)
class _Evidence:
    """What products say of parameters: how many mixed values each meets, the rows of activations seen, and whom each meets directly."""

    strength: Counter[int]
    partners: dict[int, set[int]]
    roles: Roles
    rows: set[int] = field(default_factory=set)
    derived: set[int] = field(default_factory=set)
    """Parameters whose gradient the program computes."""
    inputs: set[int] = field(default_factory=set)
    """Parameters that meet constants."""
    selected: set[int] = field(default_factory=set)
    """Parameters of which products with ones and zeros pick rows."""


def _loser(graph: Graph, c: Contents, product: Product, evidence: _Evidence) -> list[int]:
    """Of two parameters multiplied with each other, the sources of the one that is the input; of two sets of points both are."""
    if _compares_points(graph, c, product, evidence):
        return [n for operand in (product.left, product.right) for n in c.sources(c.pure[operand])]
    left, right = (_weight_score(graph, c, product, operand, evidence) for operand in (product.left, product.right))
    return c.sources(c.pure[product.left if left < right else product.right])


def _compares_points(graph: Graph, c: Contents, product: Product, evidence: _Evidence) -> bool:
    """Whether a product is of the rows of one array with those of another of the same shape, and nothing else speaks for either."""
    sources = [c.sources(c.pure[operand]) for operand in (product.left, product.right)]
    if product.kind != "dot" or any(len(s) != 1 or evidence.strength[s[0]] or s[0] in evidence.roles.role for s in sources):
        return False
    one, other = (graph.shapes[s[0]].dimensions for s in sources)
    instruction = graph.instructions[product.node]
    summed = [numbers_in(instruction.attribute(f"{side}_contracting_dims")) for side in ("lhs", "rhs")]
    return one == other and len(one) >= 2 and one[0] != one[-1] and summed[0] == summed[1]


def _weight_score(graph: Graph, c: Contents, product: Product, operand: int, evidence: _Evidence) -> float:
    """How much speaks for an operand being the weight of a product of two parameters; only the order of such scores means anything."""
    roles, sources = evidence.roles, c.sources(c.pure[operand])
    outputs = {graph.shapes[o].dimensions for o in graph.outputs}
    score = 16.0 * any(n in roles.trained or roles.role.get(n) == WEIGHT for n in sources)
    score -= 16.0 * any(roles.role.get(n) in (INPUT, STATE) for n in sources)
    score += 8.0 * any(n in evidence.derived for n in sources)
    score += 8.0 * any(evidence.strength[n] for n in sources)
    score -= 4.0 * any(returned(graph, c, n) for n in sources if n not in roles.trained)
    score -= 3.0 * max((len(evidence.partners.get(n, ())) - 1 for n in sources), default=0)
    score -= 2.0 * any(graph.shapes[n].dimensions in outputs for n in sources if n not in roles.trained)
    score += 4.0 * (product.kind == "convolution" and operand == product.right)
    score += 2.0 * (_rows(graph, product, operand) in evidence.rows)
    score += 1.0 * (graph.shapes[operand].byte_size > graph.shapes[product.other(operand)].byte_size)
    first = min((graph.parameters[n][0] for n in sources if n in graph.parameters), default=0)
    return score - 0.25 * first / (len(graph.parameters) + 1)


def find_tables(graph: Graph, c: Contents, uses: Uses, roles: Roles) -> None:
    """Tables of rows that entries are taken from at places that the inputs give."""
    returned_alone = {_moved(graph, o) for o in graph.outputs}
    for node, table in uses.lookups:
        if graph.ops[node] == "dynamic-slice" and node in returned_alone:
            continue  # a program that indexes an array, whatever it holds
        for source in c.sources(c.pure[table]):
            shape = graph.shapes[source]
            is_table = source in graph.parameters and len(shape.dimensions) >= 2 and shape.dimensions[-1] > 1
            if is_table and shape.element_type not in INDEX_TYPES and not replaced(graph, c, roles, source):
                roles.give(source, WEIGHT, "a table that entries are looked up in")


def _moved(graph: Graph, node: int) -> int:
    """What a value was before changes of type and order."""
    while graph.ops[node] in RESHAPING:
        node = graph.inputs[node][0]
    return node


def find_scales(graph: Graph, c: Contents, uses: Uses, roles: Roles, weights: set[int]) -> None:
    """Vectors along the features of activations, and arrays spread over their rows."""
    features = {d for n in weights for d in graph.shapes[n].dimensions}
    for node, operand, _ in uses.scales:
        for source in c.sources(c.pure[operand]):
            if source in roles.role or source not in graph.parameters or graph.shapes[source].element_type in INDEX_TYPES:
                continue
            if not replaced(graph, c, roles, source) and _is_scale(graph, node, operand, features):
                roles.give(source, WEIGHT, "a scale or bias spread over activations")


def _is_scale(graph: Graph, node: int, operand: int, features: set[int]) -> bool:
    """Whether an array is combined with activations along their features, not their rows."""
    source, spread = before_broadcast(graph, operand)
    while graph.ops[source] in ("slice", "dynamic-slice"):
        source, spread = before_broadcast(graph, graph.inputs[source][0])[0], True
    long = [d for d in graph.shapes[source].dimensions if d > 1]
    if not long:
        return False
    if len(long) > 1:
        return spread and (graph.ops[node] == "multiply" or long[-1] in features)
    return long[0] in features or (spread and (long[0] == graph.shapes[node].dimensions[-1] or _minor_only(graph, operand)))


def _minor_only(graph: Graph, operand: int) -> bool:
    """Whether a vector is spread over all but the last of several dimensions."""
    while graph.ops[operand] != "broadcast" and graph.inputs[operand]:
        operand = graph.inputs[operand][0]
    dimensions = numbers_in(graph.instructions[operand].attribute("dimensions"))
    rank = len(graph.shapes[operand].dimensions)
    return graph.ops[operand] == "broadcast" and rank > 1 and dimensions[-1:] == [rank - 1]


def find_groups(graph: Graph, c: Contents, uses: Uses, roles: Roles) -> None:
    """Several floating-point parameters of one shape that are combined with activations alike are a layer's parameters."""
    combined = {s for _, operand, _ in uses.scales for s in c.sources(c.pure[operand]) if s in graph.parameters and s not in roles.role}
    combined = {s for s in combined if graph.shapes[s].element_type not in INDEX_TYPES and graph.count(s) > 1}
    shapes = Counter((graph.shapes[s].element_type, graph.shapes[s].dimensions) for s in combined)
    for node in sorted(combined):
        if shapes[graph.shapes[node].element_type, graph.shapes[node].dimensions] >= GROUP and not replaced(graph, c, roles, node):
            roles.give(node, WEIGHT, "one of several parameters of its shape that are combined with activations")
