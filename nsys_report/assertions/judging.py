"""Each assertion held against a capture: whether it holds, and the value that was found."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from nsys_report.assertions.language import Assertion, Bound, FindingIs, dimension_of
from nsys_report.assertions.names import ReportNames
from nsys_report.errors import UsageError
from nsys_report.findings.slugs import DAMAGED, SLUGS
from nsys_report.units import count, duration, phrase, share, size


@dataclass(frozen=True, slots=True)
class Answer:
    """One assertion of one capture, judged. `value` is what was found; None where it is unknown, and the assertion then fails."""

    capture: str
    assertion: Assertion
    holds: bool
    value: float | None
    found: str
    """The value in words."""


def judge(names: ReportNames, assertions: Sequence[Assertion], capture: str) -> tuple[Answer, ...]:
    """Answers in the order of the assertions. Raises UsageError for a name that does not exist, whatever the others say."""
    return tuple(_answer(names, assertion, capture) for assertion in assertions)


def _answer(names: ReportNames, assertion: Assertion, capture: str) -> Answer:
    claim = assertion.claim
    if isinstance(claim, FindingIs):
        return _finding(names, assertion, claim, capture)
    value = _figure(names, assertion, claim)
    holds = value is not None and claim.holds(value)
    return Answer(capture, assertion, holds, value, "unknown" if value is None else in_words(claim.quantity, value))


def _figure(names: ReportNames, assertion: Assertion, claim: Bound) -> float | None:
    try:
        return names.figure(claim.quantity, assertion.program)
    except UsageError as error:
        raise UsageError(f"the assertion {assertion.text!r}: {error.message}", error.hint, error.slug) from None


def _finding(names: ReportNames, assertion: Assertion, claim: FindingIs, capture: str) -> Answer:
    if claim.slug not in SLUGS and not claim.slug.startswith(DAMAGED):
        close = difflib.get_close_matches(claim.slug, SLUGS, 4, 0.4)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(sorted(SLUGS))}"
        raise UsageError(f"the assertion {assertion.text!r}: there is no finding {claim.slug!r}", hint, "unknown-name")
    program = names.program(assertion.program) if assertion.program is not None else None
    modules = [m for slug, m in names.findings if slug == claim.slug and (program is None or m in (program.name, program.label, None))]
    said = f"found{f' in {modules[0]}' if modules[0] else ''}" if modules else "not found"
    return Answer(capture, assertion, bool(modules) == claim.wanted, float(len(modules)), said)


def in_words(quantity: str, value: float) -> str:
    """A figure in the words of the report."""
    dimension = dimension_of(quantity)
    if dimension == "time":
        return duration(value)
    if dimension == "share":
        return share(value)
    if dimension in ("bandwidth", "compute"):
        return phrase({"bandwidth": "bytes_per_s", "compute": "flops_per_s"}[dimension], value)
    return size(value) if dimension == "size" else count(value)
