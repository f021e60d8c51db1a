"""A number with its name and unit: what findings show, what reports and documents hold."""

from __future__ import annotations

from dataclasses import dataclass

from nsys_report.units import UNITS, Value, phrase


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure with its name, such as the capture's span. Raises ValueError for a unit that is not in units.UNITS."""

    key: str
    label: str
    value: Value
    unit: str = "text"

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"fact {self.key} has the unknown unit {self.unit!r}")

    @property
    def text(self) -> str:
        """The value with its whole unit; unknown is a dash."""
        return phrase(self.unit, self.value)
