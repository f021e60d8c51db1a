"""What each entry parameter is: a weight, a KV cache, state or an input, from how the program uses it and what it returns.

Names play no part. The evidence, strongest first: a buffer that is written in part and returned is a cache if attention reads it (or
nothing does); one that is updated as a whole by the gradient of its own products is a trained weight; one that is the operand of
products, looked up by a varying index, or spread over activations as a scale or bias is a weight, unless it is the other operand's
input; what is returned in a new version is state; the rest are inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlo_mapping.classification.caches import find_caches, find_read_only_caches
from hlo_mapping.classification.contents import Contents, trace
from hlo_mapping.classification.evidence import INPUT, KV_CACHE, ROLES, STATE, WEIGHT, Roles, find_constants, returned
from hlo_mapping.classification.iteration import why_no_model
from hlo_mapping.classification.overrides import RoleOverrides
from hlo_mapping.classification.training import find_returned_gradients, find_trained
from hlo_mapping.classification.uses import Uses, elementwise_back, find_uses
from hlo_mapping.classification.weights import find_groups, find_product_weights, find_scales, find_tables
from hlo_mapping.costs.products import second_halves
from hlo_mapping.dataflow import Graph, build_graph, donated
from hlo_mapping.ir import Module

__all__ = ["INPUT", "KV_CACHE", "ROLES", "STATE", "WEIGHT", "ParameterRole", "Roles", "infer_roles", "parameter_roles"]


@dataclass(frozen=True, slots=True)
class ParameterRole:
    """One array among the entry parameters, what it is and what says so."""

    number: int
    index: tuple[int, ...]
    name: str
    role: str
    bytes: int
    donated: bool
    why: str


def parameter_roles(module: Module, overrides: RoleOverrides | None = None) -> tuple[ParameterRole, ...]:
    """The role of every array among a module's entry parameters, by parameter number and tuple index."""
    graph = build_graph(module)
    contents = trace(graph)
    roles = infer_roles(graph, contents, find_uses(graph, contents), overrides)
    return tuple(_described(graph, roles, donated(module)))


def _described(graph: Graph, roles: Roles, given: frozenset[tuple[int, tuple[int, ...]]]) -> list[ParameterRole]:
    found = []
    for node, (number, index) in sorted(graph.parameters.items(), key=lambda item: item[1]):
        name = graph.instructions[node].name
        size = graph.shapes[node].byte_size
        found.append(ParameterRole(number, index, name, roles.role[node], size, (number, index) in given, roles.why[node]))
    return found


def infer_roles(graph: Graph, contents: Contents, uses: Uses, overrides: RoleOverrides | None = None) -> Roles:
    """Decide every entry parameter; what the overrides name is theirs."""
    roles = Roles()
    for node, (role, why) in (overrides.resolve(graph) if overrides else {}).items():
        roles.give(node, role, why)
    find_caches(graph, contents, uses, roles)
    find_read_only_caches(graph, contents, uses, roles)
    roles.foreign = sum(bit for n, bit in contents.bits.items() if n not in graph.parameters and n not in roles.caches)
    roles.constants = find_constants(graph, uses)
    halves = second_halves(graph, uses.products.values())
    find_trained(graph, contents, uses, halves, roles)
    if len(graph.parameters) == 1:
        roles.give(next(iter(graph.parameters)), INPUT, "the only array that enters")
    weights = find_product_weights(graph, contents, uses, roles)
    if weights:
        find_tables(graph, contents, uses, roles)
        find_scales(graph, contents, uses, roles, weights)
        find_groups(graph, contents, uses, roles)
        if not roles.trained:
            find_returned_gradients(graph, contents, uses, halves, roles)
    if overrides is None and (why := why_no_model(graph, contents, uses, roles)):
        roles.take_from_model(why)
    _rest(graph, contents, uses, roles)
    return roles


def _rest(graph: Graph, c: Contents, uses: Uses, roles: Roles) -> None:
    gated = _gated(graph, c, uses)
    for node in graph.parameters:
        if returned(graph, c, node):
            roles.give(node, STATE, "returned in a new version")
        elif node in roles.replaced and (roles.trained or node in gated):
            roles.give(node, STATE, "returned changed element by element")
        else:
            roles.give(node, INPUT, "neither returned nor used as a weight")


def _gated(graph: Graph, c: Contents, uses: Uses) -> set[int]:
    """Parameters that are multiplied with gates: values computed element by element from products, as a recurrent cell's state is."""
    found: set[int] = set()
    for node, operand, other in uses.scales:
        if graph.ops[node] == "multiply" and elementwise_back(graph, other, uses.products, {})[1]:
            found.update(c.sources(c.pure[operand]))
    return found
