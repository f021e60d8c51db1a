"""What a rule returns: a finding before it is weighed against the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nsys_report.findings.model import Confidence, Figure, Place
from nsys_report.findings.step import Record, Step
from nsys_report.findings.thresholds import threshold

Source = tuple[str, ...]
"""Where time is taken back from: ("part", category, part) of the budget, or ("instruction", id)."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A finding and its claims: how much of each source its remedy would give back in a step, ns."""

    slug: str
    title: str
    why: str
    remedy: str
    confidence: Confidence
    basis: str
    claims: Mapping[Source, float] = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()
    records: tuple[Record, ...] = ()
    """The instructions it rests on, the most telling first."""
    to_capture: str = ""
    is_decided: bool = True
    """False where the capture cannot tell what would be gained."""
    damage: bool = False

    @property
    def gain_ns(self) -> float:
        """All claims together."""
        return sum(self.claims.values())


def from_parts(step: Step, *parts: tuple[str, str], share: float = 1.0) -> dict[Source, float]:
    """Claims on parts of the typical step's budget; parts that it does not have claim nothing."""
    return {("part", *part): step.typical[part] * share for part in parts if step.typical.get(part)}


def from_instructions(step: Step, records: Sequence[Record], gain: float) -> dict[Source, float]:
    """A gain claimed from instructions in proportion to what they take."""
    total = sum(step.spent(record) for record in records)
    if gain <= 0 or total <= 0:
        return {}
    return {("instruction", str(record["instruction_id"])): gain * step.spent(record) / total for record in records}


def places(step: Step, records: Sequence[Record]) -> tuple[Place, ...]:
    """The first instructions as evidence."""
    first = records[: int(threshold("programs", "most_places"))]
    return tuple(
        Place(
            hlo_instruction=record["hlo_instruction"],
            time_ns=step.spent(record),
            launches=record["launches_per_execution"],
            bytes_accessed=record["bytes_accessed"],
            hlo=_line(step, record["hlo_instruction"]),
            op_name=record["op_name"],
            source_file=record["source_file"],
            source_line=record["source_line"],
        )
        for record in first
    )


def _line(step: Step, name: str) -> str:
    """An instruction's line without metadata and backend configuration."""
    text = step.module.excerpt(name) if step.module is not None else ""
    for tail in (", metadata=", ", backend_config=", ", frontend_attributes="):
        text = text.partition(tail)[0]
    return text


def by_time(step: Step, records: Sequence[Record]) -> tuple[Record, ...]:
    """Instructions, most time first."""
    return tuple(sorted(records, key=step.spent, reverse=True))


def launches(records: Sequence[Record]) -> float:
    """Launches in an execution, together."""
    return float(sum(record["launches_per_execution"] for record in records))


def moved(records: Sequence[Record]) -> int:
    """Bytes moved in an execution, together; unknown ones count nothing."""
    return sum(record["bytes_accessed"] or 0 for record in records)
