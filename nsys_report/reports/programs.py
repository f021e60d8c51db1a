"""The sections about programs: all of them side by side, then each with its times, classes and instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.reports.model import Column, Mark, Row, Table
from nsys_report.reports.present import FEWEST_FOR_SPREAD, Record, Show, present
from nsys_report.units import Value, things

NOT_JOINED = "not joined"
ABOVE = Mark("bytes_per_s", "▲", "above the measured ceiling: L2 served it, or the bytes are counted wrong")
PARTLY = Mark("bytes_accessed", "?", "part of its kernels have unknown bytes; the bandwidth is of the others")
DOUBTFUL = Mark("hlo_instruction", "?", "joined with a confidence under 0.5")

MODULES = (
    Show("hlo_module", "program", unit="name"),
    Show("program_id", "number", 9),
    Show("executions", "executions"),
    Show("complete_executions", "complete", 8),
    Show("kernels_per_execution", "kernels each"),
    Show("kernel_time_ns", "kernel time"),
    Show("kernel_time_p10_ns", "p10", 4),
    Show("kernel_time_p90_ns", "p90", 4),
    Show("busy_time_ns", "busy time", 1),
    Show("busy_time_p10_ns", "p10", 7),
    Show("busy_time_p90_ns", "p90", 7),
    Show("host_gap_ns", "host gap"),
    Show("host_gap_p10_ns", "p10", 3),
    Show("host_gap_p90_ns", "p90", 3),
    Show("kernel_time_share", "share", 2),
)

_FIGURES = (
    Show("time_per_execution_ns", "time"),
    Show("time_per_execution_p10_ns", "p10", 8),
    Show("time_per_execution_p90_ns", "p90", 8),
    Show("time_share", "share"),
    Show("launches_per_execution", "launches", 4),
    Show("bytes_accessed", "bytes", 1),
    Show("bytes_per_s", "implied", 1),
    Show("share_of_measured", "of measured", 2),
    Show("share_of_nominal", "of nominal", 5),
)
_FLOORS = (
    Show("floor_measured_ns", "byte floor measured", 3),
    Show("floor_nominal_ns", "byte floor nominal", 6),
    Show("flops_per_s", "compute", 6),
)
_PARTS = (
    Show("weight_bytes", "weight bytes", 9),
    Show("kv_read_bytes", "KV bytes read", 9),
    Show("kv_write_bytes", "KV bytes written", 9),
    Show("wasted_bytes", "bytes above floor", 9),
    Show("flops", "flops", 9),
)
CLASSES = (Show("kernel_class", "class"), *_FIGURES, *_FLOORS, *_PARTS)
DETAILS = (Show("kernel_class", "class"), Show("class_detail", "detail"), *_FIGURES, *_FLOORS, *_PARTS)
INSTRUCTIONS = (
    Show("hlo_instruction", "instruction", unit="name"),
    Show("label", "called", 3, "name"),
    Show("kernel_class", "class"),
    Show("class_detail", "detail", 6),
    *_FIGURES,
    Show("flops_per_s", "compute", 6),
    Show("kernel_name", "kernel", 7, "kernel"),
    Show("opcode", "opcode", 9),
    Show("match_method", "match", 9),
    Show("match_confidence", "confidence", 9),
    Show("layer", "layer", 10),
    Show("parameters", "parameters", 10, "name"),
    Show("op_name", "operation", 10, "name"),
    Show("source_file", "file", 10, "name"),
    Show("source_line", "line", 10, "number"),
)
PHASES = (
    Show("phase", "phase"),
    Show("time_mean_ns", "time"),
    Show("time_share", "share"),
    Show("launches_per_execution", "launches"),
    Show("instructions", "instructions", 4),
)
TIMES = (
    ("kernel time", "kernel_time"),
    ("busy time", "busy_time"),
    ("span", "span"),
    ("host gap before", "host_gap"),
    ("start to next start, all steps", "interval"),
)


def total_busy(record: Record) -> float:
    """Busy time of all executions of a program, taken from the median one."""
    return float((record["busy_time_ns"] or 0) * record["executions"])


def modules_table(modules: pa.Table, top: int | None = None) -> Table:
    """All programs side by side, most busy time first."""
    left_out = pc.sum(pc.subtract(modules["executions"], modules["complete_executions"])).as_py() or 0
    notes = [
        "kernel time, busy time and host gap: median of complete executions, with 10th and 90th percentile of five or more where they fit; "
        "the host gap is the idle time right before an execution, after whatever ran last"
    ]
    if left_out:
        notes.append(f"{things(left_out, 'execution')} cut off by the window or lost records: counted, but in no other figure")
    names = Counter(modules["hlo_module"].to_pylist())
    few: dict[str, Callable[[Record], Value]] = {s.key: partial(_unless_few, s.key) for s in MODULES if s.heading in ("p10", "p90")}

    def name(record: Record) -> str:
        return title_of(record) if names[record["hlo_module"]] > 1 else str(_name(record))

    lead = _with_kernels(modules, top)
    return present(modules, MODULES, "modules", "Programs", words=few, labels={"hlo_module": name}, notes=tuple(notes), lead=lead)


def _unless_few(key: str, record: Record) -> Value:
    """A percentile, unless it is over too few executions to say anything."""
    value: Value = record[key] if record["complete_executions"] >= FEWEST_FOR_SPREAD else None
    return value


def _with_kernels(modules: pa.Table, top: int | None) -> int | None:
    """How many programs short pages show: those up to the last that runs kernels, so that helpers which only copy are folded."""
    running = [n for n, time in enumerate(modules["total_kernel_time_ns"].to_pylist(), 1) if time != 0]
    if top is None or not running:
        return top
    return min(top, running[-1])


def _name(record: Record) -> Value:
    return record["hlo_module"] if record["hlo_module"] is not None else "unknown program"


def title_of(record: Mapping[str, Any]) -> str:
    """A program's name with XLA's number, as everywhere on the page."""
    name = str(_name(record))
    return name if record["program_id"] is None else f"{name}#{record['program_id']}"


def times_table(record: Record) -> Table:
    """One program's times, each with median, 10th and 90th percentile."""
    columns = (Column("what", "per execution", "text"), *(Column(f"{k}_ns", k, "ns") for k in ("median", "p10", "p90")))
    rows = tuple(Row((label, record[f"{k}_ns"], record[f"{k}_p10_ns"], record[f"{k}_p90_ns"])) for label, k in TIMES)
    return Table("times", "Times", columns, rows, in_full=True)


def _class_name(record: Record) -> Value:
    return record["kernel_class"] or (NOT_JOINED if record.get("hlo_instruction", "") is None else "unknown")


def _instruction_name(record: Record) -> Value:
    return record["hlo_instruction"] if record["hlo_instruction"] is not None else NOT_JOINED


def _doubts(record: Record) -> tuple[Mark, ...]:
    marks = []
    if record["above_measured"]:
        marks.append(ABOVE)
    if record.get("unknown_bytes_time_share") and record["bytes_accessed"] is not None:
        marks.append(PARTLY)
    if record.get("match_confidence") is not None and record["match_confidence"] < 0.5:
        marks.append(DOUBTFUL)
    return tuple(marks)


def classes_table(classes: pa.Table, total: Record | None = None) -> Table:
    """One program's classes, most time first."""
    return present(classes, CLASSES, "classes", "Classes", marks=_doubts, words={"kernel_class": _class_name}, total=total)


def details_table(details: pa.Table) -> Table:
    """One program's classes and details, most time first."""
    return present(details, DETAILS, "details", "Classes in detail", marks=_doubts, words={"kernel_class": _class_name}, in_full=True)


def phases_table(phases: pa.Table) -> Table:
    """The phases of one program that trains, in the order of a step."""
    return present(phases, PHASES, "phases", "Phases")


def instructions_table(instructions: pa.Table, top: int | None) -> Table:
    """One program's instructions, most time first; `top` of them on short pages."""
    own = {"hlo_instruction": _instruction_name, "kernel_class": _class_name}
    phased = instructions["phase"].null_count < len(instructions)
    shows = (*INSTRUCTIONS[:4], Show("phase", "phase", 5), *INSTRUCTIONS[4:]) if phased else INSTRUCTIONS
    return present(instructions, shows, "instructions", "Instructions by time", marks=_doubts, words=own, lead=top)


def of_module(table: pa.Table, record: Record) -> pa.Table:
    """The rows of one program."""
    mask = None
    for key in ("hlo_module", "program_id"):
        column = table[key]
        same = pc.is_null(column) if record[key] is None else pc.fill_null(pc.equal(column, record[key]), False)
        mask = same if mask is None else pc.and_(mask, same)
    return table.filter(mask)
