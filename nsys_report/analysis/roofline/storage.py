"""The types that weights and KV caches are stored in, read from the operands of the instructions that use them."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from hlo_mapping import ELEMENT_BITS, Module, operand_leaves
from nsys_report.analysis.arrays.view import View, ints
from nsys_report.joined import Joined

ALMOST_ALL = 0.9
"""Share of the weight bytes that the operand holding them has at least: a norm's scale may be read beside a matrix."""


def weight_types(joined: Joined) -> list[str | None]:
    """For each row of the facts the element type of the weights that it reads; None where it reads none or nobody can say.

    Without the module it is the narrowest type of the row's dot_type, since weights are not stored wider than the product reads them.
    """
    facts = joined.facts
    weight = ints(facts, "weight_bytes")[0]
    out: list[str | None] = [None] * len(facts)
    rows = np.flatnonzero(weight > 0)
    columns = (facts[name].take(rows).to_pylist() for name in ("hlo_instruction", "program_id", "dot_type"))
    for row, name, number, words in zip(rows.tolist(), *columns, strict=True):
        module = module_of(joined, number)
        out[row] = _fitting_type(module, name, int(weight[row])) if module is not None else _narrowest(words)
    return out


def cache_types(view: View) -> list[str | None]:
    """For each program the element type of its KV cache: that of the largest operand of most instructions that read or write one."""
    facts = view.joined.facts
    touched = (ints(facts, "kv_read_bytes")[0] > 0) | (ints(facts, "kv_write_bytes")[0] > 0)
    rows = np.flatnonzero(touched)
    names, numbers = (facts[name].take(rows).to_pylist() for name in ("hlo_instruction", "program_id"))
    found: dict[int, Counter[str]] = {}
    for name, number in zip(names, numbers, strict=True):
        module = module_of(view.joined, number)
        leaves = operand_leaves(module, name) if module is not None else []
        if leaves:
            found.setdefault(number, Counter())[max(leaves, key=lambda leaf: leaf.byte_size).element_type] += 1
    return [found[k.program_id].most_common(1)[0][0] if k.program_id in found else None for k in view.modules]


def module_of(joined: Joined, number: int | None) -> Module | None:
    """The optimized module of a program, None where the dump has none."""
    program = joined.programs.get(number) if number is not None else None
    return program.module if program is not None else None


def _fitting_type(module: Module, name: str, weight_bytes: int) -> str | None:
    """Of the operands that hold the bytes the smallest; where none does, several weights are read, and the largest is one of them."""
    found = [leaf for leaf in operand_leaves(module, name) if leaf.byte_size]
    holding = [leaf for leaf in found if leaf.byte_size >= ALMOST_ALL * weight_bytes]
    chosen = min(holding, key=lambda leaf: leaf.byte_size) if holding else max(found, key=lambda leaf: leaf.byte_size, default=None)
    return chosen.element_type if chosen is not None else None


def _narrowest(dot_type: str | None) -> str | None:
    operands = [t for t in re.findall(r"\w+", (dot_type or "").partition("->")[0]) if t in ELEMENT_BITS]
    return min(operands, key=ELEMENT_BITS.__getitem__) if operands else None
