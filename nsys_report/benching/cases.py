"""A file of cases (TOML) that are measured together.

registry = "history.jsonl"

[[case]]
name = "decode"
command = ["python", "decode.py"]     # prints the line of StepBenchmark.to_json, or makes the captures
captures = ["run/capture.sqlite"]     # optional, paths from the file's folder
dumps = ["run/xla_dump"]
timeout_s = 600

[[case]]
name = "prefill"
treat = "skipped"                     # measured (the default), once (run, neither compared nor recorded) or skipped
reason = "needs two GPUs"
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsys_report.errors import InputError, UsageError

TREATMENTS = ("measured", "once", "skipped")
KEYS = frozenset({"name", "command", "captures", "dumps", "treat", "reason", "timeout_s"})
PATIENCE_S = 1800.0


@dataclass(frozen=True, slots=True)
class Case:
    """One case: a command, captures, or a command that makes captures."""

    name: str
    treatment: str
    reason: str
    command: tuple[str, ...]
    captures: tuple[Path, ...]
    dumps: tuple[Path, ...]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Cases:
    """The cases of a file, the folder that commands run in, and the history that the file names."""

    cases: tuple[Case, ...]
    folder: Path
    registry: Path | None


def read_cases(path: Path) -> Cases:
    """The cases of a file. Raises InputError for a file that cannot be read, UsageError for cases that cannot."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "check the path", slug="cases") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML file: {error}", "see the top of nsys_report/benching/cases.py", slug="cases") from None
    rows = document.get("case")
    if set(document) - {"case", "registry"} or not isinstance(rows, list) or not rows:
        raise UsageError(f"{path} holds no tables [[case]]", "each case has a name, and a command or captures", slug="cases")
    folder = path.absolute().parent
    cases = tuple(_case(path, folder, number, row) for number, row in enumerate(rows, 1))
    names = [case.name for case in cases]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"{path}: the case {sorted(twice)[0]!r} is there twice", "give each case its own name", slug="cases")
    registry = document.get("registry")
    return Cases(cases, folder, folder / registry if isinstance(registry, str) else None)


def _case(path: Path, folder: Path, number: int, row: Any) -> Case:
    if not isinstance(row, dict) or not isinstance(row.get("name"), str) or not row["name"]:
        raise UsageError(f"{path}: case number {number} has no name", 'name = "..."', slug="cases")
    where = f"{path}: case {row['name']!r}"
    if unknown := set(row) - KEYS:
        raise UsageError(f"{where} has the unknown key {sorted(unknown)[0]!r}", f"keys are {', '.join(sorted(KEYS))}", slug="cases")
    lists = {key: row.get(key, []) for key in ("command", "captures", "dumps")}
    if not all(isinstance(v, list) and all(isinstance(word, str) for word in v) for v in lists.values()):
        raise UsageError(f"{where}: command, captures and dumps are lists of texts", 'command = ["python", "decode.py"]', slug="cases")
    treatment, timeout = row.get("treat", "measured"), row.get("timeout_s", PATIENCE_S)
    if treatment not in TREATMENTS:
        raise UsageError(f"{where} cannot be treated as {treatment!r}", f"treat is one of {', '.join(TREATMENTS)}", slug="cases")
    if treatment == "skipped" and not row.get("reason"):
        raise UsageError(f"{where} is skipped without a reason", 'reason = "..."', slug="cases")
    if treatment != "skipped" and not lists["command"] and not lists["captures"]:
        raise UsageError(f"{where} has neither command nor captures", "give one of them", slug="cases")
    if not isinstance(timeout, (int, float)) or timeout <= 0:
        raise UsageError(f"{where}: timeout_s is a number of seconds", "timeout_s = 600", slug="cases")
    captures, dumps = (tuple(folder / p for p in lists[key]) for key in ("captures", "dumps"))
    return Case(row["name"], treatment, str(row.get("reason", "")), tuple(lists["command"]), captures, dumps, float(timeout))
