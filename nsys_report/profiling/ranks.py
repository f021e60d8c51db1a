"""Several processes of one run, each of which makes its own capture: who there is, and when the others are done."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nsys_report.profiling.record import FILE

SIZES = ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "WORLD_SIZE")
"""Where srun, mpirun and torchrun say how many processes there are."""
FAILED = "failed.txt"
"""Left in a rank's folder in place of its record where it gave no capture."""
INTERVAL_S = 0.5
MOST_RANKS = 1_000_000


def size_of(environment: Mapping[str, str]) -> int | None:
    """How many processes run, None where nothing says so."""
    for name in SIZES:
        value = environment.get(name, "")
        if value.isascii() and value.isdigit() and 0 < int(value) <= MOST_RANKS:
            return int(value)
    return None


def rank_folder(keep: Path, rank: int) -> Path:
    """Where a rank's run is kept."""
    return keep / f"rank_{rank}"


@dataclass(frozen=True, slots=True)
class Arrived:
    """Ranks whose capture is there, those that failed, and those that nobody waited for any longer."""

    done: tuple[int, ...]
    failed: tuple[int, ...]
    missing: tuple[int, ...]


def wait_for_ranks(
    keep: Path, size: int, limit_s: float, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
) -> Arrived:
    """Waits until each rank's folder holds its record, or says that it failed, or the time is over."""
    until = now() + limit_s
    while True:
        done = tuple(n for n in range(size) if (rank_folder(keep, n) / FILE).exists())
        failed = tuple(n for n in range(size) if n not in done and (rank_folder(keep, n) / FAILED).exists())
        missing = tuple(sorted(set(range(size)) - {*done, *failed}))
        if not missing or now() >= until:
            return Arrived(done, failed, missing)
        sleep(INTERVAL_S)
