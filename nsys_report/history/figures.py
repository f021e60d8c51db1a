"""The record of a run: its programs' typical steps and medians, from an analysis or from the line that a StepBenchmark writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from nsys_report.analysis.program_rows import rows_of_program
from nsys_report.errors import InputError
from nsys_report.history.model import Record
from nsys_report.stepbench.result import FORMAT as STEPS

if TYPE_CHECKING:
    from nsys_report.session import Session

LEAST_SHARE = 0.01
"""Share of the capture's busy time from which a program is recorded."""
PROGRAM_FIGURES = {"kernel_time_ns": "kernel_time_ns", "host_gap_ns": "host_gap_ns"}


def capture_record(case: str, analyses: Sequence[Session], environment: Mapping[str, str]) -> Record:
    """The record of a case from one or several captures of it: of several, medians of their medians."""
    each = [dict(_figures(analysis)) for analysis in analyses]
    if not any(each):
        raise InputError(f"case {case}: the capture holds no whole execution to record", "nsys-report check CAPTURE says why", "record")
    names = dict.fromkeys(name for figures in each for name in figures)
    figures = {name: float(median(f[name] for f in each if name in f)) for name in names}
    info = analyses[0].joined.capture.info
    gpus = list(dict.fromkeys(g.name for a in analyses for g in a.joined.capture.info.gpus if g.name))
    gpu = info.gpus[0] if info.gpus else None
    told = {
        "nsys": info.nsys_version,
        "driver": info.driver_version,
        "compute_capability": gpu.compute_capability if gpu else None,
        "highest_clock_mhz": f"{gpu.clock_hz / 1e6:.0f}" if gpu and gpu.clock_hz else None,
    }
    known = {key: value for key, value in told.items() if value}
    return Record(case, now(), ", ".join(gpus) or None, figures, {**known, **environment})


def _figures(analysis: Session) -> Iterator[tuple[str, float]]:
    """Step, kernel time, host gap, class times and bytes of each program that matters, and the capture's coverage."""
    results = analysis.results
    modules = sorted(results.modules.to_pylist(), key=lambda m: m["program_id"] or 0)  # programs of one name keep their order
    total = sum((m["busy_time_ns"] or 0) * m["executions"] for m in modules)
    names: dict[str, int] = {}
    for module in modules:
        if (module["busy_time_ns"] or 0) * module["executions"] < LEAST_SHARE * total or not module["complete_executions"]:
            continue
        key = module["hlo_module"], module["program_id"]
        number = names[key[0]] = names.get(key[0], 0) + 1
        name = key[0] if number == 1 else f"{key[0]}({number})"  # XLA's numbers change with every compile
        yield from ((f"{name}:{figure}", value) for figure, value in _program(results, module, key) if value is not None)
    if results.joined_share is not None and analysis.xla_dump is not None:
        yield "joined_share", results.joined_share


def _program(results: Any, module: Mapping[str, Any], key: tuple[Any, Any]) -> Iterator[tuple[str, float | None]]:
    def rows(table: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = rows_of_program(table, *key).to_pylist()
        return found

    yield from (("step_ns", row["typical_ns"]) for row in rows(results.steps))
    yield from ((figure, module[column]) for figure, column in PROGRAM_FIGURES.items())
    for row in rows(results.classes):
        name = row["kernel_class"] or "unknown"
        yield f"{name}.time_ns", row["typical_ns"]
        yield f"{name}.bytes", row["bytes_accessed"]


def step_record(row: Mapping[str, Any], case: str | None, environment: Mapping[str, str]) -> Record:
    """The record of a StepBenchmark's line; the case is its name unless one is given."""
    figures = {"step_ns": row["median_ns"]} | ({"peak_bytes": row["peak_bytes"]} if row.get("peak_bytes") is not None else {})
    told = {k: str(v) for k, v in row.get("environment", {}).items()}
    return Record(
        case or row["name"],
        now(),
        row.get("gpu"),
        {k: float(v) for k, v in figures.items()},
        {**told, **environment},
        bool(row.get("contended")),
        "steps",
    )


def step_lines(text: str) -> list[dict[str, Any]]:
    """The lines of a StepBenchmark in a text, other lines left out."""
    found = []
    for line in text.splitlines():
        if not line.lstrip().startswith("{"):
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(row, dict) and row.get("format") == STEPS and isinstance(row.get("median_ns"), (int, float)):
            found.append(row)
    return found


def is_step_file(path: Path) -> bool:
    """Whether a file holds lines of a StepBenchmark rather than a capture."""
    return path.suffix.lower() in (".json", ".jsonl") and path.is_file()


def now() -> str:
    """This moment in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
