"""What each entry parameter is: a weight, a KV cache, state or an input, from how the program uses it and what it returns.

Names play no part. The evidence, strongest first: a buffer that is written in part and returned is a cache if attention reads it (or
nothing does); one that is updated as a whole by the gradient of its own products is a trained weight; one that is the operand of
products, looked up by a varying index, or spread over activations as a scale or bias is a weight, unless it is the other operand's
input; what is returned in a new version is state; the rest are inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import isqrt

from hlo_mapping.classification.contents import INDEX_TYPES, MIXED, Contents, numbers_in, trace
from hlo_mapping.classification.overrides import RoleOverrides
from hlo_mapping.classification.uses import (
    RESHAPING,
    Product,
    Uses,
    batch_sizes,
    before_broadcast,
    elementwise_back,
    find_uses,
    second_halves,
)
from hlo_mapping.costs.traffic import combiner
from hlo_mapping.dataflow import Graph, build_graph, donated
from hlo_mapping.ir import Module

WEIGHT, KV_CACHE, STATE, INPUT = "weight", "kv_cache", "state", "input"
ROLES = (WEIGHT, KV_CACHE, STATE, INPUT)
GROUP = 3
"""So many parameters of one shape and use are a layer's parameters, not a step's inputs."""


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


@dataclass(slots=True)
class Roles:
    """The roles by node, and what else was found out on the way."""

    role: dict[int, str] = field(default_factory=dict)
    why: dict[int, str] = field(default_factory=dict)
    caches: set[int] = field(default_factory=set)
    """First versions of KV caches: entry parameters, and buffers that a loop carries."""
    trained: set[int] = field(default_factory=set)
    foreign: int = 0
    """The bits of sources that are neither entry parameters nor caches: a value made of them is an activation."""
    gradients: set[int] = field(default_factory=set)
    """Products of activations whose result a parameter is updated by."""
    replaced: set[int] = field(default_factory=set)
    """Parameters that an output of their size is computed from element by element."""
    updates: set[int] = field(default_factory=set)
    """Nodes between a gradient and the new version of a parameter or its moments."""

    def own(self, mask: int) -> int:
        """A value's sources, or MIXED where it holds what a loop computed."""
        return MIXED if mask > 0 and mask & self.foreign else mask

    def give(self, node: int, role: str, why: str) -> None:
        if node not in self.role:
            self.role[node], self.why[node] = role, why


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
    _find_caches(graph, contents, uses, roles)
    find_read_only_caches(graph, contents, uses, roles)
    roles.foreign = sum(bit for n, bit in contents.bits.items() if n not in graph.parameters and n not in roles.caches)
    halves = second_halves(graph, uses)
    _find_trained(graph, contents, uses, halves, roles)
    weights = _product_weights(graph, contents, uses, roles)
    _lookups(graph, contents, uses, roles)
    if weights:
        _scales(graph, contents, uses, roles, weights)
        _groups(graph, contents, uses, roles)
        if not roles.trained:
            _returned_gradients(graph, contents, uses, halves, roles)
    _rest(graph, contents, uses, roles)
    return roles


def _find_caches(graph: Graph, c: Contents, uses: Uses, roles: Roles) -> None:
    roles.caches.update(n for n, role in roles.role.items() if role == KV_CACHE)
    read, as_activation = _cache_reads(graph, c, uses)
    returned = {c.version[o] for o in graph.outputs if c.written[o]}
    for root in dict.fromkeys(w.root for w in c.writes):
        if root in roles.role:
            continue
        writes = [w for w in c.writes if w.root == root and w.kind != "scatter-combine"]
        attended = root in read
        if not writes or (root in graph.parameters and root not in returned) or (root not in graph.parameters and not attended):
            continue
        placed = any(w.varies and w.kind != "select" for w in writes) and len(graph.shapes[root].dimensions) >= 3
        if attended or placed:
            roles.caches.add(root)
            if root in graph.parameters:
                how = "read by attention" if attended else "written at a place that the inputs give"
                roles.give(root, KV_CACHE, f"written in part and returned, {how}")
        elif root in as_activation and root in graph.parameters:
            roles.give(root, STATE, "written in part, read as an activation")


def _cache_reads(graph: Graph, c: Contents, uses: Uses) -> tuple[set[int], set[int]]:
    """Buffers written in part that meet an activation in a product (or go into a custom call), and those that meet a parameter."""
    read: set[int] = set()
    as_activation: set[int] = set()
    for product in uses.products.values():
        for mine, theirs in ((product.left, product.right), (product.right, product.left)):
            mask, other = c.pure[mine], c.pure[theirs]
            if mask > 0 and mask & c.updated:
                roots = {n for n in c.sources(mask & c.updated) if n in graph.parameters or _within_loop(graph, n, product.node)}
                (read if other == MIXED or other & c.updated else as_activation).update(roots)
    for call in uses.calls:
        for operand in graph.inputs[call]:
            if c.pure[operand] > 0:
                read.update(n for n in c.sources(c.pure[operand] & c.updated) if n in graph.parameters or _within_loop(graph, n, call))
    return read, as_activation


def find_read_only_caches(graph: Graph, c: Contents, uses: Uses, roles: Roles) -> None:
    """Keys and values that enter and are only read: parameters on both sides of a softmax, each multiplied with what the step computed."""
    for node, op in enumerate(graph.ops):
        if op != "exponential" or not _is_softmax(graph, node):
            continue
        keys = _parameters_of(c, uses, products_before(graph, uses, node))
        values = _parameters_of(c, uses, products_after(graph, c, uses, node))
        for key in keys if values else ():
            for value in values:
                if key != value and graph.count(key) == graph.count(value) and len(graph.shapes[key].dimensions) >= 3:
                    for parameter in (key, value):
                        if parameter not in roles.role:
                            roles.caches.add(parameter)
                            roles.give(parameter, KV_CACHE, "keys or values that attention reads and nothing writes")


def _is_softmax(graph: Graph, node: int) -> bool:
    """Whether an exponential is of differences from a maximum."""
    node = _through(graph, graph.inputs[node][0])
    if graph.ops[node] != "subtract":
        return False
    maximum = _through(graph, graph.inputs[node][1])
    return graph.ops[maximum] == "reduce" and combiner(graph, maximum) == "maximum"


def _through(graph: Graph, node: int) -> int:
    while graph.ops[node] in RESHAPING or graph.ops[node] in ("broadcast", "leaf"):
        node = graph.inputs[node][0]
    return node


def _parameters_of(c: Contents, uses: Uses, products: set[int]) -> set[int]:
    """Parameters that meet mixed values in these products."""
    found: set[int] = set()
    for node in products:
        product = uses.products[node]
        for mine, theirs in ((product.left, product.right), (product.right, product.left)):
            if c.pure[theirs] == MIXED:
                found.update(c.sources(c.pure[mine]))
    return found


def products_before(graph: Graph, uses: Uses, node: int) -> set[int]:
    """The products that a value is computed from through elementwise work and reductions."""
    return _reach(graph, uses, [node], lambda n: graph.inputs[n])


def products_after(graph: Graph, c: Contents, uses: Uses, node: int) -> set[int]:
    """The products that a softmax goes into, through its own division and changes of type and order alone."""

    def onward(n: int) -> list[int]:
        return [
            u
            for u in graph.users[n]
            if u in uses.products
            or graph.ops[u] in RESHAPING
            or graph.ops[u] in ("broadcast", "divide", "leaf", "select", "slice")
            or (graph.ops[u] == "multiply" and any(c.pure[i] == 0 for i in graph.inputs[u]))
        ]

    return _reach(graph, uses, [node], onward)


def _reach(graph: Graph, uses: Uses, stack: list[int], step: Callable[[int], Iterable[int]]) -> set[int]:
    seen: set[int] = set()
    found: set[int] = set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in uses.products:
            found.add(node)
        else:
            stack.extend(step(node))
    return found


def _within_loop(graph: Graph, phi: int, node: int) -> bool:
    return any(phi in loop.phis and loop.first <= node < loop.end for loop in graph.loops)


def _find_trained(graph: Graph, c: Contents, uses: Uses, halves: dict[int, int], roles: Roles) -> None:
    """Parameters that the forward pass uses and that are replaced by an elementwise update with a gradient.

    A matrix's gradient is the product of its own input and an activation's gradient: of two mixed values, or, where the matrix meets
    another parameter directly (the program's input), of that parameter and a mixed value. Once a matrix is trained, so is any vector
    that the forward pass uses and that is replaced in the same way.
    """
    chains: list[tuple[set[int], set[int], set[int]]] = []
    for output in graph.outputs:
        if graph.count(output) < 2 or graph.shapes[output].element_type in INDEX_TYPES or (c.written[output] and c.version[output] >= 0):
            continue
        seen, ends = elementwise_back(graph, output, uses.products, halves)
        replaced = {n for n in seen if n in graph.parameters and graph.count(n) == graph.count(output)} - {output}
        if replaced:
            chains.append((seen, ends, replaced))
            roles.replaced |= replaced
    inside = set().union(*(seen for seen, _, _ in chains)) if chains else set()
    used = _forward_uses(graph, c, uses, inside)
    partners = _partners(c, uses)
    for seen, ends, replaced in chains:
        for parameter in replaced & used:
            found = {e for e in ends if _is_gradient(c, uses.products[e], parameter, partners)}
            if found:
                roles.trained.add(parameter)
                roles.gradients |= found
    matrices = set(roles.trained)
    for seen, _, replaced in chains if matrices else ():
        roles.trained |= {p for p in replaced & used if not partners.get(p, set()) & matrices or p in matrices}
        roles.updates |= {n for n in seen if graph.kernel[n] >= 0}
    for node in sorted(roles.trained):
        roles.give(node, WEIGHT, "used by the forward pass, and updated as a whole by a gradient")


def _returned_gradients(graph: Graph, c: Contents, uses: Uses, halves: dict[int, int], roles: Roles) -> None:
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


def _partners(c: Contents, uses: Uses) -> dict[int, set[int]]:
    """For each parameter the parameters that it meets in products directly."""
    partners: dict[int, set[int]] = {}
    for product in uses.products.values():
        left, right = c.sources(c.pure[product.left]), c.sources(c.pure[product.right])
        for mine, theirs in ((left, right), (right, left)):
            for node in mine:
                partners.setdefault(node, set()).update(theirs)
    return partners


def _is_gradient(c: Contents, product: Product, parameter: int, partners: dict[int, set[int]]) -> bool:
    left, right = c.pure[product.left], c.pure[product.right]
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
        if spread or node not in updates:
            mask |= c.pure[operand]
    return set(c.sources(mask)) & set(graph.parameters)


def _product_weights(graph: Graph, c: Contents, uses: Uses, roles: Roles) -> set[int]:
    """Give weights and inputs by the products they are operands of; the set of all such weights."""
    caches = sum(c.bits[n] for n in roles.caches if n in c.bits)
    contests: list[Product] = []
    strength: Counter[int] = Counter()
    rows: set[int] = set()
    for product in uses.products.values():
        left, right = roles.own(c.pure[product.left]), roles.own(c.pure[product.right])
        if left > 0 and right > 0:
            if not (left | right) & caches and not left & right:
                contests.append(product)
        elif left > 0 or right > 0:
            mask, operand = (left, product.left) if left > 0 else (right, product.right)
            sources = [n for n in c.sources(mask & ~caches)]
            if sources and (product.node not in roles.gradients or set(sources) & roles.trained):
                strength.update(sources)
                rows.add(_rows(graph, product, operand))
    partners = _partners(c, uses)
    inputs = {n for p in contests for n in _loser(graph, c, p, _Evidence(strength, rows, partners, roles))}
    for product in contests:
        for operand in (product.left, product.right):
            strength.update(n for n in c.sources(c.pure[operand]) if n not in inputs)
    weights = {n for n in strength if n not in inputs and n in graph.parameters}
    for node in sorted(inputs):
        roles.give(node, STATE if _returned(graph, c, node) else INPUT, "multiplied with a weight as its activation")
    for node in sorted(weights):
        roles.give(node, WEIGHT, "an operand of products with activations")
    return {n for n in weights if roles.role[n] == WEIGHT}


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
    rows: set[int]
    partners: dict[int, set[int]]
    roles: Roles


def _loser(graph: Graph, c: Contents, product: Product, evidence: _Evidence) -> list[int]:
    """Of two parameters multiplied with each other, the sources of the one that is the input."""
    left, right = (_weight_score(graph, c, product, operand, evidence) for operand in (product.left, product.right))
    return c.sources(c.pure[product.left if left < right else product.right])


def _weight_score(graph: Graph, c: Contents, product: Product, operand: int, evidence: _Evidence) -> float:
    """How much speaks for an operand being the weight of a product of two parameters; only the order of such scores means anything."""
    roles, sources = evidence.roles, c.sources(c.pure[operand])
    outputs = {graph.shapes[o].dimensions for o in graph.outputs}
    score = 16.0 * any(n in roles.trained or roles.role.get(n) == WEIGHT for n in sources)
    score -= 16.0 * any(roles.role.get(n) in (INPUT, STATE) for n in sources)
    score += 8.0 * any(evidence.strength[n] for n in sources)
    score -= 4.0 * any(_returned(graph, c, n) for n in sources if n not in roles.trained)
    score -= 3.0 * max((len(evidence.partners.get(n, ())) - 1 for n in sources), default=0)
    score -= 2.0 * any(graph.shapes[n].dimensions in outputs for n in sources if n not in roles.trained)
    score += 4.0 * (product.kind == "convolution" and operand == product.right)
    score += 2.0 * (_rows(graph, product, operand) in evidence.rows)
    score += 1.0 * (graph.shapes[operand].byte_size > graph.shapes[product.other(operand)].byte_size)
    first = min((graph.parameters[n][0] for n in sources if n in graph.parameters), default=0)
    return score - 0.25 * first / (len(graph.parameters) + 1)


def _returned(graph: Graph, c: Contents, node: int) -> bool:
    """Whether the program returns a new version of a parameter, in its buffer or changed element by element."""
    place = graph.parameters.get(node)
    reused = any((a.parameter, a.parameter_index) == place for a in graph.module.aliases)
    return reused or any(c.version[o] == node and o != node for o in graph.outputs)


def _lookups(graph: Graph, c: Contents, uses: Uses, roles: Roles) -> None:
    """Tables of rows that entries are taken from at places that the inputs give."""
    for _, table in uses.lookups:
        for source in c.sources(c.pure[table]):
            shape = graph.shapes[source]
            is_table = source in graph.parameters and len(shape.dimensions) >= 2 and shape.dimensions[-1] > 1
            if is_table and shape.element_type not in INDEX_TYPES and not _replaced(graph, c, roles, source):
                roles.give(source, WEIGHT, "a table that entries are looked up in")


def _scales(graph: Graph, c: Contents, uses: Uses, roles: Roles, weights: set[int]) -> None:
    """Vectors along the features of activations, and arrays spread over their rows."""
    features = {d for n in weights for d in graph.shapes[n].dimensions}
    for node, operand, _ in uses.scales:
        for source in c.sources(c.pure[operand]):
            if source in roles.role or source not in graph.parameters or graph.shapes[source].element_type in INDEX_TYPES:
                continue
            if not _replaced(graph, c, roles, source) and _is_scale(graph, node, operand, features):
                roles.give(source, WEIGHT, "a scale or bias spread over activations")


def _replaced(graph: Graph, c: Contents, roles: Roles, node: int) -> bool:
    return _returned(graph, c, node) or node in roles.replaced


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
    return not spread or long[0] in features or long[0] == graph.shapes[node].dimensions[-1] or _minor_only(graph, operand)


def _minor_only(graph: Graph, operand: int) -> bool:
    """Whether a vector is spread over all but the last of several dimensions."""
    while graph.ops[operand] != "broadcast" and graph.inputs[operand]:
        operand = graph.inputs[operand][0]
    dimensions = numbers_in(graph.instructions[operand].attribute("dimensions"))
    rank = len(graph.shapes[operand].dimensions)
    return graph.ops[operand] == "broadcast" and rank > 1 and dimensions[-1:] == [rank - 1]


def _groups(graph: Graph, c: Contents, uses: Uses, roles: Roles) -> None:
    """Several floating-point parameters of one shape that are combined with activations alike are a layer's parameters."""
    combined = {s for _, operand, _ in uses.scales for s in c.sources(c.pure[operand]) if s in graph.parameters and s not in roles.role}
    combined = {s for s in combined if graph.shapes[s].element_type not in INDEX_TYPES and graph.count(s) > 1}
    shapes = Counter((graph.shapes[s].element_type, graph.shapes[s].dimensions) for s in combined)
    for node in sorted(combined):
        if shapes[graph.shapes[node].element_type, graph.shapes[node].dimensions] >= GROUP and not _replaced(graph, c, roles, node):
            roles.give(node, WEIGHT, "one of several parameters of its shape that are combined with activations")


def _rest(graph: Graph, c: Contents, uses: Uses, roles: Roles) -> None:
    for node in graph.parameters:
        if _returned(graph, c, node):
            roles.give(node, STATE, "returned in a new version")
        elif node in roles.replaced and not any(_only_added_to(graph, o, node) for o in graph.outputs):
            roles.give(node, STATE, "returned changed element by element")
        else:
            roles.give(node, INPUT, "neither returned nor used as a weight")


def _only_added_to(graph: Graph, output: int, node: int) -> bool:
    """Whether an output is this parameter and other values added to it, as a residual stream."""
    stack, seen = [output], set[int]()
    while stack:
        at = stack.pop()
        if at == node:
            return True
        if at not in seen and (graph.ops[at] in RESHAPING or graph.ops[at] in ("add", "leaf")):
            seen.add(at)
            stack.extend(graph.inputs[at])
    return False
