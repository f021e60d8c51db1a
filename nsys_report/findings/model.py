"""A finding: what costs time, the figures that show it, why, what to do, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Confidence = Literal["sure", "likely", "possible"]
Severity = Literal["error", "warning", "info"]

HIGH = 0.10
"""Share of a step from which a gain is a warning."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure with its name; `unit` is a word of the report's units (ns, bytes, count, ratio, bytes_per_s, text, ...)."""

    key: str
    label: str
    value: float | int | str | None
    unit: str = "text"


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction that a finding rests on; times and bytes are of one execution of the program."""

    hlo_instruction: str
    time_ns: float
    launches: float
    bytes_accessed: int | None
    hlo: str = ""
    """Its line of the optimized module, without metadata and backend configuration; "" without a dump."""
    op_name: str | None = None
    source_file: str | None = None
    source_line: int | None = None

    @property
    def source(self) -> str:
        """The line of source it came from, as file:line; "" where the dump does not say."""
        return f"{self.source_file}:{self.source_line}" if self.source_file and self.source_line else self.source_file or ""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The same cause in another program of the capture."""

    hlo_module: str | None
    program_id: int | None
    gain_ns: float | None
    executions: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause of lost time. `gain_ns` is what the remedy gives back at most in one execution of the program, in ns."""

    slug: str
    title: str
    why: str
    remedy: str
    confidence: Confidence
    basis: str
    """How the gain was worked out, and what that rests on."""
    hlo_module: str | None = None
    program_id: int | None = None
    executions: int = 0
    gain_ns: float | None = None
    """None where the capture cannot decide it; `to_capture` says what would."""
    share: float | None = None
    """The gain as a share of the program's typical step, 0 to 1."""
    tokens_per_s: float | None = None
    """Tokens a second that a decoding program would win; None for others."""
    figures: tuple[Figure, ...] = ()
    places: tuple[Place, ...] = ()
    place_count: int = 0
    """Instructions that it rests on; `places` holds those with most time."""
    to_capture: str = ""
    damage: bool = False
    """Whether it is about the capture itself: no figure is to be trusted before it is mended."""
    also: tuple[Elsewhere, ...] = ()
    total_gain_ns: float = 0.0
    """What it would give back over the capture, `also` included, time that steps of several programs share counted once; 0 if undecided."""

    @property
    def severity(self) -> Severity:
        """error for a capture that cannot be trusted, warning for a tenth of the step and more, else info."""
        if self.damage:
            return "error"
        return "warning" if (self.share or 0.0) >= HIGH else "info"

    def figure(self, key: str) -> float | int | str | None:
        """The value of one figure. Raises KeyError for one that the finding does not have."""
        for figure in self.figures:
            if figure.key == key:
                return figure.value
        raise KeyError(key)
