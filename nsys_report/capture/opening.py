"""From a path to a Capture: which store it is, what is missing, and the tables read in order."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.capture import activities, catalogue, tables
from nsys_report.capture.arrays import decode
from nsys_report.capture.catalogue import resolve
from nsys_report.capture.device import context_devices, used_gpus
from nsys_report.capture.model import ACTIVITY, GRAPH_NODES, SYNCHRONIZATIONS, Capture, CaptureInfo, Omitted
from nsys_report.capture.os_calls import read_os_calls
from nsys_report.capture.plausibility import LATEST_NS, ClockOffset, clock_offset, outlasting, over_later_launches, shifted
from nsys_report.capture.repeats import ACTIVITY_KEYS, without_repeats
from nsys_report.capture.source import Source
from nsys_report.capture.sqlite_checks import EXPORT_HINT
from nsys_report.capture.stores import open_source
from nsys_report.capture.strings import Strings
from nsys_report.errors import InputError

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of the work that is done, 0 to 1."""
Ranges = Literal["all", "few", "xla", "none"]
MOST_RANGES = 200_000
"""NVTX events up to which "few" reads all of them: some 0.2 s; a capture may hold millions."""


def open_capture(path: str | Path, progress: Progress | None = None, *, ranges: Ranges = "all", everything: bool = True) -> Capture:
    """Reads a capture (see open_source), writing nothing beside it; raises InputError saying what is wrong and what to do.

    `ranges` chooses the NVTX ranges: all of them, all where there are few (else XLA's own), only XLA's own, or none. Without `everything`
    the creation of graph nodes and synchronizations, which no figure is made from, are left unread: their tables are empty.
    """
    source = open_source(Path(path))
    try:
        check_contents(source)
        return _read(source, progress or _silent, ranges, everything)
    finally:
        source.close()
        pa.default_memory_pool().release_unused()  # what reading took and left is a fifth of what is kept


def check_capture(path: str | Path) -> None:
    """Raises the InputError that open_capture would raise before it reads: asked of several captures before the first is read."""
    source = open_source(Path(path))
    try:
        check_contents(source)
    finally:
        source.close()


def _silent(text: str, share: float) -> None:
    """Progress that nobody watches."""


def check_contents(source: Source) -> None:
    """Raises InputError unless the store is an nsys export that holds something of CUDA."""
    names = set(source.columns)
    if not names:
        raise InputError(f"{source.path}: the database has no tables: the export did not finish", EXPORT_HINT, slug="capture-empty")
    cuda = [spec.name for spec in (*catalogue.ACTIVITY_SPECS, catalogue.RUNTIME)]
    if any((table := resolve(name, names)) and source.has_rows(table) for name in cuda):
        return
    if "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL" in names or {"StringTable", "CUPTI_ACTIVITY_KIND_DRIVER"} & names:
        raise InputError(
            f"{source.path}: a database of nvprof or the Visual Profiler, which is another format",
            "capture with nsys profile -t cuda,nvtx and export with nsys export --type sqlite",
            slug="capture-nvprof",
        )
    if not names & {"StringIds", "META_DATA_EXPORT", "EXPORT_META_DATA", "ANALYSIS_DETAILS", "NVTX_EVENTS"}:
        shown = ", ".join(sorted(names)[:5]) + (", ..." if len(names) > 5 else "")
        raise InputError(f"{source.path}: not an export of Nsight Systems; its tables are {shown}", EXPORT_HINT, slug="capture-foreign")
    found = ", ".join(sorted(n for n in names if n in ("NVTX_EVENTS", "OSRT_API", "GPU_METRICS", "COMPOSITE_EVENTS"))) or "no event tables"
    raise InputError(
        f"{source.path}: an nsys export without CUDA work: no kernels, copies or API calls; it has {found}",
        "capture again with nsys profile -t cuda,nvtx; when only a range was captured, check that work ran inside it",
        slug="capture-no-cuda",
    )


def _few(source: Source) -> Ranges:
    """All ranges where there are few events, else XLA's."""
    table = resolve(catalogue.NVTX.name, source.columns)
    return "all" if table is None or source.count(table) <= MOST_RANGES else "xla"


def _read(source: Source, progress: Progress, ranges: Ranges, everything: bool) -> Capture:
    strings = Strings(source)
    ranges = _few(source) if ranges == "few" else ranges
    with ThreadPoolExecutor(1) as pool:  # stores read without Python's lock: the largest table, then the ranges, while others are worked on
        kernels = pool.submit(tables.read_table, source, catalogue.KERNEL)
        found_ranges = pool.submit(tables.read_nvtx, source, strings, ranges)
        progress("reading CUDA API calls", 0.0)
        runtime, bad_calls = tables.read_runtime(source, strings)
        progress("reading kernels and copies", 0.2)
        work, omitted = _activities(source, strings, runtime, kernels.result())
        del kernels
        work, omitted, clocks = _in_order(work, runtime, omitted)
        progress("reading NVTX ranges", 0.7)
        nvtx, bad_ranges = found_ranges.result()
    progress("reading the other tables", 0.9)
    capture = Capture(
        path=source.path,
        info=read_info(source, work, runtime, clocks),
        activities=work,
        runtime=runtime,
        nvtx=nvtx,
        graph_nodes=tables.read_graph_nodes(source) if everything else GRAPH_NODES.empty_table(),
        synchronizations=tables.read_synchronizations(source, runtime) if everything else SYNCHRONIZATIONS.empty_table(),
        overhead=tables.read_overhead(source, strings),
        memory_usage=tables.read_memory_usage(source),
        diagnostics=tables.read_diagnostics(source),
        tables={name: source.count(name) for name in source.columns if not name.startswith(("ENUM_", "sqlite_"))},
        omitted=replace(
            omitted,
            host_records=bad_calls.impossible + bad_ranges.impossible,
            host_repeated=bad_calls.repeated + bad_ranges.repeated,
            host_reversed=bad_calls.reversed + bad_ranges.reversed,
        ),
        ranges_read=ranges,
        thread_names=tables.read_thread_names(source, strings, _threads(runtime, nvtx)),
        os_calls=read_os_calls(source, strings, work),
    )
    progress("capture read", 1.0)
    return capture


def _threads(*host: pa.Table) -> set[int]:
    """The threads of the host's tables."""
    return {thread for table in host for thread in pc.unique(table["thread"]).to_pylist() if thread is not None}


def _activities(source: Source, strings: Strings, runtime: pa.Table, raw: activities.Columns | None) -> tuple[pa.Table, Omitted]:
    """`raw` is the table of kernels, whose columns are taken out of it; None where there is none."""
    only, devices, session = _only_process(runtime), context_devices(source), _session_ns(source)
    omitted = Omitted()
    parts: list[activities.Columns] = []

    def add(part: activities.Columns) -> None:  # a scope of its own, so that no raw column outlives it
        nonlocal omitted
        part, omitted = activities.check_sizes(*activities.mend_times(part, session, omitted))
        parts.append(activities.fill_places(part, only, devices))

    if raw is not None:
        for spec, column, wanted in (
            (catalogue.KERNEL_NAME, "demangledName", raw["shortName"].null_count),
            (catalogue.KERNEL_CONTEXT, "contextId", activities.lacks_device(raw["deviceId"]) and devices),
        ):
            more = tables.read_table(source, spec) if wanted else None
            if more is not None:
                raw[column] = more[column]
        part, unnamed = activities.read_kernels(raw, strings)
        omitted = Omitted(without_name=unnamed)
        add(part)
        del part
    for spec, reader in _READERS:
        raw = tables.read_table(source, spec)
        if raw is not None:
            add(reader(raw))
    if not parts:
        return ACTIVITY.empty_table(), omitted
    table = activities.join_parts(parts, runtime)
    return table, replace(omitted, without_process=table.column("process_id").null_count)


def _in_order(work: pa.Table, runtime: pa.Table, omitted: Omitted) -> tuple[pa.Table, Omitted, ClockOffset | None]:
    """Without activities that stand twice, lie over later launches of their stream or outlast all calls, and by the host's clock."""
    work, repeated = without_repeats(work, ACTIVITY_KEYS)
    over, long = over_later_launches(work), outlasting(work, runtime)
    if over.any() or long.any():
        work = work.filter(pa.array(~(over | long)))
    omitted = replace(omitted, repeated=repeated, overlapping=int(over.sum()), impossible=omitted.impossible + int((long & ~over).sum()))
    clocks = clock_offset(work, runtime)
    return (shifted(work, clocks.offset_ns) if clocks is not None and clocks.is_corrected else work), omitted, clocks


_READERS: tuple[tuple[catalogue.TableSpec, Callable[[activities.Columns], activities.Columns]], ...] = (
    (catalogue.MEMCPY, activities.read_copies),
    (catalogue.MEMSET, activities.read_memsets),
    (catalogue.GRAPH_TRACE, activities.read_graphs),
)


def _only_process(runtime: pa.Table) -> int | None:
    """The process key of all API calls when they have one in common."""
    processes = pc.unique(runtime.column("global_pid")).drop_null()  # of an unknown thread nothing is known
    return int(processes[0].as_py()) if len(processes) == 1 else None


def _metadata(source: Source) -> dict[str, str]:
    """The export's settings and, of the capture's, the graph trace mode alone: the rest holds environment and names."""
    found: dict[str, str] = {}
    for spec in (catalogue.EXPORT_META, catalogue.OLD_EXPORT_META):
        raw = tables.read_table(source, spec)
        for row in pa.table(raw).to_pylist() if raw is not None else ():
            if row["name"] is not None and row["value"] is not None:  # a column that the table lacks reads as null
                found[decode(row["name"])] = decode(row["value"])
    raw = tables.read_table(source, catalogue.CAPTURE_META)
    for row in pa.table(raw).to_pylist() if raw is not None else ():
        if None in row.values() or not decode(row["name"]).endswith("CUDA_GRAPH_TRACE_OPTIONS:MODE"):
            continue
        if mode := _GRAPH_MODE.fullmatch(decode(row["value"]).lower()):
            found["graph trace mode"] = mode[0]
    return found


_GRAPH_MODE = re.compile(r"(?:graph|node|none)(?::[a-z-]{1,30}){0,3}")
"""nsys' --cuda-graph-trace: a mode and where launches come from."""


def _driver(source: Source) -> str | None:
    """The driver's version; nothing else is taken from the table of the system."""
    raw = tables.read_table(source, catalogue.SYSTEM_META)
    rows = pa.table(raw).to_pylist() if raw is not None else []
    return next((decode(r["value"]) for r in rows if None not in r.values() and decode(r["name"]) == "NvDriverVersion"), None)


def _version(text: str | None) -> str | None:
    """A version where it looks like one: what else stands in its place may say whose machine it was."""
    return text if text is not None and re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,5}", text) else None


def _shift(meta: dict[str, str]) -> int | None:
    value = meta.get("EXPORT_CONFIG_TIME_SHIFT", "")
    return int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else None


def _session_ns(source: Source) -> int | None:
    """How long recording took, where the capture says so."""
    details = tables.read_table(source, catalogue.DETAILS)
    longest = pc.max(details["duration"]).as_py() if details is not None else None
    return longest if longest is not None and 0 < longest < LATEST_NS else None


def read_info(source: Source, work: pa.Table, runtime: pa.Table, clocks: ClockOffset | None) -> CaptureInfo:
    """What the small tables say of the capture, with what follows from its activities and API calls."""
    meta = _metadata(source)
    return CaptureInfo(
        nsys_version=_version(meta.get("EXPORT_PRODUCT_VERSION")),
        schema_version=_version(meta.get("EXPORT_SCHEMA_VERSION")),
        gpus=used_gpus(source, work),
        duration_ns=_session_ns(source),
        graph_trace_mode=meta.get("graph trace mode"),
        span_ns=_span(work, runtime),
        time_shift_ns=_shift(meta) or 0,
        clock_offset=clocks,
        driver_version=_version(_driver(source)),
        partial_export=any(meta.get(f"EXPORT_PARAM_{key}_TO_EXPORT") for key in ("TABLES", "TIMES")),
    )


def _span(work: pa.Table, runtime: pa.Table) -> tuple[int, int] | None:
    starts = [t.column("start_ns")[0].as_py() for t in (work, runtime) if t.num_rows]
    ends = [pc.max(t.column("end_ns")).as_py() for t in (work, runtime) if t.num_rows]
    return (min(starts), max(ends)) if starts else None
