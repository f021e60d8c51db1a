"""A small report made by hand, for the tests of the pages and exports."""

from __future__ import annotations

from nsys_report.fact import Fact
from nsys_report.reports.model import Column, Mark, Notice, Part, Report, Row, Section, Table

CLASS_COLUMNS = (
    Column("kernel_class", "class", "text"),
    Column("time_per_execution_ns", "time", "ns"),
    Column("time_share", "share", "ratio"),
    Column("launches_per_execution", "launches", "count", drop_rank=2),
    Column("bytes_accessed", "bytes", "bytes"),
    Column("bytes_per_s", "implied", "bytes_per_s"),
    Column("share_of_measured", "of measured", "ratio", drop_rank=1),
    Column("share_of_nominal", "of nominal", "ratio", drop_rank=3),
)

ABOVE = Mark("bytes_per_s", "▲", "above the measured ceiling: served from L2, or the count is wrong")

CLASSES = Table(
    "classes",
    "Classes",
    CLASS_COLUMNS,
    (
        Row(("weights", 412_345, 0.755, 43, 735_109_120, 1.783e12, 0.4146, 0.370)),
        Row(("kv_gather", 2_000, 0.0037, 12, 12_582_912, 6.29e12, 1.463, 1.307), marks=(ABOVE,)),
        Row(("other", 132_000, 0.2417, 107, None, None, None, None)),
        Row(("all", 546_345, 1.0, 162, None, None, None, None), is_total=True),
    ),
    notes=("24 complete executions",),
)


def instructions(names: tuple[str, ...], lead: int | None = None) -> Table:
    """A table with a column of names."""
    columns = (
        Column("hlo_instruction", "instruction", "name"),
        Column("time_ns", "time", "ns"),
        Column("op", "opcode", "text", drop_rank=1),
    )
    return Table("instructions", "Instructions", columns, tuple(Row((n, 1000 * i, "fusion")) for i, n in enumerate(names)), lead=lead)


def report(names: tuple[str, ...] = ("fusion.1", "fusion.2"), lead: int | None = None) -> Report:
    """A report with one part of two sections."""
    part = Part(
        "capture.sqlite",
        "NVIDIA H200, nsys 2023.4.4, 14.2 ms, 3,888 kernels",
        facts=(Fact("kernels", "kernels", 3888, "count"), Fact("span_ns", "span", 14_200_000, "ns")),
        notices=(Notice("lost-records", "12 launches have no kernel.", "Trace a shorter window."),),
        sections=(
            Section("classes", "Classes", tables=(CLASSES,)),
            Section("instructions", "Instructions", lines=("By time.",), tables=(instructions(names, lead),)),
        ),
    )
    return Report((part,), made_by="nsys-report test")
