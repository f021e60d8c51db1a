"""The sentences of a capture's health: each says what was found and the flag or habit that would mend it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.capture.arrays import distinct, integers, rows_with
from nsys_report.capture.model import Capture
from nsys_report.intervals import union_length
from nsys_report.paths import without_paths
from nsys_report.words import duration, size

Severity = Literal["ok", "info", "warning", "fatal"]
GraphMode = Literal["node", "graph", "hidden", "none"]

LOST_RANGES_WARNING = 0.01
"""Share of XLA's ranges without a single API call inside above which records must have been lost: none in healthy captures, nearly all in
captures whose CUPTI buffers were lost (both seen on an H200, nsys 2023.4 and 2025.3)."""
LOST_RANGES_FATAL = 0.5
LOST_LAUNCHES_WARNING = 0.001
LOST_LAUNCHES_FATAL = 0.5
OVERHEAD_WARNING = 0.05
"""Share of the time between first and last GPU activity that the profiler may take before it is worth a warning."""

_HARMLESS = (
    "No NVTX events collected",
    "No CUDA events collected",
    "CUDA profiling might have not been started correctly",
    "Not all NVTX events might have been collected",
    "Not all CUDA events might have been collected",
)
"""Warnings that nsys writes for every child process that uses no CUDA, and into sound captures that cudaProfilerStop ends."""


@dataclass(frozen=True, slots=True)
class HealthItem:
    """One fact about the capture: what was found, and what to do (empty when there is nothing to mend)."""

    slug: str
    severity: Severity
    text: str
    remedy: str = ""


def part_of(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share >= 10 else f"{share:.1f} %" if share >= 0.1 else "under 0.1 %"


def kernel_items(kernels: int, mode: GraphMode, graph_launches: int) -> list[HealthItem]:
    node = "capture again with nsys profile --cuda-graph-trace=node"
    nocb = "or compile without graphs: XLA_FLAGS=--xla_gpu_enable_command_buffer="
    items = []
    if kernels:
        items.append(HealthItem("kernels", "ok", f"{kernels:,} kernels are recorded"))
    elif mode in ("none", "node"):
        items.append(HealthItem("kernels", "fatal", "no kernel is recorded", "capture with nsys profile -t cuda,nvtx around running steps"))
    if mode == "hidden":
        text = f"graph work is unmeasured: {graph_launches:,} CUDA graph launches left no GPU record, so the GPU only looks idle"
        items.append(HealthItem("graphs", "fatal", text, f"{node}, {nocb}"))
    elif mode == "graph":
        text = f"{graph_launches:,} CUDA graph launches are recorded whole: execution times, but no kernels inside them"
        items.append(HealthItem("graphs", "warning", text, f"{node}, {nocb}"))
    elif mode == "node":
        items.append(HealthItem("graphs", "ok", f"kernels inside CUDA graphs are recorded ({graph_launches:,} graph launches, node mode)"))
    else:
        items.append(HealthItem("graphs", "ok", "no CUDA graph was launched"))
    return items


def lost_items(ranges: int, silent: int, lost: int, launches: int, cut: int) -> list[HealthItem]:
    remedy = (
        "capture fewer steps between cudaProfilerStart and Stop, after warm-up so that nothing compiles inside, let the process exit by "
        "itself, and try --flush-on-cudaprofilerstop=true --cuda-flush-interval=100 or a newer nsys"
    )
    items = []
    if ranges and silent / ranges > LOST_RANGES_WARNING:
        text = f"records were lost: {silent:,} of {ranges:,} XLA ranges ({part_of(silent, ranges)}) hold no CUDA call at all"
        items.append(HealthItem("lost-records", "fatal" if silent / ranges > LOST_RANGES_FATAL else "warning", text, remedy))
    if lost:
        share = lost / launches
        severity: Severity = "fatal" if share > LOST_LAUNCHES_FATAL else "warning" if share > LOST_LAUNCHES_WARNING else "info"
        text = f"{lost:,} of {launches:,} kernel and graph launches ({part_of(lost, launches)}) left no GPU record"
        items.append(HealthItem("lost-launches", severity, text, remedy))
    if not items and launches and not cut:
        items.append(HealthItem("lost-records", "ok", f"none of {launches:,} kernel and graph launches lacks its record"))
    return items


def range_items(capture: Capture, modules: int) -> list[HealthItem]:
    if capture.ranges_read == "none":
        return []
    remedy = "capture with nsys profile -t cuda,nvtx"
    if not any(t.startswith("NVTX_EVENTS") for t in capture.tables):
        return [HealthItem("ranges", "info", "no NVTX ranges: XLA's executions can only be found from launches and the dump", remedy)]
    if not modules:
        return [HealthItem("ranges", "info", "NVTX ranges, but none of XLA's: no XLA program ran, or it ran before the capture")]
    return [HealthItem("ranges", "ok", f"XLA's NVTX ranges are there: {modules:,} executions by their account")]


def place_items(ranges: int, without_thread: int, without_end: int) -> list[HealthItem]:
    """What XLA's ranges lack to say what ran within them."""
    remedy = "export the report again with nsys export --type sqlite"
    items = []
    if without_thread:
        text = (
            f"{without_thread:,} of {ranges:,} XLA ranges name no thread: what was launched within them is unknown, and they are not used"
        )
        items.append(HealthItem("ranges-without-thread", "warning", text, remedy))
    if without_end:
        text = (
            f"{without_end:,} of XLA's ranges have no end although others follow on their thread: what ran is told by where they begin, "
            "and XLA's own time and the caller's cannot be told apart"
        )
        items.append(HealthItem("ranges-without-end", "warning", text, remedy))
    return items


def window_items(cut: int, early: int) -> list[HealthItem]:
    remedy = "wait for the device (block_until_ready) before cudaProfilerStart and before cudaProfilerStop"
    items = []
    if early:
        text = f"recording began inside an execution: {early:,} kernels lie before XLA's first range"
        items.append(HealthItem("window-start", "warning", text, remedy))
    if cut:
        text = f"recording stopped inside an execution: the last {cut:,} launches have no record yet"
        items.append(HealthItem("window-end", "warning", text, remedy))
    return items


def omitted_items(capture: Capture) -> list[HealthItem]:
    omitted = capture.omitted
    facts = (
        ("untimed", omitted.untimed, "GPU record", "without times, left out"),
        ("impossible", omitted.impossible, "GPU record", "left out: longer than the whole recording, or at a time that cannot be"),
        ("overlapping", omitted.overlapping, "GPU record", "left out: over later launches of the same stream"),
        ("repeated", omitted.repeated, "GPU record", "in the export a second time, counted once"),
        ("oversized", omitted.oversized, "copy or memset of more bytes than could be moved", "whose size is unknown"),
        ("host-records", omitted.host_records, "API call or NVTX range", "left out: at a time that cannot be"),
        ("host-repeated", omitted.host_repeated, "API call or NVTX range", "in the export a second time, counted once"),
        ("reversed", omitted.reversed, "GPU record", "with an end before its start, counted as zero long"),
        ("host-reversed", omitted.host_reversed, "API call or NVTX range", "with an end before its start, counted as zero long"),
        ("without-process", omitted.without_process, "GPU record", "without a process, so that its launch is unknown"),
        ("without-name", omitted.without_name, "kernel", "without a name in the capture's string table"),
    )
    return [HealthItem(slug, "warning", f"{_many(count, one)} {text}") for slug, count, one, text in facts if count]


def _many(count: int, one: str) -> str:
    """A number of records by their name, whose first word takes the plural."""
    if count == 1:
        return f"1 {one}"
    return f"{count:,} {_PLURALS.get(one, one + 's')}"


_PLURALS = {
    "API call or NVTX range": "API calls or NVTX ranges",
    "copy or memset of more bytes than could be moved": "copies or memsets of more bytes than could be moved",
}


def clock_items(capture: Capture) -> list[HealthItem]:
    """Whether the clocks of host and GPU agree."""
    clocks = capture.info.clock_offset
    if clocks is None:
        return []
    if clocks.offset_ns > 0:
        found = f"{_many(clocks.misplaced, 'GPU record')} before the launch call: the GPU's clock is early by {duration(clocks.offset_ns)}"
    else:
        what = _many(clocks.misplaced, "result")
        found = f"{what} on the host only after it had waited for them: the GPU's clock is late by {duration(-clocks.offset_ns)}"
    if clocks.is_corrected:
        text = f"{found}; the GPU's times were moved by that, and launch times are only as exact"
    else:
        text = f"{found}, not always by the same: it was not corrected, and launch times and host gaps are uncertain by as much"
    return [HealthItem("clocks", "warning", text, "capture again, after a restart of the profiler's daemon or with a newer nsys")]


def overhead_items(capture: Capture) -> list[HealthItem]:
    """What profiler and driver took for themselves, and how long launches waited in a full queue: one table of CUPTI, several causes."""
    work = capture.activities
    if not work.num_rows or not capture.overhead.num_rows:
        return []
    first, last = int(work.column("start_ns")[0].as_py()), int(pc.max(work.column("end_ns")).as_py())
    if last <= first:
        return []
    return [item for sort, say in _OVERHEADS.items() if (item := say(_overhead_time(capture, sort, first, last), last - first))]


def _overhead_time(capture: Capture, sort: str, first: int, last: int) -> int:
    """Time in a window in which overhead of a sort was recorded."""
    table = capture.overhead
    rows = rows_with(table.column("sort"), sort)
    start = np.clip(integers(table.column("start_ns"))[rows], first, last)
    end = np.clip(integers(table.column("end_ns"))[rows], first, last)
    return union_length(start, end)


def _profiler_item(union: int, whole: int) -> HealthItem | None:
    text = f"the profiler itself took {duration(union)} ({part_of(union, whole)}) of the time between first and last GPU activity"
    if union <= OVERHEAD_WARNING * whole:
        return HealthItem("overhead", "info", text) if union else None
    return HealthItem("overhead", "warning", text, "trace less: -t cuda,nvtx -s none --cpuctxsw=none, and warm up before the capture")


def _queue_item(union: int, whole: int) -> HealthItem | None:
    text = f"launches waited {duration(union)} ({part_of(union, whole)}) for room in a full launch queue: the host runs ahead of the GPU"
    return HealthItem("launch-queue", "info", text) if union else None


def _loading_item(union: int, whole: int) -> HealthItem | None:
    text = f"the driver took {duration(union)} ({part_of(union, whole)}) to compile or load code, as it does without a profiler"
    return HealthItem("code-loading", "info", text, "warm up before the capture") if union else None


_OVERHEADS = {"profiler": _profiler_item, "queue": _queue_item, "loading": _loading_item}


def copy_items(capture: Capture, unrecorded: int) -> list[HealthItem]:
    work = capture.activities
    slow = work.take(pa.array(np.union1d(*(rows_with(work.column(f"{side}_memory"), "pageable") for side in ("source", "target")))))
    items = []
    if slow.num_rows:
        moved = size(pc.sum(slow.column("bytes")).as_py() or 0)
        text = f"{slow.num_rows:,} copies ({moved}) use pageable host memory, which the driver stages"
        items.append(HealthItem("pageable", "info", text, "copy from pinned memory"))
    if unrecorded:
        items.append(HealthItem("unrecorded-copies", "info", f"{unrecorded:,} copy and memset calls left no GPU record"))
    return items


def other_items(capture: Capture) -> list[HealthItem]:
    items = []
    false = sorted({name for gpu in capture.info.gpus for name in gpu.impossible})
    if false:
        text = f"what the capture says of its GPU cannot be true and is not used: {', '.join(false)}"
        items.append(HealthItem("gpu-figures", "warning", text))
    if "memoryBandwidth" not in false and not any(gpu.nominal_bytes_per_s for gpu in capture.info.gpus):
        text = "the capture does not describe its GPU: no nominal bandwidth"
        items.append(HealthItem("gpu", "warning", text, "give the ceilings: --ceiling nominal=GB/s --ceiling measured=GB/s"))
    items += _parts(capture)
    processes = len(distinct(integers(capture.activities.column("process_id"))) if capture.activities.num_rows else ())
    if processes > 1:
        items.append(HealthItem("processes", "info", f"{processes} processes used the GPU"))
    if capture.info.partial_export:
        text = "the export was filtered by table or time: what is absent may only not have been exported"
        items.append(HealthItem("partial-export", "info", text, "export again without --tables and --times"))
    if not capture.memory_usage.num_rows:
        text = "no record of allocations, so none can be found in host gaps"
        items.append(HealthItem("memory-usage", "info", text, "nsys profile --cuda-memory-usage=true"))
    return items


def _parts(capture: Capture) -> list[HealthItem]:
    """GPUs of which a process has a part alone: the card's ceilings are not its own."""
    parts = {(gpu.sm_count, gpu.whole_sm_count) for gpu in capture.info.gpus if gpu.is_part}
    return [
        HealthItem(
            "gpu-part",
            "warning",
            f"a process sees {some} of the GPU's {whole} multiprocessors (MIG, or a share under MPS): the card's ceilings are not its own",
            "measure them there with nsys-report ceilings measure, or give --ceiling measured=GB/s",
        )
        for some, whole in sorted(parts)
    ]


def diagnostic_items(capture: Capture) -> list[HealthItem]:
    """The profiler's own errors and warnings, each text once."""
    table = capture.diagnostics
    counted: Counter[tuple[str, str]] = Counter()
    for severity, text in zip(table.column("severity").to_pylist(), table.column("text").to_pylist(), strict=True):
        if severity in ("warning", "error") and text and not text.startswith(_HARMLESS):
            counted[severity, _shorten(text)] += 1
    remedy = "see the report's Diagnostics Summary in the Nsight Systems GUI"
    times = {n: "once" if n == 1 else f"{n:,} times" for n in counted.values()}
    return [
        HealthItem("diagnostics", "warning", f"the profiler said {times[n]}: {text}", remedy) for (_, text), n in counted.most_common(3)
    ]


def _shorten(text: str) -> str:
    """One line: the reason that nsys buries in its exception text, without directories, or the first line."""
    reason = re.search(r"tag_message\*\] = (.+)", text)
    head = text.splitlines()[0]
    line = f"{head.split(':')[0]}: {reason.group(1)}" if reason else head
    line = without_paths("".join(c if c.isprintable() else " " for c in line))
    return line if len(line) <= 160 else line[:157] + "..."
