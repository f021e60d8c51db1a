"""`nsys-report trend`: the course of a history."""

from __future__ import annotations

from pathlib import Path

import click

from nsys_report.cli.options import A_PATH
from nsys_report.cli.page import show
from nsys_report.cli.places import keep_apart


@click.command("trend", short_help="How figures moved over a history, and where their level changed.")
@click.argument("registry", metavar="REGISTRY", type=A_PATH)
@click.option("--case", "cases", metavar="NAME", multiple=True, help="Only this case. Repeatable.")
@click.option("--full", is_flag=True, help="Every figure, not steps, kernel time, host gaps and what changed its level alone.")
@click.option("--html", "html_file", metavar="FILE", type=A_PATH, help="The trend as one page that opens anywhere.")
def command(registry: Path, cases: tuple[str, ...], full: bool, html_file: Path | None) -> int:
    """How figures moved over a history, and where their level changed, with the commits between which it did."""
    from nsys_report.errors import InputError
    from nsys_report.history.store import open_store
    from nsys_report.history.trend import series_of
    from nsys_report.reports.export import require_file, write_whole
    from nsys_report.reports.html.trend import render_trend
    from nsys_report.reports.trend_page import main_series, trend_section
    from nsys_report.version import __version__

    if html_file is not None:
        keep_apart({"--html": html_file}, [registry])
        require_file(html_file)
    history = open_store(registry).read()
    known = dict.fromkeys(r.case for r in history)
    for case in cases:
        if case not in known:
            raise click.UsageError(f"the history has no case {case!r}; it has {', '.join(known) or 'none'}")
    series = main_series(series_of(history, cases), full)
    if not series:
        raise InputError(f"the history {registry} holds no record", "nsys-report record CAPTURE --registry FILE --case NAME adds one")
    show([trend_section(series)])
    if html_file is not None:
        text = render_trend(series, f"Trend of {registry.name}", f"nsys-report {__version__}")
        write_whole(html_file, lambda out: out.write(text.encode("utf-8", "backslashreplace")))
        click.echo(f"wrote {html_file}", err=True)
    return 0
