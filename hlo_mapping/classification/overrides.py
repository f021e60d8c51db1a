"""Roles that people give: a roles file (TOML) or a serving manifest (JSON). They win over what the program shows.

A roles file gives patterns their roles, at its top or in a table [roles]. A pattern is a parameter's name, the framework's path for
it, or its number, with * and ? for any text and any character; the first that matches wins. The other way round, a role with a list
of patterns, is understood too:

    "params*" = "weight"
    "pool[*]['k']" = "kv_cache"
    input = ["tokens*", "3"]

A manifest is the JSON that a server writes for a compiled program: an entry, or entries at any depth, with `inputs`, each with `role`
(WEIGHT, KV_POOL, STATE, INPUT, ...), `type.dims` and `name`. Its inputs are the program's entry parameters in order; where the program
dropped some, each parameter is the next input of its dimensions.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlo_mapping.classification.evidence import INPUT, KV_CACHE, ROLES, STATE, WEIGHT
from hlo_mapping.dataflow import Graph, build_graph
from hlo_mapping.errors import HloError
from hlo_mapping.ir import Instruction, Module

MANIFEST_ROLES = {
    "WEIGHT": WEIGHT, "WEIGHTS": WEIGHT, "PARAM": WEIGHT, "PARAMETER": WEIGHT, "CONSTANT": WEIGHT,
    "KV_POOL": KV_CACHE, "KV_CACHE": KV_CACHE, "KV": KV_CACHE, "POOL": KV_CACHE, "CACHE": KV_CACHE,
    "STATE": STATE, "OPTIMIZER_STATE": STATE, "RNG": STATE,
    "INPUT": INPUT, "TOKENS": INPUT, "POSITIONS": INPUT, "PAGE_TABLE": INPUT, "BLOCK_TABLE": INPUT, "ACTIVATION": INPUT,
}  # fmt: skip
"""Roles as manifests write them; case does not matter, and the four roles of this package are understood as they are."""


class OverrideError(HloError):
    """A roles file or manifest that cannot be read, or that fits no program."""

    slug = "roles"


@dataclass(frozen=True, slots=True)
class ManifestInput:
    """One input of a manifest's program: its name, its role in this package's words, and its dimensions (None where not given)."""

    name: str
    role: str
    dimensions: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class RoleOverrides:
    """Roles by pattern (in order, the first that matches wins), and the programs of a manifest."""

    patterns: tuple[tuple[str, str], ...] = ()
    """(pattern, role)."""
    programs: tuple[tuple[ManifestInput, ...], ...] = ()
    source: str = ""

    def resolve(self, graph: Graph) -> dict[int, tuple[str, str]]:
        """The role of each entry parameter that they name and where it was said, by node."""
        given = _from_programs(graph, self.programs, self.source)
        for node, (number, _) in graph.parameters.items():
            found = next((role for pattern, role in self.patterns if _matches(pattern, graph.instructions[node], number)), None)
            if found is not None:
                given[node] = (found, f"given in {self.source}")
        return given

    def merged(self, other: RoleOverrides) -> RoleOverrides:
        """Both; where they disagree, these win."""
        source = " and ".join(dict.fromkeys(s for s in (self.source, other.source) if s))
        return RoleOverrides(self.patterns + other.patterns, self.programs + other.programs, source)


def read_roles_file(path: str | Path) -> RoleOverrides:
    """Read a TOML roles file. OverrideError where it is missing, no TOML, or names an unknown role."""
    path = Path(path)
    try:
        found = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise OverrideError(f"{path} is not TOML: {error}", 'A line gives a pattern its role: "params*" = "weight"') from None
    table = found["roles"] if isinstance(found.get("roles"), dict) else found
    patterns = tuple(pair for key, value in table.items() for pair in _pairs(str(key), value, path))
    if not patterns:
        raise OverrideError(f"{path} gives no roles", 'A line gives a pattern its role: "params*" = "weight"')
    return RoleOverrides(patterns=patterns, source=path.name)


def _pairs(key: str, value: Any, path: Path) -> list[tuple[str, str]]:
    """(pattern, role) of one line, whichever way round it is."""
    if key.lower() in ROLES and not (isinstance(value, str) and value.lower() in ROLES):
        patterns = value if isinstance(value, list) else [value]
        if not all(isinstance(p, str | int) for p in patterns):
            raise OverrideError(f"{path}: {key} is not a list of patterns", 'Write for example: weight = ["params*"]')
        return [(str(p), key.lower()) for p in patterns]
    if not isinstance(value, str):
        raise OverrideError(f"{path}: {key!r} has no role", f"The roles are {', '.join(ROLES)}.")
    return [(key, _role(value, path))]


def read_manifest(path: str | Path) -> RoleOverrides:
    """Read a serving manifest. OverrideError where it is missing, no JSON, has no inputs, or an unknown role."""
    path = Path(path)
    try:
        found = json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise OverrideError(
            f"{path} is not JSON: {error}", "A manifest has entries with inputs, each with name, role and type.dims."
        ) from None
    programs = tuple(tuple(_input(i, path) for i in inputs) for inputs in _input_lists(found))
    if not programs:
        raise OverrideError(f"{path} has no entry with inputs", "Each entry's inputs have name, role and type.dims.")
    return RoleOverrides(programs=programs, source=path.name)


def check_overrides(overrides: RoleOverrides, modules: Iterable[Module]) -> None:
    """OverrideError where a pattern names no parameter of any of these modules, or no program of a manifest is one of them."""
    graphs = [build_graph(m) for m in modules]
    parameters = [(g.instructions[n], number) for g in graphs for n, (number, _) in g.parameters.items()]
    idle = [p for p, _ in overrides.patterns if not any(_matches(p, i, number) for i, number in parameters)]
    if idle:
        names = sorted({i.metadata.op_name or i.name for i, _ in parameters})
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise OverrideError(
            f"{overrides.source}: {', '.join(map(repr, idle))} matches no parameter", f"Parameters are for example {shown}."
        )
    if overrides.programs and not any(_from_programs(g, overrides.programs, overrides.source) for g in graphs):
        raise OverrideError(f"{overrides.source}: no entry's inputs fit the parameters of a program in the dump")


def _matches(pattern: str, instruction: Instruction, number: int) -> bool:
    """Whether a pattern names a parameter; only * and ? are special, as framework paths are full of brackets."""
    expression = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
    names = (instruction.name, instruction.metadata.op_name, str(number))
    return any(name and expression.fullmatch(name) for name in names)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise OverrideError(f"there is no file {path}", "Check the path.") from None
    except OSError as error:
        raise OverrideError(f"{path} cannot be read: {error.strerror or error}", "Check the path, and that you may read it.") from None
    except UnicodeDecodeError:
        raise OverrideError(f"{path} is no text", "Give a roles file (TOML) or a manifest (JSON).") from None


def _role(word: str, path: Path) -> str:
    role = word.lower() if word.lower() in ROLES else MANIFEST_ROLES.get(word.upper().replace("-", "_").replace(" ", "_"))
    if role is None:
        raise OverrideError(f"{path}: {word!r} is no role", f"The roles are {', '.join(ROLES)}.")
    return role


def _input_lists(found: Any) -> list[list[Any]]:
    """The `inputs` lists of a manifest, at whatever depth its entries stand, in order."""
    if isinstance(found, dict):
        if isinstance(found.get("inputs"), list):
            return [found["inputs"]] if found["inputs"] else []
        return [inputs for value in found.values() for inputs in _input_lists(value)]
    return [inputs for value in found for inputs in _input_lists(value)] if isinstance(found, list) else []


def _input(entry: Any, path: Path) -> ManifestInput:
    if not isinstance(entry, dict) or not isinstance(entry.get("role"), str):
        raise OverrideError(f"{path}: an input has no role", "Each input has name, role and type.dims.")
    kind = entry.get("type")
    dims = kind.get("dims") if isinstance(kind, dict) else entry.get("dims")
    if dims is not None and not (isinstance(dims, list) and all(isinstance(d, int) for d in dims)):
        raise OverrideError(f"{path}: the dims of input {entry.get('name')!r} are not a list of whole numbers")
    return ManifestInput(str(entry.get("name", "")), _role(entry["role"], path), tuple(dims) if dims is not None else None)


def _from_programs(graph: Graph, programs: tuple[tuple[ManifestInput, ...], ...], source: str) -> dict[int, tuple[str, str]]:
    """The roles of the first program of a manifest whose inputs are this module's parameters."""
    parameters = sorted(graph.parameters, key=lambda n: graph.parameters[n])
    for inputs in programs:
        matched = _match(graph, parameters, inputs)
        if matched is not None:
            return {node: (i.role, f"{i.name or 'input'} in {source}") for node, i in matched.items()}
    return {}


def _match(graph: Graph, parameters: list[int], inputs: tuple[ManifestInput, ...]) -> dict[int, ManifestInput] | None:
    """Each parameter's input: by order where the numbers agree, else the next input of its dimensions; None unless all fit."""
    if len(inputs) == len(parameters) and all(_fits(graph, n, i) for n, i in zip(parameters, inputs, strict=True)):
        return dict(zip(parameters, inputs, strict=True))
    matched: dict[int, ManifestInput] = {}
    rest = iter(inputs)
    for node in parameters:
        found = next((i for i in rest if i.dimensions is not None and _fits(graph, node, i)), None)
        if found is None:
            return None
        matched[node] = found
    return matched


def _fits(graph: Graph, node: int, given: ManifestInput) -> bool:
    return given.dimensions is None or given.dimensions == graph.shapes[node].dimensions
