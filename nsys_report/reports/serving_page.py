"""What the report says of a served model under load: what clients saw, what the server counted, and its calls laid over a capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nsys_report.fact import Fact
from nsys_report.profiling.record import shown_surroundings, surroundings
from nsys_report.reports.model import Column, Notice, Part, Row, Section, Table
from nsys_report.reports.run_page import contended_notices, slug_of
from nsys_report.serving.calls import CallParts, JoinedCalls
from nsys_report.serving.findings import serving_findings
from nsys_report.serving.load import LoadFigures, ServerTimes
from nsys_report.serving.profile import Served
from nsys_report.units import count, duration

LOAD = (
    Column("workload", "workload", "name"),
    Column("streams", "streams", "count"),
    Column("requests", "requests", "count"),
    Column("failed", "failed", "count"),
    Column("tokens", "tokens", "count"),
    Column("requests_per_s", "requests a second", "per_s"),
    Column("tokens_per_s", "tokens a second", "per_s"),
    *(
        Column(f"first_token_{q}_ns", f"first token {q}", "ns", "from sending to the first piece of the answer")
        for q in ("p50", "p90", "p99")
    ),
    *(Column(f"between_tokens_{q}_ns", f"between {q}", "ns", "between two pieces of an answer", 1) for q in ("p50", "p90", "p99")),
    *(Column(f"latency_{q}_ns", f"whole {q}", "ns", "from sending to the end of the answer", 2) for q in ("p50", "p90", "p99")),
)
SERVER = (
    Column("workload", "workload", "name"),
    Column("requests", "requests", "count"),
    Column("executions", "executions", "count", "calls of the model"),
    Column("mean_batch", "requests in each", "number"),
    Column("queue_ns", "queue", "ns", "of a request"),
    Column("input_ns", "input", "ns", "of a request"),
    Column("compute_ns", "compute", "ns", "of a request"),
    Column("output_ns", "output", "ns", "of a request"),
    Column("batches", "executions by batch size", "text"),
)
PARTS = ("batching", "queueing", "before", "device", "between", "after")
CALLS = (
    Column("program", "program", "name"),
    Column("calls", "calls", "count"),
    Column("rows", "rows each", "number"),
    Column("idle_after_ns", "idle after", "ns", "median of the device's idle time after a call"),
)
ROWS = (
    Column("program", "program", "name"),
    Column("quantile", "quantile", "name", "of each part and of the latency by itself: only those of one row add up"),
    Column("rows", "rows", "count"),
    *(Column(f"{part}_ns", part, "ns") for part in PARTS),
    Column("latency_ns", "latency", "ns", "from the row's arrival to its call's end"),
)
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
SLICES = 10
TIMES = (
    Column("since_ns", "from", "ns"),
    Column("calls", "calls", "count"),
    Column("rows", "rows each", "number"),
    Column("most", "most rows", "count"),
)
ABOUT = (
    "batching: from a row's arrival to the last of its call; queueing: from there to the call's start; before: from the start to the "
    "device's first activity; device: while executions of the call run; between: between them; after: from the last activity to the "
    "call's end. Together they are the row's latency."
)


TRACING = {
    "": (),
    "idle": ("nsys had started the server, and did not record while these were measured.",),
    "recording": ("These were measured while nsys recorded, which slows the server: --repeats 2 measures another round without.",),
}


def serving_part(served: Served, joined: JoinedCalls | None, floor_tokens_per_s: float | None) -> Part:
    """One part of a report, from what was measured."""
    measured = served.measured
    sections = [_load(measured, floor_tokens_per_s, TRACING[served.tracing])] if measured else []
    if any(served.server.values()):
        sections.append(_server(served.server))
    if joined is not None:
        sections.append(_calls(joined))
    if served.conditions is not None:
        rows = shown_surroundings(surroundings(served.conditions))
        sections.append(Section("run", "The run", facts=tuple(Fact(slug_of(label), label, value) for label, value in rows)))
    failures = [
        Notice("requests-failed", f"{f.failed} of {f.requests} requests of {f.workload.written} failed: {f.failures[0]}")
        for f in measured
        if f.failed
    ]
    failures += contended_notices(served.conditions.idleness) if served.conditions is not None else []
    best = max((f for f in measured if f.tokens_per_s), key=lambda f: f.tokens_per_s or 0, default=None)
    said = f", at most {best.tokens_per_s:,.1f} tokens a second ({best.workload.written})" if best else ""
    headline = f"{count(sum(f.requests for f in measured))} requests in {count(len(measured))} workloads{said}"
    if not measured and joined is not None:
        headline = f"{count(len(joined.calls))} calls of a server's log, laid over a capture"
    found = serving_findings(joined.calls) if joined is not None else ()
    return Part("served", headline, notices=tuple(failures), findings=found, sections=tuple(sections))


def _load(measured: Sequence[LoadFigures], floor: float | None, tracing: Sequence[str]) -> Section:
    rows = [
        Row(
            (
                f.workload.written,
                f.workload.streams,
                f.requests,
                f.failed,
                f.tokens or None,
                f.requests_per_s,
                f.tokens_per_s,
                *(value for s in (f.first_token, f.between_tokens, f.latency) for value in (s.p50, s.p90, s.p99)),
            )
        )
        for f in measured
    ]
    guessed = [f.workload.written for f in measured if f.tokens and not f.tokens_are_counted]
    lines = ["Clients wait for each answer before they send the next request (closed loop).", *tracing]
    if guessed:
        lines.append(f"The server does not say how many tokens it made of {', '.join(guessed)}: each piece of an answer is taken for one.")
    lines += [
        f"{f.workload.written} makes {f.tokens_per_s / floor:.1%} of the {floor:,.0f} tokens a second that its floor allows."
        for f in measured
        if floor and f.tokens_per_s
    ]
    return Section("load", "What clients saw", tuple(lines), tables=(Table("load", "Requests", LOAD, tuple(rows)),))


def _server(server: Mapping[str, ServerTimes | None]) -> Section:
    rows = [
        Row(
            (
                written,
                t.requests,
                t.executions,
                t.mean_batch,
                t.queue_ns,
                t.input_ns,
                t.compute_ns,
                t.output_ns,
                ", ".join(f"{n} of {size}" for size, n in t.batch_sizes.items()) or None,
            ),
            labels=_rounded("mean_batch", t.mean_batch),
        )
        for written, t in server.items()
        if t is not None
    ]
    lines = ("The server's own sums, by difference over the workload; its times are of a request, also where several share a call.",)
    return Section("server", "What the server counted", lines, tables=(Table("server", "Server", SERVER, tuple(rows)),))


def _calls(joined: JoinedCalls) -> Section:
    error = "unknown: no execution lies within a call" if joined.error_ns is None else f"{duration(joined.error_ns)} at most"
    moved = f", after moving the log by {duration(joined.shift_ns)}" if joined.shift_ns else ""
    lines = (
        f"{count(len(joined.calls))} calls of the server's log lie within the capture, {count(joined.outside)} outside. "
        f"The two clocks are tied by the session's start{moved}; error {error}.",
        *([f"{count(joined.shared)} executions began within several calls at once and are counted with each."] if joined.shared else []),
        ABOUT,
    )
    programs = {p: [c for c in joined.calls if c.call.program == p] for p in dict.fromkeys(c.call.program for c in joined.calls)}
    tables = (
        Table("rows", "Latency of rows", ROWS, tuple(row for p, calls in programs.items() for row in _latencies(p, calls))),
        Table("calls", "Calls by program", CALLS, tuple(_program_row(p, calls) for p, calls in programs.items())),
        Table("batches", "Batch sizes over time", TIMES, tuple(_slices(joined.calls))),
    )
    return Section("calls", "The server's calls in the capture", lines, tables=tables if joined.calls else ())


def _program_row(program: str, calls: Sequence[CallParts]) -> Row:
    idle = [call.idle_after_ns for call in calls if call.idle_after_ns is not None]
    rows = float(np.mean([call.call.rows for call in calls]))
    return Row((program, len(calls), rows, float(np.median(idle)) if idle else None), labels=_rounded("rows", rows))


def _latencies(program: str, calls: Sequence[CallParts]) -> list[Row]:
    """A row a quantile, over the program's rows whose arrivals the log names."""
    waits = [call.row_batching_ns for call in calls]
    parts: dict[str, list[int | None]] = {"batching": [ns for call in waits for ns in call]}
    for part in PARTS[1:]:
        parts[part] = [getattr(call, f"{part}_ns") for call, rows in zip(calls, waits, strict=True) for _ in rows]
    rest = [call.finished_ns - call.started_ns + (call.queueing_ns or 0) for call, rows in zip(calls, waits, strict=True) for _ in rows]
    latency = [batching + ns for batching, ns in zip(parts["batching"], rest, strict=True) if batching is not None]
    count_of = len(latency)
    return [
        Row((program, name, count_of, *(_quantile(parts[part], q) for part in PARTS), _quantile(latency, q)))
        for name, q in QUANTILES.items()
        if count_of
    ]


def _quantile(values: Sequence[int | None], q: float) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.quantile(known, q)) if known else None


def _rounded(key: str, value: float | None) -> tuple[tuple[str, str], ...]:
    """What pages show of a mean of counts."""
    return () if value is None else ((key, f"{value:.2f}"),)


def _slices(calls: Sequence[CallParts]) -> list[Row]:
    """Tenths of the time from the first call to the last; those without a call are left out."""
    if not calls:
        return []
    first, last = calls[0].started_ns, max(call.started_ns for call in calls) + 1
    places = [(call.started_ns - first) * SLICES // (last - first) for call in calls]
    found = []
    for place in sorted(set(places)):
        rows = [call.call.rows for call, at in zip(calls, places, strict=True) if at == place]
        mean = float(np.mean(rows))
        found.append(Row((place * (last - first) // SLICES, len(rows), mean, max(rows)), labels=_rounded("rows", mean)))
    return found
