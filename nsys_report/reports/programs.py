"""The sections about programs: all of them side by side, then each with its times, classes and instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.quantities import name_of
from nsys_report.reports.model import Column, Mark, Row, Table
from nsys_report.reports.present import FEWEST_FOR_SPREAD, Record, Show, present
from nsys_report.units import Value, things

NOT_JOINED = "not joined"
ABOVE = Mark("bytes_per_s", "▲", "above the measured ceiling: L2 served it, or the bytes are counted wrong")
PARTLY = Mark("bytes_accessed", "?", "part of its kernels have unknown bytes; the bandwidth is of the others")
RARELY = Mark(
    "launches_per_execution", "∗", "in some executions only: launches and bytes are of one that has it, the time is of a typical step"
)
DOUBTFUL = Mark("hlo_instruction", "?", "joined with a confidence under 0.5")

MODULES = (
    Show("hlo_module", "program", unit="name"),
    Show("program_id", "number", 9),
    Show("program_kind", "kind", 6),
    Show("executions", "executions"),
    Show("complete_executions", "complete", 6),
    Show("kernels_per_execution", "kernels each"),
    Show("step_ns"),
    Show("typical_kernel_time_ns"),
    Show("idle_ns"),
    Show("host_gap_ns", drop_rank=2),
    Show("host_gap_p10_ns", "p10", 7),
    Show("host_gap_p90_ns", "p90", 7),
    Show("kernel_time_ns", drop_rank=8),
    Show("kernel_time_p10_ns", "p10", 8),
    Show("kernel_time_p90_ns", "p90", 8),
    Show("busy_time_ns", drop_rank=8),
    Show("busy_time_p10_ns", "p10", 8),
    Show("busy_time_p90_ns", "p90", 8),
    Show("kernel_time_share", "of all kernel time", 1),
)
OF_STEPS = ("step_ns", "typical_kernel_time_ns", "idle_ns")
"""Columns of the table of programs that come from the table of steps."""

_FIGURES = (
    Show("typical_ns"),
    Show("time_per_execution_ns", drop_rank=8),
    Show("time_per_execution_p10_ns", "p10", 8),
    Show("time_per_execution_p90_ns", "p90", 8),
    Show("typical_share"),
    Show("time_share", "share in all executions", 9),
    Show("launches_per_execution", "launches", 4),
    Show("bytes_accessed", "bytes", 1),
    Show("bytes_per_s", drop_rank=1),
    Show("share_of_measured", drop_rank=1),
    Show("share_of_nominal", drop_rank=7),
)
_FLOORS = (
    Show("floor_measured_ns", drop_rank=3),
    Show("floor_nominal_ns", drop_rank=8),
    Show("flops_per_s", "compute", 5),
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
    Show("kernel_class", "class", 2),
    Show("class_detail", "detail", 5),
    *_FIGURES,
    Show("flops_per_s", "compute", 6),
    Show("source_file", "source", 3, "name"),
    Show("kernel_name", "kernel", 7, "kernel"),
    Show("opcode", "opcode", 9),
    Show("match_method", "match", 9),
    Show("match_confidence", "confidence", 9),
    Show("layer", "layer", 10),
    Show("parameters", "parameters", 10, "name"),
    Show("op_name", "operation", 10, "name"),
    Show("source_line", "line", 10, "number"),
)
PHASES = (
    Show("phase", "phase"),
    Show("typical_ns"),
    Show("typical_share"),
    Show("time_mean_ns", "mean time", 9),
    Show("time_share", "share in all executions", 9),
    Show("launches_per_execution", "launches"),
    Show("instructions", "instructions", 4),
)
TIMES = ("kernel_time_ns", "busy_time_ns", "span_ns", "host_gap_ns", "interval_ns")
"""What an execution's and a step's medians are of."""


def total_busy(record: Record) -> float:
    """Busy time of all executions of a program, taken from the median one."""
    return float((record["busy_time_ns"] or 0) * record["executions"])


def modules_table(modules: pa.Table, steps: pa.Table, top: int | None = None) -> Table:
    """All programs side by side, most busy time first, with the figures of their typical steps."""
    left_out = pc.sum(pc.subtract(modules["executions"], modules["complete_executions"])).as_py() or 0
    notes = [
        "step, kernel time and idle: of a typical step, the mean over the middle half of a program's steps; host gap: the median idle time "
        "right before an execution, after whatever ran last, the last stretch of the step's idle time"
    ]
    if left_out:
        notes.append(f"{things(left_out, 'execution')} cut off by the window or lost records: counted, but in no other figure")
    names = Counter(modules["hlo_module"].to_pylist())
    few: dict[str, Callable[[Record], Value]] = {s.key: partial(_unless_few, s.key) for s in MODULES if s.heading in ("p10", "p90")}

    def name(record: Record) -> str:
        return title_of(record) if names[record["hlo_module"]] > 1 else str(_name(record))

    lead = _with_kernels(modules, top)
    return present(
        _with_steps(modules, steps), MODULES, "modules", "Programs", words=few, labels={"hlo_module": name}, notes=tuple(notes), lead=lead
    )


def _with_steps(modules: pa.Table, steps: pa.Table) -> pa.Table:
    """The programs with the figures of their typical steps beside them; null for one without a step."""
    keys = ("hlo_module", "program_id")
    known = {tuple(r[k] for k in keys): r for r in steps.to_pylist()}
    found = [known.get(tuple(r[k] for k in keys)) for r in modules.select(list(keys)).to_pylist()]
    for key, column in zip(OF_STEPS, ("typical_ns", "typical_kernel_time_ns", "idle_ns"), strict=True):
        whole = [None if row is None or (row["is_alone"] and key != "typical_kernel_time_ns") else row[column] for row in found]
        field = pa.field(key, pa.float64(), metadata=steps.schema.field(column).metadata)
        modules = modules.append_column(field, pa.array(whole, pa.float64()))
    return modules


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
    stems = [key.removesuffix("_ns") for key in TIMES]
    names = [name_of(key).removeprefix("median ") for key in TIMES]
    rows = tuple(Row((name, record[f"{k}_ns"], record[f"{k}_p10_ns"], record[f"{k}_p90_ns"])) for name, k in zip(names, stems, strict=True))
    return Table("times", "Medians of executions", columns, rows, in_full=True)


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


def instructions_table(instructions: pa.Table, top: int | None, runs: int) -> Table:
    """One program's instructions, most time first; `top` of them on short pages. It ran so many times whole."""
    own = {"hlo_instruction": _instruction_name, "kernel_class": _class_name}
    labels = {"source_file": _source}
    phased = instructions["phase"].null_count < len(instructions)
    shows = (*INSTRUCTIONS[:4], Show("phase", "phase", 3), *INSTRUCTIONS[4:]) if phased else INSTRUCTIONS
    return present(
        instructions,
        shows,
        "instructions",
        "Instructions by time",
        marks=partial(_rarely, _doubts, runs),
        words=own,
        labels=labels,
        lead=top,
    )


def _source(record: Record) -> str:
    """The line that an instruction came from."""
    return (
        "" if record["source_file"] is None else ":".join(str(v) for v in (record["source_file"], record["source_line"]) if v is not None)
    )


def _rarely(others: Callable[[Record], tuple[Mark, ...]], runs: int, record: Record) -> tuple[Mark, ...]:
    """The other doubts, and whether it ran in some executions only: its launches and bytes are of those, its time of a typical step."""
    return (*others(record), RARELY) if record["executions"] < runs else others(record)
