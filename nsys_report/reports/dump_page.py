"""What `modules` says: the programs of a dump side by side, and one of them in detail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from nsys_report.reports.model import Column, Row, Section, Table
from nsys_report.reports.units import count, size, things

if TYPE_CHECKING:
    from hlo_mapping.summary import ProgramSummary

PROGRAMS = (
    Column("program", "program", "name"),
    Column("program_id", "number", "number"),
    Column("instructions", "launching instructions", "count", keep=2),
    Column("fusions", "fusions", "count", keep=3),
    Column("calls", "library calls", "count", keep=3),
    Column("products", "products", "count", keep=4),
    Column("weight_bytes", "weights", "bytes"),
    Column("kv_cache_bytes", "KV caches", "bytes", keep=1),
    Column("state_bytes", "state", "bytes", keep=1),
    Column("input_bytes", "inputs", "bytes", keep=2),
    Column("donated_bytes", "donated", "bytes", keep=1),
    Column("temporary_bytes", "scratch", "bytes", keep=1),
)
GROUPS = (
    Column("role", "role", "text"),
    Column("count", "how many", "count"),
    Column("bytes", "each", "bytes"),
    Column("total_bytes", "in all", "bytes"),
    Column("donated", "donated", "flag", keep=1),
    Column("name", "such as", "name", keep=3),
    Column("why", "because it is", "name", keep=2),
)
PARAMETERS = (
    Column("number", "number", "text"),
    Column("name", "parameter", "name"),
    Column("role", "role", "text"),
    Column("bytes", "bytes", "bytes"),
    Column("donated", "donated", "flag"),
    Column("why", "because it is", "name"),
)
KINDS = (Column("kind", "work", "name"), Column("count", "instructions", "count"))
DOTS = (
    Column("opcode", "product", "text"),
    Column("types", "types", "text"),
    Column("precision", "precision", "text", keep=1),
    Column("algorithm", "algorithm", "text", keep=2),
    Column("count", "count", "count"),
)
TEMPORARIES = (
    Column("shape", "shape", "name"),
    Column("count", "how many", "count"),
    Column("bytes", "each", "bytes"),
    Column("total_bytes", "in all", "bytes"),
    Column("instruction", "such as", "name", keep=1),
)


def programs_section(programs: Sequence[ProgramSummary], directory: str, problems: Sequence[str], top: int | None) -> Section:
    """All programs, largest parameters first."""
    ordered = sorted(programs, key=lambda p: (-sum(q.bytes for q in p.parameters), p.number))
    lines = [f"{directory}: {things(len(programs), 'program')}."]
    same = [group for group in Counter(p.skeleton for p in programs).values() if group > 1]
    if same:
        lines.append(
            f"{count(sum(same))} of them are {things(len(same), 'program')} compiled several times, alike but for the sizes of dimensions; "
            f"the largest group has {count(max(same))}."
        )
    table = Table("programs", "Programs", PROGRAMS, tuple(map(_program_row, ordered)), lead=top)
    return Section("programs", "Programs", (*lines, *problems), tables=(table,))


def _program_row(p: ProgramSummary) -> Row:
    products = sum(dot.count for dot in p.dots)
    sizes = (*(p.bytes_of(role) for role in ("weight", "kv_cache", "state", "input")), p.donated_bytes, p.temporary_bytes)
    return Row((p.name, p.number, p.instructions, p.fusions, p.calls, products, *sizes))


def program_sections(p: ProgramSummary, top: int | None) -> Iterable[Section]:
    """One program in detail: its parameters, its work, its products, its scratch memory."""
    title = f"{p.name}#{p.number}"
    tables = [
        Table("parameter_groups", "Parameters alike", GROUPS, tuple(_groups(p)), lead=top),
        Table("parameters", "Parameters", PARAMETERS, tuple(_parameters(p)), in_full=True),
        Table("kinds", "Work by kind", KINDS, tuple(Row(pair) for pair in p.kinds), lead=top),
    ]
    if p.dots:
        rows = tuple(Row((d.opcode, d.types, d.precision or "default", d.algorithm or "default", d.count)) for d in p.dots)
        tables.append(Table("dots", "Matrix products and convolutions", DOTS, rows, lead=top))
    if p.temporaries:
        tables.append(Table("temporaries", "Largest values in scratch memory", TEMPORARIES, tuple(_temporaries(p)), lead=top))
    roles = ((role, [q for q in p.parameters if q.role == role]) for role in ("weight", "kv_cache", "state", "input"))
    parts = [f"{count(len(found))} {role.replace('_', ' ')} ({size(sum(q.bytes for q in found))})" for role, found in roles if found]
    lines = (f"Parameters: {', '.join(parts)}; donated {size(p.donated_bytes)}.",) if parts else ("It takes no parameters.",)
    yield Section(f"program:{title}", title, lines, tables=tuple(tables), module=title)


def _parameters(p: ProgramSummary) -> Iterable[Row]:
    for q in sorted(p.parameters, key=lambda q: -q.bytes):
        index = "".join(f".{i}" for i in q.index)
        yield Row((f"{q.number}{index}", q.name, q.role.replace("_", " "), q.bytes, q.donated, q.why))


def _groups(p: ProgramSummary) -> Iterable[Row]:
    """Parameters of one role, size and reason together, most bytes first: a layer's weights are many and alike."""
    groups: dict[tuple[str, int, bool, str], list[str]] = {}
    for q in p.parameters:
        groups.setdefault((q.role, q.bytes, q.donated, q.why), []).append(q.name)
    for (role, each, donated, why), names in sorted(groups.items(), key=lambda item: -item[0][1] * len(item[1])):
        yield Row((role.replace("_", " "), len(names), each, each * len(names), donated, names[0], why))


def _temporaries(p: ProgramSummary) -> Iterable[Row]:
    """Values of one shape together; they may share the same memory one after the other."""
    groups: dict[tuple[str, int], list[str]] = {}
    for t in p.temporaries:
        groups.setdefault((t.shape, t.bytes), []).append(t.instruction)
    for (shape, each), names in sorted(groups.items(), key=lambda item: -item[0][1] * len(item[1])):
        yield Row((shape, len(names), each, each * len(names), names[0]))
