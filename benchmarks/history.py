"""What was measured before, a line of JSON for each run, so that a change shows beside the runs before it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT

FILE = Path(__file__).parent / "history.jsonl"


def append(figures: Mapping[str, Any], file: Path = FILE) -> dict[str, Any]:
    """Adds a run to the file: its figures with the commit, the day, the machine's processors and how busy others keep them."""
    record = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": _commit(),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "machine": platform.machine(),
        "python": platform.python_version(),
        **figures,
    }
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(record, separators=(", ", ": ")) + "\n")
    return record


def read(name: str, file: Path = FILE) -> list[dict[str, Any]]:
    """The runs of one benchmark, oldest first."""
    if not file.exists():
        return []
    records: list[dict[str, Any]] = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [record for record in records if record["benchmark"] == name]


def _commit() -> str | None:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=ROOT)
    return done.stdout.strip() or None
