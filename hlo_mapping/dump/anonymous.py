"""A copy of an XLA dump without the names that people gave."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from hlo_mapping.dump import files
from hlo_mapping.dump.index import DumpIndex
from hlo_mapping.text.anonymous import parameter_names, renamed, without_names

_COPIED = (files.OPTIMIZED, files.THUNKS, files.FINAL_THUNKS, files.THUNK_METADATA, files.BUFFERS, files.DEBUG_OPTIONS)
_ANNOTATION = re.compile(r'(profile_annotation: ")([^"]*)(")')
_INSTRUCTION = re.compile(r"[\w.\-]+")
_FLAG = re.compile(r"^xla_\w+: (?:true|false|-?\d+(?:\.\d+)?|[A-Z_]+)$")


def module_names(dump: DumpIndex) -> dict[str, str]:
    """The new name of each module, by the old one: program_0, program_1, ... in the order of their numbers."""
    found: dict[str, str] = {}
    for number in dump.numbers:
        found.setdefault(dump.name(number), f"program_{len(found)}")
    return found


def anonymous_dump(dump: DumpIndex, target: Path, names: Mapping[str, str]) -> int:
    """Writes a dump's files that a report reads into a folder, names taken out; how many files of the dump were left out."""
    target.mkdir(parents=True, exist_ok=True)
    written = 0
    for number in dump.numbers:
        have = dump.files(number)
        module = names[dump.name(number)]
        parameters: dict[str, str] = {}
        for suffix in _COPIED:
            if (path := have.get(suffix)) is None:
                continue
            text = files.read_text(path)
            if suffix == files.OPTIMIZED:
                parameters = parameter_names(text)
            (target / _file_name(number, module, suffix)).write_text(_cleaned(text, suffix, module, parameters), encoding="utf-8")
            written += 1
    return sum(1 for _ in dump.directory.iterdir()) - written


def _file_name(number: int, module: str, suffix: str) -> str:
    gpu = "sm_0.0_" if suffix in (files.OPTIMIZED, files.BUFFERS) else ""
    return f"module_{number:04}.{module}.{gpu}{suffix}"


def _cleaned(text: str, suffix: str, module: str, parameters: dict[str, str]) -> str:
    if suffix == files.OPTIMIZED:
        return without_names(text, module)
    if suffix == files.DEBUG_OPTIONS:
        return "".join(f"{line}\n" for line in text.splitlines() if _FLAG.match(line))
    if suffix == files.THUNK_METADATA:
        text = _ANNOTATION.sub(lambda match: match[1] + (match[2] if _INSTRUCTION.fullmatch(match[2]) else "") + match[3], text)
    return renamed(text, parameters)
