"""Captures and dumps made up to hold many distinct things: names, programs, threads, devices, ranges, instructions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROCESS = (1 << 48) | (111 << 24)
"""nsys's process key of pid 111."""
STEP = 20
"""Kernels an execution."""
KERNEL_NS, EVERY_NS = 1_500, 2_000
_LAUNCH = 1
_SCHEMA = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER,
  blockX INTEGER, blockY INTEGER, blockZ INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, "end" INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER,
  returnValue INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, "end" INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, domainId INTEGER, textId INTEGER);
"""


@dataclass(frozen=True, slots=True)
class Many:
    """How many of each a capture holds; `ranges` are NVTX ranges that are none of XLA's."""

    kernels: int = 200_000
    names: int = 50
    programs: int = 5
    threads: int = 1
    devices: int = 1
    ranges: int = 0


def make_capture(path: Path, many: Many) -> Path:
    """Writes a capture of executions of STEP kernels, one after another, each of a program, thread and device in turn."""
    with sqlite3.connect(path) as base:
        base.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + _SCHEMA)
        base.execute("INSERT INTO StringIds VALUES (?, 'cuLaunchKernel')", (_LAUNCH,))
        base.executemany("INSERT INTO StringIds VALUES (?, ?)", ((n + 2, f"fusion_{n}") for n in range(many.names)))
        base.executemany(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({', '.join('?' * 16)})", _kernels(many))
        base.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, ?)", _calls(many))
        base.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?, 0, NULL)", _ranges(many))
    return path


def _thread(many: Many, execution: int) -> int:
    return PROCESS | (1 + execution % many.threads)


def _kernels(many: Many) -> Iterator[tuple[int | None, ...]]:
    for n in range(many.kernels):
        start, device, name = n * EVERY_NS + 500, n // STEP % many.devices, 2 + n % many.names
        yield (start, start + KERNEL_NS, device, 1 + device, 7, n + 1, PROCESS, name, name, 4, 1, 1, 128, 1, 1, None)


def _calls(many: Many) -> Iterator[tuple[int, ...]]:
    for n in range(many.kernels):
        yield (n * EVERY_NS, n * EVERY_NS + 400, _thread(many, n // STEP), n + 1, _LAUNCH, 0)


def _ranges(many: Many) -> Iterator[tuple[int, int, str, int]]:
    length = STEP * EVERY_NS
    for n in range(many.kernels // STEP):
        program = n % many.programs
        text = f"XlaModule:#hlo_module=jit_f{program},program_id={program}#"
        yield (n * length, (n + 1) * length - 1, text, _thread(many, n))
    for n in range(many.ranges):
        yield (n * 10, n * 10 + 5, f"user range {n % 1000}", PROCESS | 999)


def make_dump(folder: Path, instructions: int) -> Path:
    """Writes a dump of one program that adds so many times."""
    folder.mkdir(exist_ok=True)
    lines = [
        "HloModule jit_f, is_scheduled=true",
        "",
        "ENTRY main {",
        "  p = f32[1024]{0} parameter(0)",
        "  add.0 = f32[1024]{0} add(p, p)",
    ]
    lines += [f"  add.{n} = f32[1024]{{0}} add(add.{n - 1}, p)" for n in range(1, instructions)]
    lines += [f"  ROOT last = f32[1024]{{0}} negate(add.{instructions - 1})", "}"]
    (folder / "module_0001.jit_f.sm_9.0_gpu_after_optimizations.txt").write_text("\n".join(lines) + "\n")
    return folder
