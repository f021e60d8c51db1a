"""Whether captures are ranks of one run, rather than runs to be looked at one by one."""

from __future__ import annotations

from itertools import pairwise

from nsys_report.ranks.programs import Rank, SharedProgram, shared_programs
from nsys_report.ranks.summary import CaptureRuns


def are_ranks(captures: tuple[CaptureRuns, ...]) -> bool:
    """Whether they run one program whose collectives need them all, at the same time where they say when.

    A program that one capture holds all devices of is another run, not another rank.
    """
    if len(captures) < 2 or not _at_one_time(captures) or _one_twice(captures):
        return False
    ranks = tuple(Rank(n, c, device) for c, capture in enumerate(captures) for n, device in enumerate(capture.devices))
    return any(_across(program, ranks, len(captures)) for program in shared_programs(ranks))


def is_run(capture: CaptureRuns) -> bool:
    """Whether a capture holds several ranks itself: devices that run one program with collectives."""
    ranks = tuple(Rank(n, 0, device) for n, device in enumerate(capture.devices))
    return len(ranks) > 1 and any(program.ranks > 1 and program.collectives for program in shared_programs(ranks))


def _across(program: SharedProgram, ranks: tuple[Rank, ...], captures: int) -> bool:
    """Whether all captures run a program whose groups are wider than the devices of any one of them."""
    run = [rank.capture for rank, runs in zip(ranks, program.runs, strict=True) if runs is not None]
    if not program.collectives or len(set(run)) < captures:
        return False
    widest = max((c.group_size or 0 for c in program.collectives), default=0)
    return not widest or widest > min(map(run.count, set(run)))


def _one_twice(captures: tuple[CaptureRuns, ...]) -> bool:
    """Whether two are the same process's same device from the same moment on: one capture, copied."""
    seen = [(c.realtime_ns, d.process_id, d.device_id) for c in captures if c.realtime_ns is not None for d in c.devices]
    return len(set(seen)) < len(seen)


def _at_one_time(captures: tuple[CaptureRuns, ...]) -> bool:
    """Whether each capture overlaps another by the machines' clocks, as far as they say."""
    spans = sorted((c.realtime_ns + c.span_ns[0], c.realtime_ns + c.span_ns[1]) for c in captures if c.realtime_ns is not None)
    reach = [max(end for _, end in spans[: n + 1]) for n in range(len(spans))]
    return all(later[0] <= until for (_, later), until in zip(pairwise(spans), reach, strict=False))
