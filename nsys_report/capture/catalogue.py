"""The tables and columns of nsys exports that this package reads, whatever the version. Probing is by name, never by position."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number; a missing column reads as null unless it is required."""

    name: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Free text, read as bytes: captures hold text that is not UTF-8."""

    name: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Extent:
    """Three launch dimensions packed into one number: x above bit 32, y above bit 16, z below (CUDA allows y and z up to 65535)."""

    name: str
    parts: tuple[str, str, str]
    required: bool = False


Field = Integer | Text | Extent


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table by its unversioned name and the columns wanted of it."""

    name: str
    fields: tuple[Field, ...]


_SPAN = (Integer("start", required=True), Integer("end", required=True))
_PLACE = (
    Integer("deviceId"),
    Integer("contextId"),
    Integer("streamId"),
    Integer("correlationId"),
    Integer("globalPid"),
)

_KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
KERNEL = TableSpec(
    _KERNEL,
    (
        *_SPAN,
        *(field for field in _PLACE if field.name != "contextId"),
        Integer("shortName"),
        Integer("graphNodeId"),
        Integer("graphId"),
        Extent("grid", ("gridX", "gridY", "gridZ")),
        Extent("block", ("blockX", "blockY", "blockZ")),
    ),
)
KERNEL_NAME = TableSpec(_KERNEL, (Integer("demangledName"),))
"""Read only where a kernel has no short name."""
KERNEL_CONTEXT = TableSpec(_KERNEL, (Integer("contextId"),))
"""Read only where a kernel names no device."""
MEMCPY = TableSpec(
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    (*_SPAN, *_PLACE, Integer("bytes"), Integer("copyKind"), Integer("srcKind"), Integer("dstKind"), Integer("graphNodeId")),
)
MEMSET = TableSpec("CUPTI_ACTIVITY_KIND_MEMSET", (*_SPAN, *_PLACE, Integer("bytes"), Integer("memKind"), Integer("graphNodeId")))
GRAPH_TRACE = TableSpec("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", (*_SPAN, *_PLACE, Integer("graphId"), Integer("graphExecId")))
RUNTIME = TableSpec(
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    (*_SPAN, Integer("globalTid"), Integer("correlationId"), Integer("nameId", required=True), Integer("returnValue")),
)
SYNCHRONIZATION = TableSpec(
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    (*_SPAN, Integer("contextId"), Integer("streamId"), Integer("correlationId"), Integer("globalPid"), Integer("syncType")),
)
NVTX = TableSpec(
    "NVTX_EVENTS",
    (
        Integer("start", required=True),
        Integer("end"),
        Integer("eventType", required=True),
        Integer("globalTid"),
        Integer("textId"),
        Integer("domainId"),
        Text("text"),
    ),
)
OS_RUNTIME = TableSpec("OSRT_API", (*_SPAN, Integer("globalTid"), Integer("nameId")))
"""Calls shorter than a threshold of the capture (OS_RUNTIME_OPTIONS:DURATION_THRESHOLD_NS, 1 µs unless told) are not recorded."""
GRAPH_NODE = TableSpec(
    "CUDA_GRAPH_NODE_EVENTS",
    (Integer("start", required=True), Integer("globalTid"), Integer("graphNodeId", required=True), Integer("originalGraphNodeId")),
)
OLD_GRAPH_NODE = TableSpec("CUDA_GRAPH_EVENTS", GRAPH_NODE.fields)
"""Up to 2023.4 this name held graph nodes; later it holds the life of whole graphs, without a graphNodeId column."""
PROFILER_OVERHEAD = TableSpec("PROFILER_OVERHEAD", (*_SPAN, Integer("globalTid"), Integer("nameId")))
CUPTI_OVERHEAD = TableSpec("CUPTI_ACTIVITY_KIND_OVERHEAD", (*_SPAN, Integer("globalTid"), Integer("nameId"), Integer("overheadType")))
MEMORY_USAGE = TableSpec(
    "CUDA_GPU_MEMORY_USAGE_EVENTS",
    (
        Integer("start", required=True),
        Integer("globalPid"),
        Integer("deviceId"),
        Integer("address"),
        Integer("bytes"),
        Integer("memKind"),
        Integer("memoryOperationType"),
        Integer("correlationId"),
    ),
)
THREAD_NAMES = TableSpec("ThreadNames", (Integer("nameId", required=True), Integer("globalTid", required=True)))
DIAGNOSTIC = TableSpec("DIAGNOSTIC_EVENT", (Integer("timestamp"), Integer("severity"), Text("text"), Integer("globalPid")))
GPU_METRICS = TableSpec("GPU_METRICS", (Integer("timestamp", required=True), Integer("value", required=True)))
GPU_METRIC_NAMES = TableSpec(
    "TARGET_INFO_GPU_METRICS",
    (Integer("typeId", required=True), Integer("metricId", required=True), Text("metricName", required=True)),
)
STRINGS = TableSpec("StringIds", (Integer("id", required=True), Text("value", required=True)))
DETAILS = TableSpec("ANALYSIS_DETAILS", (Integer("duration"),))
GPU = TableSpec(
    "TARGET_INFO_GPU",
    (
        Integer("id"),
        Text("name"),
        Integer("memoryBandwidth"),
        Integer("l2CacheSize"),
        Integer("smCount"),
        Integer("totalMemory"),
        Integer("cuDevice"),
        Integer("computeMajor"),
        Integer("computeMinor"),
        Integer("clockRate"),
    ),
)
CUDA_DEVICE = TableSpec("TARGET_INFO_CUDA_DEVICE", (Integer("gpuId"), Integer("cudaId"), Integer("pid"), Integer("numMultiprocessors")))
CONTEXT = TableSpec("TARGET_INFO_CUDA_CONTEXT_INFO", (Integer("processId"), Integer("deviceId"), Integer("contextId")))
EXPORT_META = TableSpec("META_DATA_EXPORT", (Text("name"), Text("value")))
OLD_EXPORT_META = TableSpec("EXPORT_META_DATA", EXPORT_META.fields)
SYSTEM_META = TableSpec("TARGET_INFO_SYSTEM_ENV", EXPORT_META.fields)
CAPTURE_META = TableSpec("META_DATA_CAPTURE", EXPORT_META.fields)

ACTIVITY_SPECS = (KERNEL, MEMCPY, MEMSET, GRAPH_TRACE)

COPY_KINDS = {
    0: "unknown",
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
    11: "UVM HtoD",
    12: "UVM DtoH",
    13: "UVM DtoD",
}
"""ENUM_CUDA_MEMCPY_OPER by id, the same from 2023.4 to 2026.4; ids are stable where symbol names are not."""

MIGRATIONS = tuple(kind for kind in COPY_KINDS.values() if kind.startswith("UVM"))
"""Copies that unified memory makes by itself."""

MEMORY_KINDS = {0: "pageable", 1: "pinned", 2: "device", 3: "array", 4: "managed", 5: "device static", 6: "managed static", 7: "unknown"}
"""ENUM_CUDA_MEM_KIND by id: nsys's own numbering, one off CUPTI's."""

SYNCHRONIZATION_KINDS = {1: "event", 2: "stream_wait_event", 3: "stream", 4: "context"}
"""ENUM_CUPTI_SYNC_TYPE by id; stored one too low in nsys 2025.5 to 2026.1, so the API's name goes first."""

OVERHEAD_KINDS = {
    1: "unknown",
    2: "driver compiler",
    3: "buffer flush",
    4: "instrumentation",
    5: "resource",
    6: "module load",
    7: "lazy function load",
    8: "command buffer full",
}
OVERHEAD_SORTS = {1: "profiler", 2: "loading", 3: "profiler", 4: "profiler", 5: "profiler", 6: "loading", 7: "loading", 8: "queue"}
"""What an overhead of CUPTI's kind is put down to: the profiler itself, the driver compiling or loading code (there without a profiler
too), or a full launch queue, in which the host waits because it runs ahead."""
_OVERHEAD_NAMES = (
    ("queue", re.compile(r"command buffer full|queue full", re.IGNORECASE)),
    ("loading", re.compile(r"lazy|module load|driver compiler|JIT", re.IGNORECASE)),
    ("profiler", re.compile(r"CUPTI|profil|TLS allocation|Chunk Allocation|instrument|buffer flush", re.IGNORECASE)),
)


def overhead_sort(name: str | None) -> str:
    """What an overhead is put down to by its name, where no kind is recorded: profiler, loading, queue or other."""
    return next((sort for sort, pattern in _OVERHEAD_NAMES if name and pattern.search(name)), "other")


SEVERITIES = {1: "info", 2: "warning", 3: "error", 4: "verbose"}

RANGE_TYPES = (59, 60, 70, 71)
"""NVTX event types that are ranges: push/pop, start/end, and the same two imported from NVTXT."""
DOMAIN_CREATE = 75

XLA_RANGE_PREFIXES = ("Xla", "Thunk:", "TSL:")
"""How the texts of XLA's own NVTX ranges begin."""

STATE_CALLS = frozenset(
    {
        "cuCtxSetCurrent",
        "cuCtxGetCurrent",
        "cuCtxPushCurrent",
        "cuCtxPopCurrent",
        "cuGetProcAddress",
        "cudaGetLastError",
        "cudaPeekAtLastError",
        "cudaGetDevice",
        "cuStreamIsCapturing",
        "cudaStreamIsCapturing",
        "cuKernelGetAttribute",
        "cuKernelGetName",
        "cudaGetFuncBySymbol",
        "cuStreamGetCaptureInfo",
        "cudaStreamGetCaptureInfo",
    }
)
"""API calls that only read or set a thread's state: often half of all rows, launching and waiting for nothing; not read."""

_VERSION = re.compile(r"_v\d{4,5}$")
_ABI = re.compile(r"(?:_v\d+|_ptsz|_ptds)+$")


def api_name(recorded: str) -> str:
    """The API's name without the CUDA version that nsys appends (cudaLaunchKernel_v7000); the driver's own _v2 stays."""
    return _VERSION.sub("", recorded)


def api_stem(recorded: str) -> str:
    """The API's name without any suffix: version, _v2, _ptsz."""
    return _ABI.sub("", recorded)


def resolve(name: str, present: Iterable[str]) -> str | None:
    """The table that stands for an unversioned name: itself, else the highest NAME_V<n>; None when there is neither."""
    present = tuple(present)
    if name in present:
        return name
    pattern = re.compile(re.escape(name) + r"_V(\d+)$")
    versions = [(int(m.group(1)), t) for t in present if (m := pattern.match(t))]
    return max(versions)[1] if versions else None
