"""What each collective of a run moves, how fast, and how much of its time is waiting.

Algorithm bandwidth is bytes over time; bus bandwidth multiplies it by what a link carries for each of those bytes, so that it compares
with the link's peak whatever the number of ranks (nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsys_report.ranks.arrivals import Arrivals
from nsys_report.ranks.meetings import Meetings
from nsys_report.ranks.programs import SharedProgram

SHARED = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1, "all-to-all": 1}
"""Bus bandwidth over algorithm bandwidth by kind, in (n - 1) / n of n ranks, as nccl-tests has it."""
WHOLE = frozenset({"collective-broadcast", "collective-permute", "send-receive", "reduce"})
"""Kinds whose two bandwidths are one."""


@dataclass(frozen=True, slots=True)
class CollectiveTime:
    """One collective of a program; times are of one step of a rank, the mean over ranks and steps that count."""

    program: str
    instruction: str
    kind: str
    ranks: int | None
    """The ranks of a group; None where neither the text nor the captures tell."""
    bytes: int | None
    per_step: float
    time_ns: float
    waiting_ns: float
    """Part of the time before the last rank has come."""
    exposed_ns: float
    """Part of the time in which no other kernel runs on the device."""
    moving_ns: float
    """What a kernel takes that waits for nobody: the median over meetings of their shortest."""
    algorithm_bytes_per_s: float | None
    bus_bytes_per_s: float | None
    operands: int
    is_whole: bool
    """Whether all ranks of its groups are among the captures: else the missing may be waited for, and it may move faster."""
    op_name: str = ""
    source: str = ""


def bus_factor(kind: str, ranks: int | None) -> float | None:
    """What a link carries for each byte of a collective among so many ranks; None for kinds that nccl-tests has no rule for."""
    if ranks is None or ranks < 2 or kind not in WHOLE | SHARED.keys():
        return None
    return 1.0 if kind in WHOLE else SHARED[kind] * (ranks - 1) / ranks


def collective_times(programs: tuple[SharedProgram, ...], met: Meetings, come: Arrivals) -> tuple[CollectiveTime, ...]:
    """A row a collective, most time first."""
    kernels = met.kernels
    found = []
    for p, program in enumerate(programs):
        of_program = np.flatnonzero((kernels.program == p) & come.counted)
        for c in np.unique(kernels.collective[of_program]).tolist():
            rows = of_program[kernels.collective[of_program] == c]
            found.append(_time(program, c, rows, met, come))
    return tuple(sorted(found, key=lambda one: -one.time_ns))


def _time(program: SharedProgram, c: int, rows: np.ndarray, met: Meetings, come: Arrivals) -> CollectiveTime:
    collective, kernels = program.collectives[c], met.kernels
    steps = len(np.unique(kernels.rank[rows] * (int(met.step.max()) + 1) + met.step[rows]))
    gathered = np.unique(met.of[rows])
    moving = float(np.median(come.moving[gathered]))
    sizes = met.group_size[gathered]
    ranks = int(sizes.max()) or int(met.came[gathered].max())
    algorithm = collective.bytes * 1e9 / moving if collective.bytes and moving else None
    factor = bus_factor(collective.kind, ranks)
    return CollectiveTime(
        program.name,
        collective.instruction,
        collective.kind,
        ranks,
        collective.bytes,
        len(rows) / steps,
        float((kernels.end - kernels.start)[rows].sum()) / steps,
        float(np.minimum(come.waited, kernels.end - kernels.start)[rows].sum()) / steps,
        float(kernels.exposed[rows].sum()) / steps,
        moving,
        algorithm,
        algorithm * factor if algorithm is not None and factor is not None else None,
        collective.operands,
        bool(((sizes == 0) | (met.came[gathered] >= sizes)).all()),
        collective.op_name,
        collective.source,
    )
