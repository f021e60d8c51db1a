"""What `modules` says: the programs of a dump side by side, and one of them in detail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from nsys_report.reports.model import Column, Row, Section, Table
from nsys_report.units import count, size, things

if TYPE_CHECKING:
    from hlo_mapping import ProgramSummary

PROGRAMS = (
    Column("program", "program", "name"),
    Column("program_id", "number", "number"),
    Column("instructions", "launching instructions", "count", drop_rank=2),
    Column("fusions", "fusions", "count", drop_rank=3),
    Column("calls", "library calls", "count", drop_rank=3),
    Column("products", "products", "count", drop_rank=4),
    Column("staged_bytes", "weights rewritten", "bytes", "written by instructions that only convert or rearrange weights", drop_rank=3),
    Column("weight_bytes", "weights", "bytes"),
    Column("kv_cache_bytes", "KV caches", "bytes", drop_rank=1),
    Column("state_bytes", "state", "bytes", drop_rank=1),
    Column("input_bytes", "inputs", "bytes", drop_rank=2),
    Column("donated_bytes", "donated", "bytes", drop_rank=1),
    Column("temporary_bytes", "scratch", "bytes", drop_rank=1),
)
GROUPS = (
    Column("role", "role", "text"),
    Column("count", "how many", "count"),
    Column("bytes", "each", "bytes"),
    Column("total_bytes", "in all", "bytes"),
    Column("donated", "donated", "flag", drop_rank=1),
    Column("name", "such as", "name", drop_rank=3),
    Column("why", "because it is", "name", drop_rank=2),
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
    Column("kind", "product", "text"),
    Column("lhs_type", "left", "text"),
    Column("rhs_type", "right", "text"),
    Column("accumulation_type", "sums in", "text"),
    Column("result_type", "result", "text"),
    Column("precision", "precision", "text", drop_rank=1),
    Column("algorithm", "algorithm", "text", "that the program asks for", drop_rank=2),
    Column("count", "count", "count"),
)
STAGED = (
    Column("detail", "what", "text"),
    Column("source", "from", "name"),
    Column("result", "to", "name"),
    Column("count", "how many", "count"),
    Column("bytes_written", "each writes", "bytes", "in one execution of the instruction; one in a loop runs many times"),
    Column("total_bytes", "in all", "bytes"),
    Column("instruction", "such as", "name", drop_rank=1),
)
TEMPORARIES = (
    Column("shape", "shape", "name"),
    Column("bytes", "each", "bytes"),
    Column("count", "how many", "count"),
    Column("instruction", "such as", "name", drop_rank=1),
)
ALIKE = (
    Column("program", "program", "name"),
    Column("count", "compiled", "count"),
    Column("numbers", "numbers", "name", drop_rank=1),
    Column("shapes", "differs in", "name"),
)


def programs_section(programs: Sequence[ProgramSummary], directory: str, problems: Sequence[str], top: int | None) -> Section:
    """All programs, largest parameters first."""
    ordered = sorted(programs, key=lambda p: (-sum(q.bytes for q in p.parameters), p.number))
    lines = [f"{directory}: {things(len(programs), 'program')}."]
    same = _alike(ordered)
    if same:
        number, most = sum(map(len, same)), max(same, key=len)
        lines.append(
            f"{count(number)} of them are {things(len(same), 'program')} compiled again and again, differing in nothing but the sizes of "
            f"arrays; {most[0].name} has {count(len(most))}."
        )
    tables = [Table("programs", "Programs", PROGRAMS, tuple(map(_program_row, ordered)), lead=top)]
    if same:
        tables.append(Table("alike", "Programs that differ in sizes alone", ALIKE, tuple(map(_alike_row, same)), lead=top))
    return Section("programs", "Programs", (*lines, *problems), tables=tuple(tables))


def _alike(programs: Iterable[ProgramSummary]) -> list[list[ProgramSummary]]:
    """The groups of programs that are the same but for sizes, largest first."""
    groups: dict[str, list[ProgramSummary]] = {}
    for p in programs:
        groups.setdefault(p.skeleton, []).append(p)
    return sorted((sorted(g, key=lambda p: p.number) for g in groups.values() if len(g) > 1), key=lambda g: -len(g))


def _alike_row(group: list[ProgramSummary]) -> Row:
    first, *_, last = [p.number for p in group]
    return Row((group[0].name, len(group), f"{first} to {last}" if len(group) > 2 else f"{first}, {last}", _differing(group)))


def _differing(group: list[ProgramSummary], most: int = 4) -> str:
    """The shapes of the first array, of parameters before results, that is not the same in all."""
    for shapes in zip(*(p.shapes for p in group), strict=False):
        if len(distinct := list(dict.fromkeys(shapes))) > 1:
            return ", ".join(distinct[:most]) + (f" and {len(distinct) - most} more" if len(distinct) > most else "")
    return "nothing that its arguments and results show"


def _program_row(p: ProgramSummary) -> Row:
    products, staged = sum(n for _, n in p.dots), sum(w.bytes_written for w in p.staged)
    sizes = (staged, *(p.bytes_of(role) for role in ("weight", "kv_cache", "state", "input")), p.donated_bytes, p.temporary_bytes)
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
        rows = tuple(
            Row((d.kind, d.lhs, d.rhs, d.accumulation, d.result, d.precision, d.algorithm or "default", number)) for d, number in p.dots
        )
        tables.append(Table("dots", "Matrix products and convolutions", DOTS, rows, lead=top))
    if p.staged:
        tables.append(Table("staged", "Weights written into buffers of their own", STAGED, tuple(_staged(p)), lead=top))
    if p.temporaries:
        notes = (f"at different times in the same memory: {size(p.temporary_bytes)} of scratch hold them all",) if p.temporary_bytes else ()
        tables.append(Table("temporaries", "Largest values in scratch memory", TEMPORARIES, tuple(_temporaries(p)), notes, lead=top))
    yield Section(f"program:{title}", title, (_parameters_line(p),), tables=tuple(tables), module=title)


def _parameters_line(p: ProgramSummary) -> str:
    """How many parameters of each role, their sizes, and whether what is returned anew may overwrite them."""
    roles = ((role, [q for q in p.parameters if q.role == role]) for role in ("weight", "kv_cache", "state", "input"))
    parts = [f"{count(len(found))} {role.replace('_', ' ')} ({size(sum(q.bytes for q in found))})" for role, found in roles if found]
    if not parts:
        return "It takes no parameters."
    kept = sum(q.bytes for q in p.parameters if q.role in ("kv_cache", "state") and not q.donated)
    remark = f"; {size(kept)} of caches and state are not donated, so that every execution writes a copy of them" if kept else ""
    return f"Parameters: {', '.join(parts)}; donated {size(p.donated_bytes)}{remark}."


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


def _staged(p: ProgramSummary) -> Iterable[Row]:
    """Instructions that do the same to weights of one shape together, most bytes first."""
    groups: dict[tuple[str, str, str, int], list[str]] = {}
    for w in p.staged:
        groups.setdefault((w.detail, w.source, w.result, w.bytes_written), []).append(w.instruction)
    for (*words, each), names in sorted(groups.items(), key=lambda item: -item[0][3] * len(item[1])):
        yield Row((*words, len(names), each, each * len(names), names[0]))


def _temporaries(p: ProgramSummary) -> Iterable[Row]:
    """Values of one shape together, largest first."""
    groups: dict[tuple[str, int], list[str]] = {}
    for t in p.temporaries:
        groups.setdefault((t.shape, t.bytes), []).append(t.instruction)
    for (shape, each), names in sorted(groups.items(), key=lambda item: -item[0][1]):
        yield Row((shape, each, len(names), names[0]))
