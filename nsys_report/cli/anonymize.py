"""`nsys-report anonymize`: a capture and dump fit for a public report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsys_report.cli.options import A_PATH
from nsys_report.cli.places import keep_apart

if TYPE_CHECKING:
    from nsys_report.anonymize.capture import Removed
    from nsys_report.notebook import Analysis


@click.command("anonymize", short_help="A copy of a capture that says nothing of whose it was.")
@click.argument("capture", metavar="CAPTURE", type=A_PATH)
@click.argument("out", metavar="OUT", type=A_PATH)
@click.option("--xla-dump", "dump", metavar="DIR", type=A_PATH, help="What XLA dumped in the same run: copied too.")
@click.option("--keep-names", is_flag=True, help="Keep the program's own names: modules and kernels.")
@click.option("--executions", metavar="N", type=click.IntRange(min=1), help="Only N executions of the program that takes most time.")
def command(capture: Path, out: Path, dump: Path | None, keep_names: bool, executions: int | None) -> int:
    """Writes OUT/capture.sqlite, and OUT/xla_dump with --xla-dump, which give the same figures and may be attached to a public report.

    Left out: host and user names, paths, environment, program output, other processes' and the user's own ranges, messages, names of
    parameters and sources. OUT is a new or empty directory.
    """
    from nsys_report.anonymize.copy import copy_without_names

    keep_apart({"OUT": out}, [capture, dump])
    removed, before, after = copy_without_names(capture, out, dump, keep_names, executions)
    for line in _lines(out, removed, before, after):
        click.echo(line)
    return 0


def _lines(out: Path, removed: Removed, before: Analysis, after: Analysis) -> list[str]:
    from nsys_report.units import duration, things

    lines = [f"wrote {out}"]
    if removed.tables:
        shown = ", ".join(removed.tables[:6]) + (", ..." if len(removed.tables) > 6 else "")
        lines.append(f"left out whole: {things(len(removed.tables), 'table')} ({shown})")
    if removed.ranges:
        lines.append(f"left out: {things(removed.ranges, 'range')} that are not XLA's own")
    if removed.outside:
        lines.append(f"left out: {things(removed.outside, 'record')} outside the executions that were kept")
    if removed.kernels:
        lines.append(f"numbered instead of named: {things(removed.kernels, 'kernel')} of neither XLA nor a known library")
    for one, other in zip(before.results.modules.to_pylist(), after.results.modules.to_pylist(), strict=False):
        if one["kernel_time_ns"] is not None and other["kernel_time_ns"] is not None:
            times = f"{duration(one['kernel_time_ns'])} before, {duration(other['kernel_time_ns'])} in the copy"
            lines.append(f"kernel time of an execution of {other['hlo_module']}: {times}")
    return lines
