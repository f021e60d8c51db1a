"""What memory a program needs: how much for what, what is in use where most is, the largest temporaries, what donating would save."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nsys_report.fact import Fact
from nsys_report.reports.model import Column, Row, Table
from nsys_report.reports.present import Record
from nsys_report.units import share, size, things

if TYPE_CHECKING:
    import pyarrow as pa

    from hlo_mapping import ProgramMemory, TemporaryValue
    from nsys_report.session import Session

_LAYOUT = re.compile(r"\{[^}]*\}")
MOST_LARGEST = 50
"""Temporaries that the table of the largest has."""
MOST_POINTS = 500
"""Stretches of a drawn curve."""
WORTH_DONATING = 0.01
"""Share of a program's memory from which on donating is spoken of."""
COLUMNS = (
    Column("label", "called", "name", "what a person calls the instruction that makes it"),
    Column("instruction", "instruction", "name", "the instruction that makes it, and the part of its result"),
    Column("bytes", "bytes", "bytes", "its size"),
    Column("shape", "shape", "text", "its type and dimensions", 3),
    Column("source", "source", "name", "the line it comes from", 2),
    Column("first", "from", "number", "place in the program's order at which it is made", 4),
    Column("last", "to", "number", "place at which it is needed last", 4),
)


@dataclass(frozen=True, slots=True)
class Curve:
    """Bytes of temporaries in use in stretches of a program's order, and where most are."""

    points: tuple[int, ...]
    instructions: int
    place: int
    most: int
    where: str


def memory_of(session: Session, record: Record) -> ProgramMemory | None:
    """The memory of a program of the report; None where nobody knows."""
    return session.results.memory.get(record["program_id"]) if record["program_id"] is not None else None


def memory_lines(memory: ProgramMemory) -> tuple[str, ...]:
    """What a program needs in a sentence, and what donating would save."""
    donated = f" ({size(memory.donated)} of it donated)" if memory.donated else ""
    text = (
        f"It needs {size(memory.total)} of device memory: {size(memory.arguments)} of arguments{donated}, "
        f"{size(memory.results)} of results, {size(memory.temporaries)} of temporaries."
    )
    saved = sum(d.size for d in memory.donations)
    if saved < WORTH_DONATING * memory.total:
        return (text,)
    what = "is returned" if len(memory.donations) == 1 else "are returned"
    return (
        text,
        f"{things(len(memory.donations), 'argument')} of {size(saved)} {what} in the same shape and another buffer: "
        f"donated (donate_argnums), {share(saved / memory.total)} of its memory would not be needed, if nobody reads the old ones after.",
    )


def memory_curve(memory: ProgramMemory) -> Curve | None:
    """Temporaries in use over the order of the program, thinned out to the most in each stretch; None without any."""
    length, (place, most) = len(memory.order), memory.peak
    if not most:
        return None
    live = [0] * length
    steps = [*memory.live, (length, 0)]
    for (start, used), (end, _) in pairwise(steps):
        live[start:end] = [used] * (min(end, length) - start)
    size_of_stretch = max(-(-length // MOST_POINTS), 1)
    points = tuple(max(live[at : at + size_of_stretch]) for at in range(0, length, size_of_stretch))
    return Curve(points, length, place, most, memory.order[place])


def memory_facts(memory: ProgramMemory) -> Iterable[Fact]:
    """The totals as figures."""
    yield Fact("memory_bytes", "device memory", memory.total, "bytes")
    yield Fact("temporaries_bytes", "temporaries", memory.temporaries, "bytes")
    yield Fact("temporaries_peak_bytes", "temporaries in use at most", memory.peak[1], "bytes")
    yield Fact("donatable_bytes", "arguments to donate", sum(d.size for d in memory.donations), "bytes")


def memory_tables(memory: ProgramMemory, instructions: pa.Table) -> list[Table]:
    """For what, what is alive where most is, and the largest temporaries; `instructions` name what makes them."""
    names = {r["hlo_instruction"]: r for r in instructions.to_pylist() if r["hlo_instruction"] is not None}
    place = memory.peak[0]
    alive = [v for v in memory.alive_at(place) if not _is_table(v)]
    tables = [_kinds(memory)]
    if alive:
        title = f"Temporaries in use at the peak, at {memory.order[place]}"
        tables.append(Table("memory_peak", title, COLUMNS, tuple(_row(v, names) for v in alive), in_full=True))
        largest = sorted(
            {(v.instruction, v.index): v for v in memory.values if not _is_table(v)}.values(), key=lambda v: (-v.size, v.first)
        )[:MOST_LARGEST]
        tables.append(Table("memory_temporaries", "Largest temporaries", COLUMNS, tuple(_row(v, names) for v in largest), in_full=True))
    return tables


def _is_table(value: TemporaryValue) -> bool:
    """Whether it is a tuple's table of pointers."""
    return value.shape.startswith("(")


def _kinds(memory: ProgramMemory) -> Table:
    peak = memory.peak[1]
    known = memory.arguments + memory.results + memory.constants + memory.temporaries
    rows = (
        ("arguments", memory.arguments - memory.donated),
        ("arguments donated, reused for results", memory.donated),
        ("results in buffers of their own", memory.results),
        ("constants", memory.constants),
        ("temporaries in use at the peak", peak),
        ("temporaries never in use at once (fragmentation)", memory.temporaries - peak),
        ("kept by threads", memory.total - known),
    )
    columns = (
        Column("what", "memory", "text"),
        Column("bytes", "bytes", "bytes", "of the allocations that XLA planned; they add up to its own total"),
        Column("share", "share", "ratio", "share of all on the device"),
    )
    shown = tuple(Row((what, count, count / memory.total if memory.total else None)) for what, count in rows if count)
    return Table("memory", "Memory", columns, (*shown, Row(("all", memory.total, 1.0), is_total=True)), in_full=True)


def _row(value: TemporaryValue, names: Mapping[str, Mapping[str, Any]]) -> Row:
    found = names.get(value.instruction, {})
    line = f"{found['source_file'].rpartition('/')[2]}:{found['source_line']}" if found.get("source_file") else None
    name = value.instruction + "".join(f"#{i}" for i in value.index)
    return Row((found.get("label"), name, value.size, _LAYOUT.sub("", value.shape), line, value.first, value.last))
