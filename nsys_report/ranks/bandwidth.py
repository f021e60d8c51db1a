"""What each collective of a run moves, how fast, and how much of its time is waiting.

Algorithm bandwidth is bytes over time; bus bandwidth multiplies it by what a link carries for each of those bytes, so that it compares
with the link's peak whatever the number of ranks (nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nsys_report.ranks.arrivals import Arrivals
from nsys_report.ranks.meetings import Meetings
from nsys_report.ranks.programs import SharedProgram
from nsys_report.ranks.summary import CaptureRuns, Ints

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
    link: str | None
    """What its ranks are joined by, a name of a ceiling: nvlink on one host, network across; None where hosts or groups are unknown."""
    is_whole: bool
    """Whether all ranks of its groups are among the captures: else the missing may be waited for, and it may move faster."""
    op_name: str = ""
    source: str = ""


SAME_BOOT_NS = 1_000_000_000
"""Machines that booted within that are taken for one: two that did are as good as never captured together."""


def hosts_of(captures: Sequence[CaptureRuns]) -> tuple[int | None, ...]:
    """A number for each capture's host, told by when it booted (real time less monotonic time); of one capture alone 0."""
    if len(captures) == 1:
        return (0,)
    boots = [None if c.realtime_ns is None or c.monotonic_ns is None else c.realtime_ns - c.monotonic_ns for c in captures]
    known = sorted({boot for boot in boots if boot is not None})
    number = {boot: n for n, boot in enumerate(known)}
    for before, after in pairwise(known):
        if after - before < SAME_BOOT_NS:
            number[after] = number[before]
    return tuple(None if boot is None else number[boot] for boot in boots)


def _link(met: Meetings, rows: Ints, hosts: Ints) -> str | None:
    """What the ranks of a collective are joined by: the network where any of its groups spans hosts."""
    of = hosts[met.kernels.capture[rows]]
    if (of < 0).any():
        return None
    group = met.of[rows]
    first = np.full(int(group.max()) + 1, -1, np.int64)
    first[group] = of
    return "nvlink" if (of == first[group]).all() else "network"


def bus_factor(kind: str, ranks: int | None) -> float | None:
    """What a link carries for each byte of a collective among so many ranks; None for kinds that nccl-tests has no rule for."""
    if ranks is None or ranks < 2 or kind not in WHOLE | SHARED.keys():
        return None
    return 1.0 if kind in WHOLE else SHARED[kind] * (ranks - 1) / ranks


def collective_times(
    programs: tuple[SharedProgram, ...], met: Meetings, come: Arrivals, hosts: Sequence[int | None]
) -> tuple[CollectiveTime, ...]:
    """A row a collective, most time first; `hosts` are the hosts of captures."""
    of_capture = np.array([-1 if host is None else host for host in hosts], np.int64)
    kernels = met.kernels
    found = []
    for p, program in enumerate(programs):
        of_program = np.flatnonzero((kernels.program == p) & come.counted)
        for c in np.unique(kernels.collective[of_program]).tolist():
            rows = of_program[kernels.collective[of_program] == c]
            found.append(_time(program, c, rows, met, come, of_capture))
    return tuple(sorted(found, key=lambda one: -one.time_ns))


def _time(program: SharedProgram, c: int, rows: np.ndarray, met: Meetings, come: Arrivals, hosts: Ints) -> CollectiveTime:
    collective, kernels = program.collectives[c], met.kernels
    steps = len(np.unique(kernels.rank[rows] * (int(met.step.max()) + 1) + met.step[rows]))
    gathered = np.unique(met.of[rows])
    moving = float(np.median(come.moving[gathered]))
    sizes = met.group_size[gathered]
    ranks = int(sizes.max()) or int(met.came[gathered].max())
    algorithm = collective.bytes * 1e9 / moving if collective.bytes and moving else None
    factor = bus_factor(collective.kind, ranks)
    is_whole = bool(((sizes == 0) | (met.came[gathered] >= sizes)).all())
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
        _link(met, rows, hosts) if is_whole else None,
        is_whole,
        collective.op_name,
        collective.source,
    )
