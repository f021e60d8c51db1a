"""What kind of program a module is: decoding, prefill, training, inference of another kind, or something else.

Told from the optimized HLO alone, by what its values are used for; names that people gave play no part. Findings and pages choose
their words by it: tokens need ids that are looked up in a table, a KV cache needs attention that reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from hlo_mapping.classification.evidence import STATE, WEIGHT
from hlo_mapping.classification.kinds import WEIGHTS
from hlo_mapping.classification.rules import ModuleAnalysis
from hlo_mapping.program_evidence import feeds_back, is_backward, new_positions, returns_keys, trains
from hlo_mapping.shape import INDEX_TYPES

Kind: TypeAlias = Literal["decoding", "prefill", "training", "inference", "other"]

FEW_POSITIONS = 8
"""New positions of a sequence in one step up to which a program decodes (several are drafts being verified) and does not prefill."""
_LEAST_FEATURES = 8
"""Columns from which on a table holds embeddings, and not factors or bounds."""
_VOCABULARY = 4
"""A vocabulary has more than so many times as many entries as an entry has features; a layer's matrix does not."""


@dataclass(frozen=True, slots=True)
class ProgramKind:
    """One program's kind, how surely (0 to 1), and the evidence in sentences; what else its words depend on."""

    kind: Kind
    confidence: float
    evidence: tuple[str, ...] = ()
    is_language_model: bool = False
    """Looks ids up in a table and goes on to attention or to logits over as many entries."""
    samples_tokens: bool = False
    """A language model that chooses ids itself (greedy, or from random numbers)."""
    makes_many_tokens: bool = False
    """A loop in it looks up what its last iteration chose."""
    has_weights: bool = False
    has_attention: bool = False
    has_kv_cache: bool = False
    """Attention reads a buffer of entries that this or an earlier step wrote."""
    has_rotary: bool = False
    """Attention whose queries and keys are turned by sines and cosines of positions."""
    positions_per_step: int | None = None
    """New positions of each sequence that a step writes into its cache; None without a cache that is written."""

    @property
    def serves(self) -> bool:
        """Whether it makes tokens, or prepares to: words such as token, prefill and decode fit."""
        return self.kind in ("decoding", "prefill")


@dataclass(frozen=True, slots=True)
class _Signs:
    """What of each sort the program has."""

    classes: frozenset[tuple[str, str]]
    weights: bool
    attention: bool
    written: bool
    cached: bool
    tables: frozenset[tuple[int, ...]]
    """Rows and columns of the tables that ids are looked up in."""
    language: bool
    chooses: bool
    feeds_back: bool
    positions: int | None


def program_kind(program: ModuleAnalysis, rows: Sequence[Mapping[str, Any]]) -> ProgramKind:
    """The kind of an analyzed module; `rows` are its facts (columns.FACTS)."""
    signs = _signs(program, rows)
    kind, confidence, evidence = _decide(program, signs)
    return ProgramKind(
        kind=kind,
        confidence=confidence,
        evidence=tuple(evidence),
        is_language_model=signs.language,
        samples_tokens=signs.language and signs.chooses,
        makes_many_tokens=signs.language and signs.feeds_back,
        has_weights=signs.weights,
        has_attention=signs.attention,
        has_kv_cache=signs.cached,
        has_rotary=signs.attention and ("other", "rope") in signs.classes,
        positions_per_step=signs.positions,
    )


def _signs(program: ModuleAnalysis, rows: Sequence[Mapping[str, Any]]) -> _Signs:
    graph = program.graph
    classes = frozenset((str(r["kernel_class"]), str(r["class_detail"])) for r in rows if r.get("kernel_class") is not None)
    names = {c for c, _ in classes}
    attention = "attention" in names
    tables = frozenset(_tables(program))
    vocabularies = {rows for rows, columns in tables if rows > _VOCABULARY * columns}
    logits = bool(vocabularies) and any(_width(program, node) & vocabularies for node in _weight_products(program))
    written = "kv_write" in names
    return _Signs(
        classes=classes,
        weights=any(role == WEIGHT for role in program.roles.role.values()) or bool(program.roles.constants),
        attention=attention,
        written=written and attention,
        cached=attention and (written or any(r.get("kv_read_bytes") for r in rows)),
        tables=tables,
        language=bool(tables) and (attention or logits),
        chooses=("other", "sampling") in classes or ("other", "sort") in classes,
        feeds_back=any(feeds_back(program, loop) for loop in range(len(graph.loops))),
        positions=new_positions(program) if written and attention else None,
    )


def _decide(program: ModuleAnalysis, signs: _Signs) -> tuple[Kind, float, list[str]]:
    if (training := _training(program)) is not None:
        return training
    if (serving := _serving(program, signs)) is not None:
        return serving
    if reason := program.roles.no_model:
        return "other", 0.8, [reason]
    if not signs.weights:
        return "other", 0.9, ["nothing in it is a model's parameter"]
    said = ["model parameters meet activations, and nothing updates them"]
    return "inference", 0.9 if any(True for _ in _weight_products(program)) else 0.6, said


def _training(program: ModuleAnalysis) -> tuple[Kind, float, list[str]] | None:
    roles, graph = program.roles, program.graph
    backward = sum(is_backward(i.metadata.op_name) for i in graph.instructions)
    named = [f"{backward} operations carry the names of a backward pass"] if backward else []
    if roles.trained:
        said = f"{len(roles.trained)} parameters are replaced by an update with their own gradient"
        return "training", 0.98 if backward else 0.9, [said, *named]
    if roles.gradients:
        return "training", 0.9 if backward else 0.7, ["gradients of parameters are computed and returned", *named]
    if backward and any(trains(program, loop) for loop in range(len(graph.loops))):
        return "training", 0.9, ["a loop updates matrices that its products multiply with their gradients", *named]
    if backward and _returns_shapes_of_weights(program):
        return "training", 0.8, ["every matrix among the parameters has a result of its shape, as their gradients have", *named]
    if backward and any(roles.role.get(n) == WEIGHT for n in roles.replaced):
        return "training", 0.7, ["parameters come back changed element by element", *named]
    return None


def _returns_shapes_of_weights(program: ModuleAnalysis) -> bool:
    """Whether each matrix that is a weight has a result of its own shape: gradients that loops summed up."""
    graph, roles = program.graph, program.roles
    mine = Counter(graph.shapes[n].dimensions for n, role in roles.role.items() if role == WEIGHT and len(graph.shapes[n].dimensions) >= 2)
    made = Counter(graph.shapes[n].dimensions for n in graph.outputs if n not in graph.parameters)
    return bool(mine) and all(made[shape] >= count for shape, count in mine.items())


def _serving(program: ModuleAnalysis, signs: _Signs) -> tuple[Kind, float, list[str]] | None:
    if signs.language and signs.feeds_back:
        return "decoding", 0.95, ["a loop looks up the ids that its last iteration chose"]
    if signs.written:
        positions = signs.positions or 1
        if positions <= FEW_POSITIONS:
            written = f"{positions} new positions of each sequence are" if positions > 1 else "one new position of each sequence is"
            said = [f"attention reads a cache into which {written} written"]
            return "decoding", 0.95 if signs.language or not signs.tables else 0.8, said
        return "prefill", 0.95 if signs.language else 0.8, [f"{positions} positions of a sequence are written into a cache at once"]
    if signs.cached:
        return "decoding", 0.8, ["attention reads a cache that this program does not write"]
    if signs.language and signs.attention and returns_keys(program):
        return "prefill", 0.85, ["keys and values of attention are returned beside what follows from the ids"]
    if signs.language and signs.chooses and _has_state(program):
        return "decoding", 0.7, ["ids are looked up and chosen, and a recurrent state is returned"]
    return None


def _has_state(program: ModuleAnalysis) -> bool:
    graph = program.graph
    return any(
        role == STATE and graph.shapes[n].element_type not in INDEX_TYPES and graph.count(n) > 1 for n, role in program.roles.role.items()
    )


def _tables(program: ModuleAnalysis) -> Iterable[tuple[int, ...]]:
    """Rows and columns of every embedding table among the parameters that ids from the inputs are looked up in."""
    graph, contents, roles = program.graph, program.contents, program.roles
    for _, table in program.uses.lookups:
        for source in contents.sources(contents.pure[table]):
            shape = graph.shapes[source].dimensions
            if roles.role.get(source) == WEIGHT and len(shape) == 2 and shape[1] >= _LEAST_FEATURES and shape[0] > 1:
                yield shape


def _weight_products(program: ModuleAnalysis) -> Iterable[int]:
    kinds = program.kinds
    for node, product in program.uses.products.items():
        if WEIGHTS in (kinds.kind[product.left], kinds.kind[product.right]):
            yield node


def _width(program: ModuleAnalysis, node: int) -> frozenset[int]:
    """The sizes of a product's result's dimensions."""
    return frozenset(d for leaf in program.graph.shapes[node].leaves for d in leaf.dimensions)
