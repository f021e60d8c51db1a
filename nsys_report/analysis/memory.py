"""The memory that the programs need which take most time."""

from __future__ import annotations

import pyarrow as pa

from hlo_mapping import HloError, ProgramMemory, program_memory
from nsys_report.joined import Joined

LEAST_SHARE = 0.01
"""Share of all kernel time from which on a program's memory is looked at."""


def memory_of_programs(joined: Joined, modules: pa.Table) -> dict[int, ProgramMemory]:
    """By program number; `modules` has schema arrays.schemas.MODULES. What cannot be read is left out."""
    found: dict[int, ProgramMemory] = {}
    for number, share in zip(modules["program_id"].to_pylist(), modules["kernel_time_share"].to_pylist(), strict=True):
        program = joined.programs.get(number) if number is not None else None
        if program is None or (share or 0.0) < LEAST_SHARE:
            continue
        try:
            memory = program_memory(program)
        except HloError:
            continue
        if memory is not None:
            found[number] = memory
    return found
