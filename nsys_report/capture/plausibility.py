"""What cannot be: activities longer than the session, over later launches of their own stream, before their own call or after the host saw
them done; copies too large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nsys_report.capture.arrays import Flags, Ints, distinct, flat, integers, nullable, rows_with

LATEST_NS = 2**62
"""No time lies at or above it: 146 years; the sum or difference of two such times still fits in 64 bits."""
SESSION_SLACK_NS = 1_000_000
"""What a duration may exceed the recorded length of the session by."""
SUSPECT_NS = 100_000
"""Activities shorter than this are not asked whether they lie over others: what they could distort is small, and most are shorter."""
EARLY_SHARE = 0.01
"""Share of activities before their own launch call above which the two clocks disagree; in sound captures there is none."""
EARLY_TOLERANCE_NS = 1_000
"""The clocks are matched to about a microsecond."""
CONSTANT_NS = 10_000
"""How far the earliest start after its call may differ between parts of the capture for the clocks' offset to count as constant."""
_PARTS = 8
OUTLASTING_NS = 1_000_000_000
OUTLASTING_TIMES = 1_000
"""Where nobody says how long recording took: work that goes on for a second and a thousand times as long as the host did anything after
the host's last call; a program that waits for its work has a call until then."""
_WAITS = ("StreamSynchronize", "CtxSynchronize", "DeviceSynchronize")
_LEAST_READS = 3
"""Results read back from which the clock of the GPU is judged late."""
_MOST_BYTES = 2**50
_MOST_BYTES_PER_NS = 100_000
"""100 TB/s, an order of magnitude above what any GPU's L2 cache gives; a microsecond is granted on top, for timestamps are coarse."""


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far the clocks of GPU and host lie apart, told from activities that start before the call that launched them, or end after the
    host had waited for them."""

    misplaced: int
    """Activities that start before their own launch call; where the offset is below zero, copies that end after the wait for them."""
    offset_ns: int
    """The least that must be added to the GPU's times for each activity to follow its call, or to end before the wait for it does."""
    is_corrected: bool
    """Whether it was added: only where it is the same throughout the capture."""


def impossible_spans(start: Ints, end: Ints, session_ns: int | None) -> Flags:
    """Records that end beyond any time, or last longer than the whole session (`session_ns`, None where the capture does not say)."""
    beyond: Flags = (start >= LATEST_NS) | (start <= -LATEST_NS) | (end >= LATEST_NS) | (end <= -LATEST_NS)
    if session_ns:
        beyond |= ~beyond & (np.where(beyond, 0, end) - np.where(beyond, 0, start) > session_ns + SESSION_SLACK_NS)
    return beyond


def impossible_sizes(sizes: Ints, duration: Ints) -> Flags:
    """Byte counts of copies and memsets that are negative, or more than could be moved in their time (ns)."""
    most = np.minimum(_MOST_BYTES, (np.minimum(duration, _MOST_BYTES) + 1_000) * float(_MOST_BYTES_PER_NS))
    return np.asarray((sizes < 0) | (sizes > most), np.bool_)


def over_later_launches(activities: pa.Table) -> Flags:
    """Activities that still run when the second launch after theirs has begun on their own stream (schema ACTIVITY, in time order).

    Streams run their launches one after the other. The next launch may begin early (programmatic dependent launch), and nodes of one
    graph, which share a launch, may run side by side: so only the second next counts.
    """
    start, end = integers(activities.column("start_ns")), integers(activities.column("end_ns"))
    found = np.zeros(len(start), np.bool_)
    suspects = np.flatnonzero(end - start >= SUSPECT_NS)
    suspects = suspects[start[np.minimum(suspects + 2, len(start) - 1)] < end[suspects]]
    if not len(suspects) or not activities.column("correlation_id").null_count < len(start):
        return found
    keys = [integers(activities.column(name), -1) for name in ("process_id", "device_id", "stream_id")]
    launch = integers(activities.column("correlation_id"), -1)
    order = np.lexsort((start, *reversed(keys)))
    order = order[launch[order] >= 0]
    new_stream = np.zeros(len(order), np.bool_)
    for key in keys:
        new_stream[1:] |= np.diff(key[order]) != 0
    begins = new_stream | (np.diff(launch[order], prepend=-1) != 0)
    numbers = np.cumsum(begins) - 1
    firsts = np.flatnonzero(begins)
    stream_of = np.cumsum(new_stream)[firsts]
    second = np.minimum(numbers + 2, len(firsts) - 1)
    same = (stream_of[second] == stream_of[numbers]) & (second == numbers + 2)
    over = same & (end[order] > start[order][firsts[second]])
    found[order[over]] = True
    return found & (end - start >= SUSPECT_NS)


def outlasting(activities: pa.Table, runtime: pa.Table) -> Flags:
    """Activities that go on for longer after the host's last call than any program lets them (schemas ACTIVITY and RUNTIME)."""
    if not runtime.num_rows:
        return np.zeros(activities.num_rows, np.bool_)
    first, last = int(runtime.column("start_ns")[0].as_py()), int(integers(runtime.column("end_ns")).max())
    start, end = integers(activities.column("start_ns")), integers(activities.column("end_ns"))
    long = np.minimum(end - start, end - last)
    return np.asarray(long > max(OUTLASTING_NS, OUTLASTING_TIMES * (last - first)), np.bool_)


def clock_offset(activities: pa.Table, runtime: pa.Table) -> ClockOffset | None:
    """What is between the clocks of host and GPU where activities start before their own launch call, or results are there only after the
    host had waited for them; None where neither is so."""
    known = activities.column("launch_start_ns").is_valid().to_numpy()
    late = integers(activities.column("start_ns"))[known] - integers(activities.column("launch_start_ns"), 0)[known]
    early = _disagreement(late)
    if early is not None:
        return early
    read = _read_back(activities, runtime)
    behind = _disagreement(read) if len(read) >= _LEAST_READS else None
    return behind and ClockOffset(behind.misplaced, -behind.offset_ns, behind.is_corrected)


def _disagreement(margins: Ints) -> ClockOffset | None:
    """The offset that times in order of the capture imply, each of which should not be below zero; None where they are not."""
    below = int((margins < -EARLY_TOLERANCE_NS).sum())
    if not len(margins) or below <= EARLY_SHARE * len(margins):
        return None
    parts = [part for part in np.array_split(margins, _PARTS) if len(part)]
    least = np.array([part.min() for part in parts])
    least = least[least < 0]
    constant = len(least) >= len(parts) / 2 and int(least.max() - least.min()) <= CONSTANT_NS
    return ClockOffset(below, int(-margins.min()), bool(constant))


def _read_back(activities: pa.Table, runtime: pa.Table) -> Ints:
    """How long after each copy to the host the wait right behind its call came back (ns), for copies whose thread waited next.

    On captures of an H200 whose clocks agree it is 2.8 µs at the least (nsys 2023.4 and 2025.3, 300 copies of 6 programs).
    """
    copies = rows_with(activities.column("copy_kind"), "DtoH")
    names = flat(runtime.column("name"))
    waits = np.array([*(name.endswith(_WAITS) for name in names.dictionary.to_pylist()), False], np.bool_)[integers(names.indices)]
    if not len(copies) or not waits.any():
        return np.zeros(0, np.int64)
    caller, begun, ended = (integers(runtime.column(name)) for name in ("thread", "start_ns", "end_ns"))
    thread, launched = (integers(activities.column(name))[copies] for name in ("launch_thread", "launch_start_ns"))
    found = np.full(len(copies), -1)
    for one in distinct(thread[thread != -1]):
        calls, asked = np.flatnonzero(caller == one), np.flatnonzero(thread == one)
        at = np.searchsorted(begun[calls], launched[asked], side="right")
        found[asked] = np.where(at < len(calls), calls[np.minimum(at, len(calls) - 1)], -1)
    waited = (found >= 0) & waits[found]
    return np.asarray(ended[found[waited]] - integers(activities.column("end_ns"))[copies[waited]], np.int64)


def shifted(activities: pa.Table, offset_ns: int) -> pa.Table:
    """The activities with the GPU's times moved by an offset."""
    for name in ("start_ns", "end_ns"):
        at = activities.schema.get_field_index(name)
        moved = nullable(integers(activities.column(name)) + offset_ns, None, pa.int64())
        activities = activities.set_column(at, activities.schema.field(name), moved)
    return activities
