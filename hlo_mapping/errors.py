"""The errors of this package.

HloError                 anything wrong with a dump or its text
├── HloSyntaxError       text that is not HLO, with file:line:column
└── DumpError            a dump directory that is missing, empty or unreadable
"""

from __future__ import annotations


class HloError(Exception):
    """What is wrong and where (`message`), and what to do next (`hint`); `slug` names the kind of error."""

    slug = "hlo-error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(hint)  # tracebacks, Jupyter's too, show it below the message

    @property
    def brief(self) -> str:
        """The message in one line: without an excerpt."""
        return self.message.partition("\n")[0]


class HloSyntaxError(HloError):
    """Text that cannot be read as HLO; `location` is file:line:column and `excerpt` the line with carets below."""

    slug = "hlo-syntax"

    def __init__(self, message: str, location: str, excerpt: str = "", hint: str = "") -> None:
        super().__init__(f"{location}: {message}" + (f"\n{excerpt}" if excerpt else ""), hint)
        self.location = location
        self.excerpt = excerpt


class DumpError(HloError):
    """A dump directory that is missing, empty, unreadable, or holds no optimized GPU module."""

    slug = "dump"
