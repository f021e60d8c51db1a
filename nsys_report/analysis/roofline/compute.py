"""The compute ceiling of each instruction, and the time that its arithmetic takes at it."""

from __future__ import annotations

import numpy as np

from hlo_mapping import Dot, Module, dot_from_words, dots_of
from nsys_report.analysis.arrays.view import Ints, ints
from nsys_report.analysis.roofline.ceilings import COMPUTE_TYPES, Ceilings
from nsys_report.joined import Joined

SPLIT_TYPE = "f32"
"""XLA runs a product without a dot (multiply, then reduce) on the vector units, in f32."""


def fact_dots(joined: Joined) -> dict[int, tuple[Dot, ...]]:
    """The products of each row of the facts that has flops: () for a product that XLA split into multiply and reduce.

    Where the program's module cannot be read the row's dot_type says what it can; rows of which nothing is known are left out.
    """
    flops = ints(joined.facts, "flops")[0]
    rows = np.flatnonzero(flops > 0)
    columns = (joined.facts[name].take(rows).to_pylist() for name in ("hlo_instruction", "program_id", "dot_type"))
    found: dict[int, tuple[Dot, ...]] = {}
    for row, name, number, words in zip(rows.tolist(), *columns, strict=True):
        program = joined.programs.get(number) if number is not None else None
        if program is not None and program.module is not None:
            found[row] = dots_of(program.module, name)
        elif words:
            found[row] = (dot_from_words(words),)
    return found


def compute_types(joined: Joined, dots: dict[int, tuple[Dot, ...]]) -> list[str | None]:
    """The compute ceiling that bounds each row of the facts (bf16, tf32, f32, fp8, int8); None without flops or for other types.

    Of several products in one kernel the slowest type counts.
    """
    out: list[str | None] = [None] * len(joined.facts)
    order = ("f32", "tf32", "bf16", "fp8", "int8")
    for row, found in dots.items():
        kinds = [d.compute_type for d in found] if found else [SPLIT_TYPE]
        known = [k for k in kinds if k is not None]
        out[row] = min(known, key=order.index) if known and len(known) == len(kinds) else None
    return out


def nanoseconds_per_flop(types: list[str | None], ceilings: Ceilings) -> np.ndarray:
    """For each row of the facts, and one more that is 0 for activities without a row: ns a flop takes; 0 where no ceiling is known."""
    per_flop = {kind: 1e9 / limit.value if (limit := ceilings.flops_per_s(kind)) else 0.0 for kind in COMPUTE_TYPES}
    return np.array([per_flop.get(kind or "", 0.0) for kind in types] + [0.0])


def compute_time(instruction: Ints, flops: Ints, per_flop: np.ndarray) -> Ints:
    """What the flops of each activity take at the ceiling of its types, ns; 0 where flops, types or ceiling are unknown."""
    return np.floor(flops * per_flop[instruction]).astype(np.int64)


def arithmetic_ns(module: Module, name: str, flops: int | None, ceilings: Ceilings | None) -> float | None:
    """The time of an instruction's products at the ceiling of the slowest of their types; 0 without any, None where unknown."""
    if flops is None or ceilings is None:
        return None
    kinds = [dot.compute_type for dot in dots_of(module, name)] or [SPLIT_TYPE]
    limits = [ceilings.flops_per_s(kind) if kind is not None else None for kind in kinds]
    values = [limit.value for limit in limits if limit is not None]
    if flops == 0:
        return 0.0
    return flops * 1e9 / min(values) if len(values) == len(kinds) else None
