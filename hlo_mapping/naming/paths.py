"""Paths that people gave: of arguments, as JAX prints them, and of scopes in op_name.

JAX names an entry parameter after its argument and its place in the tree of arguments (jax/_src/tree_util.py, keystr), such as
`params['layers'][0]['q_proj']` or `state.params[0]`; op_name is the stack of named scopes and transformations around an operation, from
the compiled function to the primitive (jax/_src/source_info_util.py, NameStack).
"""

from __future__ import annotations

import re
from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]
"""Components from the outermost to the innermost; places in lists as digits."""

_COMPONENT = re.compile(r"\[(?:<flat index )?(?:'([^']*)'|\"([^\"]*)\"|([^\]>]*))>?\]|\.?([^.\[\]]+)")
_WRAPPED = re.compile(r"(\w+)\((.*)\)")
_TRANSFORMED = frozenset({"jvp", "transpose", "vmap", "pmap", "xmap", "linearize", "remat", "checkpoint", "custom_jvp", "custom_vjp"})
"""Transformations that wrap a scope's name: of `transpose(jvp(mlp))` the name is mlp."""
_COMPILED = frozenset({"jit", "pjit", "named_call", "xla_call"})
_MADE_BY_JAX = re.compile(
    r"while|body|cond|scan|branch_\d+_fun|eval_jaxpr|closed_call|core_call|pjit|jit|shard_map|checkpoint|rematted_computation|remat\d?"
    r"|custom_[jv][jv]p_call(?:_jaxpr)?|body_fun|cond_fun|main|true_fun|false_fun"
)
"""Components that JAX puts into the stack itself, for control flow and calls."""
_LEAVES = frozenset(
    {"kernel", "weight", "weights", "w", "W", "bias", "b", "scale", "embedding", "embeddings", "gamma", "beta", "value", "raw_value"}
)
"""Names of the arrays of a layer, which say less than the layer's own."""


def argument_path(name: str) -> Path:
    """The components of an argument's path: ("params", "layers", "0", "q_proj") of `params['layers'][0]['q_proj']`."""
    parts = (next((g for g in found.groups() if g is not None), "") for found in _COMPONENT.finditer(name))
    return tuple(part for part in parts if part)


def scope_path(op_name: str) -> Path:
    """The named scopes of an op_name, without the compiled function, what JAX puts in between, and the primitive at its end."""
    whole = next((name for name in reversed(op_name.split(";")) if "/" in name), op_name)  # XLA joins the names of merged operations
    parts = _split(whole)
    found: list[str] = []
    for place, part in enumerate(parts[:-1]):
        for name in _scope_name(part, outermost=place == 0).split("/"):
            # Flax names a method's scope after its module too: attn/attn.split_heads
            found.append(name.removeprefix(f"{found[-1]}.") if found else name)
    return tuple(filter(None, found))


def is_argument(op_name: str) -> bool:
    """Whether an op_name is an argument's path and no stack of scopes."""
    return bool(op_name) and "/" not in op_name and not op_name.startswith("(")


def _split(op_name: str) -> list[str]:
    """At the slashes that stand in no parentheses."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(op_name):
        depth += (sign == "(") - (sign == ")")
        if sign == "/" and depth <= 0:
            parts.append(op_name[start:place])
            start = place + 1
    return [*parts, op_name[start:]]


def _scope_name(part: str, outermost: bool) -> str:
    """What a component of the stack is called; "" for one that nobody named."""
    while found := _WRAPPED.fullmatch(part):
        if found[1] in _COMPILED:
            return "" if outermost or found[2].startswith(("_", "<", "main")) else found[2]
        if found[1] not in _TRANSFORMED:
            break
        part = found[2]
    return "" if _MADE_BY_JAX.fullmatch(part) or "->" in part or part.startswith("<") else part


def dotted(path: Path) -> str:
    """A path as people write it: `layers[0].q_proj`."""
    text = ""
    for part in path:
        text += f"[{part}]" if (part.isdigit() or part == "*") and text else f".{part}" if text else part
    return text


def without_root(path: Path) -> Path:
    """An argument's path without the argument's own name (and Flax's `params`), unless a place in a list would be left at its head."""
    shorter = path[1:]
    if len(shorter) > 1 and shorter[0] == "params":
        shorter = shorter[1:]
    return shorter if shorter and not shorter[0].isdigit() else path


def owner(path: Path) -> Path:
    """The layer that an array is of: `mlp.kernel` and `mlp.bias` are of mlp."""
    return path[:-1] if len(path) > 1 and path[-1] in _LEAVES and not path[-2].isdigit() else path


def has_name(path: Path) -> bool:
    """Whether a path (without the argument's own name) is more than an argument and places in it."""
    return len(path) == 1 or any(not part.isdigit() for part in path[1:])
