"""The files that `report` can write: one entry for each option, so that a new kind of file is a new entry and nothing else."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from nsys_report.notebook import Analysis
    from nsys_report.ranks.run import Run
    from nsys_report.reports.model import Report


@dataclass(frozen=True, slots=True)
class Finished:
    """What there is to write: the report, the analysis of each part by the part's name, and the runs of those that are several ranks."""

    report: Report
    analyses: dict[str, Analysis]
    runs: dict[str, Run] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Output:
    """One kind of file: its option, what it is, the check before the long work, and the writing after it.

    Where the path is `-` and `to_stdout` is set, the file goes to stdout in the terminal page's stead.
    """

    option: str
    metavar: str
    about: str
    require: Callable[[Path], None]
    write: Callable[[Finished, Path], None]
    to_stdout: Callable[[Finished], str] | None = None
    ending: str = ""
    """Of an output that is a directory, the ending of the files in it."""

    @property
    def key(self) -> str:
        return self.option.removeprefix("--").replace("-", "_")


def _require_file(path: Path) -> None:
    from nsys_report.reports.export import require_file

    require_file(path)


def _require_directory(path: Path) -> None:
    from nsys_report.reports.export import require_directory

    require_directory(path)


def _write_json(finished: Finished, path: Path) -> None:
    from nsys_report.reports.export import write_json

    write_json(finished.report, path)


def _json_text(finished: Finished) -> str:
    from nsys_report.reports.export import json_text

    return json_text(finished.report)


def _write_tables(finished: Finished, directory: Path) -> None:
    """One capture's tables stand in the directory itself, those of several in a folder each."""
    from nsys_report.reports.export import write_tables

    for analysis, target in _folders(finished, directory):
        write_tables(analysis.tables(), target)


def _folders(finished: Finished, directory: Path) -> list[tuple[Analysis, Path]]:
    """Each analysis with the directory of its files: the one given, or of several analyses a folder in it, called after its part."""
    from nsys_report.reports.export import distinct_stems

    analyses = list(finished.analyses.values())
    if len(analyses) == 1:
        return [(analyses[0], directory)]
    stems = distinct_stems((name.removesuffix(".sqlite") for name in finished.analyses), "capture")
    return [(analysis, directory / stem) for analysis, stem in zip(analyses, stems, strict=True)]


def _write_markdown(finished: Finished, path: Path) -> None:
    from nsys_report.reports.export import write_whole

    write_whole(path, lambda out: out.write(_markdown_text(finished).encode("utf-8", "backslashreplace")))


def _markdown_text(finished: Finished) -> str:
    from nsys_report.reports.markdown import render

    return render(finished.report)


def _write_csv(finished: Finished, directory: Path) -> None:
    from nsys_report.reports.csv_files import write_csv

    write_csv(finished.report, directory)


def _write_html(finished: Finished, path: Path) -> None:
    from nsys_report.reports.html.content import build_page
    from nsys_report.reports.html.page import write_html
    from nsys_report.reports.pictures.heat import heat_map

    sessions = [analysis.named(name) for name, analysis in finished.analyses.items()]
    write_html(build_page(finished.report, sessions, {name: heat_map(run) for name, run in finished.runs.items()}), path)


def _write_perfetto(finished: Finished, path: Path) -> None:
    from nsys_report.reports.export import write_whole
    from nsys_report.reports.perfetto.trace import trace

    pieces, notes = trace(dict(finished.analyses))
    for note in notes:
        click.echo(note, err=True)
    write_whole(path, lambda out: out.writelines(pieces))


def _write_png(finished: Finished, directory: Path) -> None:
    """One capture's pictures stand in the directory itself, those of several in a folder each."""
    with _nothing_in_the_home_folder():
        from nsys_report.reports.figures.files import write_png
        from nsys_report.reports.pictures.build import build_pictures
        from nsys_report.reports.pictures.heat import heat_map

        for (analysis, target), name in zip(_folders(finished, directory), finished.analyses, strict=True):
            run = finished.runs.get(name)
            write_png(build_pictures(analysis.named(name)), target, heat_map(run) if run is not None else None)


@contextmanager
def _nothing_in_the_home_folder() -> Iterator[None]:
    """Matplotlib keeps a list of fonts in the home folder; one that is not there yet is made in a place of its own, and removed.

    Only a command does this: a program that imports this package decides for itself.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "matplotlib")
    if "MPLCONFIGDIR" in os.environ or "matplotlib" in sys.modules or any(cache.glob("fontlist-*.json")):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="nsys-report-") as folder:
        os.environ["MPLCONFIGDIR"] = folder
        try:
            yield
        finally:
            del os.environ["MPLCONFIGDIR"]


OUTPUTS = (
    Output("--html", "FILE", "The report as one page that opens anywhere, without a network.", _require_file, _write_html),
    Output("--json", "FILE", "The report as one JSON document; - is stdout.", _require_file, _write_json, _json_text),
    Output(
        "--markdown", "FILE", "The short report as Markdown, for an issue; - is stdout.", _require_file, _write_markdown, _markdown_text
    ),
    Output("--csv", "DIR", "Every table of the report as a CSV file, raw figures.", _require_directory, _write_csv, ending=".csv"),
    Output("--png", "DIR", "The pictures as PNG files, for slides.", _require_directory, _write_png, ending=".png"),
    Output("--perfetto", "FILE", "A trace that ui.perfetto.dev opens.", _require_file, _write_perfetto),
    Output(
        "--tables",
        "DIR",
        "The tables as Parquet files, raw figures, units in the column names.",
        _require_directory,
        _write_tables,
        ending=".parquet",
    ),
)
