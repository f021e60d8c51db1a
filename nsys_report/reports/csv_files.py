"""A report's tables as CSV files, one a table: raw figures under column keys that say their units, unknown left empty.

A text that a spreadsheet would take for a formula gets an apostrophe in front.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path

from nsys_report.reports.export import distinct_stems, write_folder
from nsys_report.reports.model import Report, Table
from nsys_report.units import Value, escaped

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def csv_text(table: Table) -> str:
    """One table as CSV (RFC 4180, with line feeds), a heading row of column keys first."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.key for column in table.columns])
    for row in table.rows:
        writer.writerow([_value(value) for value in row.values])
    return out.getvalue()


def _value(value: Value) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = escaped(value)
        return f"'{text}" if text.startswith(_FORMULA) else text
    return value


def files(report: Report) -> dict[str, str]:
    """The text of each file by its name; every table has one, named by its section, of several captures behind the capture."""
    named = list(_tables(report))
    stems = distinct_stems((name for name, _ in named), "table")
    return {f"{stem}.csv": csv_text(table) for stem, (_, table) in zip(stems, named, strict=True)}


def _tables(report: Report) -> Iterator[tuple[str, Table]]:
    if report.summary is not None:
        yield report.summary.key, report.summary
    for part in report.parts:
        before = f"{part.name.removesuffix('.sqlite')}." if len(report.parts) > 1 else ""
        for section in part.sections:
            own = f"{section.module}." if section.module is not None else ""
            for table in section.tables:
                yield f"{before}{own}{table.key}", table


def write_csv(report: Report, directory: Path) -> None:
    """Writes the files into a directory, like export.write_folder."""
    write_folder(directory, {name: _writer(text) for name, text in files(report).items()})


def _writer(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text, encoding="utf-8", newline="")
