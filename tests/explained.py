"""How much of each program's step the findings explain: `python -m tests.explained DIR...`, each with capture.sqlite and maybe xla_dump/.

A line a capture and program whose typical step is at least a fifth of the capture's longest, then the least and the median share.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from nsys_report import notebook
from nsys_report.findings.explained import Explained, explained
from nsys_report.units import duration

LEAST_STEP = 0.2
"""Of the longest typical step: shorter programs' steps are helpers."""


def worth(found: tuple[Explained, ...]) -> list[Explained]:
    """The programs whose steps count."""
    longest = max((one.step_ns for one in found), default=0.0)
    return [one for one in found if one.step_ns >= LEAST_STEP * longest and one.share is not None]


def measured(folders: list[Path]) -> Iterator[float]:
    """Prints a line for each program, and gives its share."""
    for folder in folders:
        dump = folder / "xla_dump"
        made = notebook.analyze(folder / "capture.sqlite", dump if dump.is_dir() else None)
        for one in worth(explained(made.causes, made.results)):
            share = one.share or 0.0
            times = ", ".join(duration(ns) for ns in (one.step_ns, one.floor_ns, one.not_recorded_ns))
            first = next((f.slug for f in made.causes if (f.hlo_module, f.program_id) == (one.hlo_module, one.program_id)), "-")
            print(f"{share:7.1%}  {folder.name:20} {one.module or '-':38} step, floor, not recorded: {times:32} first: {first}", flush=True)
            yield share


if __name__ == "__main__":
    shares = list(measured([Path(name) for name in sys.argv[1:]]))
    print(f"{len(shares)} programs: least {min(shares):.1%}, median {statistics.median(shares):.1%}")
