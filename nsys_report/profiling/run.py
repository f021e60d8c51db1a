"""Runs a program under nsys and gives the export: each way of failing is told apart, and what can be mended is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nsys_report.errors import InputError
from nsys_report.profiling.command import WITHOUT_NVTX, CapturePlan
from nsys_report.profiling.environment import program_environment

LOST_STRINGS = "Cannot find string for an exterior index"
"""The importer of nsys 2025.3 says so where NVTX ranges with payloads stop it; the CUDA tables are then missing."""
ENDED_BY_NSYS = (128 + 15, 128 + 9, -15, -9)
"""Exit codes of a program that nsys ended with its window."""
LOG_LINES = 12


@dataclass(frozen=True, slots=True)
class ProfiledRun:
    """A run that gave a capture."""

    plan: CapturePlan
    exit_code: int
    program: Mapping[str, Any] = field(default_factory=dict)
    """What the hook saw in the program: compiles, cache hits, executions; empty where it was no Python program with JAX."""
    remarks: tuple[str, ...] = ()


def run(plan: CapturePlan, base: Mapping[str, str], say: Callable[[str], None]) -> ProfiledRun:
    """Profiles, exports and checks; repeats without NVTX where its ranges made the importer lose the CUDA tables.

    Raises InputError saying at which step it failed, with the end of what nsys said.
    """
    first, said = _once(plan, base, say)
    if first is not None and not _lost(first, said):
        return first
    if plan.traces == WITHOUT_NVTX or LOST_STRINGS not in said:
        raise _no_cuda(plan, said) if first is not None else _no_record(plan, base, said)
    say("nsys's importer stumbled over NVTX ranges and lost the CUDA tables; running once more without NVTX")
    shutil.rmtree(plan.folder)
    second, said = _once(plan.without_nvtx(plan.folder), base, say)
    if second is None or _lost(second, said):
        raise _no_cuda(plan, said)
    remark = "nsys could not import this program's NVTX ranges, so it was run again without them; kernels were joined without XLA's ranges"
    return ProfiledRun(second.plan, second.exit_code, second.program, (*second.remarks, remark))


def _once(plan: CapturePlan, base: Mapping[str, str], say: Callable[[str], None]) -> tuple[ProfiledRun | None, str]:
    """One run and its export; None where nsys made no record. With what nsys and the program said."""
    plan.dump.mkdir(parents=True)
    log = plan.folder / "program_{pid}.json"
    environment = {**base, **program_environment(base, plan.dump, log, plan.window), **plan.environment}
    code, said = _tee(plan.profile_command(), environment, plan.folder / "run.log")
    program = _program(plan.folder)
    if not plan.record.exists():
        return None, said
    say(f"exporting {plan.record.name}")
    exported, heard = _tee(plan.export_command(), environment, plan.folder / "export.log", quiet=True)
    if exported != 0 or not plan.export.exists():
        raise InputError(f"{plan.record}: nsys export failed with exit code {exported}", _end_of(heard), slug="export-failed")
    accepted = code == 0 or (plan.end_program and code in ENDED_BY_NSYS)
    remarks = () if accepted else (f"the program ended with exit code {code}",)
    return ProfiledRun(plan, 0 if accepted else code, program, remarks), said


def _tee(command: list[str], environment: Mapping[str, str], log: Path, quiet: bool = False) -> tuple[int, str]:
    """Runs a command; what it prints goes to our stderr as it comes, and to the log."""
    try:
        process = subprocess.Popen(command, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        raise InputError(f"{command[0]}: cannot be run: {error.strerror or error}", "", slug="nsys-broken") from error
    assert process.stdout is not None
    kept: list[bytes] = []
    with process, open(log, "wb") as file:
        try:
            while piece := os.read(process.stdout.fileno(), 1 << 16):
                kept.append(piece)
                file.write(piece)
                if not quiet:
                    sys.stderr.write(piece.decode(errors="replace"))
                    sys.stderr.flush()
        except BaseException:
            process.terminate()  # nsys ends the program too
            raise
    return process.returncode, b"".join(kept).decode(errors="replace")


def _program(folder: Path) -> dict[str, Any]:
    """What the hook wrote: of several processes the one that executed or compiled most."""
    found = []
    for path in folder.glob("program_*.json"):
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(read, dict):
            found.append(read)
    return max(found, key=lambda d: (sum(d.get("executions", {}).values()), d.get("compiles", 0)), default={})


def _lost(found: ProfiledRun, said: str) -> bool:
    """Whether the export holds nothing of CUDA, or less than was recorded."""
    from nsys_report.capture import check_capture

    try:
        check_capture(found.plan.export)
    except InputError:
        return True
    return LOST_STRINGS in said or lost_strings(found.plan.export)


def lost_strings(export: Path) -> bool:
    """Whether the importer says in the export that it stumbled over NVTX ranges: what came after, kernels above all, is missing."""
    from nsys_report.capture.stores import open_source
    from nsys_report.capture.tables import read_diagnostics

    source = open_source(export)
    try:
        return any(LOST_STRINGS in text for text in read_diagnostics(source)["text"].to_pylist() if text)
    finally:
        source.close()


def _no_cuda(plan: CapturePlan, said: str) -> InputError:
    hint = "did GPU work run inside the window? nsys said last:\n" + _end_of(said)
    return InputError(f"{plan.record}: the capture holds nothing of CUDA", hint, slug="capture-no-cuda")


def _no_record(plan: CapturePlan, base: Mapping[str, str], said: str) -> InputError:
    """Why nsys made no .nsys-rep."""
    if (plan.folder / f"{plan.name}.qdstrm").exists():
        missing = ", ".join(plan.nsys.missing_libraries()) or "a shared library such as libdw.so.1"
        hint = f"install {missing} (Debian: libdw1), or put its folder on LD_LIBRARY_PATH; nsys said last:\n{_end_of(said)}"
        return InputError(f"{plan.nsys.path}: recorded, but its importer could not make a report", hint, slug="importer-failed")
    executions = _program(plan.folder).get("executions")
    if plan.window.steps and executions is not None:
        ran = ", ".join(f"{name} {count} times" for name, count in list(executions.items())[:5]) or "no jitted function ran"
        return InputError(
            f"the window never opened: {plan.window.description}; in this program {ran}",
            "ask for fewer skipped executions, or name another program with module=",
            slug="window-never-opened",
        )
    if plan.window.is_whole:
        return InputError("nsys made no report", "it said last:\n" + _end_of(said), slug="no-record")
    hint = "does the program reach it? --window steps=N counts executions of JAX programs started as `python ...`; nsys said last:\n"
    return InputError(f"the window never opened: {plan.window.description}", hint + _end_of(said), slug="window-never-opened")


def _end_of(said: str) -> str:
    lines = [line.split("\r")[-1].rstrip() for line in said.splitlines()]
    return "\n".join([line for line in lines if line][-LOG_LINES:])
