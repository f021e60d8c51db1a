"""The ways to roll work up: for each, the path of an instruction from the widest group to the narrowest."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

Record = Mapping[str, Any]
Path = tuple[str, ...]
_NUMBER = re.compile(r"[_.]\d+$")


@dataclass(frozen=True, slots=True)
class Dimension:
    """A way to group instructions: its key, its heading, and the groups that each instruction is in."""

    key: str
    title: str
    path: Callable[[Record], Path]
    join: Callable[[str, str], str] = lambda group, _: group
    """The name of a group and one in it together: of one that holds nothing else, and where groups are not nested."""
    nested: bool = True
    """Whether the narrowest groups are what is asked for; else the widest, and those in them are detail."""


def called(row: Record) -> str:
    """What an instruction is called together with its fellows of other layers."""
    if row["hlo_instruction"] is None:
        return f"not joined: {_stem(row['kernel_name'])}"
    return _with_kind(row["pattern"] or _stem(row["hlo_instruction"]), row)


def _with_kind(name: str, row: Record) -> str:
    """A name with what of it the instruction is, where it is no product of the forward pass."""
    kind = row["class_detail"]
    if kind == "product":
        kind = None if row["phase"] in (None, "forward", "unknown") else row["phase"]
    return name if kind is None or name.endswith(f"({kind})") else f"{name} ({kind})"


def _by_scope(row: Record) -> Path:
    return tuple(row["scope"].split("/")) if row["scope"] else ("no scope",)


def _by_source(row: Record) -> Path:
    if not row["source_file"]:
        return ("no source line",)
    return (row["source_file"], f"{row['source_file'].rpartition('/')[2]}:{row['source_line']}")


def _by_layer(row: Record) -> Path:
    if not row["layer"]:
        return ("outside of layers", called(row))
    return (row["layer"], _with_kind(row["label"].removeprefix(row["layer"]).lstrip(". "), row))


def _by_parameter(row: Record) -> Path:
    return (row["parameter"], called(row)) if row["parameter"] else ("no parameter", row["class_detail"] or "unknown")


def _by_class(row: Record) -> Path:
    if row["hlo_instruction"] is None:
        return ("not joined",)
    return (row["kernel_class"] or "unknown", row["class_detail"] or "unknown")


def _by_opcode(row: Record) -> Path:
    return (row["opcode"] or "not joined", _stem(row["kernel_name"]))


def _by_phase(row: Record) -> Path:
    return (row["phase"] or "no phase", row["class_detail"] or "unknown")


def _stem(name: str | None) -> str:
    """A name without its number, shortened to the words before template arguments and parameters."""
    return _NUMBER.sub("", re.split(r"[<(]", (name or "unknown").removeprefix("void "), maxsplit=1)[0])


def flat(by: Dimension, row: Record) -> Path:
    """The one group that an instruction is in where groups are not nested."""
    parts = by.path(row)
    return (reduce(by.join, parts),) if by.nested else parts[:1]


DIMENSIONS = {
    d.key: d
    for d in (
        Dimension("name", "name", lambda row: (called(row),)),
        Dimension("scope", "named scope", _by_scope, lambda group, inner: f"{group}/{inner}"),
        Dimension("source", "source line", _by_source, lambda _, inner: inner),
        Dimension("layer", "layer", _by_layer, nested=False),
        Dimension("parameter", "parameter", _by_parameter, nested=False),
        Dimension("class", "class", _by_class, lambda group, inner: f"{group}: {inner}"),
        Dimension("opcode", "opcode and kernel", _by_opcode, lambda group, inner: f"{group}: {inner}"),
        Dimension("phase", "phase of training", _by_phase, nested=False),
    )
}
"""By key, in the order they are offered."""
