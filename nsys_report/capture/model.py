"""What an opened capture is: frozen values and the schemas of its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from hlo_mapping import ACTIVITIES, LAUNCHES, WORD, column
from nsys_report.capture.plausibility import ClockOffset

ACTIVITY = pa.schema(
    [
        *ACTIVITIES,
        *LAUNCHES,
        column("source_memory", WORD, "kind of memory a copy reads: pageable, pinned, device, ...; null otherwise"),
        column("target_memory", WORD, "kind of memory a copy or memset writes; null otherwise"),
    ]
)
"""A row per GPU activity in time order, with the API call that launched it."""

RUNTIME = pa.schema(
    [
        column("start_ns", pa.int64(), "when the CUDA API call began, ns from the start of the session"),
        column("end_ns", pa.int64(), "when it returned"),
        column("thread", pa.int64(), "the calling thread (global thread id)"),
        column("global_pid", pa.int64(), "nsys's process key of that thread"),
        column("correlation_id", pa.int64(), "joins the call to the activities it launched, within its process"),
        column("name", WORD, "name of the call, without the version suffix that nsys adds"),
        column("return_value", pa.int32(), "0 for success"),
    ]
)
"""A row per CUDA runtime or driver API call, in order of start; calls that only read or set thread state are left out."""

NVTX = pa.schema(
    [
        column("start_ns", pa.int64(), "when the range opened"),
        column("end_ns", pa.int64(), "when it closed; null when it was still open at the end of the capture"),
        column("thread", pa.int64(), "the thread that opened it (global thread id)"),
        column("text", WORD, "text of the range"),
        column("domain", WORD, "name of its NVTX domain; null for the default domain"),
        column("event_type", pa.int32(), "59, 70: push and pop; 60, 71: start and end"),
    ]
)
"""A row per NVTX range, in order of start."""

OS_CALLS = pa.schema(
    [
        column("start_ns", pa.int64(), "when the call of the operating system's runtime began"),
        column("end_ns", pa.int64(), "when it returned"),
        column("thread", pa.int64(), "the calling thread (global thread id)"),
        column("name", WORD, "the function, such as read or pthread_cond_wait"),
    ]
)
"""A row per traced call of the operating system's runtime by a thread that launches work, in order of start; a call may lie in another."""

GRAPH_NODES = pa.schema(
    [
        column("start_ns", pa.int64(), "when the node was created or cloned"),
        column("thread", pa.int64(), "the thread that did so"),
        column("graph_node_id", pa.int64(), "the node, as activities name it"),
        column("original_graph_node_id", pa.int64(), "the node it was cloned from; null when it is an original"),
    ]
)
"""A row per CUDA graph node that was created or cloned while recording."""

SYNCHRONIZATIONS = pa.schema(
    [
        column("start_ns", pa.int64(), "when waiting began"),
        column("end_ns", pa.int64(), "when it ended"),
        column("thread", pa.int64(), "the thread that waited; null where no API call was recorded"),
        column("global_pid", pa.int64(), "nsys's process key"),
        column("context_id", pa.int64(), "CUDA context"),
        column("stream_id", pa.int64(), "CUDA stream; null for events and contexts"),
        column("correlation_id", pa.int64(), "joins it to its API call, within its process"),
        column("kind", WORD, "event, event_query, stream_wait_event, stream, context or unknown"),
    ]
)
"""A row per synchronization, in order of start; stream_wait_event is a wait on the device, event_query no wait at all."""

OVERHEAD = pa.schema(
    [
        column("start_ns", pa.int64(), "start"),
        column("end_ns", pa.int64(), "end"),
        column("thread", pa.int64(), "the thread that was held up; null where unknown"),
        column("name", WORD, "what the profiler or the driver did"),
        column("sort", WORD, "profiler, loading (the driver compiles or loads code), queue (a full launch queue) or other"),
    ]
)
"""A row per interval that the profiler or the driver took for itself."""

MEMORY_USAGE = pa.schema(
    [
        column("start_ns", pa.int64(), "when"),
        column("global_pid", pa.int64(), "nsys's process key"),
        column("device_id", pa.int32(), "CUDA device ordinal in its process"),
        column("address", pa.int64(), "device address"),
        column("bytes", pa.int64(), "bytes allocated or freed"),
        column("memory", WORD, "kind of memory"),
        column("operation", WORD, "allocate or free"),
        column("correlation_id", pa.int64(), "joins it to its API call, within its process"),
    ]
)
"""A row per allocation or release of memory (nsys --cuda-memory-usage=true)."""

DIAGNOSTICS = pa.schema(
    [
        column("timestamp_ns", pa.int64(), "when"),
        column("severity", WORD, "info, warning, error or verbose"),
        column("text", WORD, "what the profiler said"),
        column("global_pid", pa.int64(), "the process it speaks of; may be the profiler's own"),
    ]
)
"""A row per message of the profiler about itself."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that the capture's activities ran on; null (None) where the capture does not say."""

    device_id: int
    process_id: int | None
    name: str | None
    nominal_bytes_per_s: int | None
    l2_bytes: int | None
    sm_count: int | None
    memory_bytes: int | None
    compute_capability: str | None
    gpu_id: int | None = None
    """The machine's number of the GPU (TARGET_INFO_GPU), where the capture says which GPU a process's device is."""
    clock_hz: int | None = None
    """The highest clock of its multiprocessors; the one a run had may be lower."""
    impossible: tuple[str, ...] = ()
    """Columns of the capture whose figures cannot be true, and so are None here."""
    whole_sm_count: int | None = None
    """Multiprocessors of the card, where the process sees fewer of them: a MIG slice, or a share of the threads under MPS."""

    @property
    def is_part(self) -> bool:
        """Whether the process has a part of the card alone, by its multiprocessors."""
        return self.whole_sm_count is not None


Place = tuple[int, int]
"""A process id and a device's ordinal in it."""


def shared_places(gpus: Iterable[Gpu]) -> dict[Place, Place]:
    """For each process and device on a GPU that another process uses too: the first process and device on that GPU."""
    first: dict[int, Place] = {}
    found: dict[Place, Place] = {}
    for gpu in gpus:
        if gpu.gpu_id is not None and gpu.process_id is not None:
            place = (gpu.process_id, gpu.device_id)
            found[place] = first.setdefault(gpu.gpu_id, place)
    used = Counter(found.values())
    return {place: one for place, one in found.items() if used[one] > 1}


@dataclass(frozen=True, slots=True)
class Omitted:
    """Records that were left out or mended while reading, by reason."""

    untimed: int = 0
    """Dropped: start or end is 0, the profiler's mark for a time that was not collected."""
    impossible: int = 0
    """Dropped: longer than the whole session, or at a time that cannot be."""
    overlapping: int = 0
    """Dropped: still running when later launches of their own stream ran, which a stream does not do."""
    oversized: int = 0
    """Kept without their size: more bytes than could be moved in the time."""
    repeated: int = 0
    """Dropped: an earlier record again, in all that tells records apart."""
    host_records: int = 0
    """Dropped: API calls and NVTX ranges at times that cannot be."""
    host_repeated: int = 0
    """Dropped: API calls and NVTX ranges that are an earlier one again."""
    host_reversed: int = 0
    """Kept with zero length: API calls and NVTX ranges whose end lay before their start."""
    reversed: int = 0
    """Kept with zero length: end lay before start."""
    without_process: int = 0
    """Kept: no process key, and more than one process to choose from, so no launch could be joined."""
    without_name: int = 0
    """Kept: kernels whose name is missing from the capture's string table."""


@dataclass(frozen=True, slots=True)
class CaptureInfo:
    """The capture as a whole. Host and user names, environment and program output are never read."""

    nsys_version: str | None
    schema_version: str | None
    gpus: tuple[Gpu, ...]
    duration_ns: int | None
    graph_trace_mode: str | None
    """'graph' or 'node' as the capture's settings say; None where they do not."""
    span_ns: tuple[int, int] | None
    """First start and last end of GPU activities and API calls."""
    time_shift_ns: int
    partial_export: bool = False
    """True when the export was filtered by table or time, so that absent rows prove nothing."""
    driver_version: str | None = None
    clock_offset: ClockOffset | None = None
    """By how much the GPU's clock is early or late where its times contradict the host's; None where order holds."""


@dataclass(frozen=True, slots=True)
class Capture:
    """An nsys capture, read: everything later stages need, and nothing that points back at the file."""

    path: Path
    info: CaptureInfo
    activities: pa.Table
    runtime: pa.Table
    nvtx: pa.Table
    graph_nodes: pa.Table
    synchronizations: pa.Table
    overhead: pa.Table
    memory_usage: pa.Table
    diagnostics: pa.Table
    tables: Mapping[str, int]
    omitted: Omitted
    ranges_read: str
    """Which NVTX ranges were read: all, xla or none."""
    thread_names: Mapping[int, str] = field(default_factory=dict)
    """Names of the threads that called CUDA or opened ranges, by global thread id; those without one are not in it."""
    os_calls: pa.Table = field(default_factory=OS_CALLS.empty_table)
    """Schema OS_CALLS; empty where they were not traced, or were too many to read."""
