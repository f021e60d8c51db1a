"""What a comparison is: frozen values that pages and documents are made from. Times are nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hlo_mapping import Change

Verdict: TypeAlias = Literal["same", "slower", "faster", "unsure"]


LEAST_SHARE = 0.01
"""Share of the kernel time from which a program's verdict counts for the whole."""


@dataclass(frozen=True, slots=True)
class Total:
    """An exact sum over so many executions."""

    total: int
    count: int

    @property
    def mean(self) -> float | None:
        """None over no execution."""
        return self.total / self.count if self.count else None


@dataclass(frozen=True, slots=True)
class QuantityChange:
    """One figure before and after. `before`, `after`, `difference` are means; `low` and `high` bound the difference of the means.

    The verdict is drawn from the medians and from `noise_ns`, what two runs of one program may differ by; None where it cannot be drawn.
    """

    key: str
    before: Total | None
    after: Total | None
    low: float | None = None
    high: float | None = None
    verdict: Verdict | None = None
    median_before: float | None = None
    median_after: float | None = None
    noise_ns: float | None = None
    noise_from: str = ""
    """assumed, measured, or alike (learned from instructions that did not change)."""
    runs_needed: int | None = None
    """Captures a side that would tell, where the verdict is unsure and so many can be named."""

    @property
    def difference(self) -> float | None:
        """Of the means; what is on one side only counts as 0 on the other."""
        one, other = (side.mean if side is not None else 0.0 for side in (self.before, self.after))
        return None if one is None or other is None else other - one

    @property
    def relative(self) -> float | None:
        """The difference as a share of what was before."""
        before = self.before.mean if self.before is not None else None
        return self.difference / before if before and self.difference is not None else None


@dataclass(frozen=True, slots=True)
class SidePlace:
    """One instruction of one side: what it is, and what it takes an execution."""

    instruction: str
    kind: str
    shape: str
    time: Total
    launches: float
    kernel_name: str | None
    kernel_class: str | None
    layer: str | None
    op_name: str | None
    source: str | None
    """File and line."""
    bytes_accessed: int | None
    flops: int | None


@dataclass(frozen=True, slots=True)
class InstructionChange:
    """Instructions that do the same work before and after, with their time in an execution."""

    before: tuple[SidePlace, ...]
    after: tuple[SidePlace, ...]
    change: Change
    is_identical: bool
    became: str
    time: QuantityChange


class _BeforeAndAfter:
    """Two sides of one share of the mean step."""

    __slots__ = ()
    before: Total
    after: Total

    @property
    def difference(self) -> float:
        """How much longer it takes after than before, ns; what one side lacks takes nothing there."""
        return (self.after.mean or 0.0) - (self.before.mean or 0.0)


@dataclass(frozen=True, slots=True)
class StepPart(_BeforeAndAfter):
    """A part of the mean step; the parts add up to it exactly. `group` is instruction, unpaired, overlap, or a category of the budget."""

    group: str
    name: str
    before: Total
    after: Total


@dataclass(frozen=True, slots=True)
class Rollup(_BeforeAndAfter):
    """Kernel time summed up by class, op_name, source line or layer."""

    by: str
    name: str
    before: Total
    after: Total


@dataclass(frozen=True, slots=True)
class ProgramChange:
    """One program before and after; None on a side where it does not run."""

    before: str | None
    after: str | None
    quantities: tuple[QuantityChange, ...]
    instructions: tuple[InstructionChange, ...] = ()
    parts: tuple[StepPart, ...] = ()
    rollups: tuple[Rollup, ...] = ()
    setup: tuple[Setup, ...] = ()
    """What differs in the program: flags, shapes, types."""
    common_shift: float | None = None
    """By how much the median unchanged instruction's time moved, as a share: a clock or a GPU moves them all."""

    @property
    def name(self) -> str:
        if self.before == self.after or not self.after or not self.before:
            return self.before or self.after or "?"
        return f"{self.before} → {self.after}"

    @property
    def kernel_total(self) -> int:
        """Kernel time of all executions of both sides, ns."""
        found = self.quantity("kernel_time_ns")
        return sum(side.total for side in (found.before, found.after) if side is not None) if found is not None else 0

    def quantity(self, key: str) -> QuantityChange | None:
        return next((q for q in self.quantities if q.key == key), None)


@dataclass(frozen=True, slots=True)
class Setup:
    """Something that differs between the runs besides what was meant to: before anything else is believed, it is read."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of captures before with captures after."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    setup: tuple[Setup, ...]
    programs: tuple[ProgramChange, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """Of steps and kernel time of the programs that matter: one that is slower decides, then one that is faster."""
        found = [q.verdict for program in self.main() for q in program.quantities if q.key in ("step_ns", "kernel_time_ns") and q.verdict]
        for verdict in ("slower", "faster", "same"):
            if verdict in found:
                return verdict
        return "unsure"

    def main(self) -> tuple[ProgramChange, ...]:
        """The programs that run on both sides and take a hundredth of the kernel time of either, or most of it."""
        both = [p for p in self.programs if p.before is not None and p.after is not None]
        whole = sum(p.kernel_total for p in both)
        return tuple(p for n, p in enumerate(both) if not n or p.kernel_total >= LEAST_SHARE * whole)
