"""A finding's instructions as a table, for every page and document."""

from __future__ import annotations

from nsys_report.findings.model import Finding, Place
from nsys_report.reports.model import Column, Row, Table

PLACES = (
    Column("hlo_instruction", "instruction", "name"),
    Column("label", "called", "name", "what a person calls it", drop_rank=4),
    Column("time_ns", "time", "ns", "in one execution"),
    Column("launches", "launches", "count", "in one execution", drop_rank=2),
    Column("bytes_accessed", "bytes", "bytes", "in one execution", drop_rank=1),
    Column("source", "source", "name", "the line that it came from", drop_rank=3),
    Column("op_name", "operation", "name", "the framework's name of it", drop_rank=5),
    Column("hlo", "HLO", "name", "its line of the optimized module", drop_rank=9),
)


MOST_TELLING = 2
"""Places that stand under a finding with their lines."""


def places_table(finding: Finding) -> Table | None:
    """The instructions that a finding rests on; None where it rests on none."""
    if not finding.places:
        return None
    rows = tuple(
        Row((p.hlo_instruction, p.label, p.time_ns, p.launches, p.bytes_accessed, p.source or None, p.op_name, p.hlo or None))
        for p in finding.places
    )
    return Table("places", "Where", PLACES, rows)


def telling_places(finding: Finding) -> tuple[Place, ...]:
    """The first instructions of a finding that come from different lines, as far as their line or HLO is known."""
    found: dict[str, Place] = {}
    for place in finding.places:
        if place.source or place.hlo:
            found.setdefault(place.source or place.called, place)
    return tuple(found.values())[:MOST_TELLING]
