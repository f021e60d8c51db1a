"""What a capture can and cannot answer, from the capture alone, and the flag that would mend each lack."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.capture.activities import process_id
from nsys_report.capture.arrays import Flags, Ints, distinct, flat, integers, lookup, rows_with
from nsys_report.capture.catalogue import MIGRATIONS
from nsys_report.capture.health_items import (
    GraphMode,
    HealthItem,
    clock_items,
    copy_items,
    diagnostic_items,
    kernel_items,
    lost_items,
    omitted_items,
    other_items,
    overhead_items,
    place_items,
    range_items,
    window_items,
)
from nsys_report.capture.health_launches import WithoutCall, unlaunched_items
from nsys_report.capture.model import Capture

LAUNCH_QUEUE = 1024
"""Launches that the CUDA driver queues at most before a further launch waits."""

_LAUNCH = re.compile(r"cu(da)?(GraphLaunch|Launch(Cooperative)?Kernel)")
_GRAPH_LAUNCH = re.compile(r"cu(da)?GraphLaunch")
_COPY = re.compile(r"cu(da)?Memcpy.*|cu(da)?Memset.*")
_CAPTURE_BEGIN = re.compile(r"cu(da)?StreamBeginCapture")
_CAPTURE_END = re.compile(r"cu(da)?StreamEndCapture")


@dataclass(frozen=True, slots=True)
class Health:
    """Everything `check` says about a capture by itself. Counts are of rows."""

    items: tuple[HealthItem, ...]
    graph_mode: GraphMode
    """node: kernels in CUDA graphs are recorded; graph: whole launches only; hidden: launches without any record; none: no graphs."""
    kernels: int
    xla_modules: int
    """XlaModule ranges: executions by XLA's own account."""
    silent_ranges: int
    """XLA's ranges without a single API call inside."""
    lost_launches: int
    """Kernel and graph launches without GPU record, apart from window edges, failed calls and stream capture."""
    unlaunched: int
    """GPU activities without API call."""
    cut_launches: int
    """Launches after the last one that has a record: their work was still to come when recording stopped."""
    early_kernels: int
    """Kernels before XLA's first range: recording started inside an execution."""

    @property
    def is_damaged(self) -> bool:
        """True when too much is missing for figures about the GPU's work."""
        return any(item.severity == "fatal" for item in self.items)


@dataclass(frozen=True, slots=True)
class _Calls:
    """API calls as NumPy arrays."""

    name: Ints
    names: tuple[str, ...]
    start: Ints
    thread: Ints
    correlation: Ints
    process: Ints
    failed: Flags

    def matching(self, pattern: re.Pattern[str]) -> Flags:
        """The calls whose name begins so."""
        chosen: Flags = np.array([bool(pattern.match(n)) for n in self.names] or [False], bool)
        return chosen[self.name] if len(self.name) else np.zeros(0, bool)


def health(capture: Capture) -> Health:
    """Judges a capture; looks at no dump and changes nothing."""
    calls = _calls(capture)
    kernels = _count(capture, "kernel")
    recorded = _recorded(capture, calls)
    launches = calls.matching(_LAUNCH) & ~calls.failed & ~_in_stream_capture(calls)
    graphs = launches & calls.matching(_GRAPH_LAUNCH)
    missing = launches & ~recorded
    mode = _graph_mode(capture, graphs, missing)
    judged = launches & ~graphs if mode == "hidden" else launches
    cut, lost = _cut_and_lost(judged & missing, calls.start > _last_launch(capture), int(judged.sum()))
    modules, ranges, silent = _xla_ranges(capture, calls)
    early = _early_kernels(capture)
    alone = _without_call(capture)
    unlaunched = alone.before + alone.unrecorded + alone.unnamed
    unpaired = lost if alone.unrecorded + alone.unnamed >= lost else 0  # records are there, but which launch is theirs nobody says
    lost -= unpaired
    found = (
        *kernel_items(kernels, mode, int(graphs.sum())),
        *lost_items(ranges.with_thread, silent, lost, int(judged.sum()), cut),
        *range_items(capture, modules),
        *place_items(ranges.all, ranges.all - ranges.with_thread, ranges.open),
        *window_items(cut, early),
        *unlaunched_items(alone, unpaired, capture.activities.num_rows),
        *omitted_items(capture),
        *clock_items(capture),
        *overhead_items(capture),
        *copy_items(capture, int((calls.matching(_COPY) & ~recorded & ~calls.failed).sum())),
        *other_items(capture),
        *diagnostic_items(capture),
    )
    return Health(found, mode, kernels, modules, silent, lost, unlaunched, cut, early)


def _without_call(capture: Capture) -> WithoutCall:
    """Activities without an API call, each counted under the reason that the capture itself gives.

    Pages of unified memory move without a call; graph nodes amid others that have one are bodies of a graph's loops and branches, which the
    device launches; what begins before the first call was launched before recording began; an activity may name no call, or one that was
    not recorded.
    """
    work = capture.activities
    silent = work.column("launch_thread").is_null().to_numpy()
    if not silent.any():
        return WithoutCall()
    start = integers(work.column("start_ns"))
    calls = capture.runtime.column("start_ns")
    began = int(calls[0].as_py()) if len(calls) else int(start[-1]) + 1
    migrated = np.zeros(len(silent), bool)
    kinds = work.column("copy_kind")
    migrated[np.concatenate([rows_with(kinds, kind) for kind in MIGRATIONS])] = True
    nodes = work.column("graph_node_id").is_valid().to_numpy()
    launched = start[nodes & ~silent]
    nodes &= start > (launched.min() if len(launched) else start.max())
    unnamed = work.column("correlation_id").is_null().to_numpy()
    counts, rest = [], silent.copy()
    for reason in (migrated, nodes, start < began, unnamed, rest):
        counts.append(int((rest & reason).sum()))
        rest = rest & ~reason
    return WithoutCall(*counts)


def _cut_and_lost(missing: Flags, is_late: Flags, launches: int) -> tuple[int, int]:
    """Launches cut off by the end of the window, and lost ones.

    What was still queued when recording stopped comes after the last recorded launch and fits into the driver's launch queue; more than
    that, or most of all launches, are records that were lost.
    """
    late = int((missing & is_late).sum())
    if late > LAUNCH_QUEUE or 2 * late > launches:
        late = 0
    return late, int(missing.sum()) - late


def _calls(capture: Capture) -> _Calls:
    table = capture.runtime
    names = flat(table.column("name"))
    return _Calls(
        name=integers(names.indices),
        names=tuple(names.dictionary.to_pylist()),
        start=integers(table.column("start_ns")),
        thread=integers(table.column("thread")),
        correlation=integers(table.column("correlation_id")),
        process=integers(table.column("global_pid")),
        failed=integers(flat(table.column("return_value")).cast(pa.int64()), 0) != 0,
    )


def _count(capture: Capture, activity: str) -> int:
    return len(rows_with(capture.activities.column("activity"), activity))


def _recorded(capture: Capture, calls: _Calls) -> Flags:
    """The calls that some activity names as its launch, by process and correlation id."""
    recorded = np.zeros(len(calls.name), bool)
    process, correlation = integers(capture.activities.column("process_id"), 0), integers(capture.activities.column("correlation_id"))
    for one in distinct(calls.process):
        mine = calls.process == one
        theirs = process == process_id(np.int64(one))
        launched = correlation if theirs.all() else correlation[theirs]
        recorded[mine] = lookup(launched, calls.correlation[mine]) >= 0
    return recorded


def _in_stream_capture(calls: _Calls) -> Flags:
    """Launches between the begin and end of stream capture on their thread: they build a graph and run nothing."""
    step = calls.matching(_CAPTURE_BEGIN).astype(np.int64) - calls.matching(_CAPTURE_END).astype(np.int64)
    inside = np.zeros(len(step), bool)
    for thread in np.unique(calls.thread[step != 0]):
        mine = np.flatnonzero(calls.thread == thread)
        inside[mine] = np.cumsum(step[mine]) > 0
    return inside


def _last_launch(capture: Capture) -> int:
    return int(pc.max(capture.activities.column("launch_start_ns")).as_py() or 0)


def _graph_mode(capture: Capture, graph_launches: Flags, missing: Flags) -> GraphMode:
    if _count(capture, "graph"):
        return "graph"
    if capture.activities.column("graph_node_id").null_count < capture.activities.num_rows:
        return "node"
    if (graph_launches & missing).sum() * 2 > graph_launches.sum():
        return "hidden"
    return "node" if graph_launches.any() else "none"


@dataclass(frozen=True, slots=True)
class _Ranges:
    """XLA's module and thunk ranges: how many there are, how many name a thread, and how many lack an end that they must have had."""

    all: int
    with_thread: int
    open: int


def _xla_ranges(capture: Capture, calls: _Calls) -> tuple[int, _Ranges, int]:
    """XlaModule ranges; module and thunk ranges; those of them in which their thread made no API call."""
    text = flat(capture.nvtx.column("text"))
    texts = text.dictionary.to_pylist()
    if not texts:
        return 0, _Ranges(0, 0, 0), 0
    codes = integers(text.indices, len(texts))
    module = np.array([*(t.startswith("XlaModule:") for t in texts), False])[codes]
    ours = module | np.array([*(t.startswith("Thunk:") for t in texts), False])[codes]
    known = ours & capture.nvtx.column("thread").is_valid().to_numpy()
    thread, start = integers(capture.nvtx.column("thread"))[known], integers(capture.nvtx.column("start_ns"))[known]
    end = integers(capture.nvtx.column("end_ns"), np.iinfo(np.int64).max)[known]
    silent = 0
    for one in np.unique(thread):
        mine, times = thread == one, np.sort(calls.start[calls.thread == one])
        silent += int((np.searchsorted(times, end[mine]) == np.searchsorted(times, start[mine])).sum())
    endless = capture.nvtx.column("end_ns").is_null().to_numpy() & known & module
    later = sum(int(endless[rows[:-1]].sum()) for rows in _by_thread(integers(capture.nvtx.column("thread")), known & module))
    return int(module.sum()), _Ranges(int(ours.sum()), int(known.sum()), later), silent


def _by_thread(thread: Ints, chosen: Flags) -> list[Ints]:
    """The chosen rows of each thread, in their order."""
    return [np.flatnonzero(chosen & (thread == one)) for one in distinct(thread[chosen])]


def _early_kernels(capture: Capture) -> int:
    """Kernels that began before XLA's first module range, where there is one: an execution must have been under way."""
    text = flat(capture.nvtx.column("text"))
    names = [n for n, t in enumerate(text.dictionary.to_pylist()) if t.startswith("XlaModule:")]
    chosen = capture.nvtx.filter(pc.is_in(text.indices, value_set=pa.array(names, text.indices.type)))
    if not chosen.num_rows:
        return 0
    first = pc.min(chosen.column("start_ns")).as_py()
    count = int(np.searchsorted(integers(capture.activities.column("start_ns")), first))
    return len(rows_with(capture.activities.column("activity").slice(0, count), "kernel"))
