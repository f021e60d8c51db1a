"""A finding: what costs time, the figures that show it, why, what to do, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from nsys_report.analysis.arrays.rows import InstructionRow
from nsys_report.fact import Fact
from nsys_report.units import Value, duration

Confidence = Literal["sure", "likely", "possible"]
Severity = Literal["error", "warning", "info"]
Record: TypeAlias = InstructionRow
"""An instruction of a program with its figures."""
"""A row of a table of the analysis, by column name."""
Source = tuple[str, ...]
"""An account of the ledger: ("part", category, part) for a row of the budget, (category, instruction id) for an instruction's share."""

HIGH = 0.10
"""Share of a step from which a gain is a warning."""


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
    label: str | None = None
    """What a person calls it; None where nobody gave it a name."""
    snippet: str = ""
    """The line of source and those around it, where the source is at hand."""

    @property
    def source(self) -> str:
        """The line of source it came from, as file:line; "" where the dump does not say."""
        return f"{self.source_file}:{self.source_line}" if self.source_file and self.source_line else self.source_file or ""

    @property
    def with_origin(self) -> str:
        """The instruction with the end of the framework's name of it and its line of source, as far as they are known."""
        scope = (self.op_name or "").split("/")
        origin = ", ".join(filter(None, ("/".join(scope[-2:]), self.source.rpartition("/")[2])))
        return f"{self.hlo_instruction} ({origin})" if origin else self.hlo_instruction

    @property
    def called(self) -> str:
        """What a person calls it, else the instruction's name."""
        return self.label or self.hlo_instruction


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The same cause in another program of the capture."""

    hlo_module: str | None
    program_id: int | None
    explained_ns: float
    gain_ns: float | None
    executions: int
    places: tuple[Place, ...] = ()
    explains: Mapping[tuple[str, str], float] = field(default_factory=dict)

    @property
    def module(self) -> str | None:
        """The program as name#number."""
        return program_name(self.hlo_module, self.program_id)

    @property
    def with_gain(self) -> str:
        """The program, and what there is to gain in one of its executions."""
        gain = f": {duration(self.gain_ns)} an execution" if self.gain_ns else ""
        return f"{self.module}{gain}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause of lost time. `gain_ns` is what the remedy gives back at most in one execution of the program, in ns.

    A rule makes it with its claims; `apply.find` then weighs it against the others and fills in what it is worth.
    """

    slug: str
    title: str
    why: str
    remedy: str
    confidence: Confidence
    basis: str
    """How the gain was worked out, and what that rests on."""
    claims: Mapping[Source, float] = field(default_factory=dict)
    """Shares, 0 to 1, of the accounts of the step's ledger in which its cause shows (nsys_report.findings.ledger)."""
    facts: tuple[Fact, ...] = ()
    places: tuple[Place, ...] = ()
    """The instructions that it rests on, the most telling first; of a finding that was weighed the first few."""
    to_capture: str = ""
    """What to capture, where the capture cannot decide it."""
    damage: bool = False
    """Whether it is about the capture itself: no figure is to be trusted before it is mended."""
    hlo_module: str | None = None
    program_id: int | None = None
    executions: int = 0
    explained_ns: float = 0.0
    """Time that its cause occupies in a typical step, which no other finding accounts for."""
    explains: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """The same by row (category, part) of the program's budget."""
    gain_ns: float | None = None
    """None where the capture cannot decide it (`to_capture` says what would), 0 where the program has nothing to gain."""
    tried: str = ""
    """What came of the remedy where it was tried, "untried" where nobody has; "" for a finding that promises no time."""
    share: float | None = None
    """The gain as a share of the program's typical step, 0 to 1."""
    share_of: Literal["step", "execution"] = "step"
    """What it is a share of: of a program that is called at no steady pace one execution, which no time between two is part of."""
    tokens_per_s: float | None = None
    """Tokens a second that a decoding program would win; None for others."""
    place_count: int = 0
    """Instructions that it rests on, shown or not."""
    also: tuple[Elsewhere, ...] = ()
    stake_ns: float = 0.0
    """Where the gain is undecided, the time of its cause over the capture, which it is ranked by."""
    total_gain_ns: float = 0.0
    """What it would give back over the capture, `also` included, time that steps of several programs share counted once; 0 if undecided."""

    @property
    def severity(self) -> Severity:
        """error for a capture that cannot be trusted, warning for a tenth of the step and more, else info."""
        if self.damage:
            return "error"
        return "warning" if (self.share or 0.0) >= HIGH else "info"

    @property
    def module(self) -> str | None:
        """The program that it is about, as name#number; None for the capture as a whole."""
        return program_name(self.hlo_module, self.program_id)

    @property
    def gains(self) -> tuple[Fact, ...]:
        """What the remedy would give back; empty where the capture cannot decide it."""
        gains = (
            Fact("gain_ns", "to gain each time", self.gain_ns, "ns"),
            Fact("share", "of a step" if self.share_of == "step" else "of an execution", self.share, "ratio"),
            Fact("tokens_per_s", "more tokens a second", self.tokens_per_s, "rate"),
            Fact("total_gain_ns", "over the capture, in other programs too", self.total_gain_ns if self.also else None, "ns"),
        )
        return tuple(fact for fact in gains if fact.value)

    def value(self, key: str) -> Value:
        """The value of one figure. Raises KeyError for one that the finding does not have."""
        for fact in self.facts:
            if fact.key == key:
                return fact.value
        raise KeyError(key)


def program_name(name: str | None, number: int | None) -> str | None:
    """A program as name#number, its name where the number is unknown."""
    return name if number is None or name is None else f"{name}#{number}"
