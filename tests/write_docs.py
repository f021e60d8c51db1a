"""Writes what the documents say of the program from the program: `python -m tests.write_docs`. Tests keep the two the same.

The page of columns comes from the schemas, the report in the README from running the README's command.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

import pyarrow as pa

from hlo_mapping.columns import about
from nsys_report.analysis.arrays.schemas import CLASSES, INSTRUCTIONS
from nsys_report.cli import app
from nsys_report.columns import ACTIVITY_TABLE, EXECUTION_TABLE
from nsys_report.findings.rules import CAPTURE_RULES, DEVICE_RULES, REST_RULES, STEP_RULES
from nsys_report.findings.tried import pairs
from nsys_report.units import duration

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
COLUMNS = ROOT / "nsys_report" / "reports" / "COLUMNS.md"
FINDINGS = ROOT / "nsys_report" / "findings" / "FINDINGS.md"
THRESHOLDS = FINDINGS.parent / "data" / "thresholds.toml"
EXAMPLE = re.compile(r"(<!-- example -->\n```text\n).*?(```\n<!-- end of example -->)", re.DOTALL)
WIDTH = "112"

INTRODUCTION = """\
# The columns of the tables

`nsys-report CAPTURE --tables DIR` writes these Parquet files, and `nsys_report.analyze` gives the same tables as pandas frames. Names and
types are a promise. Units stand in the names: `_ns` is nanoseconds, `bytes` bytes, `_per_s` a second; a share is a ratio from 0 to 1.
A null is something that nobody knows, never a zero. Words are dictionary-encoded strings.
"""

TABLES = {
    "activities.parquet": (ACTIVITY_TABLE, "A row per GPU activity, in time order."),
    "executions.parquet": (EXECUTION_TABLE, "A row per execution of one XLA program on one device, in order of start."),
    "instructions.parquet": (
        INSTRUCTIONS,
        "A row per program and HLO instruction, most time first within the program. Figures are over complete executions.",
    ),
    "classes.parquet": (
        CLASSES,
        "A row per program and class of kernels, most time first within the program. Figures are over complete executions.",
    ),
}


def columns_page() -> str:
    """The page of columns."""
    return INTRODUCTION + "".join(f"\n## {name}\n\n{text}\n\n{rows(schema)}" for name, (schema, text) in TABLES.items())


FINDINGS_INTRODUCTION = """\
# What is looked for

A finding names a cause of lost time, shows the figures and instructions, and says what to do, what that would give back at most, and how
sure that is: *sure* (the capture shows it), *likely* (the remedy's success is usual), *possible* (an upper bound, or not the pace-maker).
Findings are ordered by the time at stake over the capture; what the capture cannot decide says what to capture. No moment is claimed twice:
`explained_ns` of all findings of a program together is at most its typical step less its floor (`nsys_report/findings/ledger.py`).
"""


def findings_page() -> str:
    """The page of findings: every rule in a sentence, and the thresholds."""
    subjects = (
        ("The capture", CAPTURE_RULES),
        ("Between and around executions", STEP_RULES),
        ("On the device", (*DEVICE_RULES, *REST_RULES)),
    )
    parts = [f"\n## {title}\n\n" + "".join(f"- {sentence(rule)}\n" for rule in rules) for title, rules in subjects]
    return (
        FINDINGS_INTRODUCTION
        + "".join(parts)
        + tried_table()
        + f"\n## Thresholds\n\n```toml\n{THRESHOLDS.read_text(encoding='utf-8')}```\n"
    )


def tried_table() -> str:
    """The pairs of captures that remedies were tried with."""
    head = "| rule | change | predicted | measured | GPU, XLA | remark |\n|---|---|---|---|---|---|\n"
    lines = [
        f"| `{p.slug}` | {p.change} | {duration(p.predicted_ns)} | {duration(p.measured_ns)} | {p.gpu}, {p.xla} | {p.remark} |\n"
        for p in pairs()
    ]
    return f"\n## Remedies that were tried\n\n{TRIED}\n{head}{''.join(lines)}"


TRIED = """\
A pair of captures, before and after the change. A rule without a pair says `untried` and is never surer than *possible*; so is one whose
pair returned less than half of what was promised.
"""


def sentence(function: object) -> str:
    """The first paragraph of a docstring, as one line."""
    return " ".join((function.__doc__ or "").strip().partition("\n\n")[0].split())


def rows(schema: pa.Schema) -> str:
    """One table of the page of columns."""
    words = about(schema)
    lines = [f"| `{field.name}` | {kind(field.type)} | {words[field.name]} |\n" for field in schema]
    return "| column | type | what it is |\n|---|---|---|\n" + "".join(lines)


def kind(arrow: pa.DataType) -> str:
    """A type in the words of the page."""
    return "word" if pa.types.is_dictionary(arrow) else {"bool": "flag", "double": "float64"}.get(str(arrow), str(arrow))


def example() -> str:
    """What the README's main command prints."""
    capture, dump = (ROOT / "fixtures" / "decode" / name for name in ("capture.sqlite", "xla_dump"))
    os.environ["COLUMNS"] = WIDTH
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert app.run([str(capture), "--xla-dump", str(dump)]) == 0
    return out.getvalue()


def readme() -> str:
    """The README with that report in it."""
    text = example()
    return EXAMPLE.sub(lambda found: found[1] + text + found[2], README.read_text(encoding="utf-8"))


if __name__ == "__main__":
    COLUMNS.write_text(columns_page(), encoding="utf-8")
    FINDINGS.write_text(findings_page(), encoding="utf-8")
    README.write_text(readme(), encoding="utf-8")
