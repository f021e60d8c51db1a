"""`nsys-report modules`: what XLA compiled."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsys_report.cli.options import A_PATH, ceilings_file_option, role_options
from nsys_report.cli.page import show
from nsys_report.cli.progress import progress_line

if TYPE_CHECKING:
    from hlo_mapping import DumpIndex, ProgramSummary, RoleOverrides

DUMP_HINT = "Let the run end before its dump is read, and copy whole directories."
MOST_READ = 400
"""Programs that are read where the dump has more: the largest."""


@click.command("modules", short_help="What XLA compiled.")
@click.argument("directory", metavar="DIR", type=A_PATH)
@click.option(
    "--module", "names", metavar="NAME", multiple=True, help="In detail: programs of this name, number or name#number. Repeatable."
)
@click.option("--top", metavar="N", type=click.IntRange(min=0), default=12, show_default=True, help="Rows of long tables; 0: all.")
@click.option(
    "--instructions", "listed", is_flag=True, help="Each launched instruction with class, bytes, operations and its time at the roof."
)
@click.option("--gpu", metavar="NAME", help="With --instructions: the GPU to take ceilings of, such as H200 (see `ceilings`).")
@click.option("--json", "json_file", metavar="FILE", type=A_PATH, help="With --instructions: as one JSON document; - is stdout.")
@click.option("--csv", "csv_folder", metavar="DIR", type=A_PATH, help="With --instructions: every table as a CSV file.")
@ceilings_file_option
@role_options
def command(
    directory: Path,
    names: tuple[str, ...],
    top: int,
    listed: bool,
    gpu: str | None,
    json_file: Path | None,
    csv_folder: Path | None,
    ceilings_file: Path | None,
    roles: Path | None,
    manifest: Path | None,
) -> int:
    """What XLA compiled into DIR (--xla_dump_to): programs, parameters by role and size, work, products, scratch memory.

    Without --module, the program with the largest parameters is shown in detail. With --instructions, what each program must cost on
    a GPU before anybody runs it.
    """
    from hlo_mapping import DumpError, index_dump
    from nsys_report.packed import unpacked_dump
    from nsys_report.reports.dump_page import program_sections, programs_section
    from nsys_report.role_files import overrides_from

    if not listed and any(option is not None for option in (gpu, json_file, csv_folder, ceilings_file)):
        raise click.UsageError("--gpu, --json, --csv and --ceilings go with --instructions")
    if listed:
        from nsys_report.cli.instructions import list_instructions

        dump = index_dump(unpacked_dump(directory))
        numbers = _chosen(dump, names)
        read = numbers if names or not top else _largest(dump, numbers)
        overrides = overrides_from(roles, manifest)
        return list_instructions(dump, read, _unread(dump, numbers, read), top, gpu, ceilings_file, (json_file, csv_folder), overrides)
    overrides = overrides_from(roles, manifest)
    dump = index_dump(unpacked_dump(directory))
    numbers = _chosen(dump, names)
    read = numbers if names or not top else _largest(dump, numbers)
    summaries, problems = _summaries(dump, read, overrides)
    if not summaries:
        rest = f" (and {len(problems) - 1:,} more like it)" if len(problems) > 1 else ""
        raise DumpError(f"none of {len(read):,} programs can be read: {problems[0] if problems else 'they hold nothing'}{rest}", DUMP_HINT)
    remarks = [*_unread(dump, numbers, read), *dump.problems, *problems]
    sections = [] if names else [programs_section(summaries, directory.name or str(directory), remarks, top or None)]
    detailed = summaries if names else sorted(summaries, key=lambda s: -sum(p.bytes for p in s.parameters))[:1]
    for summary in detailed:
        sections += program_sections(summary, top or None)
    show(sections)
    return 0


def _chosen(dump: DumpIndex, names: tuple[str, ...]) -> list[int]:
    """The numbers of the programs of those names. Raises UsageError for a name that the dump does not have."""
    import difflib

    from nsys_report.errors import UsageError

    if not names:
        return list(dump.numbers)
    known = {number: dump.name(number) for number in dump.numbers}
    chosen: list[int] = []
    for wanted in names:
        found = [n for n, name in known.items() if wanted in (name, str(n), f"{name}#{n}")]
        if not found:
            close = difflib.get_close_matches(wanted, set(known.values()), 3)
            hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(sorted(set(known.values()))[:8])}"
            raise UsageError(f"the dump has no program {wanted!r}", hint)
        chosen += found
    return list(dict.fromkeys(chosen))


def _largest(dump: DumpIndex, numbers: list[int]) -> list[int]:
    """The programs with the longest text, in the dump's order: a dump of a long run holds thousands of small ones."""
    from hlo_mapping import OPTIMIZED

    def length(number: int) -> int:
        path = dump.files(number).get(OPTIMIZED)
        return path.stat().st_size if path is not None else 0

    chosen = numbers if len(numbers) <= MOST_READ else sorted(numbers, key=lambda n: (-length(n), n))[:MOST_READ]
    return sorted(chosen)


def _unread(dump: DumpIndex, numbers: list[int], read: list[int]) -> list[str]:
    """What is said of programs that were not read: how many, and which names are most frequent among them."""
    names = Counter(dump.name(number) for number in set(numbers) - set(read))
    if not names:
        return []
    shown = ", ".join(f"{name} {times:,}" for name, times in names.most_common(5)) + (", ..." if len(names) > 5 else "")
    return [f"{names.total():,} smaller programs are not in these figures ({shown}); --top 0 reads them all, --module NAME some."]


def _summaries(dump: DumpIndex, numbers: list[int], overrides: RoleOverrides | None) -> tuple[list[ProgramSummary], list[str]]:
    """The programs in figures, and what could not be read."""
    from hlo_mapping import load_program, summarize

    found, problems = [], []
    with progress_line() as say:
        for at, number in enumerate(numbers):
            if say is not None:
                say(f"reading {dump.name(number)}", at / len(numbers))
            program = load_program(number, dump.name(number), dump.directory, dump.files(number))  # not kept: there may be thousands
            problems += [f"{program.name}#{number}: {problem}" for problem in program.problems]
            summary = summarize(program, overrides)
            if summary is not None:
                found.append(summary)
    return found, problems
