"""What a command takes, in a process of its own: seconds of wall clock and of processors, and the most memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
_RUN = (
    "import json, resource, subprocess, sys; "
    "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode; "
    "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
    "print(json.dumps([code, used.ru_utime + used.ru_stime, used.ru_maxrss * (1 if sys.platform == 'darwin' else 1024)]))"
)


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of wall clock, seconds of all processors, and the most memory at a time, bytes."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def took(command: Sequence[str]) -> Took:
    """What a command took; raises SystemExit with what it said where it failed."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", _RUN, *command], capture_output=True, text=True, cwd=ROOT)
    wall = time.monotonic() - began
    code, cpu, peak = json.loads(done.stdout.splitlines()[-1]) if done.stdout else (1, 0.0, 0)
    if code:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return Took(wall, cpu, peak)


def best(command: Sequence[str], times: int) -> Took:
    """The quickest of several runs: what others do on the machine only ever adds."""
    return min((took(command) for _ in range(times)), key=lambda one: one.wall_s)


def python(*arguments: str) -> list[str]:
    """A command that runs this Python."""
    return [sys.executable, *arguments]
