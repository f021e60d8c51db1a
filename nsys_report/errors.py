"""The errors of this package: what the command line prints, and the exit code it then leaves with.

ReportError              anything this package can say about what it was given
├── InputError           a capture, dump or file that cannot be used (exit 1)
├── UsageError           options that are wrong or do not fit together (exit 2)
└── CoverageError        less was joined than the caller demands (exit 3)
"""

from __future__ import annotations

from typing import ClassVar


class ReportError(Exception):
    """What is wrong, where, and what was found instead (`message`); what to do next (`hint`); `slug` names the kind of error."""

    slug = "report-error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str = "", slug: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(hint)  # tracebacks, Jupyter's too, show it below the message
        if slug is not None:
            self.slug = slug


class InputError(ReportError):
    """A capture, a dump or another file that is missing, damaged, or not what it should be."""

    slug = "input"
    exit_code = 1


class UsageError(ReportError):
    """Options or arguments that are wrong or do not fit together."""

    slug = "usage"
    exit_code = 2


class CoverageError(ReportError):
    """Less of the kernel time was joined with confidence than the caller demands."""

    slug = "coverage"
    exit_code = 3
