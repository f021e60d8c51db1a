"""A report as a JSON document and its tables as Parquet: whole or absent, never half written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, BinaryIO

from nsys_report.errors import InputError
from nsys_report.fact import Fact
from nsys_report.findings.model import Elsewhere, Finding
from nsys_report.reports.document import (
    CaptureDocument,
    ElsewhereDocument,
    ExplainedDocument,
    FactDocument,
    FindingDocument,
    NoticeDocument,
    ReportDocument,
    SectionDocument,
    TableDocument,
)
from nsys_report.reports.finding_page import places_table
from nsys_report.reports.model import FORMAT_VERSION, Notice, Part, Report, Section, Table
from nsys_report.scratch import scratch_folder
from nsys_report.units import UNITS

if TYPE_CHECKING:
    import pyarrow as pa

STDOUT = "-"
LONGEST_STEM = 150
"""Bytes of a file name before its ending: most disks take 255."""


def document(report: Report) -> ReportDocument:
    """The report as plain values. Every row stands there raw, by column key; `text` holds the words that the pages show."""
    return {
        "format": "nsys-report",
        "version": FORMAT_VERSION,
        "made_by": report.made_by,
        "captures": [_part(part) for part in report.parts],
        "summary": _table(report.summary) if report.summary is not None else None,
    }


def json_text(report: Report) -> str:
    """The document as JSON, ending in a newline; figures that are no number (infinite, undefined) are null."""
    return json.dumps(_finite(document(report)), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _part(part: Part) -> CaptureDocument:
    return {
        "name": part.name,
        "headline": part.headline,
        "lines": list(part.lines),
        "facts": _facts(part.facts),
        "notices": [_notice(n) for n in part.notices],
        "findings": [_finding(f) for f in part.findings],
        "sections": [_section(s) for s in part.sections],
    }


def _finding(finding: Finding) -> FindingDocument:
    places = places_table(finding)
    return {
        "id": finding.slug,
        "slug": finding.slug,
        "title": finding.title,
        "module": finding.module,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "explained_ns": finding.explained_ns,
        "gain_ns": finding.gain_ns,
        "tried": finding.tried or None,
        "explains": _rows(finding.explains),
        "gains": _facts(finding.gains),
        "why": finding.why,
        "remedy": finding.remedy,
        "basis": finding.basis,
        "to_capture": finding.to_capture,
        "facts": _facts(finding.facts),
        "places": _table(places) if places is not None else None,
        "also": [_elsewhere(other) for other in finding.also],
    }


def _elsewhere(other: Elsewhere) -> ElsewhereDocument:
    return {
        "module": other.module,
        "explained_ns": other.explained_ns,
        "gain_ns": other.gain_ns,
        "executions": other.executions,
        "explains": _rows(other.explains),
        "instructions": [place.hlo_instruction for place in other.places],
        "text": other.with_gain,
    }


def _rows(explains: Mapping[tuple[str, str], float]) -> list[ExplainedDocument]:
    return [{"category": category, "part": part, "ns": ns} for (category, part), ns in explains.items()]


def _section(section: Section) -> SectionDocument:
    return {
        "key": section.key,
        "title": section.title,
        "module": section.module,
        "lines": list(section.lines),
        "facts": _facts(section.facts),
        "notices": [_notice(n) for n in section.notices],
        "tables": {table.key: _table(table) for table in section.tables},
    }


def _facts(facts: tuple[Fact, ...]) -> dict[str, FactDocument]:
    return {fact.key: {"label": fact.label, "value": fact.value, "unit": fact.unit, "text": fact.text} for fact in facts}


def _notice(notice: Notice) -> NoticeDocument:
    return {"slug": notice.slug, "severity": notice.severity, "message": notice.message, "hint": notice.hint}


def _table(table: Table) -> TableDocument:
    return {
        "title": table.title,
        "columns": [
            {"key": c.key, "heading": c.heading, "unit": c.unit, "shown_in": UNITS[c.unit].heading, "about": c.about} for c in table.columns
        ],
        "rows": list(table.records()),
        "text": [list(table.texts(row)) for row in table.rows],
        "marks": [[{"column": m.column, "sign": m.sign, "says": m.says} for m in row.marks] for row in table.rows],
        "notes": list(table.notes),
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def write_json(report: Report, path: Path) -> None:
    """Writes the JSON document. Raises InputError where the file cannot be written."""
    write_whole(path, lambda out: out.write(json_text(report).encode("utf-8", "backslashreplace")))


def write_tables(tables: Mapping[str, pa.Table], directory: Path) -> None:
    """Writes NAME.parquet for each table, like write_folder."""
    import pyarrow.parquet as pq

    def writer(table: pa.Table) -> Callable[[Path], object]:
        def write(path: Path) -> None:
            with path.open("wb") as out:  # Arrow does not take every path
                pq.write_table(table, out, compression="zstd")

        return write

    write_folder(directory, {f"{name}.parquet": writer(table) for name, table in tables.items()})


def write_folder(directory: Path, files: Mapping[str, Callable[[Path], object]]) -> None:
    """Lets each function write the file of its name in a directory, which is made if need be; all of them or none.

    Raises InputError where they cannot be written.
    """
    with _failing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        with scratch_folder(directory) as folder:
            for name, write in files.items():
                if (directory / name).is_dir():
                    raise IsADirectoryError(f"{name} in it is a directory")
                write(folder / name)
            for name in files:
                os.replace(folder / name, directory / name)


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Lets `write` fill a file beside `path` and moves it there when it is whole. Raises InputError where that cannot be done."""
    with _failing(path):
        if path.exists() and not path.is_file():  # a pipe or device has nothing to keep whole
            with path.open("wb") as out:
                write(out)
            return
        path = Path(os.path.realpath(path))
        with scratch_folder(path.parent) as folder:
            whole = folder / path.name
            with whole.open("wb") as out:
                write(out)
            os.replace(whole, path)


def require_file(path: Path) -> None:
    """Raises InputError where a file cannot be written: asked before the long work, not after it."""
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a directory", "name a file", slug="output")
    _require_no_file_above(path)
    if not path.parent.is_dir():
        hint = f"make it first: mkdir -p {quote(str(path.parent))}"
        raise InputError(f"cannot write {path}: there is no directory {path.parent}", hint, slug="output")
    if path.exists() and not path.is_file():
        return
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise InputError(f"cannot write {path}: permission denied", "name a file in a directory of your own", slug="output")


def require_directory(path: Path) -> None:
    """Raises InputError where a directory can be neither made nor written into."""
    if path.exists() and not path.is_dir():
        raise InputError(f"cannot write into {path}: it is a file", "name a directory", slug="output")
    _require_no_file_above(path)
    nearest = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(f"cannot write into {path}: permission denied", "name a directory of your own", slug="output")


def _require_no_file_above(path: Path) -> None:
    above = next((p for p in path.parents if p.exists()), None)
    if above is not None and not above.is_dir():
        raise InputError(f"cannot write {path}: {above} is a file, not a directory", "name another path", slug="output")


def distinct_stems(names: Iterable[str], otherwise: str) -> list[str]:
    """A file name without ending for each name, no two alike whatever case counts for, none hidden, and none too long for a disk."""
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")
        stem = plain if len(plain.encode()) <= LONGEST_STEM else f"{plain.encode()[:LONGEST_STEM].decode(errors='ignore')}-"
        unique, number = stem or otherwise, 1
        while unique.lower() in taken:
            number += 1
            unique = f"{stem.rstrip('-') or otherwise}-{number}"
        taken.add(unique.lower())
        found.append(unique)
    return found


@contextmanager
def _failing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}", "check the path, its permissions and the disk", slug="output"
        ) from error
