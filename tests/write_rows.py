"""Writes the types of rows from the schemas of tables: `python -m tests.write_rows`. A test holds them to what it would write."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from nsys_report.analysis.arrays.schemas import INSTRUCTIONS, MODULES
from nsys_report.analysis.budget.table import STEPS
from nsys_report.analysis.idle.host_phases import HOST_PHASES
from nsys_report.analysis.roofline.precision import PRECISION
from nsys_report.analysis.roofline.roofs import ROOFLINE
from nsys_report.analysis.structure.loops import LOOPS

TARGET = Path(__file__).parent.parent / "nsys_report" / "analysis" / "arrays" / "rows.py"
ROWS = {
    "InstructionRow": (INSTRUCTIONS, "A program and one of its HLO instructions: schema INSTRUCTIONS."),
    "ModuleRow": (MODULES, "A program: schema MODULES."),
    "RoofRow": (ROOFLINE, "An instruction or class against its roof: schema ROOFLINE."),
    "ProductRow": (PRECISION, "A product with the types that it multiplies: schema PRECISION."),
    "LoopRow": (LOOPS, "The loop of a program: schema LOOPS."),
    "StepRow": (STEPS, "The steps of a program: schema STEPS."),
    "HostPhaseRow": (HOST_PHASES, "What the host does in a part of a typical step: schema HOST_PHASES."),
}
WORDS = {"kernel_class": "KernelClass", "class_detail": "Detail", "match_method": "JoinMethod"}
ALWAYS = {"hlo_instruction"}
"""Words that no row is without: what was not joined to an instruction has no row."""
HEAD = '''"""Rows of tables as Python values, for what looks at single ones. Written by `python -m tests.write_rows` from the schemas.

Words may be None where nobody knows; so may figures, which are as the schema has them, and are not told apart from known ones by type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from hlo_mapping import Detail, JoinMethod, KernelClass
'''


def rows_module() -> str:
    """The text of the module."""
    return HEAD + "".join(f'\n\nclass {name}(TypedDict):\n    """{about}"""\n\n{fields(schema)}' for name, (schema, about) in ROWS.items())


def fields(schema: pa.Schema) -> str:
    """A line for each column."""
    return "".join(f"    {field.name}: {kind(field)}\n" for field in schema)


def kind(field: pa.Field) -> str:
    """The type of a column's values."""
    if field.name in ALWAYS:
        return "str"
    is_text = pa.types.is_dictionary(field.type) or pa.types.is_string(field.type)
    return f"{WORDS.get(field.name, 'str')} | None" if is_text else "bool | None" if pa.types.is_boolean(field.type) else "Any"


if __name__ == "__main__":
    TARGET.write_text(rows_module(), encoding="utf-8")
