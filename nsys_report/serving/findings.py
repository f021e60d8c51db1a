"""What a server's own log, laid over the capture, shows to be lost: rows behind other programs, batches of one, gaps between calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from nsys_report.fact import Fact
from nsys_report.findings.model import Finding
from nsys_report.serving.calls import CallParts, wait_behind
from nsys_report.units import count, duration, share

LEAST_SHARE = 0.1
"""Of the rows' latency, or of the calls, from which a cause is worth saying."""


def serving_findings(calls: Sequence[CallParts]) -> tuple[Finding, ...]:
    """Findings of calls laid over a capture, the most time first. Times are of all rows or calls together."""
    found = [*_behind(calls), *_alone(calls), *_gaps(calls)]
    return tuple(sorted(found, key=lambda finding: -finding.explained_ns))


def _behind(calls: Sequence[CallParts]) -> Iterator[Finding]:
    latency = sum(call.latency_ns * call.call.rows for call in calls if call.latency_ns is not None)
    for program, ns in wait_behind(calls).items():
        if not latency or ns < LEAST_SHARE * latency:
            continue
        is_longer = _typical(calls, program, True) > _typical(calls, program, False)
        yield Finding(
            "queue-behind-program",
            f"Rows wait {duration(ns)} in the queue while calls of {program} run, {share(ns / latency)} of all rows' latency",
            "The backend runs one call at a time; "
            + ("one long call holds up all that arrives meanwhile." if is_longer else "new rows find no place between its short calls."),
            f"Cut {program} into smaller calls and let others run in between (chunked prefill), run it on a stream or an instance of its "
            "own, or give the shorter calls priority."
            if is_longer
            else f"Admit new rows between calls of {program}: raise the largest batch or the number of sequences, and let new rows first.",
            "possible",
            "Time between a row's arrival and its call's start in which a call of another program ran, of all rows together",
            facts=(Fact("waiting_ns", "waiting", ns, "ns"),),
            explained_ns=float(ns),
        )


def _typical(calls: Sequence[CallParts], program: str, of_it: bool) -> float:
    """How long a call takes: the median of the program's calls, or of all others'."""
    return median(c.finished_ns - c.started_ns for c in calls if (c.call.program == program) == of_it)


def _alone(calls: Sequence[CallParts]) -> Iterator[Finding]:
    for program in dict.fromkeys(call.call.program for call in calls):
        mine = [call for call in calls if call.call.program == program]
        alone = [a for a, b in pairwise(mine) if a.call.rows == 1 and _had_arrived(b, a.started_ns)]
        if len(alone) > LEAST_SHARE * len(mine):
            ns = sum(call.finished_ns - call.started_ns for call in alone)
            yield Finding(
                "batches-of-one",
                f"{count(len(alone))} of {count(len(mine))} calls of {program} ran with one row while another waited",
                "A call of one row reads all weights as one of many rows does.",
                "Batch what waits: turn the server's dynamic batching on, allow it a short delay, and raise the largest batch.",
                "likely",
                "Calls of one row at whose start a row of the next call had arrived",
                facts=(Fact("calls", "calls", len(alone), "count"),),
                explained_ns=float(ns),
            )


def _had_arrived(call: CallParts, time_ns: int) -> bool:
    return call.arrived_ns is not None and call.arrived_ns < time_ns


def _gaps(calls: Sequence[CallParts]) -> Iterator[Finding]:
    lost = [idle for call, following in pairwise(calls) if (idle := call.idle_after_ns) and _had_arrived(following, call.finished_ns)]
    span = calls[-1].finished_ns - calls[0].started_ns if calls else 0
    if span and sum(lost) >= LEAST_SHARE * span:
        yield Finding(
            "gaps-between-calls",
            f"The GPU stands idle {duration(sum(lost))} between calls while rows wait, {share(sum(lost) / span)} of the time",
            f"After {count(len(lost))} calls the next row had arrived, and the device had nothing to do.",
            "Start the next call before the last one's answer is sent: hand results over to another thread, keep the inputs of the next "
            "batch ready on the device.",
            "likely",
            "From a call's last activity to the device's next, where a row of the next call had arrived by then",
            facts=(Fact("idle_ns", "idle", sum(lost), "ns"),),
            explained_ns=float(sum(lost)),
        )
