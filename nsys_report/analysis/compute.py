"""The time that arithmetic takes at the compute ceiling of its types."""

from __future__ import annotations

import re

import numpy as np

from nsys_report.analysis.ceilings import Ceilings
from nsys_report.analysis.classes import Costs
from nsys_report.analysis.view import Ints, View, coded

_EIGHT_BIT_FLOAT = re.compile(r"^f8e")
TENSOR_TYPES = {"bf16": "bf16", "f16": "bf16", "s8": "int8", "u8": "int8", "tf32": "tf32", "f32": "f32"}
"""The compute ceiling of each operand type. f16 runs at the rate of bf16 on every GPU with tensor cores since Ampere.

f32 operands run on tensor cores only where the algorithm says so; what says nothing is held to the f32 ceiling, and a result above it
shows that TF32 was used.
"""


def ceiling_type(dot_type: str | None) -> str | None:
    """The ceiling that a dot of these types ('bf16,bf16->f32') is limited by; of mixed operands the wider. None where unknown.

    A suffix naming an algorithm, as in 'f32,f32->f32 tf32', comes before the operands.
    """
    if not dot_type:
        return None
    types, _, rest = dot_type.partition("->")
    if "tf32" in rest:
        return "tf32"
    found = ["fp8" if _EIGHT_BIT_FLOAT.match(t) else TENSOR_TYPES.get(t) for t in (part.strip() for part in types.split(","))]
    order = ("f32", "tf32", "bf16", "fp8", "int8")
    known = [t for t in found if t is not None]
    return min(known, key=order.index) if known and len(known) == len(found) else None


def compute_time(view: View, costs: Costs, ceilings: Ceilings) -> Ints:
    """What the flops of each activity take at the ceiling of its types, ns; 0 where flops, types or ceiling are unknown."""
    types = coded(view.joined.facts, "dot_type")
    limits = [ceilings.flops_per_s(kind) if (kind := ceiling_type(word)) else None for word in types.words]
    per_flop = np.array([1e9 / limit.value if limit else 0.0 for limit in limits] + [0.0])
    of_fact = np.append(per_flop[types.codes], 0.0) if len(types.codes) else np.zeros(1)
    return np.floor(costs.values["flops"] * of_fact[view.instruction]).astype(np.int64)
