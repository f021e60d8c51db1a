"""The quantities that assertions can name, of one analyzed capture: the keys of the JSON report, and nothing else."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hlo_mapping import KERNEL_CLASSES
from nsys_report.analysis.arrays.schemas import CLASSES
from nsys_report.analysis.budget.parts import CATEGORIES
from nsys_report.errors import UsageError
from nsys_report.reports.build import build_report, worth_a_section

if TYPE_CHECKING:
    import pyarrow as pa

    from nsys_report.session import Session

NAMED_CLASSES = frozenset({*KERNEL_CLASSES, "unknown"})
CALLS = re.compile(r"(?P<what>kernels|executions)\((?P<program>.+)\)")
INSTRUCTION = re.compile(r"instruction\((?P<name>[^()]+)\)\.(?P<column>\w+)")
Figure = float | None
"""A figure; None where nobody knows it."""


@dataclass(frozen=True, slots=True)
class ProgramFigures:
    """A program and its figures by name."""

    name: str
    number: int | None
    figures: Mapping[str, Figure]
    instructions: Mapping[str, Mapping[str, Any]]
    is_main: bool

    @property
    def label(self) -> str:
        return f"{self.name}#{self.number}" if self.number is not None else self.name


@dataclass(frozen=True, slots=True)
class ReportNames:
    """Everything that can be named."""

    capture: Mapping[str, Figure]
    programs: tuple[ProgramFigures, ...]
    findings: tuple[tuple[str, str | None], ...]
    """Slug and program of each finding."""

    def figure(self, quantity: str, program: str | None) -> Figure:
        """The value of a quantity. Raises UsageError for a name that does not exist, or a program that must be named."""
        if (call := CALLS.fullmatch(quantity)) is not None:
            key = {"kernels": "kernels_per_execution", "executions": "executions"}[call["what"]]
            return self.program(call["program"]).figures.get(key)
        if quantity == "findings":
            return float(len(self.findings))
        if quantity == "programs":
            return float(len(self.programs))
        if quantity.startswith("capture."):
            return _named(self.capture, quantity.removeprefix("capture."), "the capture")
        if not self.programs and quantity in self.capture:
            return self.capture[quantity]
        if program is None and quantity in self.capture and all(quantity not in p.figures for p in self.programs):
            return self.capture[quantity]
        chosen = self.program(program)
        if (found := INSTRUCTION.fullmatch(quantity)) is not None:
            row = _named(chosen.instructions, found["name"], f"instructions of {chosen.label}")
            return _number(_named(row, found["column"], "an instruction"))
        known = _without_value(quantity) | {**self.capture, **chosen.figures}
        return _named(known, quantity, chosen.label)

    def program(self, wanted: str | None) -> ProgramFigures:
        """The program of that name, name#number; without one the only main program."""
        if wanted is not None:
            found = [p for p in self.programs if wanted in (p.name, p.label)]
            if not found:
                names = [p.label for p in self.programs]
                raise UsageError(f"the capture ran no program {wanted!r}", _suggest(wanted, [*names, *(p.name for p in self.programs)]))
            return next((p for p in found if p.is_main), found[0])
        main = [p for p in self.programs if p.is_main]
        if len(main) == 1:
            return main[0]
        if not main:
            raise UsageError("the capture ran no program that assertions could be about", "nsys-report check CAPTURE says why")
        labels = ", ".join(p.label for p in main)
        raise UsageError("the capture runs several programs: say which", f"write PROGRAM: in front: {labels}")


def _without_value(quantity: str) -> dict[str, Figure]:
    """Figures that exist but that this program has none of: a class without kernels is unknown, a budget row without time is 0."""
    first, _, column = quantity.partition(".")
    if first in NAMED_CLASSES and column.rpartition(".")[2] in CLASSES.names:
        return {quantity: None}
    return {quantity: 0.0} if first == "budget" and column in CATEGORIES else {}


def names_of(session: Session) -> ReportNames:
    """What can be named in a session."""
    report = build_report([session], "", None)
    part = report.parts[0]
    facts = {s.module: {f.key: _number(f.value) for f in s.facts} for s in part.sections if s.module}
    main = {(r["hlo_module"], r["program_id"]) for r in worth_a_section(session)[0]}
    programs = []
    for record in session.results.modules.to_pylist():
        key = record["hlo_module"], record["program_id"]
        label = f"{key[0]}#{key[1]}" if key[1] is not None else str(key[0])
        figures = _program_figures(session, key) | {k: v for k, v in facts.get(label, {}).items() if v is not None}
        figures |= {k: _number(v) for k, v in record.items() if k not in ("hlo_module", "program_id")}
        instructions = {r["hlo_instruction"]: r for r in _rows(session.results.instructions, key) if r["hlo_instruction"]}
        programs.append(ProgramFigures(key[0] or "?", key[1], figures, instructions, key in main))
    capture = {f.key: _number(f.value) for f in part.facts if not isinstance(f.value, str)}
    return ReportNames(capture, tuple(programs), tuple((f.slug, f.module) for f in part.findings))


def _program_figures(session: Session, key: tuple[str | None, int | None]) -> dict[str, Figure]:
    """Step, classes, details and budget of one program; classes it has no kernels of have no figures."""
    results = session.results
    figures: dict[str, Figure] = {}
    for row in _rows(results.steps, key):
        figures |= {k: _number(v) for k, v in row.items() if k not in ("hlo_module", "program_id", "typical_ns")}
        figures["step_ns"] = row["typical_ns"]
    for row in _rows(results.classes, key):
        figures |= {f"{row['kernel_class'] or 'unknown'}.{k}": _number(v) for k, v in row.items() if _counts(v)}
    for row in _rows(results.details, key):
        if row["class_detail"]:
            figures |= {f"{row['kernel_class'] or 'unknown'}.{row['class_detail']}.{k}": _number(v) for k, v in row.items() if _counts(v)}
    for row in _rows(results.budget, key):
        name = f"budget.{row['category']}"
        figures[name] = (figures.get(name) or 0.0) + row["typical_ns"]
    return figures


def _rows(table: pa.Table, key: tuple[str | None, int | None]) -> list[dict[str, Any]]:
    return [r for r in table.to_pylist() if (r["hlo_module"], r["program_id"]) == key]


def _counts(value: Any) -> bool:
    return value is None or isinstance(value, (int, float))


def _number(value: Any) -> Figure:
    return float(value) if isinstance(value, (int, float)) else None


def _named(figures: Mapping[str, Any], name: str, where: str) -> Any:
    if name in figures:
        return figures[name]
    raise UsageError(f"{where} has no figure {name!r}", _suggest(name, figures), slug="unknown-name")


def _suggest(wanted: str, known: Iterable[str]) -> str:
    """Names like the one that does not exist."""
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(wanted, names, 5, 0.5) or [n for n in names if wanted.split(".")[-1] in n][:5]
    return f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names[:12])} …"
