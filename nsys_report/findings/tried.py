"""Which remedies were tried, and what came of it: data/tried.toml as values."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from nsys_report.findings.model import Finding
from nsys_report.units import duration

UNTRIED = "untried"
KEPT = 0.5
"""Share of a promise that must have come for the next one to be more than a possibility."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A program captured before and after a rule's remedy was applied; times of a step, ns."""

    slug: str
    change: str
    predicted_ns: float
    measured_ns: float
    gpu: str
    xla: str
    remark: str

    @property
    def came(self) -> bool:
        """Whether at least half of the promise came."""
        return self.measured_ns >= KEPT * self.predicted_ns

    @property
    def outcome(self) -> str:
        """What came of what was promised."""
        came = duration(self.measured_ns) if self.measured_ns > 0 else "nothing"
        return f"tried: {came} of {duration(self.predicted_ns)} came ({self.gpu}, {self.xla})"


@cache
def pairs() -> tuple[Pair, ...]:
    """Every pair that was captured, failures too."""
    text = (files(__package__) / "data" / "tried.toml").read_text(encoding="utf-8")
    return tuple(Pair(**row) for row in tomllib.loads(text)["pairs"])


def judged(finding: Finding) -> Finding:
    """A finding that promises time, with what was tried of its remedy; without a pair that kept it, the promise is a possibility."""
    if not finding.gain_ns:
        return finding
    mine = [pair for pair in pairs() if pair.slug == finding.slug]
    kept = bool(mine) and all(pair.came for pair in mine)
    tried = "; ".join(pair.outcome for pair in mine) or UNTRIED
    return replace(finding, tried=tried, confidence=finding.confidence if kept else "possible")
