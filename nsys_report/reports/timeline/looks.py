"""The looks of a timeline's marks, each once, in the order in which they come."""

from __future__ import annotations

from nsys_report.reports.timeline.model import Look

ProgramKey = tuple[str | None, int | None]
"""A program's module name and XLA's number of it."""


class Looks:
    """Gives looks their numbers."""

    def __init__(self) -> None:
        self._numbers: dict[Look, int] = {}

    def number(self, look: Look) -> int:
        """The number of a look, the same whenever it comes again."""
        return self._numbers.setdefault(look, len(self._numbers))

    def all(self) -> tuple[Look, ...]:
        """Every look by its number."""
        return tuple(self._numbers)
