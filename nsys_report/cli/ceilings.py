"""`nsys-report ceilings`: what this program knows of GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nsys_report.cli.page import show

if TYPE_CHECKING:
    from nsys_report.reports.model import Section


@click.group("ceilings", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """The bandwidth and compute ceilings this program knows, with their origin.

    A report takes them by the capture's GPU name; --ceiling NAME=VALUE overrides them.
    """
    if ctx.invoked_subcommand is None:
        show([_section()])


def _section() -> Section:
    from nsys_report.analysis.ceilings import COMPUTE_TYPES, builtin_table
    from nsys_report.reports.model import Column, Row, Section, Table

    columns = (
        Column("name", "GPU", "name"),
        Column("nominal", "nominal", "bytes_per_s"),
        Column("measured", "measured", "bytes_per_s"),
        *(Column(kind, kind, "flops_per_s", keep=1) for kind in COMPUTE_TYPES),
        Column("date", "measured on", "text", keep=2),
        Column("origin", "how", "name", keep=3),
    )
    rows = []
    for entry in builtin_table():
        compute = dict(entry.compute)
        values = [c.value if c else None for c in (entry.nominal, entry.measured, *(compute.get(kind) for kind in COMPUTE_TYPES))]
        measured = entry.measured
        rows.append(Row((entry.name, *values, measured.date if measured else None, measured.origin if measured else None)))
    return Section("ceilings", "Ceilings", tables=(Table("ceilings", "Ceilings", columns, tuple(rows)),))
