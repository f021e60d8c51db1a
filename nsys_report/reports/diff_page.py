"""A comparison as a report: set-up first, then each program's verdicts, the way from before to after, and what changed most."""

from __future__ import annotations

from collections.abc import Iterator

from nsys_report.comparison import model
from nsys_report.comparison.model import Comparison, InstructionChange, ProgramChange, QuantityChange, Setup
from nsys_report.reports.model import Column, Notice, Part, Report, Row, Section, Table
from nsys_report.units import change, change_share, duration, things

QUANTITIES = {
    "step_ns": ("mean step", "from the start of an execution to the next of the program"),
    "kernel_time_ns": ("kernel time", "sum of the kernels' durations"),
    "busy_time_ns": ("busy time", "length of the union of its activities"),
    "host_gap_ns": ("host gap", "from the end of the device's activity before to its first"),
    "idle_ns": ("idle", "pauses of the device within the step, by the budget"),
    "copies_ns": ("copies", "copies that no kernel hides, by the budget"),
}
SAID = {"same": "same", "slower": "slower", "faster": "faster", "unsure": "cannot tell"}
TOP_PARTS = 10


def build_diff_report(comparison: Comparison, made_by: str, top: int | None = 12) -> Report:
    """The report on a comparison; long tables show `top` rows on short pages."""
    main = comparison.main()
    sections = [s for program in main for s in _program_sections(program, top)]
    others = [p for p in comparison.programs if p not in main]
    part = Part(
        f"{_names(comparison.before)} → {_names(comparison.after)}",
        headline(comparison),
        comparison.notes,
        notices=_host_notices(main),
        sections=(_setup_section(comparison), *sections, *([_others(others)] if others else [])),
    )
    return Report((part,), made_by=made_by)


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names)


def headline(comparison: Comparison) -> str:
    """The verdict in one line."""
    said = []
    for program in comparison.main()[:3]:
        found = [q for key in ("kernel_time_ns", "step_ns") if (q := program.quantity(key)) is not None and q.verdict]
        said.append(f"{program.name.split('#')[0]}: " + ", ".join(f"{QUANTITIES[q.key][0]} {quantity_words(q)}" for q in found))
    if not said:
        return "no program runs on both sides"
    return "; ".join(said)


def quantity_words(q: QuantityChange) -> str:
    """A verdict in words, such as `slower by 194 µs (+35.1 %)`."""
    size = change(q.difference or 0.0) + (f", {change_share(q.relative)}" if q.relative is not None else "")
    more = f"; {q.runs_needed} captures a side would" if q.runs_needed and q.verdict == "unsure" else ""
    return f"{SAID[q.verdict or 'unsure']} ({size}{more})"


def _host_notices(programs: tuple[ProgramChange, ...]) -> tuple[Notice, ...]:
    """What the host's noise does to the figures that hold host time."""
    for program in programs[:1]:
        step = program.quantity("step_ns")
        if step is not None and step.verdict == "unsure" and step.noise_ns is not None:
            needed = f"Take {step.runs_needed} captures on each side (--before, --after)." if step.runs_needed else ""
            message = (
                f"The step moved by {change(step.difference or 0.0)}; runs of one program differ by up to {duration(step.noise_ns)} "
                f"there ({step.noise_from}), since the host's part of it is not steady. Kernel time is, and tells more."
            )
            return (Notice("host-noise", message, needed, "info"),)
    return ()


def _setup_section(comparison: Comparison) -> Section:
    rows = [*comparison.setup, *(s for program in comparison.main() for s in program.setup)]
    lines = () if rows else ("GPU, profiler, flags and shapes are the same on both sides, as far as captures and dumps tell.",)
    return Section("setup", "Set-up", lines, tables=(_setup_table(tuple(dict.fromkeys(rows))),) if rows else ())


def _setup_table(rows: tuple[Setup, ...]) -> Table:
    columns = (Column("what", "differs", "text"), Column("before", "before", "name"), Column("after", "after", "name"))
    return Table("setup", "Set-up", columns, tuple(Row((r.what, r.before, r.after)) for r in rows))


def _program_sections(program: ProgramChange, top: int | None) -> Iterator[Section]:
    tables = [_quantities_table(program), _parts_table(program), _instructions_table(program, top), *_rollup_tables(program)]
    yield Section(
        f"program:{program.name}", program.name, tuple(_lines(program)), tables=tuple(t for t in tables if t.rows), module=program.name
    )


def _lines(program: ProgramChange) -> Iterator[str]:
    """What happened to the instructions, in a sentence."""
    changes = [c.change for c in program.instructions]
    named = [(n, word) for word in ("split", "merged", "moved", "new", "gone") if (n := changes.count(word))]
    alike = sum(c.is_identical for c in program.instructions)
    if changes:
        rest = ", ".join(f"{n} {word}" for n, word in named) or "none split, merged, new or gone"
        yield f"{things(len(changes), 'instruction')}, {alike} with identical work: {rest}."
    for word in ("slower", "faster"):
        hit = [c for c in program.instructions if c.time.verdict == word]
        if hit:
            total = sum(c.time.difference or 0.0 for c in hit)
            yield f"{things(len(hit), 'instruction')} {word}, {change(total)} an execution: {', '.join(_name(c) for c in hit[:4])}" + (
                f" and {len(hit) - 4} more." if len(hit) > 4 else "."
            )
    for kind in dict.fromkeys(c.became for c in program.instructions if c.became):
        members = [c for c in program.instructions if c.became == kind]
        total = sum(c.time.difference or 0.0 for c in members)
        yield f"{kind}: {things(len(members), 'instruction')}, {change(total)} an execution."


def _name(c: InstructionChange) -> str:
    ones, others = (" + ".join(p.instruction for p in side) for side in (c.before, c.after))
    return others if ones == others or not ones else ones if not others else f"{ones} → {others}"


def _quantities_table(program: ProgramChange) -> Table:
    columns = (
        Column("quantity", "figure", "text"),
        Column("before", "before (mean)", "ns", "mean of complete executions", 1),
        Column("after", "after (mean)", "ns", "", 1),
        Column("difference", "difference", "change_ns", "of the means"),
        Column("relative", "relative", "change_ratio", "", 2),
        Column("low", "from", "change_ns", "95 % interval of the difference of the means, within these captures", 4),
        Column("high", "to", "change_ns", "", 4),
        Column("noise_ns", "noise", "ns", "how far apart runs of one program may be", 3),
        Column("noise_from", "how known", "text", "measured between captures of a side, or assumed", 5),
        Column("verdict", "verdict", "text", "of the medians"),
    )
    rows = [
        Row(
            (
                QUANTITIES[q.key][0],
                q.before.mean if q.before else None,
                q.after.mean if q.after else None,
                q.difference,
                q.relative,
                q.low,
                q.high,
                q.noise_ns,
                q.noise_from,
                SAID[q.verdict] if q.verdict else None,
            )
        )
        for q in program.quantities
    ]
    return Table(f"quantities:{program.name}", "Verdicts", columns, tuple(rows))


def _parts_table(program: ProgramChange) -> Table:
    """The way from the step before to the step after: parts that add up to the difference."""
    columns = (
        Column("part", "part", "name"),
        Column("group", "kind", "text", "", 3),
        Column("before", "before (mean)", "ns"),
        Column("after", "after (mean)", "ns"),
        Column("difference", "difference", "change_ns"),
    )
    rows = [Row((part_words(p), p.group, p.before.mean, p.after.mean, p.difference)) for p in waterfall(program)]
    step = program.quantity("step_ns")
    if step is not None and step.before and step.after:
        rows.append(Row(("mean step", "", step.before.mean, step.after.mean, step.difference), is_total=True))
    return Table(
        f"parts:{program.name}", "From before to after", columns, tuple(rows), ("The parts add up to the difference of the mean step.",)
    )


def part_words(part: model.StepPart) -> str:
    """A part's name in words: instructions keep their names, causes and categories lose their underscores."""
    return part.name if part.group in ("instruction", "unpaired") else part.name.replace("_", " ")


def waterfall(program: ProgramChange, most: int = TOP_PARTS) -> list[model.StepPart]:
    """The largest parts by difference, the rest of each group in one."""
    parts = sorted(program.parts, key=lambda p: -abs(p.difference))
    return [*parts[:most], *_rest(parts[most:])]


def _rest(parts: list[model.StepPart]) -> Iterator[model.StepPart]:
    kinds = [("instruction", "other instructions"), ("unpaired", "other instructions of one side only")]
    groups = {g for g, _ in kinds}
    for name, members in (
        *((label, [p for p in parts if p.group == group]) for group, label in kinds),
        ("everything else", [p for p in parts if p.group not in groups]),
    ):
        if members:
            sides = [[p.before for p in members], [p.after for p in members]]
            before, after = (model.Total(sum(t.total for t in side), side[0].count) for side in sides)
            yield model.StepPart("rest", f"{name} ({len(members)})", before, after)


def _instructions_table(program: ProgramChange, top: int | None) -> Table:
    columns = (
        Column("before_name", "before", "name"),
        Column("after_name", "after", "name"),
        Column("change", "change", "text", "same, moved (elsewhere, or another kind of kernel), split, merged, new or gone", 4),
        Column("before", "before (mean)", "ns", "", 3),
        Column("after", "after (mean)", "ns", "", 3),
        Column("difference", "difference", "change_ns"),
        Column("relative", "relative", "change_ratio", "", 2),
        Column("verdict", "verdict", "text", "corrected for as many questions as there are instructions", 1),
        Column("kernel_class", "class", "text", "", 5),
        Column("bytes_before", "bytes before", "bytes", "", 6),
        Column("bytes_after", "bytes after", "bytes", "", 6),
        Column("flops_before", "flops before", "flops", "", 7),
        Column("flops_after", "flops after", "flops", "", 7),
        Column("op_name", "op_name", "name", "", 7),
        Column("source", "source", "name", "", 7),
    )
    rows = [Row(_instruction_values(c)) for c in program.instructions]
    return Table(f"instructions:{program.name}", "Instructions by difference", columns, tuple(rows), lead=top)


def _instruction_values(c: InstructionChange) -> tuple[str | int | float | None, ...]:
    place = (c.after or c.before)[0]
    return (
        " + ".join(p.instruction for p in c.before) or None,
        " + ".join(p.instruction for p in c.after) or None,
        c.change if not c.became else f"{c.change}: {c.became}",
        c.time.before.mean if c.time.before and c.before else None,
        c.time.after.mean if c.time.after and c.after else None,
        c.time.difference,
        c.time.relative,
        SAID[c.time.verdict] if c.time.verdict else None,
        place.kernel_class,
        _sum(p.bytes_accessed for p in c.before),
        _sum(p.bytes_accessed for p in c.after),
        _sum(p.flops for p in c.before),
        _sum(p.flops for p in c.after),
        place.op_name,
        place.source,
    )


def _sum(values: Iterator[int | None]) -> int | None:
    """The sum, None where any is unknown or there is none."""
    found = list(values)
    return sum(v for v in found if v is not None) if found and None not in found else None


def _rollup_tables(program: ProgramChange) -> Iterator[Table]:
    titles = {
        "class": "Kernel time by class",
        "layer": "Kernel time by layer",
        "op_name": "Kernel time by op_name",
        "source": "Kernel time by source line",
    }
    for by, title in titles.items():
        columns = (
            Column("name", by, "name"),
            Column("before", "before (mean)", "ns"),
            Column("after", "after (mean)", "ns"),
            Column("difference", "difference", "change_ns"),
        )
        rows = [Row((r.name, r.before.mean, r.after.mean, r.difference)) for r in program.rollups if r.by == by]
        yield Table(f"{by}:{program.name}", title, columns, tuple(rows), in_full=by != "class")


def _others(programs: list[ProgramChange]) -> Section:
    """Programs of one side only, and small ones."""
    columns = (
        Column("before", "before", "name"),
        Column("after", "after", "name"),
        Column("step_before", "mean step before", "ns"),
        Column("step_after", "mean step after", "ns"),
        Column("kernels_before", "kernel time before", "ns"),
        Column("kernels_after", "kernel time after", "ns"),
        Column("verdict", "kernel time", "text"),
    )
    rows = []
    for p in programs:
        step, kernels = p.quantity("step_ns"), p.quantity("kernel_time_ns")
        means = [getattr(getattr(q, side, None), "mean", None) for q in (step, kernels) for side in ("before", "after")]
        rows.append(Row((p.before, p.after, *means, SAID[kernels.verdict] if kernels is not None and kernels.verdict else None)))
    return Section("programs", "Other programs", tables=(Table("programs", "Other programs", columns, tuple(rows), lead=8),))
