"""The other tables of a capture: API calls, NVTX ranges, graph nodes, synchronizations, overhead, memory, diagnostics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.capture import catalogue
from nsys_report.capture.activities import PROCESS_MASK, launch_rows
from nsys_report.capture.arrays import (
    arrange,
    constant_word,
    decode,
    empty,
    encode,
    flat,
    integers,
    null_column,
    nullable,
    word_column,
    words_by_value,
)
from nsys_report.capture.catalogue import TableSpec, api_name, api_stem, resolve
from nsys_report.capture.model import DIAGNOSTICS, GRAPH_NODES, MEMORY_USAGE, NVTX, OVERHEAD, RUNTIME, SYNCHRONIZATIONS
from nsys_report.capture.plausibility import impossible_spans
from nsys_report.capture.repeats import CALL_KEYS, RANGE_KEYS, without_repeats
from nsys_report.capture.source import AnyOf, Condition, IsIn, Source, StartsWith, require
from nsys_report.capture.strings import Strings

_NO_STREAM = 2**32 - 1


def read_table(source: Source, spec: TableSpec, where: tuple[Condition, ...] = ()) -> dict[str, pa.Array] | None:
    """The spec's columns of its table in this export; None when there is no such table."""
    table = resolve(spec.name, source.columns)
    if table is None:
        return None
    require(spec, table, source)
    have = source.columns[table]
    usable = tuple(c for c in where if not isinstance(c, IsIn) or c.column in have)
    return source.read(table, spec.fields, usable)


def process_of(threads: pa.Array) -> pa.Array:
    """nsys's process key of each global thread id."""
    return nullable(integers(threads, 0) & PROCESS_MASK, threads.is_null().to_numpy(zero_copy_only=False), pa.int64())


def state_call_ids(strings: Strings) -> tuple[int, ...]:
    """String ids of the API calls that are not worth reading."""
    stems = tuple(sorted(catalogue.STATE_CALLS))
    texts = strings.fetch(strings.beginning_with(stems))
    return tuple(i for i, text in texts.items() if api_stem(text) in catalogue.STATE_CALLS)


@dataclass(frozen=True, slots=True)
class HostOmitted:
    """Rows of host records that were left out or mended, by reason: see capture.model.Omitted."""

    impossible: int = 0
    reversed: int = 0
    repeated: int = 0


def _possible(raw: dict[str, pa.Array]) -> tuple[dict[str, pa.Array], HostOmitted]:
    """The rows that have a start and whose times can be, none of which ends before it starts."""
    bad = impossible_spans(integers(raw["start"], 0), integers(raw["end"], 0), None) | raw["start"].is_null().to_numpy(zero_copy_only=False)
    if bad.any():
        raw = _filtered(raw, pa.array(~bad))
    turned = pc.fill_null(pc.less(raw["end"], raw["start"]), False)  # a range without an end was open when recording stopped
    count = int(pc.sum(turned).as_py() or 0)
    if count:
        raw = raw | {"end": pc.if_else(turned, raw["start"], raw["end"])}
    return raw, HostOmitted(int(bad.sum()), count)


def read_runtime(source: Source, strings: Strings) -> tuple[pa.Table, HostOmitted]:
    """CUDA API calls in order of start, and what was left out or mended."""
    silent = state_call_ids(strings)
    raw = read_table(source, catalogue.RUNTIME, (IsIn("nameId", silent, negated=True),) if silent else ())
    if raw is None:
        return empty(RUNTIME), HostOmitted()
    raw, omitted = _possible(raw)
    codes, ids = encode(raw.pop("nameId"))
    known = strings.fetch(int(i) for i in ids if isinstance(i, int))
    thread = raw.pop("globalTid")
    columns = {
        "start_ns": raw.pop("start"),
        "end_ns": raw.pop("end"),
        "thread": thread,
        "global_pid": process_of(thread),
        "correlation_id": raw.pop("correlationId"),
        "name": word_column(codes, [api_name(known.get(int(i), f"call_{i}")) for i in ids if isinstance(i, int)]),
        "return_value": raw.pop("returnValue").cast(pa.int32(), safe=False),
    }
    table, repeated = without_repeats(arrange([columns], RUNTIME), CALL_KEYS)
    return table, replace(omitted, repeated=repeated)


def read_nvtx(source: Source, strings: Strings, ranges: str) -> tuple[pa.Table, HostOmitted]:
    """NVTX ranges in order of start: 'all', only XLA's ('xla'), or 'none'; and what was left out or mended."""
    table = resolve(catalogue.NVTX.name, source.columns)
    if table is None or ranges == "none":
        return empty(NVTX), HostOmitted()
    raw = read_table(source, catalogue.NVTX, _range_conditions(source.columns[table], strings, ranges))
    assert raw is not None
    raw, omitted = _possible(raw)
    kind = raw["eventType"]
    creations = _filtered(raw, pc.equal(kind, catalogue.DOMAIN_CREATE))
    if len(creations["eventType"]):
        raw = _filtered(raw, pc.not_equal(kind, catalogue.DOMAIN_CREATE))
    columns = {
        "text": _texts(raw, strings),
        "domain": _domains(raw, creations, strings),
        "thread": raw.pop("globalTid"),
        "event_type": raw.pop("eventType").cast(pa.int32()),
        "start_ns": raw.pop("start"),
        "end_ns": raw.pop("end"),
    }
    table, repeated = without_repeats(arrange([columns], NVTX), RANGE_KEYS)
    return table, replace(omitted, repeated=repeated)


def _filtered(raw: dict[str, pa.Array], keep: pa.Array) -> dict[str, pa.Array]:
    return {name: column.filter(keep) for name, column in raw.items()}


def _range_conditions(have: tuple[str, ...], strings: Strings, ranges: str) -> tuple[Condition, ...]:
    if ranges == "all":
        return (IsIn("eventType", (*catalogue.RANGE_TYPES, catalogue.DOMAIN_CREATE)),)
    types, chosen = range_conditions(have, strings, catalogue.XLA_RANGE_PREFIXES)
    created = IsIn("eventType", (catalogue.DOMAIN_CREATE,))
    return (IsIn("eventType", (*types.values, *created.values)), AnyOf((created, *chosen.conditions)))


def range_conditions(have: tuple[str, ...], strings: Strings, prefixes: tuple[str, ...]) -> tuple[IsIn, AnyOf]:
    """What the ranges meet whose text, their own or a registered one, begins with one of the prefixes."""
    chosen: list[IsIn | StartsWith] = []
    if "textId" in have:
        chosen.append(IsIn("textId", strings.beginning_with(prefixes)))
    if "text" in have:
        chosen.append(StartsWith("text", prefixes))
    return IsIn("eventType", catalogue.RANGE_TYPES), AnyOf(tuple(chosen))


def _texts(raw: dict[str, pa.Array], strings: Strings) -> pa.DictionaryArray:
    """A range's own text, else its registered string: both occur in one capture."""
    own, own_values = encode(raw["text"])
    registered, ids = encode(raw["textId"])
    known = strings.fetch(int(i) for i in ids if isinstance(i, int))
    texts: list[str | None] = [decode(v) if isinstance(v, bytes) and v else None for v in own_values]
    blank = own_values.index(b"") if b"" in own_values else -1
    codes = integers(own, -1)
    use_id = ((codes == blank) | (codes == -1)) & (integers(registered) >= 0)
    codes = np.where(use_id, integers(registered) + len(texts), codes)
    texts += [known.get(int(i)) for i in ids if isinstance(i, int)]
    return word_column(nullable(codes.astype(np.int32), codes < 0, pa.int32()), texts)


def _domains(raw: dict[str, pa.Array], creations: dict[str, pa.Array], strings: Strings) -> pa.DictionaryArray:
    """The domain's name, told by its creation in the same process; the default domain has none."""
    names: dict[tuple[int, int], str] = {}
    texts = _texts(creations, strings).to_pylist()
    for thread, domain, text in zip(integers(creations["globalTid"], 0), integers(creations["domainId"], 0), texts, strict=True):
        if text is not None:
            names[int(thread) & PROCESS_MASK, int(domain)] = text
    rows = len(raw["eventType"])
    if not rows or not names:
        return null_column(NVTX.field("domain").type, rows)
    domain_codes, domains = encode(raw["domainId"])
    process_codes, processes = encode(process_of(raw["globalTid"]))
    width = max(len(processes), 1)
    key = integers(domain_codes, -1) * width + integers(process_codes, 0)
    pairs = [(p, d) for d in domains for p in (processes or [None])]
    labels = [names.get((int(p), int(d))) if isinstance(p, int) and isinstance(d, int) else None for p, d in pairs]
    return word_column(nullable(key.astype(np.int32), key < 0, pa.int32()), labels)


def read_graph_nodes(source: Source) -> pa.Table:
    """Creation and cloning of CUDA graph nodes."""
    raw = read_table(source, catalogue.GRAPH_NODE)
    if raw is None:
        old = resolve(catalogue.OLD_GRAPH_NODE.name, source.columns)
        if old is None or "graphNodeId" not in source.columns[old]:
            return empty(GRAPH_NODES)
        raw = read_table(source, catalogue.OLD_GRAPH_NODE)
    assert raw is not None
    names = {"start": "start_ns", "globalTid": "thread", "graphNodeId": "graph_node_id", "originalGraphNodeId": "original_graph_node_id"}
    return arrange([{new: raw.pop(old) for old, new in names.items()}], GRAPH_NODES)


def read_synchronizations(source: Source, runtime: pa.Table) -> pa.Table:
    """Synchronizations, their kind by the API call's name where it is recorded, because some nsys versions store the kind one too low."""
    raw = read_table(source, catalogue.SYNCHRONIZATION)
    if raw is None:
        return empty(SYNCHRONIZATIONS)
    stream = integers(raw["streamId"], _NO_STREAM)
    columns = {
        "start_ns": raw.pop("start"),
        "end_ns": raw.pop("end"),
        "global_pid": raw.pop("globalPid"),
        "context_id": raw.pop("contextId"),
        "stream_id": nullable(stream, stream == _NO_STREAM, pa.int64()),
        "correlation_id": raw.pop("correlationId"),
        "kind": words_by_value(raw["syncType"], lambda k: catalogue.SYNCHRONIZATION_KINDS.get(k, "unknown")),
    }
    table = arrange([columns], SYNCHRONIZATIONS)
    rows = launch_rows(table.column("global_pid"), table.column("correlation_id"), runtime)
    missing = rows < 0
    at = np.maximum(rows, 0)
    if missing.all():
        return table
    thread = integers(runtime.column("thread"), 0)[at]
    called = [_kind_of(name) for name in flat(runtime.column("name")).dictionary.to_pylist()]
    stored, kinds = encode(table.column("kind").cast(pa.string()))
    texts = [*called, *(str(k) for k in kinds)]
    told = integers(flat(runtime.column("name")).indices)[at]
    by_name = np.array([c is not None for c in called], bool)[told] & ~missing
    codes = np.where(by_name, told, integers(stored) + len(called))
    kind = word_column(pa.array(codes.astype(np.int32)), texts)
    new = {"thread": nullable(thread, missing, pa.int64()), "kind": kind}
    return pa.Table.from_arrays([new.get(f.name, table.column(f.name)) for f in SYNCHRONIZATIONS], schema=SYNCHRONIZATIONS)


def _kind_of(api: str) -> str | None:
    stem = api_stem(api)
    for ending, kind in (
        ("StreamWaitEvent", "stream_wait_event"),
        ("EventSynchronize", "event"),
        ("EventQuery", "event_query"),
        ("StreamSynchronize", "stream"),
        ("CtxSynchronize", "context"),
        ("DeviceSynchronize", "context"),
        ("ThreadSynchronize", "context"),
    ):
        if stem.endswith(ending):
            return kind
    return None


def read_overhead(source: Source, strings: Strings) -> pa.Table:
    """What profiler and driver took for themselves, from either of its two tables."""
    pieces = []
    for spec in (catalogue.PROFILER_OVERHEAD, catalogue.CUPTI_OVERHEAD):
        raw = read_table(source, spec)
        if raw is None or not len(raw["start"]):
            continue
        raw, _ = _possible(raw)
        codes, ids = encode(raw["nameId"])
        name = word_column(codes, [strings.fetch([int(i)]).get(int(i)) if isinstance(i, int) else None for i in ids])
        if name.null_count and "overheadType" in raw:
            name = words_by_value(raw["overheadType"], lambda k: catalogue.OVERHEAD_KINDS.get(k, "unknown"))
        sort = constant_word("profiler", len(name))
        if spec is catalogue.CUPTI_OVERHEAD:
            sort = word_column(name.indices, [catalogue.overhead_sort(n) for n in name.dictionary.to_pylist()])
            by_kind = words_by_value(raw["overheadType"], catalogue.OVERHEAD_SORTS)
            sort = pc.coalesce(by_kind.cast(pa.string()), sort.cast(pa.string())).dictionary_encode()
        thread = raw.pop("globalTid")
        pieces.append({"start_ns": raw.pop("start"), "end_ns": raw.pop("end"), "thread": thread, "name": name, "sort": sort})
    if not pieces:
        return empty(OVERHEAD)
    tables = [pa.table(p, schema=OVERHEAD) for p in pieces]
    joined = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    return joined.sort_by([("start_ns", "ascending"), ("end_ns", "ascending")])


def read_memory_usage(source: Source) -> pa.Table:
    """Allocations and releases."""
    raw = read_table(source, catalogue.MEMORY_USAGE)
    if raw is None:
        return empty(MEMORY_USAGE)
    columns = {
        "start_ns": raw.pop("start"),
        "global_pid": raw.pop("globalPid"),
        "device_id": raw.pop("deviceId").cast(pa.int32(), safe=False),
        "address": raw.pop("address"),
        "bytes": raw.pop("bytes"),
        "memory": words_by_value(raw["memKind"], catalogue.MEMORY_KINDS),
        "operation": words_by_value(raw["memoryOperationType"], {0: "allocate", 1: "free"}),
        "correlation_id": raw.pop("correlationId"),
    }
    return arrange([columns], MEMORY_USAGE)


def read_thread_names(source: Source, strings: Strings, threads: Iterable[int]) -> dict[int, str]:
    """The names of these threads (global thread ids), as the operating system has them; of a thread that changed its name the last."""
    raw = read_table(source, catalogue.THREAD_NAMES)
    if raw is None:
        return {}
    wanted = set(threads)
    named = {t: n for t, n in zip(raw["globalTid"].to_pylist(), raw["nameId"].to_pylist(), strict=True) if t in wanted}
    texts = strings.fetch(name for name in named.values() if name is not None)
    return {thread: text for thread, name in named.items() if (text := texts.get(name))}


def read_diagnostics(source: Source) -> pa.Table:
    """The profiler's messages about itself."""
    raw = read_table(source, catalogue.DIAGNOSTIC)
    if raw is None:
        return empty(DIAGNOSTICS)
    codes, texts = encode(raw["text"])
    severity = words_by_value(raw["severity"], catalogue.SEVERITIES)
    text = word_column(codes, [decode(t) if isinstance(t, bytes) else None for t in texts])
    arrays = [raw.pop("timestamp"), severity, text, raw.pop("globalPid")]
    return pa.Table.from_arrays(arrays, schema=DIAGNOSTICS).sort_by("timestamp_ns")
