"""The value between the pipeline and the analysis: a capture whose activities know their execution, instruction and costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from hlo_mapping.dump.program import Program
    from nsys_report.capture.model import Capture


@dataclass(frozen=True, slots=True)
class Joined:
    """One capture, cut and joined.

    `activities` holds nsys_report.columns.ACTIVITY_TABLE, then hlo_mapping.columns.LAUNCHES and `instruction_id` (int32: the row of
    `facts`, null where not joined); `executions` holds EXECUTION_TABLE; `facts` holds hlo_mapping.columns.FACTS over all programs seen.
    """

    capture: Capture
    activities: pa.Table
    executions: pa.Table
    facts: pa.Table
    programs: Mapping[int, Program]
    notes: tuple[str, ...] = ()
