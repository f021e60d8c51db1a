"""KV caches among the buffers that a program takes in or makes: what is written in part and read by attention."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from hlo_mapping.classification.contents import MIXED, Contents, Write
from hlo_mapping.classification.evidence import INPUT, KV_CACHE, STATE, Roles
from hlo_mapping.classification.softmax import is_softmax, products_after, products_before
from hlo_mapping.classification.uses import Uses
from hlo_mapping.dataflow import Graph, reached
from hlo_mapping.opcodes import COMPUTING
from hlo_mapping.shape import INDEX_TYPES


def find_caches(graph: Graph, c: Contents, uses: Uses, roles: Roles) -> None:
    roles.caches.update(n for n, role in roles.role.items() if role == KV_CACHE)
    read, as_activation = _cache_reads(graph, c, uses)
    attends = bool(uses.attention.products or uses.calls or uses.attention_calls)
    returned = {c.version[o] for o in graph.outputs if c.written[o]}
    for root in dict.fromkeys(w.root for w in c.writes):
        if root in roles.role:
            continue
        writes = [w for w in c.writes if w.root == root and w.kind != "scatter-combine"]
        attended = root in read
        if not writes or (root in graph.parameters and root not in returned) or (root not in graph.parameters and not attended):
            continue
        how = "read by attention" if attended else _why_unread(graph, root, writes, root in as_activation, attends)
        if how:
            roles.caches.add(root)
            if root in graph.parameters:
                roles.give(root, KV_CACHE, f"written in part and returned, {how}")
        elif root in as_activation and root in graph.parameters:
            roles.give(root, STATE, "written in part, read as an activation")


def _why_unread(graph: Graph, root: int, writes: list[Write], multiplied: bool, attends: bool) -> str:
    """What makes a buffer a cache that no attention reads here: "" for nothing.

    A module that attends to nothing has no cache, unless it does nothing but move values. One that meets a parameter is a cache of what
    keys and values are made of if its entries' place follows from the inputs (a recurrent state's does not). One that nothing reads has
    three dimensions or more.
    """
    rank = len(graph.shapes[root].dimensions)
    placed = any(w.varies and w.kind != "select" for w in writes)
    if not attends:
        return "written for other programs, by one that only moves values" if rank >= 4 and placed and _only_moves(graph) else ""
    if rank < 3:
        return ""
    if multiplied:
        return "written at a place that the inputs give" if placed else ""
    return "written for steps to come"


def _only_moves(graph: Graph) -> bool:
    """Whether a module computes nothing with floating-point arrays: it puts entries that others made into a server's buffers."""
    return not any(
        op in COMPUTING and graph.count(n) > 1 and graph.shapes[n].element_type not in INDEX_TYPES for n, op in enumerate(graph.ops)
    )


def _cache_reads(graph: Graph, c: Contents, uses: Uses) -> tuple[set[int], set[int]]:
    """Buffers written in part that a product of attention or a custom call reads, and those that other products do."""
    read: set[int] = set()
    as_activation: set[int] = set()
    for product in uses.products.values():
        for mine, theirs in ((product.left, product.right), (product.right, product.left)):
            mask, other = c.pure[mine], c.pure[theirs]
            if mask > 0 and mask & c.updated:
                roots = {n for n in c.sources(mask & c.updated) if n in graph.parameters or _within_loop(graph, n, product.node)}
                attends = product.node in uses.attention.products
                (read if attends and (other == MIXED or other & c.updated) else as_activation).update(roots)
    for call in (*uses.calls, *uses.attention_calls):
        for operand in graph.inputs[call]:
            if c.pure[operand] > 0:
                read.update(n for n in c.sources(c.pure[operand] & c.updated) if n in graph.parameters or _within_loop(graph, n, call))
    return read, as_activation


def _within_loop(graph: Graph, phi: int, node: int) -> bool:
    return any(phi in loop.phis and loop.first <= node < loop.end for loop in graph.loops)


def find_read_only_caches(graph: Graph, c: Contents, uses: Uses, roles: Roles) -> None:
    """Keys and values that enter and are only read: parameters on both sides of a softmax, each multiplied with what the step computed,
    or two parameters of one shape that a custom call takes beside queries with the same last dimension."""
    for call in uses.calls:
        _give_caches(roles, _taken_as_keys(graph, c, call), "keys or values that a custom call reads beside queries")
    for node, op in enumerate(graph.ops):
        if op != "exponential" or not is_softmax(graph, node):
            continue
        before, after = products_before(graph, uses.products, node), products_after(graph, c, uses.products, node)
        _give_inputs_of_attention(graph, c, uses, roles, before, after)
        keys, values = _parameters_of(c, uses, before), _parameters_of(c, uses, after)
        for pair in itertools.product(keys, values):
            if _are_keys_and_values(graph, *pair):
                _give_caches(roles, pair, "keys or values that attention reads and nothing writes")


def _are_keys_and_values(graph: Graph, key: int, value: int) -> bool:
    return key != value and graph.count(key) == graph.count(value) and len(graph.shapes[key].dimensions) >= 3


def _give_caches(roles: Roles, parameters: Iterable[int], why: str) -> None:
    """Make those parameters caches that have no role yet."""
    for parameter in parameters:
        if parameter not in roles.role:
            roles.caches.add(parameter)
            roles.give(parameter, KV_CACHE, why)


def _give_inputs_of_attention(graph: Graph, c: Contents, uses: Uses, roles: Roles, before: set[int], after: set[int]) -> None:
    """Queries, keys and values that all enter as parameters: attention by itself."""
    values = _parameters_of(c, uses, after)
    for product in (uses.products[n] for n in before):
        sides = [c.sources(c.pure[operand]) for operand in (product.left, product.right)]
        if all(len(s) == 1 and len(graph.shapes[s[0]].dimensions) >= 3 for s in sides):
            pair = {s[0] for s in sides}
            matching = {v for v in values if any(graph.count(v) == graph.count(p) for p in pair)}
            for node in sorted(pair | matching) if matching else ():
                roles.give(node, INPUT, "queries, keys or values of attention")


def _taken_as_keys(graph: Graph, c: Contents, call: int) -> list[int]:
    inputs = graph.inputs[call]
    queries = {graph.shapes[i].dimensions[-1] for i in inputs if c.pure[i] == MIXED and len(graph.shapes[i].dimensions) >= 2}
    pure = [n for i in inputs for n in c.sources(c.pure[i]) if n in graph.parameters]
    pure = [n for n in pure if len(graph.shapes[n].dimensions) >= 3 and graph.shapes[n].dimensions[-1] in queries]
    shapes = [(graph.shapes[n].element_type, graph.shapes[n].dimensions) for n in pure]
    return [n for n, shape in zip(pure, shapes, strict=True) if shapes.count(shape) == 2 and shape[0] not in INDEX_TYPES]


def _parameters_of(c: Contents, uses: Uses, products: set[int]) -> set[int]:
    """Parameters that meet mixed values in these products."""
    found: set[int] = set()
    for node in products:
        product = uses.products[node]
        for mine, theirs in ((product.left, product.right), (product.right, product.left)):
            if c.pure[theirs] == MIXED:
                found.update(c.sources(c.pure[mine]))
    return found


def lasting_versions(graph: Graph, c: Contents, roles: Roles) -> frozenset[int]:
    """The versions of caches that the program returns or a loop carries on, and those they are made from; all of a cache without such.

    XLA may make the same update twice: in the copy that is returned, and in one in another order that only attention reads.
    """
    backs = [graph.inputs[p][1] for loop in graph.loops for p in loop.phis if len(graph.inputs[p]) > 1]
    lasting = [n for n in (*graph.outputs, *backs) if c.version[n] in roles.caches]
    found = set(reached(lasting, lambda n: (i for i in graph.inputs[n] if c.version[i] in roles.caches)))
    kept = {c.version[n] for n in found if c.written[n]}
    return frozenset(found | {n for n, root in enumerate(c.version) if root in roles.caches and root not in kept})
