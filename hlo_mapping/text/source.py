"""A named text, and errors that show where in it something is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_mapping.errors import HloSyntaxError

EXCERPT_COLUMNS = 120
"""Columns of a line that an error shows; HLO lines reach hundreds of thousands of characters."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """Text and the name of the file it came from. Offsets are characters; lines and columns count from 1."""

    text: str = field(repr=False)
    name: str = "<text>"

    def locate(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset."""
        start = self.text.rfind("\n", 0, offset) + 1
        return self.text.count("\n", 0, start) + 1, offset - start + 1

    def line_at(self, offset: int) -> str:
        """The line that holds an offset, without its newline."""
        start = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        return self.text[start : end if end >= 0 else None]

    def excerpt(self, start: int, end: int) -> str:
        """The part of the line around start..end, with carets below it."""
        _, column = self.locate(start)
        line = self.line_at(start)
        left = max(0, column - 1 - EXCERPT_COLUMNS // 2) if len(line) > EXCERPT_COLUMNS else 0
        shown = line[left : left + EXCERPT_COLUMNS]
        head, tail = "…" if left else "", "…" if left + EXCERPT_COLUMNS < len(line) else ""
        at = column - 1 - left + len(head)
        carets = max(1, min(end - start, len(head) + len(shown) - at))
        return f"{head}{shown}{tail}\n{' ' * at}{'^' * carets}"

    def error(self, message: str, start: int, end: int | None = None, hint: str = "") -> HloSyntaxError:
        """The error to raise about the text at start..end."""
        start = min(start, len(self.text))
        line, column = self.locate(start)
        return HloSyntaxError(message, f"{self.name}:{line}:{column}", self.excerpt(start, end if end is not None else start + 1), hint)

    def truncated(self, inside: str) -> HloSyntaxError:
        """The error about text that ends too early, `inside` something."""
        return self.error(
            f"the text ends inside {inside}; the file looks cut off in mid-write",
            len(self.text.rstrip()),
            hint="The process may have died while writing the dump, or may be writing it still: make the dump again.",
        )
