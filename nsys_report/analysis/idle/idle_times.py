"""Every idle nanosecond of a device with its cause.

A device is idle between the end of all earlier activities and the start of the next one. Such a gap falls into three pieces by the API
call that launched the next activity: before the call (the host was doing something else), during it, and after it. What the host did
before the call is read from the other API calls, NVTX ranges and overhead records of the threads that serve this device, by union, in
the order of causes.CAUSES. The pieces never overlap and add up to the gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nsys_report.analysis.arrays.view import Flags, Ints, View, coded, ints
from nsys_report.analysis.idle import causes
from nsys_report.analysis.idle.causes import CAUSES, CODES
from nsys_report.analysis.idle.gaps import Around, Launches, LaunchTimes, device_gaps
from nsys_report.intervals import EMPTY, Ranges, before, intersect, subtract, union, union_of

_FEW = 2
"""A gap of up to so many times the shortest after a condition is set is the conditional node's own: they vary by that."""


@dataclass(frozen=True, slots=True)
class IdleTime:
    """A device's idle time: for each cause (by its code) the disjoint ranges it claims."""

    device: int
    by_cause: tuple[Ranges, ...]

    def within(self, starts: Ints, ends: Ints) -> Ints:
        """Idle nanoseconds by cause in each window; shape (windows, causes)."""
        ends = np.maximum(starts, ends)
        return np.stack([before(r, ends) - before(r, starts) for r in self.by_cause], axis=1)


def idle_times(view: View) -> tuple[IdleTime, ...]:
    """The idle time of every device, in the order of View.devices."""
    calls = LaunchTimes.of(view)
    return tuple(_idle_time(view, calls, device) for device in range(len(view.devices)))


@dataclass(frozen=True, slots=True)
class _Gaps:
    """The gaps of one device: [start, end), and the activities before and after each."""

    start: Ints
    end: Ints
    previous: Launches
    following: Launches


def _idle_time(view: View, calls: LaunchTimes, device: int) -> IdleTime:
    found = device_gaps(view, calls, device)
    pieces: list[list[Ranges]] = [[] for _ in CAUSES]
    for code, ranges in _conditional_pieces(view, found.conditional):
        pieces[code].append(ranges)
    pieces[CODES["between_activities"]].append(found.plain)
    rest = found.others
    around = (Launches.of(view, calls, side) for side in (rest.previous, rest.following))
    others = _Gaps(rest.ranges.starts, rest.ranges.ends, *around)
    for code, ranges in (*_launch_pieces(others), *_host_pieces(view, device, others)):
        pieces[code].append(ranges)
    return IdleTime(device, tuple(p[0] if len(p) == 1 else union_of(*p) if p else EMPTY for p in map(_non_empty, pieces)))


def _conditional_pieces(view: View, gaps: Around) -> Iterator[tuple[int, Ranges]]:
    """The gaps after a graph's condition was set: the conditional node itself, and the work of its body that was not recorded.

    A node takes as long as the shortest such gap of its program, CONDITIONAL_NODE_NS at most; what is over is its body's, unless the
    body's kernels are recorded: those have no launch of their own (executions.graph_bodies), and follow in the same execution.
    """
    low, high, previous, following = *gaps.ranges, gaps.previous, gaps.following
    if not len(low):
        return
    run = view.execution[following]
    within = (view.execution[previous] == run) & (run >= 0)
    module = np.append(view.executions.module, -1)[np.where(within, run, -1)]
    shortest = np.full(len(view.modules) + 1, np.iinfo(np.int64).max)
    np.minimum.at(shortest, module, high - low)
    node = np.minimum(np.minimum(shortest[module], causes.CONDITIONAL_NODE_NS), high - low)
    follows_body = view.joined.activities["correlation_id"].is_null().to_numpy(zero_copy_only=False)[following]
    hidden = within & ~follows_body & (high - low > _FEW * node)
    node = np.where(hidden, node, high - low)
    yield CODES["conditional_nodes"], Ranges(low, low + node)
    yield CODES["not_recorded"], Ranges((low + node)[hidden], high[hidden])


def _non_empty(pieces: list[Ranges]) -> list[Ranges]:
    return [ranges for ranges in pieces if len(ranges.starts)]


def _in_one_execution(gaps: _Gaps) -> Flags:
    before_, after = gaps.previous.execution, gaps.following.execution
    return np.asarray((before_ == after) & (after >= 0), np.bool_)


def _reads_back(gaps: _Gaps) -> Flags:
    """Which gaps lie beside a loop condition's copy to the host."""
    return _in_one_execution(gaps) & (gaps.following.readback | gaps.previous.readback)


def _issued(gaps: _Gaps) -> Ints:
    """When the call that launched the next activity began, within the gap; the gap's end where none was recorded."""
    called = np.clip(gaps.following.start, gaps.start, gaps.end)
    return np.where(gaps.following.recorded, called, gaps.end)


def _launch_pieces(gaps: _Gaps) -> Iterator[tuple[int, Ranges]]:
    """The time from the launching call's beginning: during it, and after it."""
    readback, issued, following = _reads_back(gaps), _issued(gaps), gaps.following
    done = np.clip(following.end, issued, gaps.end)
    done = np.where(following.recorded, done, gaps.end)
    during = np.where(readback & following.readback, CODES["loop_readback"], following.cause)
    # A copy that the program itself makes between two of its kernels is launched as they are.
    during = np.where(_in_one_execution(gaps) & (during == CODES["copies_on_device"]), CODES["launch_call"], during)
    after = np.where(_in_one_execution(gaps), CODES["launch_latency"], CODES["first_kernel_latency"])
    after = np.where(gaps.start >= done, CODES["between_activities"], after)
    after = np.where(following.to_host, CODES["waiting_for_result"], after)
    after = np.where(readback & following.readback, CODES["loop_readback"], after)
    traced = issued + np.where(during == CODES["graph_launch"], (done - issued) * following.traced, 0).astype(np.int64)
    tracing = np.full(len(during), CODES["node_tracing"])
    for low, high, cause in ((issued, traced, tracing), (traced, done, during), (done, gaps.end, after)):
        for code in np.unique(cause[high > low]):
            chosen = (cause == code) & (high > low)
            yield int(code), Ranges(low[chosen], high[chosen])


def _unexplained(gaps: _Gaps) -> Ints:
    """What the time before the launching call counts to where no other evidence claims it."""
    previous, following = gaps.previous, gaps.following
    rest = np.where(following.to_host, CODES["before_fetch"], CODES["host_work"])
    # Between two launches of one execution the host is inside XLA, whether or not a range says so.
    rest = np.where(_in_one_execution(gaps) & ~following.to_host, CODES["xla_dispatch"], rest)
    again = (following.to_host & previous.to_host & ~previous.readback) | (following.to_device & previous.to_device)
    rest = np.where(again, CODES["between_copies"], rest)
    rest = np.where(_reads_back(gaps), CODES["loop_readback"], rest)
    return np.where(following.recorded, rest, CODES["unexplained"])


def _host_pieces(view: View, device: int, gaps: _Gaps) -> Iterator[tuple[int, Ranges]]:
    """The time before the launching calls, by what the host did."""
    issued = _issued(gaps)
    keep = issued > gaps.start
    rest, all_host = _unexplained(gaps)[keep], Ranges(gaps.start[keep], issued[keep])
    left = all_host
    evidence = _host_evidence(view, device) if len(left.starts) else {}
    for code, cause in enumerate(CAUSES):
        if cause.key == "loop_readback":
            claimed = Ranges(*(e[rest == code] for e in all_host))
        elif cause.key == "xla_dispatch":
            claimed = intersect(evidence.get(code, EMPTY), Ranges(*(e[rest == CODES["host_work"]] for e in all_host)))
        else:
            claimed = evidence.get(code, EMPTY)
        taken = intersect(left, claimed)
        if len(taken.starts):
            yield code, taken
            left = subtract(left, taken)
    owner = np.searchsorted(all_host.starts, left.starts, side="right") - 1
    for code in np.unique(rest[owner]):
        chosen = rest[owner] == code
        yield int(code), Ranges(left.starts[chosen], left.ends[chosen])


def _host_evidence(view: View, device: int) -> dict[int, Ranges]:
    """Disjoint ranges by cause: when calls, NVTX ranges and overhead of the threads that serve this device were going on."""
    capture = view.joined.capture
    serves = _serving(view, device)
    found: dict[int, list[Ranges]] = {}
    for code, ranges in (*_calls(capture.runtime, serves), *_ranges(capture.nvtx, serves), *_overhead(capture.overhead)):
        found.setdefault(code, []).append(ranges)
    return {code: union_of(*parts) for code, parts in found.items()}


@dataclass(frozen=True, slots=True)
class _Serving:
    """Which threads bear on a device: those that launched on it, and those of its process that launched on no other device."""

    others: Ints
    """Threads that only ever launched on other devices."""
    process: int | None
    """The device's process, None where the capture has only one, or several use the device."""

    def keeps(self, threads: Ints) -> Flags:
        kept = ~np.isin(threads, self.others)
        return kept if self.process is None else kept & ((threads >> 24) & 0xFFFFFF == self.process)


def _serving(view: View, device: int) -> _Serving:
    others = np.empty(0, np.int64)
    if len(view.devices) > 1:
        here, thread = view.device == device, ints(view.joined.activities, "launch_thread", missing=-1)[0]
        others = np.setdiff1d(thread[~here], thread[here])
    processes = {process for process, _ in view.devices}
    return _Serving(others, view.devices[device][0] if len(processes) > 1 and device not in view.shared else None)


def _calls(runtime: pa.Table | None, serves: _Serving) -> Iterator[tuple[int, Ranges]]:
    if runtime is None or len(runtime) == 0:
        return
    code = causes.causes_of_calls(coded(runtime, "name"))
    thread, start, end = (ints(runtime, name)[0] for name in ("thread", "start_ns", "end_ns"))
    chosen = serves.keeps(thread)
    code, thread, start, end = code[chosen], thread[chosen], start[chosen], end[chosen]
    order = np.lexsort((start, thread))
    code, thread, start, end = code[order], thread[order], start[order], end[order]
    bridged = np.isin(code, [CODES[key] for key in causes.BRIDGED])
    following = np.append(start[1:], 0)
    burst = bridged & np.append((code[1:] == code[:-1]) & (thread[1:] == thread[:-1]), False)
    burst &= following - end <= causes.LONGEST_BRIDGE_NS
    end = np.where(burst, np.maximum(end, following), end)
    for found in np.unique(code[code >= 0]):
        yield int(found), union(start[code == found], end[code == found])


def _ranges(nvtx: pa.Table | None, serves: _Serving) -> Iterator[tuple[int, Ranges]]:
    if nvtx is None or len(nvtx) == 0:
        return
    text = coded(nvtx, "text")
    start, closed = ints(nvtx, "start_ns")[0], ints(nvtx, "end_ns")
    end = np.where(closed[1], closed[0], np.iinfo(np.int64).max // 2)
    kept = serves.keeps(ints(nvtx, "thread")[0])
    for key, prefixes in (("compile", causes.COMPILE_RANGES), ("xla_dispatch", (causes.EXECUTE_RANGE,))):
        wanted = frozenset(w for w in text.words if w is not None and w.startswith(prefixes))
        # Compilation runs on threads of its own, which launch nothing or launch elsewhere; it holds up whoever waits for it.
        chosen = text.isin(wanted) & (kept if key == "xla_dispatch" else True)
        yield CODES[key], union(start[chosen], end[chosen])


def _overhead(overhead: pa.Table | None) -> Iterator[tuple[int, Ranges]]:
    if overhead is None or len(overhead) == 0:
        return
    sort, start, end = coded(overhead, "sort"), ints(overhead, "start_ns")[0], ints(overhead, "end_ns")[0]
    for key, word in (("compile", "loading"), ("profiler", "profiler")):
        chosen = sort.isin(frozenset({word}))
        yield CODES[key], union(start[chosen], end[chosen])
