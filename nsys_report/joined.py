"""The value between the pipeline and the analysis: a capture whose activities know their execution, instruction and costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from hlo_mapping import Program, ProgramKind, Ran
    from nsys_report.capture.model import Capture


@dataclass(frozen=True, slots=True)
class Joined:
    """One capture, cut and joined.

    `activities` holds hlo_mapping.columns.ACTIVITIES, JOIN and LAUNCHES, then `instruction_id` (int32: the row of `facts`, null where
    not joined) and `bears_cost` (whether its instruction's cost is its own: of several kernels of one launch, the first's). What that
    costs is in the facts, once; `complete` writes it beside every activity. `executions` holds EXECUTION_TABLE; `facts` holds FACTS
    over all programs seen.
    """

    capture: Capture
    activities: pa.Table
    executions: pa.Table
    facts: pa.Table
    programs: Mapping[int, Program]
    notes: tuple[str, ...] = ()
    kinds: Mapping[int, ProgramKind] = field(default_factory=dict)
    """What kind of program each is, by program number; those without HLO are not in it."""

    def ran(self) -> Ran:
        """What the capture says ran, by name: where a dump holds several runs' files, this chooses among them."""
        from nsys_report.executions.ran import what_ran

        return what_ran(self.activities, self.capture.nvtx)

    def complete(self, activities: pa.Table | None = None) -> pa.Table:
        """All activities, or some rows of them, with class and costs: nsys_report.columns.ACTIVITY_TABLE, LAUNCHES, instruction_id."""
        from nsys_report.executions.activities import with_costs

        return with_costs(self.activities if activities is None else activities, self.facts)
