"""What a history holds: one record for each run of a case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nsys_report.errors import InputError

FORMAT = "nsys-report record"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Record:
    """The figures of one run. `figures` are medians by `PROGRAM:quantity`: times in ns, bytes, or coverage as a share.

    `environment` tells what the run was made with, as far as it is known: driver, clocks, XLA, nsys, commit.
    """

    case: str
    recorded_at: str
    """UTC, ISO 8601."""
    gpu: str | None
    figures: Mapping[str, float]
    environment: Mapping[str, str] = field(default_factory=dict)
    contended: bool = False
    """Whether others used the GPU: such a run is kept, and nothing is compared with it."""
    source: str = "capture"
    """capture or steps (a StepBenchmark)."""

    def document(self) -> dict[str, Any]:
        """The record as one line of a history."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "case": self.case,
            "recorded_at": self.recorded_at,
            "gpu": self.gpu,
            "contended": self.contended,
            "source": self.source,
            "environment": dict(self.environment),
            "figures": dict(self.figures),
        }


def record_of(row: object, where: str) -> Record:
    """A record from a line of a history. Raises InputError for one that is none."""
    if not isinstance(row, dict) or row.get("format") != FORMAT:
        raise InputError(f"{where} is no record of a history", "a history is written by nsys-report record and bench alone", "history")
    figures, environment = row.get("figures"), row.get("environment", {})
    if not isinstance(row.get("case"), str) or not isinstance(figures, dict) or not isinstance(environment, dict):
        figures, environment = None, {}
    if figures is None or not all(isinstance(v, (int, float)) for v in figures.values()):
        raise InputError(f"{where} is a record without its case or figures", "take that line out, or restore the file", "history")
    if row.get("version", 0) > VERSION:
        raise InputError(f"{where} was written by a newer version of this program", "update nsys-report", "history")
    return Record(
        row["case"],
        str(row.get("recorded_at", "")),
        row.get("gpu"),
        {k: float(v) for k, v in figures.items()},
        {k: str(v) for k, v in environment.items()},
        bool(row.get("contended", False)),
        str(row.get("source", "capture")),
    )
