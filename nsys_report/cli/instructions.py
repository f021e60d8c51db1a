"""`nsys-report modules --instructions`: what each program must cost on a GPU, before anybody runs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsys_report.cli.page import show

if TYPE_CHECKING:
    from hlo_mapping import DumpIndex, RoleOverrides
    from nsys_report.analysis.roofline.ceilings import Ceilings
    from nsys_report.reports.dump_instructions import InstructionSums
    from nsys_report.reports.model import Section


def list_instructions(
    dump: DumpIndex,
    numbers: list[int],
    remarks: list[str],
    top: int,
    gpu: str | None,
    ceilings_file: Path | None,
    outputs: tuple[Path | None, Path | None],
    overrides: RoleOverrides | None,
) -> int:
    """The programs of these numbers, shown, or written to a JSON file and a CSV folder (`outputs`)."""
    from hlo_mapping import DumpError
    from nsys_report.reports.dump_instructions import instruction_sections

    _check_outputs(dump.directory, outputs)
    found, problems = _instruction_sums(dump, numbers, _ceilings(gpu, ceilings_file), overrides)
    if not found:
        raise DumpError(f"none of {len(numbers):,} programs can be read: {problems[0] if problems else 'they hold nothing'}")
    name = dump.directory.name or str(dump.directory)
    _hand_out(instruction_sections(found, top or None), name, (*remarks, *dump.problems, *problems), outputs)
    return 0


def _check_outputs(directory: Path, outputs: tuple[Path | None, Path | None]) -> None:
    """Raises before the work where an output cannot be written, or would lie in the dump."""
    from nsys_report.reports.export import require_directory, require_file

    for path, require in zip(outputs, (require_file, require_directory), strict=True):
        if path is None or str(path) == "-":
            continue
        if path.resolve().is_relative_to(directory.resolve()):
            raise click.UsageError(f"{path} lies in the dump {directory}: choose a place outside")
        require(path)


def _ceilings(gpu: str | None, ceilings_file: Path | None) -> Ceilings | None:
    """Those of the GPU named, or of the only one that the file holds; None where none is named."""
    from nsys_report.analysis.roofline.ceilings import Ceilings, builtin_table, find_ceilings, read_table
    from nsys_report.errors import UsageError

    own = read_table(ceilings_file) if ceilings_file is not None else ()
    if gpu is None:
        only = own[0] if len(own) == 1 else None
        return Ceilings(only.name, only.nominal, only.measured, only.compute, only.name) if only is not None else None
    found = find_ceilings(gpu, table=(*own, *builtin_table()))
    if found.roof is None:
        raise UsageError(f"no ceiling is known of the GPU {gpu!r}", "`nsys-report ceilings` lists those that are known")
    return found


def _instruction_sums(
    dump: DumpIndex, numbers: list[int], ceilings: Ceilings | None, overrides: RoleOverrides | None
) -> tuple[list[InstructionSums], list[str]]:
    from hlo_mapping import HloError, load_program
    from nsys_report.reports.dump_instructions import instruction_sums

    found, problems = [], []
    for number in numbers:
        program = load_program(number, dump.name(number), dump.directory, dump.files(number))
        problems += [f"{program.name}#{number}: {problem}" for problem in program.problems]
        try:
            sums = instruction_sums(program, ceilings, overrides)
        except HloError as error:
            problems.append(f"{program.name}#{number}: {error.brief}")
            continue
        if sums is not None:
            found.append(sums)
    return found, problems


def _hand_out(sections: list[Section], name: str, remarks: tuple[str, ...], outputs: tuple[Path | None, Path | None]) -> None:
    from nsys_report.reports.csv_files import write_csv
    from nsys_report.reports.export import json_text, write_json
    from nsys_report.reports.model import Part, Report
    from nsys_report.version import __version__

    json_file, csv_folder = outputs
    report = Report((Part(name, name, lines=remarks, sections=tuple(sections)),), made_by=f"nsys-report {__version__}")
    if json_file is not None and str(json_file) == "-":
        click.echo(json_text(report), nl=False)
    elif json_file is not None:
        write_json(report, json_file)
        click.echo(f"wrote {json_file}", err=True)
    if csv_folder is not None:
        write_csv(report, csv_folder)
        click.echo(f"wrote {csv_folder}", err=True)
    if json_file is None and csv_folder is None:
        show(sections)
        for remark in remarks:
            click.echo(remark)
