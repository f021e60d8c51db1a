"""What `modules --instructions` says: each launched instruction with its class, costs and time at the roof, and a program's floor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hlo_mapping import floor_bytes, instruction_facts, launch_counts
from nsys_report.analysis.roofline.compute import arithmetic_ns
from nsys_report.fact import Fact
from nsys_report.paths import project_paths
from nsys_report.reports.model import Column, Row, Section, Table
from nsys_report.units import count, duration, size, things

if TYPE_CHECKING:
    from hlo_mapping import Program, RoleOverrides
    from nsys_report.analysis.roofline.ceilings import Ceilings

INSTRUCTIONS = (
    Column("hlo_module", "program", "name", drop_rank=5),
    Column("program_id", "number", "number", drop_rank=5),
    Column("hlo_instruction", "instruction", "name"),
    Column("op_name", "operation", "name", drop_rank=4),
    Column("source_file", "file", "name", drop_rank=3),
    Column("source_line", "line", "number", drop_rank=3),
    Column("kernel_class", "class", "text"),
    Column("class_detail", "detail", "text"),
    Column("phase", "phase", "text", drop_rank=4),
    Column("launches_per_execution", "launches", "count", "in one execution; nothing where a trip count is not known", drop_rank=1),
    Column("bytes_accessed", "bytes", "bytes", "in one execution"),
    Column("weight_bytes", "weights", "bytes", drop_rank=3),
    Column("kv_read_bytes", "cache read", "bytes", drop_rank=4),
    Column("kv_write_bytes", "cache written", "bytes", drop_rank=4),
    Column("flops", "operations", "count", "of products and library calls in one execution", drop_rank=2),
    Column("roof_ns", "at the roof", "ns", "the longer of its bytes' and its arithmetic's time at the ceilings"),
    Column("bound", "bound", "text", "memory or compute: which of the two is longer", drop_rank=2),
)
CLASSES = (
    Column("kernel_class", "class", "text"),
    Column("class_detail", "detail", "text"),
    Column("instructions", "instructions", "count"),
    Column("bytes_accessed", "bytes", "bytes", "in one execution, of the instructions whose bytes are known"),
    Column("flops", "operations", "count"),
    Column("roof_ns", "at the roof", "ns"),
    Column("unknown", "unknown", "count", "instructions whose bytes or launches are not known"),
)
_COSTS = ("bytes_accessed", "weight_bytes", "kv_read_bytes", "kv_write_bytes", "flops")

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class InstructionSums:
    """The launched instructions of one program, and its floor: bytes and the times of both parts (None without a ceiling)."""

    program: Program
    rows: tuple[Record, ...]
    floor_bytes: int
    memory_ns: float | None
    compute_ns: float | None

    @property
    def floor_ns(self) -> float | None:
        """The longer of the two parts that are known."""
        return max((ns for ns in (self.memory_ns, self.compute_ns) if ns is not None), default=None)


def instruction_sums(program: Program, ceilings: Ceilings | None, overrides: RoleOverrides | None) -> InstructionSums | None:
    """The figures of one program; None without a module. HloError where its values cannot be followed."""
    if program.module is None:
        return None
    launches = launch_counts(program.module)
    facts = {row["hlo_instruction"]: row for row in instruction_facts(program, overrides).to_pylist()}
    rows, compute = [], list[float | None]()
    for name, fact in facts.items():
        times = launches.get(name)
        record = {**fact, "launches_per_execution": times}
        record |= {key: fact[key] * times if fact[key] is not None and times is not None else None for key in _COSTS}
        arithmetic = arithmetic_ns(program.module, name, record["flops"], ceilings)
        compute.append(arithmetic)
        rows.append(record | _roof(record["bytes_accessed"], arithmetic, ceilings))
    least = floor_bytes(list(facts.values()), launches)
    roof = ceilings.roof if ceilings is not None else None
    return InstructionSums(program, tuple(rows), least, least * 1e9 / roof.value if roof else None, _sum(compute) if roof else None)


def _roof(moved: int | None, compute_ns: float | None, ceilings: Ceilings | None) -> Record:
    roof = ceilings.roof if ceilings is not None else None
    if moved is None or roof is None:
        return {"roof_ns": None, "bound": None}
    memory = moved * 1e9 / roof.value
    arithmetic = compute_ns or 0.0
    return {"roof_ns": max(memory, arithmetic), "bound": "compute" if arithmetic > memory else "memory"}


def instruction_sections(programs: Sequence[InstructionSums], top: int | None) -> list[Section]:
    """Each program's floor and sums by class, and one table of the instructions of all."""
    records = [record for found in programs for record in found.rows]
    shown = project_paths({record["source_file"] for record in records} - {None})
    records = [record | {"source_file": shown.get(record["source_file"])} for record in records]
    records.sort(key=lambda r: (-(r["roof_ns"] or 0), -(r["bytes_accessed"] or 0), r["hlo_instruction"]))
    rows = tuple(Row(tuple(record.get(column.key) for column in INSTRUCTIONS)) for record in records)
    table = Table("instructions", "Instructions", INSTRUCTIONS, rows, lead=top)
    return [*(_program_section(found, top) for found in programs), Section("instructions", "Instructions", tables=(table,))]


def _program_section(found: InstructionSums, top: int | None) -> Section:
    """One program: its floor in a sentence, and sums by class."""
    title = f"{found.program.name}#{found.program.number}"
    tables = (Table("instruction_classes", "By class", CLASSES, tuple(_classes(found.rows)), lead=top),)
    facts = [Fact("floor_bytes", "floor bytes", found.floor_bytes, "bytes")]
    named = (("floor_memory_ns", "bytes at the ceiling", found.memory_ns), ("floor_compute_ns", "arithmetic", found.compute_ns))
    facts += [Fact(key, words, value, "ns") for key, words, value in (*named, ("floor_ns", "floor", found.floor_ns)) if value is not None]
    return Section(f"instructions:{title}", title, (_sentence(found),), facts=tuple(facts), tables=tables, module=title)


def _sentence(found: InstructionSums) -> str:
    text = f"{things(len(found.rows), 'launched instruction')}. It must move at least {size(found.floor_bytes)} an execution"
    text += " (inputs that it needs, results)"
    if found.floor_ns is not None and found.memory_ns is not None:
        text += f": {duration(found.memory_ns)} at the ceiling, and its arithmetic takes {duration(found.compute_ns or 0)}"
        text += f", so no execution is shorter than {duration(found.floor_ns)}"
    unknown = sum(_is_unknown(record) for record in found.rows)
    return f"{text}." + (f" Of {count(unknown)} of them bytes or launches are not known." if unknown else "")


def _classes(rows: Iterable[Mapping[str, Any]]) -> Iterable[Row]:
    groups: dict[tuple[str | None, str | None], list[Mapping[str, Any]]] = defaultdict(list)
    for record in rows:
        groups[record["kernel_class"], record["class_detail"]].append(record)
    sums = [(key, [_sum(r[name] for r in mine) for name in ("bytes_accessed", "flops", "roof_ns")], mine) for key, mine in groups.items()]
    for (kind, detail), (moved, flops, roof), mine in sorted(sums, key=lambda s: (-(s[1][2] or 0), -(s[1][0] or 0))):
        yield Row((kind, detail, len(mine), moved, flops, roof, sum(map(_is_unknown, mine))))


def _is_unknown(record: Mapping[str, Any]) -> bool:
    return record["bytes_accessed"] is None


def _sum(values: Iterable[Any]) -> Any:
    """The sum of what is known; None where nothing is."""
    known = [v for v in values if v is not None]
    return sum(known) if known else None
