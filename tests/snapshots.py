"""The reports of all fixtures on every surface, kept and compared: what a change changes for a reader, and that it changes nothing else.

    python -m tests.snapshots take DIR [FIXTURE ...]       before the change: writes DIR/FIXTURE/SURFACE
    python -m tests.snapshots compare DIR [FIXTURE ...]    after it: prints each row that differs, exits 3 if one does

Surfaces are the terminal's page, Markdown, the JSON document, the CSV files and the data of the HTML page. One analysis serves all of a
fixture. Documents are kept as one line for each row or value, so that a row that is new does not move the rows after it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nsys_report
from nsys_report import notebook
from nsys_report.cli.page import report_text
from nsys_report.reports import export, markdown
from nsys_report.reports.csv_files import write_csv
from nsys_report.reports.html.content import build_page
from nsys_report.reports.html.data import page_data

FIXTURES = Path(__file__).parent.parent / "fixtures"
NAMED_BY = ("key", "slug", "name", "id")
"""What tells one item of a list from another, best first."""
PLAIN = {"COLUMNS": "112", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
MOST_LINES = 60
"""Differing rows shown of one file."""
WIDEST = 400
"""Characters shown of one row."""


def scrubbed(text: str) -> str:
    """A text without what changes with each version."""
    return text.replace(nsys_report.__version__, "VERSION")


def lines(value: Any, path: str = "") -> Iterator[str]:
    """A document as lines `path value`: one for each scalar and for each object or list that holds only scalars."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(item, (dict, list)) for item in inner):
        yield f"{path} {json.dumps(value, ensure_ascii=False)}"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from lines(item, f"{path}/{key}")
    else:
        for item in value:
            name = next((item[key] for key in NAMED_BY if isinstance(item, dict) and isinstance(item.get(key), str)), "")
            yield from lines(item, f"{path}[{name}]")


def document(value: Any) -> str:
    """A document as it is kept; what only its JSON tells apart (tuples, lists) is alike."""
    return "".join(f"{line}\n" for line in lines(json.loads(json.dumps(value, default=str))))


def take(fixture: str, folder: Path) -> None:
    """Writes the surfaces of one fixture's report into a folder, which it replaces."""
    given = FIXTURES / fixture
    dump = given / "xla_dump"
    analysis = notebook.analyze(given / "capture.sqlite", dump if dump.is_dir() else None)
    report = analysis.report()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    surfaces = {
        "terminal.txt": report_text(report),
        "report.md": markdown.render(report),
        "report.json.lines": document(export.document(report)),
        "page_data.lines": document(page_data(build_page(report, [analysis]))),
    }
    for name, text in surfaces.items():
        (folder / name).write_text(scrubbed(text), encoding="utf-8")
    write_csv(report, folder / "csv")


def compare(fixture: str, kept: Path, taken: Path) -> str:
    """What differs between two snapshots of a fixture, a heading a file and its first rows; "" where nothing does."""
    files = sorted({path.relative_to(root) for root in (kept, taken) for path in root.rglob("*") if path.is_file()})
    return "".join(_difference(f"{fixture}/{file}", kept / file, taken / file) for file in files)


def _difference(name: str, old: Path, new: Path) -> str:
    shown = subprocess.run(["diff", "-U0", "-N", str(old), str(new)], capture_output=True, text=True, encoding="utf-8")
    if shown.returncode > 1:
        raise SystemExit(shown.stderr)
    rows = [row for row in shown.stdout.splitlines()[2:] if not row.startswith("@@")]
    more = f"  ... {len(rows) - MOST_LINES} more\n" if len(rows) > MOST_LINES else ""
    return f"{name}: {len(rows)} rows\n" + "".join(f"  {row[:WIDEST]}\n" for row in rows[:MOST_LINES]) + more if rows else ""


def main(arguments: list[str]) -> int:
    """Runs the command line above and gives its exit code."""
    if len(arguments) < 2 or arguments[0] not in ("take", "compare"):
        print(__doc__, file=sys.stderr)
        return 2
    os.environ.update(PLAIN)
    kept = Path(arguments[1])
    known = sorted(path.parent.name for path in FIXTURES.glob("*/capture.sqlite"))
    chosen = arguments[2:] or known
    if unknown := [name for name in chosen if name not in known]:
        print(f"no fixture {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    if arguments[0] == "take":
        for fixture in chosen:
            take(fixture, kept / fixture)
        print(f"took {len(chosen)} fixtures into {kept}")
        return 0
    return _compare_all(chosen, kept)


def _compare_all(fixtures: list[str], kept: Path) -> int:
    differs = False
    with tempfile.TemporaryDirectory() as scratch:
        for fixture in fixtures:
            taken = Path(scratch) / fixture
            take(fixture, taken)
            found = compare(fixture, kept / fixture, taken)
            differs |= bool(found)
            print(found or f"{fixture}: the same\n", end="", flush=True)
    return 3 if differs else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
