"""`nsys-report ceilings`: what this program knows of GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsys_report.cli.options import A_PATH
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


@command.command("measure")
@click.option("--write", "target", metavar="FILE", type=A_PATH, help="TOML file that the entry is added to or renewed in.")
@click.option(
    "--with", "backend", type=click.Choice(["jax", "cupy", "torch"]), help="Framework to measure with.  [default: the first that works]"
)
@click.option(
    "--mib", type=click.IntRange(min=64), default=1024, show_default=True, help="MiB of each stream; take far more than the L2 cache."
)
@click.option("--size", type=click.IntRange(min=256), default=8192, show_default=True, help="Rows and columns of the products.")
def measure_command(target: Path | None, backend: str | None, mib: int, size: int) -> None:
    """Measure the GPU at hand: streams that read, write and copy, and matrix products.

    Prints an entry for `nsys-report report --ceilings FILE`. Needs JAX, CuPy or PyTorch with a GPU that nothing else uses.
    """
    from nsys_report.measuring.backends import find_backend
    from nsys_report.measuring.measure import entry_text, measure, with_entry
    from nsys_report.reports.export import require_file, write_whole

    if target is not None:
        require_file(target)
    found = measure(find_backend(backend), mib << 20, size, say=lambda text: click.echo(f"{text} ...", err=True))
    entry = entry_text(found)
    if target is not None:
        existing = target.read_text(encoding="utf-8") if target.exists() else ""
        text = with_entry(existing, found.gpu, entry)
        write_whole(target, lambda out: out.write(text.encode()))
        click.echo(f"wrote {target}", err=True)
    click.echo(entry, nl=False)


def _section() -> Section:
    from nsys_report.analysis.roofline.ceilings import COMPUTE_TYPES, builtin_table
    from nsys_report.reports.model import Column, Row, Section, Table

    columns = (
        Column("name", "GPU", "name"),
        Column("nominal", "nominal", "bytes_per_s"),
        Column("measured", "measured", "bytes_per_s"),
        *(Column(kind, kind, "flops_per_s", drop_rank=1) for kind in COMPUTE_TYPES),
        Column("date", "measured on", "text", drop_rank=2),
        Column("origin", "how", "name", drop_rank=3),
    )
    rows = []
    for entry in builtin_table():
        compute = dict(entry.compute)
        values = [c.value if c else None for c in (entry.nominal, entry.measured, *(compute.get(kind) for kind in COMPUTE_TYPES))]
        measured = entry.measured
        rows.append(Row((entry.name, *values, measured.date if measured else None, measured.origin if measured else None)))
    return Section("ceilings", "Ceilings", tables=(Table("ceilings", "Ceilings", columns, tuple(rows)),))
