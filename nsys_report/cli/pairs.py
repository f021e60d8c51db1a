"""Several captures in one call: each with its dump, and with a name of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from nsys_report.cli.options import A_PATH
from nsys_report.paths import holds_people

dumps_option = click.option(
    "--xla-dump",
    "dumps",
    metavar="DIR",
    type=A_PATH,
    multiple=True,
    help="What XLA wrote with --xla_dump_to=DIR in the same run. Of several captures: once for all, or once for each.",
)


def pairs(captures: Sequence[Path], dumps: Sequence[Path]) -> list[tuple[Path, Path | None]]:
    """Each capture with its dump. Raises UsageError where they do not go together."""
    if len(dumps) not in (0, 1, len(captures)):
        raise click.UsageError(f"{len(dumps)} --xla-dump for {len(captures)} captures: give one for all, or one for each")
    if not dumps:
        return [(capture, None) for capture in captures]
    return list(zip(captures, dumps if len(dumps) == len(captures) else list(dumps) * len(captures), strict=True))


def part_names(captures: Sequence[Path]) -> list[str]:
    """A short name for each capture, no two alike: the file's name, with as many of its folders as it takes; none that names people."""
    parts = [capture.absolute().parts[1:] for capture in captures]
    for depth in range(1, max(map(len, parts), default=0) + 1):
        names = ["/".join(p[-depth:]) for p in parts]
        if len(set(names)) == len(names):
            if depth > 1 and any(holds_people("/".join(p[:-depth])) for p in parts):
                break
            return names
    return [f"{capture.name} ({number})" for number, capture in enumerate(captures, 1)]
