"""What is said of a capture as a whole: its headline, its kernels by name, its copies, how much was joined; and several side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.analysis.program_rows import of_program
from nsys_report.capture.model import shared_places
from nsys_report.fact import Fact
from nsys_report.quantities import QUANTITIES, name_of
from nsys_report.reports.model import Column, Row, Section, Table
from nsys_report.reports.present import Record, Show, present
from nsys_report.reports.program_facts import byte_floor
from nsys_report.units import Value, count, duration, phrase, share, things

if TYPE_CHECKING:
    from nsys_report.analysis.roofline.ceilings import Ceiling, Ceilings
    from nsys_report.session import Session

KERNELS = (
    Show("name", "kernel", unit="kernel"),
    Show("launches", "launches"),
    Show("total_time_ns", "total"),
    Show("time_share", "share"),
    Show("duration_ns", "median"),
    Show("duration_p10_ns", "p10", 4),
    Show("duration_p90_ns", "p90", 3),
    Show("duration_min_ns", "min", 6),
    Show("duration_max_ns", "max", 5),
)
COPIES = (
    Show("activity", "copies"),
    Show("copy_kind", "kind"),
    Show("count_per_execution", "mean per execution", 1),
    Show("bytes_per_execution", "bytes", 1),
    Show("typical_ns", drop_rank=1),
    Show("time_per_execution_ns", drop_rank=9),
    Show("bytes_per_s"),
    Show("total_count", "total count", 6),
    Show("total_bytes", "total bytes", 6),
    Show("total_time_ns", "total time", 6),
)
COPIES_OUTSIDE = (
    Show("activity", "copies"),
    Show("copy_kind", "kind"),
    Show("total_count", "count", 1),
    Show("total_bytes", "bytes", 1),
    Show("total_time_ns", "time", 1),
    Show("bytes_per_s", drop_rank=2),
)
DEVICES = (
    Show("device_id", "device"),
    Show("process_id", "process", 3),
    Show("kernels", "kernels"),
    Show("kernel_time_ns", "kernel time"),
    Show("copies", "copies", 2),
    Show("copy_bytes", "bytes copied", 2),
    Show("span_ns", "span"),
    Show("busy_time_ns", "busy"),
    Show("idle_time_ns", "idle"),
)
COVERAGE = (
    Show("certainty", "how surely"),
    Show("match_method", "how"),
    Show("kernels", "kernels"),
    Show("kernel_time_ns", "kernel time"),
    Show("time_share", "share"),
    Show("confidence_mean", "confidence", unit="confidence"),
)
MODULE_COVERAGE = (Show("hlo_module", "program", unit="name"), Show("program_id", "number"), Show("scope", "scope"), *COVERAGE)
CERTAINTIES = {
    "exact": "exact",
    "by_order": "by order",
    "doubtful": "doubtful",
    "not_joined": "not joined",
    "autotuning": "autotuning",
    "outside": "in no execution",
    "not_recorded": "not recorded",
}


def headline(session: Session) -> str:
    """The capture in one line: GPU, nsys version, span, kernels; of chosen executions, what they are."""
    if session.chosen:
        return _chosen_headline(session)
    capture = session.joined.capture
    shared = shared_places(capture.info.gpus)
    alone = [gpu for gpu in capture.info.gpus if (place := (gpu.process_id or 0, gpu.device_id)) not in shared or shared[place] == place]
    names = Counter(gpu.name or "unknown GPU" for gpu in alone)
    gpus = ", ".join(name if n == 1 else f"{n} × {name}" for name, n in names.items()) or "no GPU"
    values = {fact.key: fact for fact in facts(session)}
    parts = [gpus, f"nsys {capture.info.nsys_version or 'of unknown version'}", f"{values['span_ns'].text} span"]
    parts.append(f"{values['kernels'].text} kernels, {values['kernel_time_ns'].text} of kernel time")
    return " · ".join(parts)


def _chosen_headline(session: Session) -> str:
    """Chosen executions in one line: which, of what, their kernels, their time from the first activity to the last."""
    runs = session.joined.executions
    numbers = f"execution{'s' if len(session.chosen) > 1 else ''} {', '.join(map(str, session.chosen))}"
    names = ", ".join(dict.fromkeys(name or "unknown programs" for name in runs["hlo_module"].to_pylist()))
    kernels, time = pc.sum(runs["kernel_count"]).as_py() or 0, pc.sum(runs["kernel_time_ns"]).as_py() or 0
    span = pc.sum(pc.subtract(runs["end_ns"], runs["start_ns"])).as_py() or 0
    return f"{numbers} of {names} · {count(kernels)} kernels, {duration(time)} of kernel time · {duration(span)} span"


def facts(session: Session) -> tuple[Fact, ...]:
    """The capture's figures."""
    info, devices = session.joined.capture.info, session.results.devices
    span = info.span_ns[1] - info.span_ns[0] if info.span_ns else None
    return (
        Fact("gpu", "GPU", ", ".join(dict.fromkeys(g.name for g in info.gpus if g.name)) or None),
        Fact("nsys_version", "nsys", info.nsys_version),
        Fact("schema_version", "schema", info.schema_version),
        Fact("span_ns", "span", span, "ns"),
        Fact("devices", "devices", len(devices), "count"),
        Fact("kernels", "kernels", pc.sum(devices["kernels"]).as_py() or 0, "count"),
        Fact("kernel_time_ns", "kernel time", pc.sum(devices["kernel_time_ns"]).as_py() or 0, "ns"),
        Fact("busy_time_ns", "busy", pc.sum(devices["busy_time_ns"]).as_py() or 0, "ns"),
        Fact("executions", "executions", len(session.joined.executions), "count"),
        Fact("joined_share", "joined", session.results.joined_share, "ratio"),
        Fact("ceiling_measured", "measured ceiling", _value(session.results.ceilings.measured), "bytes_per_s"),
        Fact("ceiling_nominal", "nominal ceiling", _value(session.results.ceilings.nominal), "bytes_per_s"),
    )


def _value(ceiling: Ceiling | None) -> float | None:
    return ceiling.value if ceiling is not None else None


def ceilings_line(ceilings: Ceilings) -> str:
    """What bandwidths are measured against, and where that comes from."""
    parts = []
    for name, ceiling in (("measured", ceilings.measured), ("nominal", ceilings.nominal)):
        if ceiling is None:
            parts.append(f"no {name} one (--ceiling {name}=GB/s)")
        else:
            origin = ceiling.origin.removeprefix(f"{ceiling.kind}: ")
            if ceiling.date:  # what stands behind the date is for the documents
                origin = origin.partition(ceiling.date)[0] + ceiling.date
            parts.append(f"{phrase('bytes_per_s', ceiling.value)} {name} ({origin})")
    return "Bandwidth ceilings: " + ", ".join(parts) + "."


CEILINGS = (
    Column("name", "ceiling", "text"),
    Column("value", "value", "text"),
    Column("low", "least", "text"),
    Column("high", "most", "text"),
    Column("kind", "known by", "text"),
    Column("date", "date", "text"),
    Column("origin", "how and by whom", "name"),
)


LINKS = {"nvlink": "NVLink, one direction", "network": "network, one direction"}


def ceilings_section(session: Session) -> Section:
    """Everything that figures are measured against, with range, date and origin; for the long pages and the documents."""
    ceilings = session.results.ceilings
    named = [("nominal bandwidth", ceilings.nominal, "bytes_per_s"), ("measured bandwidth", ceilings.measured, "bytes_per_s")]
    named += [(f"{kind} products", ceiling, "flops_per_s") for kind, ceiling in ceilings.compute]
    named += [(LINKS[kind], ceiling, "bytes_per_s") for kind, ceiling in ceilings.links]
    rows = [
        Row((name, phrase(unit, c.value), phrase(unit, c.low), phrase(unit, c.high), c.kind, c.date or None, c.origin))
        for name, c, unit in named
        if c is not None
    ]
    return Section("ceilings", "Ceilings", tables=(Table("ceilings", "Ceilings", CEILINGS, tuple(rows), in_full=True),))


def kernel_sections(session: Session, top: int | None) -> Iterable[Section]:
    """Kernels by name where there is no program to show them under; else what ran outside every program."""
    results, programs = session.results, len(session.results.modules)
    outside = results.kernels.filter(pc.is_null(results.kernels["hlo_module"]))
    copies = results.copies.filter(pc.is_null(results.copies["hlo_module"]))
    if not programs and len(results.devices):
        tables = [devices_table(results.devices)]
        if len(results.kernels):
            tables.append(kernels_table(results.kernels, "Kernels by time", top))
        if len(copies):
            tables.append(copies_table(copies, outside=True))
        yield Section("kernels", "Kernels", tables=tuple(tables))
    elif programs and (len(outside) or len(copies)):
        yield _outside(session, outside, copies, top)


def _outside(session: Session, outside: pa.Table, copies: pa.Table, top: int | None) -> Section:
    """What ran in no execution: the autotuner's kernels in one line, the rest as one line and tables for the long pages."""
    coverage = session.results.coverage.to_pylist()
    lines = []
    for scope, words in (("autotuning", "Autotuning"), ("outside", "In no execution")):
        rows = [r for r in coverage if r["scope"] == scope and r["kernels"] is not None]
        if rows:
            kernels, time = sum(r["kernels"] for r in rows), sum(r["kernel_time_ns"] for r in rows)
            lines.append(f"{words}: {things(kernels, 'kernel')}, {duration(time)}; in no program's figures.")
    if len(copies):
        number, time = pc.sum(copies["total_count"]).as_py(), pc.sum(copies["total_time_ns"]).as_py()
        lines.append(f"In no execution: {count(number)} copies and memsets, {duration(time)}.")
    tables = [kernels_table(outside, "Kernels in no execution", top, in_full=True)] if len(outside) else []
    tables += [copies_table(copies, outside=True, in_full=True)] if len(copies) else []
    return Section("outside", "Outside the programs", tuple(lines), tables=tuple(tables))


def devices_table(devices: pa.Table) -> Table:
    """Busy and idle time of each device over the whole capture."""
    return present(devices, DEVICES, "devices", "Devices")


def kernels_table(kernels: pa.Table, title: str, top: int | None, in_full: bool = False) -> Table:
    """Kernels by name, most time first."""
    return present(kernels, KERNELS, "kernels", title, lead=top, in_full=in_full)


def copies_table(copies: pa.Table, outside: bool = False, in_full: bool = False) -> Table:
    """Copies and memsets by kind."""
    return present(copies, COPIES_OUTSIDE if outside else COPIES, "copies", "Copies and memsets", in_full=in_full)


def coverage_sections(session: Session) -> Iterable[Section]:
    """How much of the kernel time was joined to instructions, how, and how surely."""
    coverage = session.results.coverage
    if not len(coverage) or not len(session.results.modules):
        return
    scope = coverage["scope"].cast(pa.string())
    total = coverage.filter(pc.equal(scope, "total"))
    parts = coverage.filter(pc.not_equal(scope, "total"))
    words = {"certainty": _certainty}
    joined = session.results.joined_share
    hidden = pc.any(pc.equal(total["certainty"].cast(pa.string()), "not_recorded")).as_py()
    whole = "the kernel time, counting what was not recorded," if hidden else "the kernel time"
    lines = (f"{share(joined)} of {whole} is joined to an HLO instruction with confidence.",) if joined is not None else ()
    tables = (
        present(total, COVERAGE, "coverage", "Coverage", words=words),
        present(parts, MODULE_COVERAGE, "coverage_by_program", "Coverage by program", words=words, in_full=True),
    )
    yield Section("coverage", "Coverage", lines, tables=tables)


def _certainty(record: Record) -> Value:
    return CERTAINTIES.get(record["certainty"], record["certainty"])


SUMMARY = (
    Column("name", "capture", "name"),
    Column("program", "program with most time", "name", drop_rank=2),
    Column("executions", "executions", "count", drop_rank=3),
    Column("step_ns", name_of("step_ns"), "ns", QUANTITIES["step_ns"].meaning, drop_rank=1),
    Column("typical_kernel_time_ns", name_of("typical_kernel_time_ns"), "ns", QUANTITIES["typical_kernel_time_ns"].meaning),
    Column("idle_ns", name_of("idle_ns"), "ns", QUANTITIES["idle_ns"].meaning, drop_rank=1),
    Column("kernel_time_ns", name_of("kernel_time_ns"), "ns", QUANTITIES["kernel_time_ns"].meaning, drop_rank=8),
    Column("busy_time_ns", name_of("busy_time_ns"), "ns", QUANTITIES["busy_time_ns"].meaning, drop_rank=8),
    Column("host_gap_ns", name_of("host_gap_ns"), "ns", QUANTITIES["host_gap_ns"].meaning, drop_rank=7),
    Column("of_floor_measured", name_of("of_floor_measured"), "ratio", QUANTITIES["of_floor_measured"].meaning, drop_rank=4),
    Column("joined_share", "joined", "ratio", "share of the kernel time joined to HLO with confidence", drop_rank=5),
    Column("finding", "first finding", "name", drop_rank=6),
)
FIGURES = ("kernel_time_ns", "busy_time_ns", "host_gap_ns")


def summary(sessions: Sequence[Session]) -> Table:
    """Several captures side by side, each by the program that takes most of its time."""
    rows = []
    for session in sessions:
        modules = session.results.modules.slice(0, 1).to_pylist()
        record = modules[0] if modules else dict.fromkeys(("hlo_module", "executions", *FIGURES))
        step, kernels, idle = _step(session, record)
        ratio = byte_floor(of_program(session.results.classes, record), "measured", kernels)[1] if modules else None
        joined = session.results.joined_share if session.xla_dump is not None else None
        first = session.causes[0].title if session.causes else None
        medians = (record[key] for key in FIGURES)
        rows.append(Row((session.name, record["hlo_module"], record["executions"], step, kernels, idle, *medians, ratio, joined, first)))
    return Table("summary", "Captures", SUMMARY, tuple(rows), notes=("step, kernel time and idle: of a typical step",))


def _step(session: Session, record: Record) -> tuple[float | None, float | None, float | None]:
    """A program's typical step, and the kernel time and the idle time in it."""
    steps = of_program(session.results.steps, record).to_pylist() if "program_id" in record else []
    return (steps[0]["typical_ns"], steps[0]["typical_kernel_time_ns"], steps[0]["idle_ns"]) if steps else (None, None, None)
