"""A run against its history: every figure judged, and the self-test that adds time to every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from nsys_report.errors import InputError
from nsys_report.history.model import Record
from nsys_report.history.rule import LAST, Judged, judge
from nsys_report.units import duration

PERTURB_NS, PERTURB_SHARE = 3e6, 0.6
"""The self-test adds the larger of 3 ms and this share of the median."""
STEP = "step_ns"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case of a run: how it was treated, and its figures judged. `record` is None where it was not measured."""

    case: str
    treatment: str
    """measured, once, skipped or failed."""
    reason: str = ""
    record: Record | None = None
    judged: tuple[tuple[str, Judged], ...] = ()
    perturbed_ns: float | None = None
    """What the self-test added to its steps."""
    others: int = 0
    """Records of the case that nothing was compared with: of another GPU, or contended."""

    @property
    def flagged(self) -> bool:
        return any(judged.flagged for _, judged in self.judged)

    def document(self) -> dict[str, Any]:
        """The result as plain values."""
        figures = {
            name: {"value": j.value, "median": j.median, "limit": j.limit, "records": j.records, "flagged": j.flagged}
            for name, j in self.judged
        }
        return {
            "case": self.case,
            "treatment": self.treatment,
            "reason": self.reason or None,
            "flagged": self.flagged,
            "perturbed_ns": self.perturbed_ns,
            "not_compared_with": self.others,
            "figures": figures,
            "record": self.record.document() if self.record is not None else None,
        }


def comparable(record: Record, history: Sequence[Record]) -> tuple[Record, ...]:
    """The records that a run may be compared with: of its case, GPU and way of measuring, and not contended."""
    return tuple(r for r in history if (r.case, r.gpu, r.source) == (record.case, record.gpu, record.source) and not r.contended)


def judge_record(record: Record, history: Sequence[Record]) -> CaseResult:
    """A run against its history."""
    known = comparable(record, history)
    judged = tuple((name, judge(name, value, _values(name, known))) for name, value in record.figures.items())
    others = sum(r.case == record.case for r in history) - len(known)
    return CaseResult(record.case, "measured", record=record, judged=judged, others=others)


def self_test(record: Record, history: Sequence[Record], amount: float | None) -> CaseResult:
    """The run with time added to every step: `amount` ns, or by default what the rule must flag; without history against itself.

    Raises InputError, which names the case, where the rule does not flag it.
    """
    known = comparable(record, history) or (record,)
    steps = [name for name in record.figures if is_step(name)]
    if not steps:
        raise InputError(f"case {record.case}: it has no steps to perturb", "record a capture with several executions of a program")
    added = amount if amount is not None else max(_added(record, name, known) for name in steps)
    slower = replace(record, figures={name: v + added * is_step(name) for name, v in record.figures.items()})
    result = replace(judge_record(slower, known), perturbed_ns=added, others=judge_record(record, history).others)
    missed = [(name, judged) for name, judged in result.judged if name in steps and not judged.flagged]
    if missed:
        name, judged = missed[0]
        needed = (judged.limit or 0.0) - record.figures[name]
        raise InputError(
            f"case {record.case}: {duration(added)} more on {name} is not flagged "
            f"(limit {duration(judged.limit or 0.0)}, median {duration(judged.median or 0.0)} of {judged.records})",
            f"the rule sees {duration(needed)} or more there: perturb by more, or record steadier runs",
            slug="perturbation",
        )
    return result


def is_step(name: str) -> bool:
    """Whether a figure is the time of a step."""
    return name.rpartition(":")[2] == STEP


def _added(record: Record, name: str, known: Sequence[Record]) -> float:
    before = _values(name, known)[-LAST:]
    middle = max(median(before) if before else 0.0, record.figures[name])
    return max(PERTURB_NS, PERTURB_SHARE * middle)


def _values(name: str, records: Sequence[Record]) -> list[float]:
    return [r.figures[name] for r in records if name in r.figures]
