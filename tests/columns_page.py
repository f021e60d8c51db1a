"""Writes nsys_report/reports/COLUMNS.md from the schemas: `python -m tests.columns_page`. A test keeps the two the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from hlo_mapping.columns import about
from nsys_report.analysis.columns import CLASSES, INSTRUCTIONS
from nsys_report.columns import ACTIVITY_TABLE, EXECUTION_TABLE

PAGE = Path(__file__).parent.parent / "nsys_report" / "reports" / "COLUMNS.md"

INTRODUCTION = """\
# The columns of the tables

`nsys-report CAPTURE --tables DIR` writes these Parquet files, and `nsys_report.analyze` gives the same tables as pandas frames. Names and
types are a promise. Units stand in the names: `_ns` is nanoseconds, `bytes` bytes, `_per_s` a second; a share is a ratio from 0 to 1.
A null is something that nobody knows, never a zero. Words are dictionary-encoded strings. This page is written from the schemas by
`python -m tests.columns_page`.
"""

TABLES = {
    "activities.parquet": (ACTIVITY_TABLE, "A row per GPU activity, in time order."),
    "executions.parquet": (EXECUTION_TABLE, "A row per execution of one XLA program on one device, in order of start."),
    "instructions.parquet": (
        INSTRUCTIONS,
        "A row per program and HLO instruction, most time first within the program. Figures are over whole executions.",
    ),
    "classes.parquet": (
        CLASSES,
        "A row per program and class of kernels, most time first within the program. Figures are over whole executions.",
    ),
}


def page() -> str:
    """The whole page."""
    return INTRODUCTION + "".join(f"\n## {name}\n\n{text}\n\n{rows(schema)}" for name, (schema, text) in TABLES.items())


def rows(schema: pa.Schema) -> str:
    """One table of the page."""
    words = about(schema)
    lines = [f"| `{field.name}` | {kind(field.type)} | {words[field.name]} |\n" for field in schema]
    return "| column | type | what it is |\n|---|---|---|\n" + "".join(lines)


def kind(arrow: pa.DataType) -> str:
    return "word" if pa.types.is_dictionary(arrow) else {"bool": "flag", "double": "float64"}.get(str(arrow), str(arrow))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
