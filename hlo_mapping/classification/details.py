"""The finer kind of launches that are neither weights nor attention nor a cache's."""

from __future__ import annotations

from hlo_mapping.classification.kinds import ACTIVATION, INDEX, Kinds
from hlo_mapping.costs.traffic import combiner
from hlo_mapping.dataflow import Graph, Kernel, reached
from hlo_mapping.kernel_classes import Detail
from hlo_mapping.kernel_kinds import kind_of_target
from hlo_mapping.opcodes import OPCODES, RESHAPING, ROOTS

_SCALAR_STEPS = RESHAPING | {"multiply", "add", "divide", "subtract", "broadcast", "leaf", "maximum", "all-reduce"}
_BY_OPCODE = [(name, row.detail) for name, row in OPCODES.items() if row.detail]


def other_detail(graph: Graph, kinds: Kinds, kernel: Kernel, ops: frozenset[str]) -> tuple[Detail, str]:
    """The detail of a launch and the rule that gave it."""
    for opcode, detail in _BY_OPCODE:
        if opcode in ops:
            return detail, f"holds a {opcode}"
    if "custom-call" in ops:
        return kind_of_target(kernel.instruction.custom_call_target).detail, "a library call"
    if kernel.in_condition:
        return "loop control", "computes a loop's condition"
    nodes = range(kernel.first, kernel.end)
    if any(graph.ops[n] in ("reduce", "reduce-window") and _is_argument_reduction(graph, n) for n in nodes):
        return "sampling", "finds the place of the largest value"
    if is_norm(graph, kernel, ops):
        return "norm", "takes or applies the root of a mean"
    if (
        any(_rotates(graph, kinds, n) for n in nodes)
        or _joins_rotated(graph, kinds, kernel, ops)
        or (ops & {"sine", "cosine"} and _leads_to_rotation(graph, kinds, kernel))
    ):
        return "rope", "multiplies with sines and cosines of positions"
    return _plain_detail(graph, kinds, kernel, ops)


def is_norm(graph: Graph, kernel: Kernel, ops: frozenset[str]) -> bool:
    """Whether a launch sums features for a root, or takes the root of such a sum: of a distance in space there are few to sum."""
    nodes = range(kernel.first, kernel.end)
    if ops & ROOTS and any(graph.ops[n] in ROOTS and _of_mean(graph, graph.inputs[n][0]) and _is_applied(graph, n) for n in nodes):
        return True
    return any(graph.ops[n] == "reduce" and _sums_features(graph, n) and _feeds_root(graph, n) for n in nodes)


LEAST_FEATURES = 8
"""Values that a norm takes the mean of, at least."""


def _sums_features(graph: Graph, node: int) -> bool:
    return graph.count(graph.inputs[node][0]) >= LEAST_FEATURES * graph.count(node)


def _of_mean(graph: Graph, node: int) -> bool:
    """Whether a value is computed element by element from a sum over features, or from stored statistics: a vector that enters."""
    passed = _SCALAR_STEPS | {"reduce", "custom-call", "phi", "slice"}
    before = reached([node], lambda n: (i for i in graph.inputs[n] if i < n) if graph.ops[n] in passed else ())
    return any(_is_sum_or_vector(graph, n) for n in before)


def _is_sum_or_vector(graph: Graph, node: int) -> bool:
    if graph.ops[node] == "reduce":
        return _sums_features(graph, node)
    return graph.ops[node] == "parameter" and sum(d > 1 for d in graph.shapes[node].dimensions) == 1


def _plain_detail(graph: Graph, kinds: Kinds, kernel: Kernel, ops: frozenset[str]) -> tuple[Detail, str]:
    results = kernel.results
    read = [i for n in range(kernel.first, kernel.end) for i in graph.inputs[n] if not kernel.first <= i < kernel.end]
    if "rng-bit-generator" in ops or {"xor", "shift-left"} <= ops:
        return "random", "computes random bits"
    if all(kinds.kind[r] == 0 for r in results) and not any(kinds.kind[i] for i in read):
        if any(graph.count(r) > 1 for r in results):
            return "broadcast", "fills a buffer with constants"
        return "loop control", "advances a scalar that no input changes"
    if all(kinds.kind[r] in (0, INDEX) for r in results) and all(graph.shapes[r].element_type in _INTEGERS for r in results):
        return "index", "computes with integers of the inputs"
    return _by_shape_of_work(ops)


_INTEGERS = frozenset({"pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"})


_BY_WORK: dict[str, Detail] = {
    "reduce-window": "reduce",
    "reduce": "reduce",
    "scatter": "scatter",
    "gather": "gather",
    "dynamic-update-slice": "update",
    "dynamic-slice": "slice",
    "concatenate": "concatenate",
    "pad": "pad",
}
"""Details by what a launch holds, the first that it does."""


def _by_shape_of_work(ops: frozenset[str]) -> tuple[Detail, str]:
    for opcode, detail in _BY_WORK.items():
        if opcode in ops:
            return detail, f"holds a {opcode} of activations"
    work = ops - RESHAPING - {"constant", "broadcast", "tuple", "leaf", "slice", "iota", "parameter"}
    if work:
        return "elementwise", "combines values element by element"
    if "transpose" in ops:
        return "transpose", "changes the order of a value"
    if "convert" in ops:
        return "convert", "changes the type of a value"
    return ("broadcast", "spreads a value") if "broadcast" in ops else ("copy", "copies a value")


def _is_argument_reduction(graph: Graph, node: int) -> bool:
    """Whether a reduction carries a value and its index together."""
    return graph.shapes[node].is_tuple and combiner(graph, node) == "tuple" and len(graph.shapes[node].elements) == 2


def _feeds_root(graph: Graph, node: int, steps: int = 10) -> bool:
    """Whether a sum goes into a root through scalar arithmetic alone."""
    if steps == 0:
        return False
    for user in graph.users[node]:
        if graph.ops[user] in ROOTS and _is_applied(graph, user):
            return True
        if graph.ops[user] in _SCALAR_STEPS and graph.count(user) <= graph.count(node) and _feeds_root(graph, user, steps - 1):
            return True
    return False


def _is_applied(graph: Graph, root: int) -> bool:
    """Whether a root scales an array that has more elements, in the same iteration: an error's or step's size scales none."""
    stack, seen = [root], set[int]()
    while stack:
        node = stack.pop()
        for user in graph.users[node]:
            op = graph.ops[user]
            if op in ("multiply", "divide") and any(
                graph.count(i) > graph.count(root) for i in graph.inputs[user] if i not in seen and i != node
            ):
                return True
            if user > node and user not in seen and op in _SCALING:
                seen.add(user)
                stack.append(user)
    return False


_SCALING = _SCALAR_STEPS | {"slice", "concatenate", "pad", "custom-call", "maximum", "select"}


def _rotates(graph: Graph, kinds: Kinds, node: int) -> bool:
    inputs = graph.inputs[node]
    return (
        graph.ops[node] == "multiply" and any(kinds.trigonometric[i] for i in inputs) and any(kinds.kind[i] == ACTIVATION for i in inputs)
    )


def _joins_rotated(graph: Graph, kinds: Kinds, kernel: Kernel, ops: frozenset[str]) -> bool:
    """Whether a launch only puts together what other launches rotated."""
    if "concatenate" not in ops or ops - RESHAPING - {"concatenate", "leaf", "constant"}:
        return False
    read = {i for n in range(kernel.first, kernel.end) for i in graph.inputs[n] if not kernel.first <= i < kernel.end}
    for node in read:
        while graph.ops[node] in RESHAPING:
            node = graph.inputs[node][0]
        if graph.ops[node] not in ("add", "subtract") or not any(_rotates(graph, kinds, i) for i in graph.inputs[node]):
            return False
    return bool(read)


def _leads_to_rotation(graph: Graph, kinds: Kinds, kernel: Kernel) -> bool:
    """Whether sines and cosines that a launch computes are multiplied with activations later."""
    after = reached(kernel.results, lambda n: (u for u in graph.users[n] if kinds.trigonometric[u] or _rotates(graph, kinds, u)))
    return any(_rotates(graph, kinds, node) for node in after)
