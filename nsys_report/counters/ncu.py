"""Kernels as Nsight Compute profiled them, from the CSV that `ncu --csv` prints (raw page, or a line a metric)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nsys_report.errors import InputError

READ, WRITTEN, DURATION = "dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum"
METRICS = (READ, WRITTEN, DURATION)
COMMAND = f"ncu --csv --page raw --metrics {','.join(METRICS)} --log-file FILE PROGRAM"
UNITS = {
    "byte": 1.0,
    "Kbyte": 1e3,
    "Mbyte": 1e6,
    "Gbyte": 1e9,
    "Tbyte": 1e12,
    "ns": 1.0,
    "nsecond": 1.0,
    "us": 1e3,
    "usecond": 1e3,
    "ms": 1e6,
    "msecond": 1e6,
    "s": 1e9,
    "second": 1e9,
}
"""What a unit is in bytes or nanoseconds: ncu scales each metric's unit unless told not to (--print-units base)."""


@dataclass(frozen=True, slots=True)
class Profiled:
    """One kernel launch under ncu, which runs one after another and flushes caches before each. None where a metric was not taken."""

    number: int
    process_id: int
    kernel: str
    grid: str
    """As 'x,y,z', which captures write too."""
    block: str
    read_bytes: float | None
    written_bytes: float | None
    duration_ns: float | None


def read_ncu(path: Path) -> tuple[Profiled, ...]:
    """The launches in the order profiled. Raises InputError for a file that cannot be read, or holds no launch or no bytes."""
    try:
        lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}", "", slug="ncu-unreadable") from error
    start = next((place for place, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        said = next((line for line in lines if line.startswith("==ERROR==")), "")
        raise InputError(f"{path}: not what ncu --csv prints{': ' + said if said else ''}", f"make one with {COMMAND}", slug="ncu-format")
    rows = csv.DictReader(line for line in lines[start:] if line.startswith('"'))
    try:
        launches = list(_long(rows) if "Metric Name" in (rows.fieldnames or ()) else _wide(rows))
    except csv.Error as error:
        raise InputError(f"{path}: cannot be read as CSV: {error}", f"make one with {COMMAND}", slug="ncu-format") from error
    if not any(launch.read_bytes is not None for launch in launches):
        found = f"{len(launches)} launches, none with {READ}" if launches else "no launches"
        raise InputError(f"{path}: {found}", f"profile with {COMMAND}", slug="ncu-empty")
    return tuple(launches)


def _wide(rows: Iterable[Mapping[str, str]]) -> Iterator[Profiled]:
    """A column a metric; the first row holds the units."""
    units: Mapping[str, str] = {}
    for row in rows:
        if not row.get("ID"):
            units = row
            continue
        yield _launch(row, {metric: _value(row.get(metric), units.get(metric)) for metric in METRICS})


def _long(rows: Iterable[Mapping[str, str]]) -> Iterator[Profiled]:
    """A row a metric; those of one launch follow one another."""
    mine: dict[str, float | None] = {}
    last: Mapping[str, str] | None = None
    for row in rows:
        if last is not None and row.get("ID") != last.get("ID"):
            yield _launch(last, mine)
            mine = {}
        if row.get("Metric Name") in METRICS:
            mine[row["Metric Name"]] = _value(row.get("Metric Value"), row.get("Metric Unit"))
        last = row
    if last is not None:
        yield _launch(last, mine)


def _launch(row: Mapping[str, str], metrics: Mapping[str, float | None]) -> Profiled:
    return Profiled(
        number=_whole(row.get("ID")),
        process_id=_whole(row.get("Process ID")),
        kernel=plain_name(row.get("Kernel Name") or ""),
        grid=_size(row.get("Grid Size")),
        block=_size(row.get("Block Size")),
        read_bytes=metrics.get(READ),
        written_bytes=metrics.get(WRITTEN),
        duration_ns=metrics.get(DURATION),
    )


def plain_name(name: str) -> str:
    """A kernel's name without result type, namespaces, template arguments and parameters: what nsys and ncu both say of it."""
    head = re.split(r"[<(]", name.removeprefix("void ").strip(), maxsplit=1)[0]
    return head.rsplit("::", 1)[-1].strip()


def _size(text: str | None) -> str:
    """'(8, 1, 1)' as '8,1,1'."""
    return ",".join(re.findall(r"\d+", text or ""))


def _whole(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else -1


def _value(text: str | None, unit: str | None) -> float | None:
    """A figure in bytes or ns; None for one that is missing, is no number, or has a unit that is neither."""
    scale = UNITS.get((unit or "").strip())
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return value * scale if scale is not None and 0 <= value < 1e18 else None
