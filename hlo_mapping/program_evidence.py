"""What speaks for a kind of program: loops that feed their choices back, train or sample, and what is written into caches."""

from __future__ import annotations

from math import prod

from hlo_mapping.classification.contents import Write
from hlo_mapping.classification.iteration import as_made, made_of
from hlo_mapping.classification.kinds import WEIGHTS
from hlo_mapping.classification.rules import ModuleAnalysis
from hlo_mapping.classification.uses import elementwise_back
from hlo_mapping.costs.products import Product, batch_sizes, numbers_in
from hlo_mapping.costs.traffic import combiner
from hlo_mapping.dataflow import Graph
from hlo_mapping.kernel_kinds import kind_of_target
from hlo_mapping.opcodes import RESHAPING
from hlo_mapping.shape import INDEX_TYPES


def is_backward(op_name: str) -> bool:
    """Whether the framework's name says that an operation belongs to a backward pass: JAX's transposition of a linearized function."""
    return "transpose(" in op_name


def trains(program: ModuleAnalysis, number: int) -> bool:
    """Whether a loop carries matrices on that are updated element by element with a product shaped as they are: their gradient."""
    graph, products = program.graph, program.uses.products
    loop = graph.loops[number]
    multiplied = {as_made(graph, o) for p in products.values() for o in (p.left, p.right)}
    for phi in loop.phis:
        if len(graph.inputs[phi]) < 2 or len(graph.shapes[phi].dimensions) < 2 or phi not in multiplied:
            continue
        seen, ends = elementwise_back(graph, graph.inputs[phi][1], products, program.kinds.halves)
        mine = sorted(graph.shapes[phi].dimensions)
        if phi in seen and any(_is_apart(graph, products[e], phi) and sorted(_dimensions(graph, e)) == mine for e in ends):
            return True
    return False


def _is_apart(graph: Graph, product: Product, phi: int) -> bool:
    return phi not in (as_made(graph, product.left), as_made(graph, product.right))


def _dimensions(graph: Graph, product: int) -> tuple[int, ...]:
    """A product's dimensions, without those of the slices of a sum in parts."""
    shape = next(iter(graph.shapes[product].leaves)).dimensions
    return shape[len(batch_sizes(graph, product)) :] if graph.ops[product] == "dot" else shape


def new_positions(program: ModuleAnalysis) -> int:
    """New positions of one sequence that a step writes into its caches: the most over all writes."""
    writes = [w for w in program.contents.writes if w.root in program.roles.caches]
    return max((_written_positions(program, w) for w in writes), default=1)


def _written_positions(program: ModuleAnalysis, write: Write) -> int:
    graph, node = program.graph, write.node
    if graph.ops[node] == "dynamic-update-slice":
        whole, part = (graph.shapes[i].dimensions for i in graph.inputs[node][:2])
        return prod(p for w, p in zip(whole, part, strict=True) if w != p)
    if graph.ops[node] == "scatter":
        updates = graph.shapes[graph.inputs[node][2]].dimensions
        window = set(numbers_in(graph.instructions[node].attribute("update_window_dims")))
        entries = prod(d for n, d in enumerate(updates) if n not in window)
        return 1 if _each_by_itself(program, write.root, entries) else entries
    return 1


def _each_by_itself(program: ModuleAnalysis, root: int, entries: int) -> bool:
    """Whether attention reads the cache separately for each new entry: they belong to as many sequences."""
    graph, contents = program.graph, program.contents
    for product in (*program.uses.products.values(), *program.uses.spread.values()):
        reads = any(contents.version[o] == root or root in contents.sources(contents.pure[o]) for o in (product.left, product.right))
        if reads and (product.kind == "split" or prod(batch_sizes(graph, product.node)) % entries == 0):
            return True
    return False


def returns_keys(program: ModuleAnalysis) -> bool:
    """Whether two or more outputs are, but for type, order and place, operands of attention's products."""
    graph, kinds = program.graph, program.kinds
    attended = [
        p
        for p in (*program.uses.products.values(), *program.uses.spread.values())
        if kinds.attended(p.node) or any(kinds.attended(i) for i in graph.inputs[p.node])
    ]
    operands = {_projected(program, o) for p in attended for o in (p.left, p.right)}
    arrays = [o for o in graph.outputs if len(graph.shapes[o].dimensions) >= 3]
    return sum(_projected(program, o) in operands for o in arrays) >= 2


def _projected(program: ModuleAnalysis, node: int) -> int:
    """The product that a value comes from, through the sum of its parts and slices of it; else what it was made as."""
    graph, halves = program.graph, program.kinds.halves
    while graph.ops[node] in ("slice", "leaf", *RESHAPING) or node in halves:
        node = halves.get(node, graph.inputs[node][0] if node not in halves else node)
    return node


def feeds_back(program: ModuleAnalysis, number: int) -> bool:
    """Whether a loop looks up, in a table of the model, ids that its last iteration chose among many."""
    graph, loop = program.graph, program.graph.loops[number]
    chosen = {p for p in loop.phis if len(graph.inputs[p]) > 1 and _is_choice(graph, graph.inputs[p][1])}
    if not chosen:
        return False
    for node, table in program.uses.lookups:
        if loop.first <= node < loop.end and program.kinds.kind[table] == WEIGHTS:
            ids = graph.inputs[node][1:]
            if any(p in chosen for p in made_of(graph, ids, chosen)):
                return True
    return False


def _is_choice(graph: Graph, node: int) -> bool:
    """Whether integers come from the place of a largest value, or from a sort."""
    if graph.shapes[node].element_type not in INDEX_TYPES:
        return False
    return any(_chooses(graph, n) for n in made_of(graph, (node,), ()))


def _chooses(graph: Graph, node: int) -> bool:
    op = graph.ops[node]
    if op == "reduce":
        return graph.shapes[node].is_tuple and combiner(graph, node) == "tuple"
    return op in ("sort", "topk") or (
        op == "custom-call" and kind_of_target(graph.instructions[node].custom_call_target).detail in ("sampling", "sort")
    )
