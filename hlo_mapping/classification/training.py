"""Training: which parameters an optimizer updates, and which products are their gradients."""

from __future__ import annotations

from hlo_mapping.classification.contents import MIXED, Contents
from hlo_mapping.classification.evidence import WEIGHT, Roles, partners_of
from hlo_mapping.classification.uses import Uses, elementwise_back
from hlo_mapping.costs.products import Product, before_broadcast
from hlo_mapping.costs.traffic import combiner
from hlo_mapping.dataflow import Graph
from hlo_mapping.shape import INDEX_TYPES


def find_trained(graph: Graph, c: Contents, uses: Uses, halves: dict[int, int], roles: Roles) -> None:
    """Parameters that the forward pass uses and that are replaced by an elementwise update with a gradient.

    A matrix's gradient is the product of its own input and an activation's gradient: of two mixed values, or, where the matrix meets
    another parameter directly (the program's input), of that parameter and a mixed value. Once a matrix is trained, so is any vector
    that the forward pass uses and that is replaced in the same way. A table's gradient is a sum scattered to the rows that were looked up.
    """
    chains = _update_chains(graph, c, uses, halves)
    roles.replaced = roles.replaced.union(*(replaced for _, _, replaced in chains))
    inside = set[int]().union(*(seen for seen, _, _ in chains))
    used = _forward_uses(graph, c, uses, inside)
    partners = partners_of(c, uses, roles)
    tables = {n for _, table in uses.lookups for n in c.sources(c.pure[table])}
    for seen, ends, replaced in chains:
        for parameter in replaced & used:
            by_product = any(_is_gradient(c, roles, uses.products[e], parameter, partners) for e in ends)
            if by_product or (parameter in tables and _is_scattered(graph, seen, parameter)):
                roles.trained.add(parameter)
    matrices = set(roles.trained)
    for seen, _, replaced in chains if matrices else ():
        roles.trained |= {p for p in replaced & used if not partners.get(p, set()) & matrices or p in matrices}
        roles.updates |= {n for n in seen if graph.kernel[n] >= 0}
    for _, ends, replaced in chains if matrices else ():
        if replaced & roles.trained:
            roles.gradients |= {e for e in ends if not _operand_sources(c, uses.products[e]) & roles.trained}
    for node in sorted(roles.trained):
        roles.give(node, WEIGHT, "used by the forward pass, and updated as a whole by a gradient")


def _update_chains(graph: Graph, c: Contents, uses: Uses, halves: dict[int, int]) -> list[tuple[set[int], set[int], set[int]]]:
    """For each output that replaces parameters elementwise: the nodes of its update, the products it begins at, and those parameters."""
    chains: list[tuple[set[int], set[int], set[int]]] = []
    for output in graph.outputs:
        if graph.count(output) < 2 or graph.shapes[output].element_type in INDEX_TYPES or (c.written[output] and c.version[output] >= 0):
            continue
        seen, ends = elementwise_back(graph, output, uses.products, halves)
        size = graph.shapes[output].dimensions
        replaced = {n for n in seen if n in graph.parameters and graph.shapes[n].dimensions == size} - {output}
        if replaced:
            chains.append((seen, ends, replaced))
    return chains


LEAST_FEATURES = 8
"""Columns from which on rows that are looked up and summed into are an embedding's, and not places or forces in space."""


def _is_scattered(graph: Graph, chain: set[int], table: int) -> bool:
    """Whether an update adds up rows in the shape of a table."""
    shape = graph.shapes[table].dimensions
    if len(shape) < 2 or shape[-1] < LEAST_FEATURES:
        return False
    return any(graph.ops[n] == "scatter" and combiner(graph, n) == "add" and graph.shapes[n].dimensions == shape for n in chain)


def _is_gradient(c: Contents, roles: Roles, product: Product, parameter: int, partners: dict[int, set[int]]) -> bool:
    left, right = roles.own(c.pure[product.left]), roles.own(c.pure[product.right])
    met = partners.get(parameter, set())
    if not met:
        return left == MIXED and right == MIXED
    pure = left if left > 0 else right
    return pure > 0 and MIXED in (left, right) and set(c.sources(pure)) <= met


def _forward_uses(graph: Graph, c: Contents, uses: Uses, updates: set[int]) -> set[int]:
    """Parameters that products, lookups or scales outside of update chains use."""
    mask = 0
    for product in uses.products.values():
        for operand in (product.left, product.right):
            mask |= max(c.pure[operand], 0)
    for _, table in uses.lookups:
        mask |= max(c.pure[table], 0)
    for node, operand, _ in uses.scales:
        spread = before_broadcast(graph, operand)[1]
        if spread or node not in updates or node in uses.products:
            mask |= c.pure[operand]
    return set(c.sources(mask)) & set(graph.parameters)


def find_returned_gradients(graph: Graph, c: Contents, uses: Uses, halves: dict[int, int], roles: Roles) -> None:
    """Products of activations that are returned in the shape of a weight: gradients for an optimizer elsewhere."""
    weights = {n for n, role in roles.role.items() if role == WEIGHT}
    shapes = {tuple(sorted(graph.shapes[n].dimensions)) for n in weights}
    chains = [
        elementwise_back(graph, output, uses.products, halves)
        for output in graph.outputs
        if tuple(sorted(graph.shapes[output].dimensions)) in shapes and c.version[output] < 0
    ]
    for _, ends in chains:
        roles.gradients |= {e for e in ends if not _operand_sources(c, uses.products[e]) & weights}
    for seen, _ in chains if roles.gradients else ():
        roles.updates |= {n for n in seen if graph.kernel[n] >= 0}


def _operand_sources(c: Contents, product: Product) -> set[int]:
    return set(c.sources(c.pure[product.left])) | set(c.sources(c.pure[product.right]))
