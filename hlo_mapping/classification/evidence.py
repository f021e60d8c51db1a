"""What is known of the parameters while their roles are being decided."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_mapping.classification.contents import MIXED, Contents
from hlo_mapping.classification.uses import Uses
from hlo_mapping.dataflow import Graph
from hlo_mapping.opcodes import RESHAPING
from hlo_mapping.shape import INDEX_TYPES

WEIGHT, KV_CACHE, STATE, INPUT = "weight", "kv_cache", "state", "input"
FOLDED = 1024
"""Elements from which on a constant in a product is a folded parameter and not a small fixed matrix."""
ROLES = (WEIGHT, KV_CACHE, STATE, INPUT)


@dataclass(slots=True)
class Roles:
    """The roles by node, and what else was found out on the way."""

    role: dict[int, str] = field(default_factory=dict)
    why: dict[int, str] = field(default_factory=dict)
    caches: set[int] = field(default_factory=set)
    """First versions of KV caches: entry parameters, and buffers that a loop carries."""
    trained: set[int] = field(default_factory=set)
    constants: set[int] = field(default_factory=set)
    """Large constants that products take: parameters that were folded into the program."""
    foreign: int = 0
    """The bits of sources that are neither entry parameters nor caches: a value made of them is an activation."""
    gradients: set[int] = field(default_factory=set)
    """Products of activations whose result a parameter is updated by."""
    replaced: set[int] = field(default_factory=set)
    """Parameters that an output of their size is computed from element by element."""
    no_model: str = ""
    """What says that the program iterates without a model; "" where nothing does."""
    updates: set[int] = field(default_factory=set)
    """Nodes between a gradient and the new version of a parameter or its moments."""

    def own(self, mask: int) -> int:
        """A value's sources, or MIXED where it holds what a loop computed."""
        return MIXED if mask > 0 and mask & self.foreign else mask

    def give(self, node: int, role: str, why: str) -> None:
        if node not in self.role:
            self.role[node], self.why[node] = role, why

    def take_from_model(self, why: str) -> None:
        """What was taken for weights enters as input: the program has no model."""
        self.no_model = why
        for node in [n for n, role in self.role.items() if role == WEIGHT]:
            self.role[node], self.why[node] = INPUT, why
        self.constants.clear()


def folded(graph: Graph, node: int) -> int:
    """What an operand was before changes of type, order and place."""
    while graph.ops[node] in RESHAPING or graph.ops[node] in ("slice", "concatenate", "broadcast"):
        node = graph.inputs[node][0]
    return node


def find_constants(graph: Graph, uses: Uses) -> set[int]:
    """Floating-point constants of at least FOLDED elements that products multiply."""
    found = {folded(graph, o) for p in uses.products.values() for o in (p.left, p.right)}
    return {n for n in found if graph.ops[n] == "constant" and graph.count(n) >= FOLDED and graph.shapes[n].element_type not in INDEX_TYPES}


def returned(graph: Graph, c: Contents, node: int) -> bool:
    """Whether the program returns a new version of a parameter, in its buffer or changed element by element."""
    place = graph.parameters.get(node)
    reused = any((a.parameter, a.parameter_index) == place for a in graph.module.aliases)
    return reused or any(c.version[o] == node and c.written[o] for o in graph.outputs)


def replaced(graph: Graph, c: Contents, roles: Roles, node: int) -> bool:
    return returned(graph, c, node) or node in roles.replaced


def partners_of(c: Contents, uses: Uses, roles: Roles) -> dict[int, set[int]]:
    """For each parameter the parameters that it meets in products directly."""
    partners: dict[int, set[int]] = {}
    for product in uses.products.values():
        left, right = (c.sources(roles.own(c.pure[operand])) for operand in (product.left, product.right))
        for mine, theirs in ((left, right), (right, left)):
            for node in mine:
                partners.setdefault(node, set()).update(theirs)
    return partners
