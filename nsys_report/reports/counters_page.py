"""What the report says of hardware counters: traffic that was sampled or profiled, beside what instructions must move."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nsys_report.counters.instructions import Measured, Overlay
from nsys_report.counters.model import Counters
from nsys_report.counters.sampled import Sampled
from nsys_report.reports.model import Column, Row, Section, Table
from nsys_report.units import count, duration, things

SAMPLED = (
    Column("hlo_module", "program", "name"),
    Column("program_id", "number", "number"),
    Column("executions", "executions", "count"),
    Column("implied_bytes", "implied", "bytes", "what an execution's instructions must move"),
    Column("read_bytes", "read", "bytes", "from the GPU's memory, an execution"),
    Column("written_bytes", "written", "bytes", "to the GPU's memory, an execution"),
    Column("of_implied", "of implied", "ratio", "below 100 % where caches serve some of it, above where more is moved than must be"),
    Column("sms_active", "SMs active", "ratio", "mean share of multiprocessors with work while it runs"),
    Column("tensor_active", "tensor cores", "ratio", "mean share of cycles in which tensor cores work", 1),
)
MEASURED = (
    Column("hlo_module", "program", "name", drop_rank=1),
    Column("hlo_instruction", "instruction", "kernel"),
    Column("launches", "launches", "count", "that were profiled", 2),
    Column("duration_ns", "time", "ns", "under ncu, with cold caches and the clocks that it sets"),
    Column("implied_bytes", "implied", "bytes", "what it must move"),
    Column("read_bytes", "read", "bytes", "from the GPU's memory"),
    Column("written_bytes", "written", "bytes", "to the GPU's memory by the time it ends; the rest still lies in L2"),
    Column("of_implied", "of implied", "ratio", "read and written, of the implied bytes"),
    Column("difference", "differs", "text", "more, or less, than the implied bytes and L2 explain"),
)
DIFFERS = {"": None, "more": "moves more", "less": "moves less"}
FROM = 1.1
"""Of the implied bytes, from which a program is said to move more."""


def counters_sections(counters: Counters | None, top: int | None) -> Iterable[Section]:
    """Sections of what was counted, `top` instructions on short pages; none where nothing was."""
    if counters is None:
        return
    if counters.sampled:
        yield _sampled(counters.sampled)
    if counters.profiled is not None:
        yield _profiled(counters.profiled, top)


def _sampled(programs: Sequence[Sampled]) -> Section:
    rows = [
        Row(
            (
                one.hlo_module,
                one.program_id,
                one.executions,
                one.implied_bytes,
                one.read_bytes,
                one.written_bytes,
                one.of_implied,
                one.sms_active,
                one.tensor_active,
            )
        )
        for one in programs
    ]
    lines = [
        f"The GPU's counters were read every {duration(programs[0].interval_ns)}, in whole percents of the peak; they count all that runs "
        "on the GPU meanwhile."
    ]
    lines += [
        f"{one.hlo_module} moves {one.of_implied - 1:.0%} more than its instructions must: it reads again, spills, or shares the GPU."
        for one in programs
        if one.of_implied is not None and one.of_implied >= FROM
    ]
    return Section("gpu_metrics", "Sampled traffic", tuple(lines), tables=(Table("gpu_metrics", "Memory traffic", SAMPLED, tuple(rows)),))


def _profiled(overlay: Overlay, top: int | None) -> Section:
    ordered = sorted(overlay.instructions, key=lambda one: (not one.difference, -(one.moved_bytes or 0.0)))
    lines = [
        f"{count(overlay.placed)} of {count(overlay.launches)} launches that ncu profiled are executions of the capture's programs, by "
        "kernel names, launch dimensions and order."
    ]
    differ = [one for one in ordered if one.difference]
    if overlay.placed:
        verb = "moves" if len(differ) == 1 else "move"
        lines.append(f"{count(len(differ))} of {things(len(ordered), 'instruction')} {verb} other than implied.")
    table = Table("ncu", "Bytes by instruction", MEASURED, tuple(map(_row, ordered)), lead=None if top is None else max(top, len(differ)))
    return Section("ncu", "Profiled traffic", tuple(lines), tables=(table,) if ordered else ())


def _row(one: Measured) -> Row:
    return Row(
        (
            one.hlo_module,
            one.hlo_instruction,
            one.launches,
            one.duration_ns,
            one.implied_bytes,
            one.read_bytes,
            one.written_bytes,
            one.of_implied,
            DIFFERS[one.difference],
        )
    )
