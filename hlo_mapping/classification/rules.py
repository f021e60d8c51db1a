"""The class of a launch, by the first rule that its dataflow satisfies. No rule looks at names that people gave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hlo_mapping.classification.contents import Contents
from hlo_mapping.classification.details import is_norm, other_detail
from hlo_mapping.classification.evidence import Roles
from hlo_mapping.classification.kinds import ACTIVATION, CACHE, WEIGHTS, Kinds, is_weight_product
from hlo_mapping.classification.reasons import COPIES_CACHE, SUMS_SPLIT_PRODUCT, written_out
from hlo_mapping.classification.uses import Uses
from hlo_mapping.costs.flops import product_flops
from hlo_mapping.costs.products import Product
from hlo_mapping.dataflow import Graph, Kernel
from hlo_mapping.kernel_classes import Detail, KernelClass
from hlo_mapping.kernel_kinds import kind_of_target
from hlo_mapping.opcodes import COLLECTIVES, ELEMENTWISE, FUNCTIONS, RESHAPING


@dataclass(frozen=True, slots=True)
class Verdict:
    """A class, its finer kind, and the rule that gave it."""

    kernel_class: KernelClass
    detail: Detail
    rule: str


@dataclass(slots=True)
class ModuleAnalysis:
    """Everything known of a module before its launches are classed."""

    graph: Graph
    contents: Contents
    uses: Uses
    roles: Roles
    kinds: Kinds
    lasting: frozenset[int]
    """Versions of caches that stay: not copies that attention alone reads while another version is returned."""


@dataclass(slots=True)
class Launch:
    """One launch and what it is made of."""

    program: ModuleAnalysis
    kernel: Kernel
    ops: frozenset[str]
    products: list[Product]
    halves: list[int]
    """Products that reduces in it finish."""
    outside: list[int]
    """Nodes outside that it uses."""
    lookups: list[int]

    @property
    def nodes(self) -> range:
        return range(self.kernel.first, self.kernel.end)


def look_at(program: ModuleAnalysis, kernel: Kernel) -> Launch:
    """Gather what the rules ask about."""
    graph, kinds = program.graph, program.kinds
    nodes = range(kernel.first, kernel.end)
    outside = {i: None for n in nodes for i in graph.inputs[n] if not kernel.first <= i < kernel.end}
    products = [p for n in nodes if (p := program.uses.product(n)) is not None and is_product(program, p)]
    finished = [program.uses.product(kinds.halves[n]) for n in nodes if n in kinds.halves]
    halves = [p.node for p in finished if p is not None and is_product(program, p)]
    lookups = [
        n
        for n in nodes
        if graph.ops[n] in ("gather", "dynamic-slice") and kinds.kind[graph.inputs[n][0]] == WEIGHTS and kinds.kind[n] == ACTIVATION
    ]
    return Launch(program, kernel, frozenset(graph.ops[n] for n in nodes), products, halves, list(outside), lookups)


def classify(launch: Launch) -> Verdict | None:
    """The class of one launch; None where nothing decides it."""
    for rule in RULES:
        if (verdict := rule(launch)) is not None:
            return verdict
    return None


def _collective(launch: Launch) -> Verdict | None:
    return Verdict("other", "collective", "collective operation") if launch.ops & COLLECTIVES else None


def _cache_write(launch: Launch) -> Verdict | None:
    """A result that is a new version of a cache, made by replacing part of it."""
    graph, contents, roles = launch.program.graph, launch.program.contents, launch.program.roles
    for result in launch.kernel.results:
        root = contents.version[result]
        if root not in roles.caches or not contents.written[result]:
            continue
        made = _made_by(graph, launch.kernel, result)
        whole = graph.count(result) == graph.count(root)
        if made in ("dynamic-update-slice", "scatter") or (whole and made in ("concatenate", "select")):
            return Verdict("kv_write", "update", "updates part of a cache")
    return None


def _made_by(graph: Graph, kernel: Kernel, node: int) -> str:
    """The operation in a launch that a result comes from, whatever is done to its type and order afterwards."""
    while kernel.first <= node < kernel.end and graph.ops[node] in RESHAPING and graph.inputs[node]:
        node = graph.inputs[node][0]
    return graph.ops[node] if kernel.first <= node < kernel.end else ""


def _product(launch: Launch) -> Verdict | None:
    """The class of the largest product in it."""
    if not launch.products:
        return None
    largest = max(launch.products, key=lambda p: (is_weight_product(launch.program.kinds, p), product_flops(launch.program.graph, p) or 0))
    verdict = product_class(launch.program, largest)
    if verdict is not None and largest.kind == "split" and largest.node not in launch.halves:
        return Verdict(verdict.kernel_class, verdict.detail, written_out(verdict.rule))
    return verdict


def is_product(program: ModuleAnalysis, product: Product) -> bool:
    """Whether a product counts as one: a spread multiply of two activations only where attention is made of it."""
    if product.node not in program.uses.spread:
        return True
    verdict = product_class(program, product)
    return verdict is not None and verdict.kernel_class == "attention"


def product_class(program: ModuleAnalysis, product: Product) -> Verdict | None:
    """The class of a product by its operands."""
    kinds = program.kinds
    operands = (kinds.kind[product.left], kinds.kind[product.right])
    if WEIGHTS in operands:
        return Verdict("weights", "convolution" if product.kind == "convolution" else "product", "multiplies a model parameter")
    if product.node in program.roles.gradients:
        return Verdict("other", "gradient", "multiplies activations into a parameter's gradient")
    if CACHE in operands:
        return Verdict("attention", "product", "multiplies activations and entries of a cache")
    if kinds.attended(product.node) or any(kinds.attended(i) for i in program.graph.inputs[product.node]):
        return Verdict("attention", "product", "one of two products of activations with only elementwise work and reductions between")
    return Verdict("other", "product", "multiplies activations")


def _second_half(launch: Launch) -> Verdict | None:
    """The second half of a split product, unless what the launch reads out of a cache beside it is more."""
    graph, kinds = launch.program.graph, launch.program.kinds
    read = [
        r for r in launch.kernel.results if kinds.kind[r] == CACHE and launch.program.contents.version[r] in launch.program.roles.caches
    ]
    if launch.halves and sum(graph.shapes[r].byte_size for r in read) > sum(graph.shapes[n].byte_size for n in launch.halves):
        return Verdict("kv_gather", "slice", "reads entries of a cache into a buffer of their own")
    for node in launch.halves:
        product = launch.program.uses.product(node)
        verdict = product_class(launch.program, product) if product is not None else None
        if verdict is not None:
            return Verdict(verdict.kernel_class, verdict.detail, SUMS_SPLIT_PRODUCT)
    return None


def _custom_call(launch: Launch) -> Verdict | None:
    """A call whose meaning XLA does not define, by its operands."""
    program = launch.program
    for node in launch.nodes:
        if kind_of_target(program.graph.instructions[node].custom_call_target).flops == "attention":
            return Verdict("attention", "custom call", "cuDNN's fused attention")
        if node not in program.uses.calls:
            continue
        found = [program.kinds.kind[i] for i in program.graph.inputs[node]]
        if CACHE in found:
            return Verdict("attention", "custom call", "a custom call that takes a cache")
        if WEIGHTS in found:
            return Verdict("weights", "custom call", "a custom call that takes a model parameter")
        return _attention_call(program, node)
    return None


def _attention_call(program: ModuleAnalysis, node: int) -> Verdict | None:
    """Three arrays of activations of at least three dimensions with the same last one, and a result shaped as the first."""
    graph = program.graph
    arrays = [i for i in graph.inputs[node] if program.kinds.kind[i] == ACTIVATION and len(graph.shapes[i].dimensions) >= 3]
    results = [s.dimensions for s in graph.shapes[node].leaves]
    heads = {graph.shapes[i].dimensions[-1] for i in arrays}
    if len(arrays) >= 3 and len(heads) == 1 and any(graph.shapes[i].dimensions in results for i in arrays):
        return Verdict("attention", "custom call", "a custom call of queries, keys and values")
    return Verdict("other", "custom call", "a custom call of activations")


def _attention(launch: Launch) -> Verdict | None:
    """Softmax and what else lies between attention's products, and arithmetic with entries of a cache."""
    kinds, graph = launch.program.kinds, launch.program.graph
    if any(kinds.attended(n) and kinds.kind[n] == ACTIVATION for n in launch.nodes):
        return Verdict("attention", "softmax", "between the products of attention")
    for node in launch.nodes:
        inputs = graph.inputs[node]
        if graph.ops[node] in ("divide", "multiply", "add") and len(inputs) == 2:
            for mine, theirs in (inputs, inputs[::-1]):
                if kinds.weighted[mine] and kinds.factors[theirs] and not kinds.weighted[theirs]:
                    return Verdict("attention", "softmax", "scales attention's result")
    return None


def _cache_read(launch: Launch) -> Verdict | None:
    """Results that hold nothing but a cache's entries."""
    graph, contents, kinds = launch.program.graph, launch.program.contents, launch.program.kinds
    results = launch.kernel.results
    if not results or not all(kinds.kind[r] == CACHE for r in results):
        return None
    if all(_back_into_cache(launch, r) for r in results):
        return Verdict("kv_write", "entry", "prepares an entry that is only written back into its cache")
    moved = [n for n in launch.nodes if graph.ops[n] in ("gather", "dynamic-slice", "slice") and kinds.kind[n] == CACHE]
    if not moved and all(contents.version[r] in launch.program.roles.caches for r in results):
        if all(graph.shapes[r].element_type == graph.shapes[contents.version[r]].element_type for r in results):
            return Verdict("other", "copy", COPIES_CACHE)
        return Verdict("kv_gather", "convert", "reads a cache into a buffer of another type")
    if "gather" in launch.ops and any(r in launch.program.lasting and graph.count(r) == graph.count(contents.version[r]) for r in results):
        return Verdict("kv_gather", "reorder", "makes a new version of a cache with its rows in another order")
    return Verdict("kv_gather", "gather" if "gather" in launch.ops else "slice", "reads entries of a cache into a buffer of their own")


def _back_into_cache(launch: Launch, node: int) -> bool:
    """Whether a value's only uses are as the update, or part of the update, of the cache it came from."""
    graph, kinds = launch.program.graph, launch.program.kinds
    users = graph.users[node]
    if not users:
        return False
    for user in users:
        op = graph.ops[user]
        if op in ("dynamic-update-slice", "scatter"):
            if graph.inputs[user][0] == node:
                return False
        elif op in RESHAPING or op == "select":
            if kinds.kind[user] != CACHE or not _back_into_cache(launch, user):
                return False
        else:
            return False
    return True


def _relayout_of_attention(launch: Launch) -> Verdict | None:
    """What does nothing but bring the result of attention's products into another order or type."""
    graph, uses = launch.program.graph, launch.program.uses
    if launch.ops - RESHAPING - {"leaf", "constant"} or len(launch.outside) != 1:
        return None
    source = launch.outside[0]
    while graph.ops[source] in RESHAPING or graph.ops[source] == "leaf":
        source = graph.inputs[source][0]
    product = uses.product(launch.program.kinds.halves.get(source, source))
    verdict = product_class(launch.program, product) if product is not None else None
    if verdict is not None and verdict.kernel_class == "attention":
        return Verdict("attention", "relayout", "changes the order or type of attention's result")
    return None


def _weight_staging(launch: Launch) -> Verdict | None:
    """Results that hold nothing but model parameters' elements."""
    kinds, ops = launch.program.kinds, launch.ops
    results = launch.kernel.results
    if not results or not all(kinds.kind[r] == WEIGHTS for r in results) or ops - ELEMENTWISE - _SELECTING:
        return None
    if ops & FUNCTIONS:
        return Verdict("weights", "precompute", "computes with model parameters alone")
    order: tuple[tuple[str, Detail], ...] = (
        ("convert", "convert"),
        ("concatenate", "concatenate"),
        ("dynamic-slice", "slice"),
        ("slice", "slice"),
        ("transpose", "relayout"),
    )
    detail: Detail = next((d for o, d in order if o in ops), "copy")
    return Verdict("weights", detail, "moves or converts model parameters into a buffer of their own")


_SELECTING = frozenset(
    {"slice", "dynamic-slice", "gather", "concatenate", "pad", "broadcast", "constant", "iota", "leaf", "parameter", "reduce"}
)


def _embedding(launch: Launch) -> Verdict | None:
    """Entries looked up in a model parameter, unless the launch goes on to reduce them."""
    if launch.lookups and not is_norm(launch.program.graph, launch.kernel, launch.ops):
        return Verdict("weights", "embedding", "looks entries up in a model parameter")
    return None


def _optimizer(launch: Launch) -> Verdict | None:
    """New versions of trained parameters and their moments, computed from the old ones."""
    graph, roles = launch.program.graph, launch.program.roles
    if not roles.trained or launch.products:
        return None
    outside = [_parameter_in(launch, n) for n in launch.outside]
    read = {graph.count(n) for n in outside if n in roles.replaced or n in roles.trained}
    gradient = launch.program.kinds.gradient
    moving = any(n in gradient for n in launch.outside) or any(n in gradient for n in launch.nodes)
    if (moving or any(n in roles.replaced - roles.trained for n in outside)) and any(
        r in roles.updates and graph.count(r) in read for r in launch.kernel.results
    ):
        return Verdict("other", "optimizer", "computes a parameter's or moment's new version element by element")
    return None


def _parameter_in(launch: Launch, node: int) -> int:
    """The parameter whose elements a value holds in another place or order; else the value itself."""
    graph, contents = launch.program.graph, launch.program.contents
    node = graph.viewed(node)
    sources = contents.sources(contents.pure[node])
    return sources[0] if len(sources) == 1 and graph.count(sources[0]) == graph.count(node) else node


def _gradient(launch: Launch) -> Verdict | None:
    """What is made of gradients before they update parameters: sums, norms, scales."""
    if any(r in launch.program.kinds.gradient for r in launch.kernel.results):
        return Verdict("other", "gradient", "leads from a gradient to a parameter's update")
    return None


def _other(launch: Launch) -> Verdict | None:
    detail, rule = other_detail(launch.program.graph, launch.program.kinds, launch.kernel, launch.ops)
    return Verdict("other", detail, rule)


RULES: tuple[Callable[[Launch], Verdict | None], ...] = (
    _collective,
    _cache_write,
    _optimizer,
    _product,
    _second_half,
    _custom_call,
    _cache_read,
    _attention,
    _relayout_of_attention,
    _gradient,
    _weight_staging,
    _embedding,
    _other,
)
"""In the order in which they are asked."""

__all__ = ["RULES", "Launch", "ModuleAnalysis", "Verdict", "classify", "look_at", "product_class"]
