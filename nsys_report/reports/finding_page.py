"""Findings of the analysis as findings of the report: figures as facts, instructions as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsys_report.reports.model import Column, Fact, Finding, Row, Table
from nsys_report.reports.units import UNITS, duration

if TYPE_CHECKING:
    from nsys_report.findings.model import Figure, Place
    from nsys_report.findings.model import Finding as Found

PLACES = (
    Column("hlo_instruction", "instruction", "name"),
    Column("time_ns", "time", "ns", "in one execution"),
    Column("launches", "launches", "count", "in one execution", keep=2),
    Column("bytes_accessed", "bytes", "bytes", "in one execution", keep=1),
    Column("source", "source", "name", "the line that it came from", keep=3),
    Column("op_name", "operation", "name", "the framework's name of it", keep=5),
    Column("hlo", "HLO", "name", "its line of the optimized module", keep=9),
)


def report_findings(found: Sequence[Found]) -> tuple[Finding, ...]:
    """The findings in the order given, which is by what they would give back."""
    return tuple(map(_finding, found))


def _finding(found: Found) -> Finding:
    return Finding(
        slug=found.slug,
        title=found.title,
        why=found.why,
        remedy=found.remedy,
        severity=found.severity,
        confidence=found.confidence,
        basis=found.basis,
        module=_program(found.hlo_module, found.program_id),
        gains=_gains(found),
        facts=tuple(map(_fact, found.figures)),
        places=_places(found.places) if found.places else None,
        to_capture=found.to_capture,
        also=tuple(
            f"{_program(e.hlo_module, e.program_id)}" + (f": {duration(e.gain_ns)} an execution" if e.gain_ns else "") for e in found.also
        ),
    )


def _program(name: str | None, number: int | None) -> str | None:
    return name if number is None or name is None else f"{name}#{number}"


def _gains(found: Found) -> tuple[Fact, ...]:
    gains = (
        Fact("gain_ns", "to gain each time", found.gain_ns, "ns"),
        Fact("share", "of a step", found.share, "ratio"),
        Fact("tokens_per_s", "more tokens a second", found.tokens_per_s, "rate"),
        Fact("total_gain_ns", "over the capture, in other programs too", found.total_gain_ns if found.also else None, "ns"),
    )
    return tuple(fact for fact in gains if fact.value is not None)


def _fact(figure: Figure) -> Fact:
    """A figure of a finding; one in a unit that the report does not know is text."""
    return Fact(figure.key, figure.label, figure.value, figure.unit if figure.unit in UNITS else "text")


def _places(places: Sequence[Place]) -> Table:
    rows = tuple(
        Row((p.hlo_instruction, p.time_ns, p.launches, p.bytes_accessed, p.source or None, p.op_name, p.hlo or None)) for p in places
    )
    return Table("places", "Where", PLACES, rows)
