"""What a person calls each launch: by the parameters it works on, or the scope it stands in, and the layer that it is of.

A launch that reads weights, updates parameters or works on a cache is called after them; another after its innermost named scope. The
layer of a launch without either follows from dataflow: it is that of the latest layer whose values it reads, and on the way back, in
the gradients of a program that trains, that of the earliest. A kind of work in parentheses, as in `layers[3] (softmax)`, is nobody's
name: it is the detail of the launch's class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from hlo_mapping.classification.evidence import INPUT, STATE, WEIGHT
from hlo_mapping.classification.rules import Launch, Verdict
from hlo_mapping.dataflow import Graph
from hlo_mapping.naming.layers import Layer, Layers, find_layers
from hlo_mapping.naming.paths import Path, argument_path, dotted, has_name, is_argument, owner, scope_path, without_root
from hlo_mapping.opcodes import VIEW_OPCODES

MUCH = 0.25
"""Of several parameters that a launch works on, those of this part of the largest one's bytes stand in its name."""
MOST_NAMED = 3
"""Parameters that a name lists; of more it says how many."""
BACKWARD = frozenset({"backward", "rematerialized", "optimizer"})
CACHES = frozenset({"kv_write", "kv_gather"})
UPDATING = frozenset({"optimizer", "gradient"})
MOST_LAUNCHES_TO_UPDATE = 64
"""Launches looked at between a gradient and the update that takes it."""


@dataclass(frozen=True, slots=True)
class Naming:
    """The names of one launch; "" where there is none."""

    label: str = ""
    pattern: str = ""
    """The label with stars for the numbers of layers: the same work of all layers has one."""
    layer: str = ""
    parameters: tuple[str, ...] = ()
    """The entry parameters that it reads or updates as they were passed, weights first, then by size."""
    parameter: str = ""
    """Those of them that it is mostly about, as one name, with stars for the numbers of layers."""
    scope: str = ""
    """The named scopes around it, from the outermost, with slashes between them and stars for the numbers of layers."""


@dataclass(slots=True)
class _Seen:
    """What is known of one launch before layers are passed on."""

    parameters: list[int] = field(default_factory=list)
    main: list[int] = field(default_factory=list)
    scope: Path = ()
    layer: Layer | None = None
    is_own: bool = False
    """Whether names say its layer, or that it is outside of all layers: where some scopes number layers, the others are outside."""
    is_under_root: bool = False
    """Whether its scope began with the common root."""
    is_cache: bool = False
    """Whether it is called after a cache, whose numbers are not those of layers."""


def name_launches(
    launches: Sequence[Launch], verdicts: Sequence[Verdict | None], op_names: Sequence[str], phases: Sequence[str | None]
) -> list[Naming]:
    """The names of all launches of a module, in their order; `op_names` and `phases` are theirs."""
    if not launches:
        return []
    graph = launches[0].program.graph
    paths = _argument_paths(graph)
    scopes = [() if is_argument(name) else scope_path(name) for name in op_names]
    root = _common_root(scopes, {part for path in paths.values() for part in path})
    under_root = [scope[:1] == (root,) for scope in scopes]
    scopes = [scope[1:] if under else scope for scope, under in zip(scopes, under_root, strict=True)]
    layers = find_layers([*paths.values(), *scopes])
    seen = [_look(launch, verdict, scope, paths, layers) for launch, verdict, scope in zip(launches, verdicts, scopes, strict=True)]
    in_scopes = bool(find_layers(scopes).families)
    for one, under in zip(seen, under_root, strict=True):
        one.is_under_root = under
        one.layer = _own_layer(one, layers, paths)
        one.is_own = one.layer is not None or (bool(one.main) and not one.is_cache) or (in_scopes and bool(one.scope))
    _pass_on(launches, seen, phases)
    return [
        _naming(graph, one, verdict, paths, layers, root if one.is_under_root else "") for one, verdict in zip(seen, verdicts, strict=True)
    ]


def _argument_paths(graph: Graph) -> dict[int, Path]:
    """The path of each entry parameter, by node, without the argument's own name; () where the framework gave none, or places alone."""
    found = {}
    for node, (_, index) in graph.parameters.items():
        name = graph.instructions[node].metadata.op_name
        path = without_root((*argument_path(name), *map(str, index))) if is_argument(name) else ()
        found[node] = path if has_name(path) else ()
    return found


def _look(launch: Launch, verdict: Verdict | None, scope: Path, paths: dict[int, Path], layers: Layers) -> _Seen:
    graph = launch.program.graph
    parameters = _parameters(launch)
    main = [n for n in _main(launch, verdict, parameters) if paths[n]]
    if verdict is not None and verdict.kernel_class == "other":  # a norm that looks its input up again is of its layer, not the table's
        main = [n for n in main if layers.of(paths[n]) is not None] or main
    largest = max((graph.shapes[n].byte_size for n in main), default=0)
    main = [n for n in main if graph.shapes[n].byte_size >= MUCH * largest]
    named_by_scope = bool(scope) and verdict is not None and verdict.kernel_class == "other" and verdict.detail not in UPDATING
    is_cache = bool(main) and verdict is not None and verdict.kernel_class in CACHES
    return _Seen(parameters, [] if named_by_scope else main, scope, is_cache=is_cache)


def _main(launch: Launch, verdict: Verdict | None, parameters: list[int]) -> list[int]:
    """The parameters that a launch may be called after."""
    roles = launch.program.roles
    weights = [n for n in parameters if roles.role.get(n) == WEIGHT]
    if verdict is None or verdict.kernel_class == "attention":
        return []
    if verdict.kernel_class in CACHES:
        return [n for n in parameters if n in roles.caches]
    if verdict.kernel_class == "weights":
        return weights or _of_halves(launch)
    if verdict.detail == "gradient":
        return weights or _updated_by(launch)
    if verdict.detail == "optimizer":
        return weights or [n for n in parameters if roles.role.get(n) == STATE]
    return weights


def _of_halves(launch: Launch) -> list[int]:
    """The weights of products whose second half a launch is."""
    contents, roles = launch.program.contents, launch.program.roles
    products = [p for n in launch.halves if (p := launch.program.uses.product(n)) is not None]
    masks = [contents.pure[operand] for product in products for operand in (product.left, product.right)]
    return list(dict.fromkeys(n for mask in masks for n in contents.sources(mask) if roles.role.get(n) == WEIGHT))


def _parameters(launch: Launch) -> list[int]:
    """The entry parameters whose values a launch reads or replaces, weights first, then the largest."""
    graph, contents, roles = launch.program.graph, launch.program.contents, launch.program.roles
    found: dict[int, None] = {}
    for node in launch.outside:
        mask = contents.pure[node]
        sources = contents.sources(mask) if mask > 0 else [contents.version[node]]
        found.update(dict.fromkeys(n for n in sources if n in graph.parameters))
    order = {WEIGHT: 0, INPUT: 2}
    return sorted(found, key=lambda n: (order.get(roles.role.get(n, INPUT), 1), -graph.shapes[n].byte_size))


def _updated_by(launch: Launch) -> list[int]:
    """The parameter that a gradient updates: the only one of its size in the update that it leads to."""
    graph, roles = launch.program.graph, launch.program.roles
    sizes = {graph.count(n) for n in launch.kernel.results}
    waiting, met = list(launch.kernel.results), set[int]()
    while waiting and len(met) < MOST_LAUNCHES_TO_UPDATE:
        node = waiting.pop(0)
        for user in graph.users[node]:
            kernel = graph.kernel[user]
            if user in met:
                continue
            met.add(user)
            if user in roles.updates or kernel < 0:
                meets = {i for i in graph.inputs[user] if roles.role.get(i) == WEIGHT and graph.count(i) in sizes}
                if len(meets) == 1:
                    return list(meets)
            if graph.count(user) in sizes:
                waiting.append(user)
    return []


def _own_layer(one: _Seen, layers: Layers, paths: dict[int, Path]) -> Layer | None:
    """The layer that a launch's parameters or scope name; None where they name several, or none."""
    if one.is_cache:
        return layers.of(one.scope)
    found = {layer.name: layer for n in one.main if (layer := layers.of(paths[n])) is not None}
    if len(found) == 1 and len(one.main) == sum(layers.of(paths[n]) is not None for n in one.main):
        return next(iter(found.values()))
    return layers.of(one.scope) if not found else None


def _pass_on(launches: Sequence[Launch], seen: list[_Seen], phases: Sequence[str | None]) -> None:
    """Give launches without names of their own the layer of those whose values they read."""
    graph = launches[0].program.graph
    stage: list[int] = []
    """Of each launch: the place in the program's order of the first launch of its layer; -1 where nothing is known."""
    first: dict[tuple[object, ...], int] = {}
    layer_at: dict[int, Layer | None] = {}
    for place, (launch, one) in enumerate(zip(launches, seen, strict=True)):
        if one.is_own:
            known_by = (one.layer.name,) if one.layer is not None else (*one.main, one.scope)
            stage.append(first.setdefault(known_by, place))
            layer_at[stage[place]] = one.layer
            continue
        before = {stage[k] for n in launch.outside if 0 <= (k := graph.kernel[graph.viewed(n)]) < place and stage[k] >= 0}
        back = phases[place] in BACKWARD
        stage.append((min if back else max)(before, default=-1))
        one.layer = layer_at.get(stage[place])
    _give_readers_layer(launches, seen)


def _give_readers_layer(launches: Sequence[Launch], seen: list[_Seen]) -> None:
    """Entries that are taken from a cache are of the layer that reads them first."""
    graph = launches[0].program.graph
    for launch, one in zip(launches, seen, strict=True):
        if one.is_cache and one.layer is None:
            one.layer = next((seen[k].layer for k in _readers(graph, launch) if seen[k].layer is not None), None)


def _readers(graph: Graph, launch: Launch) -> list[int]:
    """The launches that read a launch's results, through views of them, in order."""
    found, waiting = set[int](), list(launch.kernel.results)
    while waiting:
        for user in graph.users[waiting.pop()]:
            if graph.kernel[user] >= 0:
                found.add(graph.kernel[user])
            elif graph.ops[user] in VIEW_OPCODES:
                waiting.append(user)
    return sorted(found)


def _naming(graph: Graph, one: _Seen, verdict: Verdict | None, paths: dict[int, Path], layers: Layers, root: str) -> Naming:
    main, layer = [paths[n] for n in one.main], one.layer
    label, pattern = (_label(one, verdict, [owner(path) for path in main], layers, starred) for starred in (False, True))
    names = tuple(_passed(graph, n) for n in one.parameters)
    called = joined_name(list(dict.fromkeys(map(layers.starred, main)))) if main else ""
    scope = "/".join(filter(None, (root, *layers.starred(one.scope))))
    return Naming(label, pattern, layer.name if layer is not None else "", names, called, scope)


def _label(one: _Seen, verdict: Verdict | None, main: list[Path], layers: Layers, starred: bool) -> str:
    """What a launch is called; with stars for the numbers of layers if `starred`."""
    where = "" if one.layer is None else one.layer.family if starred else one.layer.name
    paths = [layers.starred(path) for path in (*main, one.scope)] if starred else [*main, one.scope]
    if main:
        return joined_name(list(dict.fromkeys(paths[:-1])))
    if one.scope:
        return dotted(paths[-1]) if not where or layers.of(one.scope) is not None else f"{where}.{dotted(paths[-1])}"
    detail = f"({verdict.detail})" if verdict is not None and verdict.detail else ""
    return " ".join(word for word in (where, detail) if word)


def _passed(graph: Graph, node: int) -> str:
    """An entry parameter as it was passed, or as XLA calls it."""
    instruction, (_, index) = graph.instructions[node], graph.parameters[node]
    name = instruction.metadata.op_name
    return (name if is_argument(name) else instruction.name) + "".join(f"[{i}]" for i in index)


def joined_name(paths: list[Path]) -> str:
    """Several paths as one: what they have in common, and the rest in braces, or how many where they are many."""
    if len(paths) == 1:
        return dotted(paths[0])
    same = tuple(parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False)))
    rests = [dotted(path[len(same) :]) for path in paths]
    inside = ", ".join(rests) if len(rests) <= MOST_NAMED and all(rests) else f"{len(paths)} parameters"
    return f"{dotted(same)}.{{{inside}}}" if same else f"{{{inside}}}"


def _common_root(scopes: Iterable[Path], named: set[str]) -> str:
    """The outermost scope of most scoped launches, such as the model's class; "" where it is a parameter's name too, or there is none."""
    heads = [scope[0] for scope in scopes if len(scope) > 1]
    if not heads:
        return ""
    root = max(dict.fromkeys(heads), key=heads.count)
    return root if heads.count(root) * 2 > len(heads) and root not in named else ""
