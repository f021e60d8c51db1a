"""How long a capture of two million kernels takes: `python -m tests.benchmark`. Not part of the tests.

Makes the capture itself, by repeating one of the fixtures, and reports on it in processes of their own: seconds of wall clock and of
processors, and the most memory. The first line is the least that any report can take: reading the table of kernels.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
FIXTURE = ROOT / "fixtures" / "decode"
TIMES = ("start", "end", "timestamp", "rawTimestamp")
"""Columns that are moments."""
GAP_NS = 1_000_000

READ_KERNELS = """
from pathlib import Path
from nsys_report.capture import catalogue
from nsys_report.capture.sqlite import SqliteSource
from nsys_report.capture.tables import read_table
assert read_table(SqliteSource(Path({capture!r})), catalogue.KERNEL)
"""


def repeat(source: Path, target: Path, copies: int) -> None:
    """Writes a capture that does what another does so many times, one after another, under correlation ids of their own."""
    shutil.copyfile(source, target)
    with sqlite3.connect(target) as base:
        base.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {table: [row[1] for row in base.execute(f'PRAGMA table_info("{table}")')] for table in tables}
        timed = [table for table, names in columns.items() if "start" in names and len(names) > 2]
        span = GAP_NS + max(
            base.execute(f'SELECT max("{"end" if "end" in columns[t] else "start"}") FROM "{t}"').fetchone()[0] or 0 for t in timed
        )
        ids = 1 + max(
            base.execute(f'SELECT max(correlationId) FROM "{t}"').fetchone()[0] or 0 for t in timed if "correlationId" in columns[t]
        )
        rows = {table: base.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in timed}
        made = 1
        while made < copies:  # as many again each time
            more = min(made, copies - made)
            for table in timed:
                shifted = ", ".join(_shifted(name, made * span, made * ids) for name in columns[table])
                base.execute(f'INSERT INTO "{table}" SELECT {shifted} FROM "{table}" ORDER BY rowid LIMIT {rows[table] * more}')
            made += more


def _shifted(column: str, ns: int, ids: int) -> str:
    if column in TIMES:
        return f'"{column}" + {ns}'
    return f'"{column}" + {ids}' if column == "correlationId" else f'"{column}"'


def measure(name: str, arguments: list[str]) -> None:
    """Runs Python with arguments in a process of its own, and prints what it took."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    child = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT)
    _, complaint = child.communicate()
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if child.returncode:
        raise SystemExit(f"{name} failed:\n{complaint.decode()}")
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    print(f"{name:<22} {wall:6.1f} s wall {used:6.1f} s of processors", flush=True)


def peak(arguments: list[str]) -> int:
    """The most memory, in MB, that Python takes with arguments."""
    script = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000)"
    )
    done = subprocess.run([sys.executable, "-c", script, sys.executable, *arguments], capture_output=True, text=True, check=True, cwd=ROOT)
    return int(done.stdout)


def main() -> None:
    """Makes the capture and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=1300, help="how often the fixture of 1,620 kernels is repeated (1300)")
    parser.add_argument("--capture", type=Path, help="a capture to measure instead, with --xla-dump")
    parser.add_argument("--xla-dump", type=Path, default=FIXTURE / "xla_dump")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nsys-report-") as folder:
        capture = given.capture or Path(folder) / "capture.sqlite"
        if given.capture is None:
            repeat(FIXTURE / "capture.sqlite", capture, given.copies)
        with sqlite3.connect(f"file:{capture}?mode=ro", uri=True) as base:
            kernels = base.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0]
        print(
            f"{kernels:,} kernels, {os.path.getsize(capture) / 1e6:,.0f} MB; {os.cpu_count()} processors, Python {sys.version.split()[0]}"
        )
        report = ["profile_report.py", str(capture), "--xla-dump", str(given.xla_dump)]
        measure("reading the kernels", ["-c", READ_KERNELS.format(capture=str(capture))])
        measure("report", report)
        measure("report --json", [*report, "--json", str(Path(folder) / "report.json")])
        measure("report --tables", [*report, "--tables", str(Path(folder) / "tables")])
        measure("report --html", [*report, "--html", str(Path(folder) / "report.html")])
        print(f"most memory of a report: {peak(report):,} MB")


if __name__ == "__main__":
    main()
