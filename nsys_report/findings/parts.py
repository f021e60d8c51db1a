"""What rules put findings together from: claims on the step's time, and the instructions a finding rests on."""

from __future__ import annotations

from collections.abc import Sequence

from nsys_report.findings.model import Place, Source
from nsys_report.findings.step import Record, Step


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
    """Instructions as evidence, the most telling first."""
    return tuple(
        Place(
            hlo_instruction=record["hlo_instruction"],
            time_ns=step.spent(record),
            launches=record["launches_per_execution"],
            bytes_accessed=record["bytes_accessed"],
            op_name=record["op_name"],
            source_file=record["source_file"],
            source_line=record["source_line"],
        )
        for record in records
    )


def by_time(step: Step, records: Sequence[Record]) -> tuple[Record, ...]:
    """Instructions, most time first."""
    return tuple(sorted(records, key=step.spent, reverse=True))


def launches(records: Sequence[Record]) -> float:
    """Launches in an execution, together."""
    return float(sum(record["launches_per_execution"] for record in records))


def moved(records: Sequence[Record]) -> int:
    """Bytes moved in an execution, together; unknown ones count nothing."""
    return sum(record["bytes_accessed"] or 0 for record in records)
