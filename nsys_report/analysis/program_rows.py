"""The rows of one program in any table that names programs: columns hlo_module and program_id, either null where unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

PROGRAM = ("hlo_module", "program_id")
"""The two columns that tell a program."""


def of_program(table: pa.Table, record: Mapping[str, Any]) -> pa.Table:
    """The rows of the program that a record is about, as its hlo_module and program_id say; null is a name like others."""
    return rows_of_program(table, *(record[name] for name in PROGRAM))


def rows_of_program(table: pa.Table, hlo_module: str | None, program_id: int | None) -> pa.Table:
    """The rows of a program; those without a name or number where that is None."""
    mask = None
    for name, value in zip(PROGRAM, (hlo_module, program_id), strict=True):
        same = pc.is_null(table[name]) if value is None else pc.fill_null(pc.equal(table[name], value), False)
        mask = same if mask is None else pc.and_(mask, same)
    return table.filter(mask)
