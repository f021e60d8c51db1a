"""What rules put findings together from: the instructions that a finding rests on, and sums over them."""

from __future__ import annotations

from collections.abc import Sequence

from nsys_report.findings.model import Place
from nsys_report.findings.step import Record, Step


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
            label=record["label"],
        )
        for record in records
    )


def by_time(step: Step, records: Sequence[Record]) -> tuple[Record, ...]:
    """Instructions, most time first."""
    return tuple(sorted(records, key=step.spent, reverse=True))


def launches(step: Step, records: Sequence[Record]) -> float:
    """Launches in an execution, together; of what runs in some executions only, that share counts."""
    return float(sum(record["launches_per_execution"] * record["executions"] / step.executions for record in records))


def moved(records: Sequence[Record]) -> int:
    """Bytes moved in an execution, together; unknown ones count nothing."""
    return sum(record["bytes_accessed"] or 0 for record in records)
