"""How much of a step only some instructions fill: what they take together, less what others do at the same time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsys_report.findings.step import Context, Record, Step
from nsys_report.intervals import intersect, length, union


def alone_ns(context: Context, step: Step, records: Sequence[Record]) -> float:
    """The time of a step in which nothing but these instructions' kernels and copies runs on their device, ns.

    By union: never more than what they take, and no moment counted twice.
    """
    running = sum(step.running(record) for record in records)
    if not context.overlapping or not records:
        return running
    return running * _alone_share(context, step, [record["instruction_id"] for record in records])


def _alone_share(context: Context, step: Step, instructions: list[int]) -> float:
    view = context.view
    chosen = context.in_step(step) & np.isin(view.instruction, instructions)
    total, alone = int(view.duration[chosen].sum()), 0
    for device in np.unique(view.device[chosen]):
        here = view.device == device
        mine = union(view.start[here & chosen], view.end[here & chosen])
        others = union(view.start[here & ~chosen], view.end[here & ~chosen])
        alone += length(mine) - length(intersect(mine, others))
    return alone / total if total else 0.0
