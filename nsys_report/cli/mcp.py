"""`nsys-report mcp`: captures for assistants, over the Model Context Protocol."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from nsys_report.cli.options import captures_argument
from nsys_report.cli.pairs import dumps_option, pairs, part_names


@click.command("mcp", short_help="Serve captures to assistants.")
@captures_argument
@dumps_option
def command(captures: tuple[Path, ...], dumps: tuple[Path, ...]) -> None:
    """Serves captures to assistants and editors over the Model Context Protocol, on stdin and stdout, until its client leaves.

    Its tools give a summary, findings, rows of tables, an instruction with its HLO and source, and a comparison of two captures. They
    only read, see nothing but these captures, and give answers of bounded size. A capture is analyzed when it is first asked about.

    \b
    Claude Code:   claude mcp add step -- nsys-report mcp /data/capture.sqlite --xla-dump /data/dump
    Others:        {"mcpServers": {"step": {"command": "nsys-report", "args": ["mcp", "/data/capture.sqlite", "--xla-dump", "/data/dump"]}}}
    """
    from hlo_mapping import index_dump
    from nsys_report.agents.answers import Answers, Captured
    from nsys_report.capture import check_capture
    from nsys_report.errors import UsageError
    from nsys_report.notebook import analyze

    try:
        from nsys_report.agents.server import make_server
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed", "pip install 'nsys-report[mcp]'", "mcp") from None
    for capture in captures:
        check_capture(capture)
    for dump in dumps:
        if not dump.exists():  # one that is packed is a file
            index_dump(dump)  # says now what is wrong, and not to the assistant at its first question
    named = zip(part_names(captures), pairs(captures, dumps), strict=True)
    make_server(Answers([Captured(name, partial(analyze, capture, dump)) for name, (capture, dump) in named])).run("stdio")
