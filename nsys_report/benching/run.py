"""Runs the cases of a file one after another and makes a record of each."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from nsys_report.benching.cases import Case
from nsys_report.errors import InputError, UsageError
from nsys_report.history.figures import capture_record, is_step_file, step_lines, step_record
from nsys_report.history.model import Record
from nsys_report.notebook import analyze

LAST_LINES = 5


def measure(case: Case, folder: Path, labels: Mapping[str, str]) -> Record:
    """Runs the case's command, if it has one, and reads what it printed or captured.

    Raises InputError, which names the case, where the command fails or leaves nothing to measure.
    """
    printed = _run(case, folder) if case.command else ""
    if case.captures:
        return record_files(case.name, case.captures, case.dumps, labels)
    lines = step_lines(printed)
    if not lines:
        raise InputError(
            f"case {case.name}: its command printed no line of a StepBenchmark and the case names no captures",
            "print(StepBenchmark().run(step).to_json(NAME)), or name the captures that it makes",
            slug="bench",
        )
    return step_record(_only(case.name, lines), case.name, labels)


def record_files(name: str | None, files: Sequence[Path], dumps: Sequence[Path], labels: Mapping[str, str]) -> Record:
    """A record from captures with their dumps, or from a file with the line of a StepBenchmark."""
    if len(files) == 1 and is_step_file(files[0]):
        lines = step_lines(files[0].read_text(encoding="utf-8", errors="replace"))
        if not lines:
            raise InputError(f"{files[0]} holds no line of a StepBenchmark", "StepBenchmark().run(step).to_json(NAME) writes one", "record")
        return step_record(_only(name or str(files[0]), lines), name, labels)
    if name is None:
        raise UsageError("captures are recorded under a case", "give it: --case NAME", slug="record")
    if len(dumps) not in (0, 1, len(files)):
        raise UsageError(f"case {name}: {len(dumps)} dumps for {len(files)} captures", "give one for all, or one for each", slug="record")
    matched = [None] * len(files) if not dumps else list(dumps) if len(dumps) == len(files) else list(dumps) * len(files)
    return capture_record(name, [analyze(path, dump) for path, dump in zip(files, matched, strict=True)], labels)


def _only(name: str, lines: list[dict[str, object]]) -> dict[str, object]:
    """The line of that name, or the last one."""
    return next((row for row in lines if row.get("name") == name), lines[-1])


def _run(case: Case, folder: Path) -> str:
    try:
        done = subprocess.run(
            list(case.command), cwd=folder, capture_output=True, text=True, errors="replace", timeout=case.timeout_s, check=False
        )
    except FileNotFoundError:
        raise InputError(f"case {case.name}: there is no program {case.command[0]!r}", "check the command", slug="bench") from None
    except OSError as error:
        raise InputError(f"case {case.name}: {case.command[0]}: {error.strerror}", "check the command", slug="bench") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"case {case.name}: not done after {case.timeout_s:g} s", "give it more: timeout_s", slug="bench") from None
    if done.returncode:
        said = "\n".join((done.stderr or done.stdout).splitlines()[-LAST_LINES:])
        raise InputError(f"case {case.name}: its command ended with {done.returncode}: {said}", "run it alone to see why", slug="bench")
    return done.stdout
