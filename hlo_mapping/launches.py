"""How often each instruction runs in one execution of its program, as far as the compiler knows."""

from __future__ import annotations

from hlo_mapping.ir import Instruction, Module
from hlo_mapping.text.attributes import number

Count = int | None
"""None where a loop's trip count is not known when the program is compiled, or a branch may not be taken."""


def launch_counts(module: Module) -> dict[str, Count]:
    """Executions of every instruction that is not inside a fusion, by name, in one execution of the module."""
    counts: dict[str, Count] = {}
    waiting: list[tuple[str, Count]] = [(module.entry_name, 1)]
    while waiting:
        name, times = waiting.pop()
        for i in module.by_name[name].instructions:
            before = counts.get(i.name, 0)
            counts[i.name] = None if times is None or before is None else before + times
            waiting += [(called, _product(times, factor)) for called, factor in _runs(i)]
    return counts


def trip_count(loop: Instruction) -> Count:
    """The known_trip_count of a while, from its backend configuration (xla/service/while_loop_trip_count_annotator.cc)."""
    known = loop.backend_config.get("known_trip_count")
    n = str(known.get("n", "")) if isinstance(known, dict) else ""
    return number(n) if n.isdecimal() and len(n) < 20 else None


def _runs(i: Instruction) -> list[tuple[str, Count]]:
    """The computations that an instruction runs outside of kernels of its own, and how often."""
    if i.opcode == "while":
        trips = trip_count(i)
        factors: list[Count] = [None if trips is None else trips + 1, trips]
        return list(zip(i.called[:2], factors, strict=False))
    if i.opcode == "conditional":
        return [(called, None) for called in i.called]
    return [(called, 1) for called in i.called] if i.opcode in ("call", "async-start") else []


def _product(a: Count, b: Count) -> Count:
    return None if a is None or b is None else a * b
