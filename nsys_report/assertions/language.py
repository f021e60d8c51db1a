"""The language of assertions.

    assertion  = [PROGRAM ":"] (comparison | finding)
    comparison = quantity operator number [unit]
    operator   = ">=" | "<=" | ">" | "<" | "==" | "!="
    quantity   = NAME | CLASS "." COLUMN | CLASS "." DETAIL "." COLUMN | "budget." CATEGORY | "capture." NAME
               | "instruction(" NAME ")." COLUMN | "kernels(" PROGRAM ")" | "executions(" PROGRAM ")" | "findings" | "programs"
    finding    = ["no"] "finding(" SLUG ")"

Names are the keys of the JSON report: a program's own (`host_gap_ns`, `kernel_time_ns`, `step_ns`, `tokens_per_s`), the columns of its
classes (`weights.share_of_measured`), the categories of its step budget. Times are nanoseconds and sizes bytes unless a unit is given.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from nsys_report.errors import UsageError

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
UNITS = {
    "": 1.0, "ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "%": 0.01,
    "B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3,
    "B/s": 1.0, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12, "GFLOPS": 1e9, "TFLOPS": 1e12, "/s": 1.0,
}  # fmt: skip
"""What a number with that unit is multiplied with."""
DIMENSIONS = {
    "time": frozenset({"ns", "us", "µs", "μs", "ms", "s"}),
    "size": frozenset({"B", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB"}),
    "bandwidth": frozenset({"B/s", "MB/s", "GB/s", "TB/s"}),
    "compute": frozenset({"GFLOPS", "TFLOPS"}),
    "share": frozenset({"%"}),
    "rate": frozenset({"/s"}),
}
_NUMBER = r"[-+]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_COMPARISON = re.compile(rf"(?P<left>.+?)\s*(?P<sign>>=|<=|==|!=|>|<)\s*(?P<number>{_NUMBER})\s*(?P<unit>[^\d\s]*)\s*")
_FINDING = re.compile(r"(?P<no>no\s+)?finding\(\s*(?P<slug>[\w\-]+)\s*\)\s*")
_PROGRAM = re.compile(r"(?P<program>[^\s:<>=!]+)\s*:\s*(?P<rest>.+)", re.DOTALL)
EXAMPLE = "for example 'host_gap_ns < 200us', 'weights.share_of_measured >= 0.9' or 'no finding(cache-copied)'"


@dataclass(frozen=True, slots=True)
class Bound:
    """A figure against a number, in the figure's own unit."""

    quantity: str
    sign: str
    number: float
    unit: str

    def holds(self, value: float) -> bool:
        return OPERATORS[self.sign](value, self.number)


@dataclass(frozen=True, slots=True)
class FindingIs:
    """Whether a finding of that kind is there."""

    slug: str
    wanted: bool


@dataclass(frozen=True, slots=True)
class Assertion:
    """One assertion, as written and as understood; `program` is None for the only one, or for the capture."""

    text: str
    claim: Bound | FindingIs
    program: str | None = None
    name: str = ""
    """What a file of assertions calls it."""

    @property
    def title(self) -> str:
        return self.name or self.text


def parse(text: str, name: str = "", program: str | None = None) -> Assertion:
    """An assertion. Raises UsageError for a text that is none."""
    rest = text.strip()
    if (found := _PROGRAM.fullmatch(rest)) is not None:
        program, rest = found["program"], found["rest"].strip()
    if (found := _FINDING.fullmatch(rest)) is not None:
        return Assertion(text.strip(), FindingIs(found["slug"], found["no"] is None), program, name)
    if (found := _COMPARISON.fullmatch(rest)) is None:
        raise UsageError(f"the assertion {text!r} cannot be read", EXAMPLE, slug="assertion")
    if found["unit"] not in UNITS:
        known = ", ".join(unit for unit in UNITS if unit)
        raise UsageError(f"the assertion {text!r} has the unknown unit {found['unit']!r}", f"units are {known}", slug="assertion")
    number = float(found["number"].replace(",", "").replace("_", "")) * UNITS[found["unit"]]
    quantity = re.sub(r"\s+", "", found["left"])
    _check_unit(text, quantity, found["unit"])
    return Assertion(text.strip(), Bound(quantity, found["sign"], number, found["unit"]), program, name)


def dimension_of(quantity: str) -> str:
    """What a quantity is, by its name."""
    last = quantity.rpartition(".")[2]
    if quantity.startswith("budget.") or last.endswith("_ns"):
        return "time"
    if last.startswith("ceiling_") or last == "bytes_per_s":
        return "bandwidth"
    if last == "flops_per_s":
        return "compute"
    if last.endswith("per_s"):
        return "rate"
    if "bytes" in last:
        return "size"
    return "share" if "share" in last or last.startswith("of_floor") else "count"


def _check_unit(text: str, quantity: str, unit: str) -> None:
    """Raises UsageError for a unit that the quantity cannot have, such as milliseconds of a share."""
    dimension = dimension_of(quantity)
    if unit and unit not in DIMENSIONS.get(dimension, frozenset()):
        fitting = ", ".join(sorted(DIMENSIONS.get(dimension, frozenset())))
        hint = f"it is a {dimension}" + (f": {fitting}" if fitting else ", without a unit")
        raise UsageError(f"the assertion {text!r}: {quantity} cannot be in {unit}", hint, slug="assertion")
