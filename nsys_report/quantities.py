"""The named quantities of the reports: each once, with what it is, over which steps or executions, by which statistic, in which unit.

Every page, picture and document takes a quantity's name from here. Where two are needed for one idea, their names say how they differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Statistic = Literal["typical", "median", "mean", "sum", "ratio"]

STATISTICS: dict[Statistic, str] = {
    "typical": "mean over the middle half of a program's steps by length, so that parts add up to their whole and no stray step counts",
    "median": "half of the whole executions have less",
    "mean": "mean over all whole executions",
    "sum": "over the capture",
    "ratio": "one quantity over another",
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity: its key in the documents, its name on pages, its unit (units.UNITS), statistic, and what it is in a sentence."""

    key: str
    name: str
    unit: str
    statistic: Statistic
    about: str

    @property
    def meaning(self) -> str:
        """What it is, with its statistic where the name does not say it."""
        told = self.statistic in ("ratio", "sum") or self.name.startswith(self.statistic)
        return self.about if told else f"{self.about}; {self.statistic}"


_ALL = (
    Quantity("step_ns", "step", "ns", "typical", "from the start of one execution of a program to the start of its next"),
    Quantity("typical_kernel_time_ns", "kernel time", "ns", "typical", "the durations of an execution's kernels, added up"),
    Quantity("typical_ns", "time", "ns", "typical", "kernels, and copies on the device that the program asks for, in a step"),
    Quantity("typical_share", "share", "ratio", "ratio", "that time over the sum of the table's"),
    Quantity(
        "idle_ns",
        "idle",
        "ns",
        "typical",
        "time of a step in which the GPU runs nothing, whatever the cause, between executions and within",
    ),
    Quantity("interval_ns", "median step", "ns", "median", "from the start of one execution of a program to the start of its next"),
    Quantity("kernel_time_ns", "median kernel time", "ns", "median", "the durations of an execution's kernels, added up"),
    Quantity("time_per_execution_ns", "median time", "ns", "median", "the same in an execution that has it"),
    Quantity("busy_time_ns", "median busy time", "ns", "median", "how long at least one activity of an execution ran"),
    Quantity("span_ns", "median span", "ns", "median", "from an execution's first activity to the end of its last"),
    Quantity(
        "host_gap_ns",
        "host gap",
        "ns",
        "median",
        "idle time right before an execution, after whatever ran last on the GPU: the last stretch of a step's idle time",
    ),
    Quantity(
        "floor_ns",
        "floor",
        "ns",
        "typical",
        "the least time of a step: the bytes that it cannot do without, and arithmetic, at the ceilings",
    ),
    Quantity("floor_measured_ns", "byte floor", "ns", "ratio", "the bytes that an execution cannot do without, at the measured ceiling"),
    Quantity(
        "floor_nominal_ns", "nominal byte floor", "ns", "ratio", "the bytes that an execution cannot do without, at the nominal ceiling"
    ),
    Quantity(
        "of_floor_measured",
        "byte floor of kernel time",
        "ratio",
        "ratio",
        "byte floor over kernel time: 100 % is a step whose kernels move nothing else, at the ceiling",
    ),
    Quantity("of_floor_nominal", "nominal byte floor of kernel time", "ratio", "ratio", "nominal byte floor over kernel time"),
    Quantity("bytes_per_s", "implied", "bytes_per_s", "ratio", "bytes that kernels must move at least, over the time they took"),
    Quantity("share_of_measured", "of ceiling", "ratio", "ratio", "implied bandwidth over the measured ceiling"),
    Quantity("share_of_nominal", "of nominal ceiling", "ratio", "ratio", "implied bandwidth over the nominal ceiling"),
    Quantity("share_of_roof", "of roof", "ratio", "ratio", "least time at the roof over time"),
    Quantity("explained_share", "explained", "ratio", "ratio", "time that findings account for, over the step above its floor"),
    Quantity("tokens_per_s", "tokens", "per_s", "ratio", "tokens of an execution over the step"),
    Quantity("floor_tokens_per_s", "tokens at the floor", "per_s", "ratio", "tokens of an execution over the floor"),
)

QUANTITIES = {quantity.key: quantity for quantity in _ALL}


def name_of(key: str) -> str:
    """The name of a quantity on every page. Raises KeyError for one that is not defined."""
    return QUANTITIES[key].name
