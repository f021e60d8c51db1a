"""A copy of an XLA dump without the names that people gave."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from hlo_mapping.dump import files
from hlo_mapping.dump.index import DumpIndex
from hlo_mapping.text.anonymous import new_names, renamed, without_names
from hlo_mapping.text.vocabulary import Renamer

_COPIED = (files.OPTIMIZED, files.THUNKS, files.FINAL_THUNKS, files.THUNK_METADATA, files.BUFFERS, files.DEBUG_OPTIONS)
_TEXT_FIELD = re.compile(r'\b(\w+): "((?:\\.|[^"\\])*)"')
_KERNEL = re.compile(r"(\bkernel ?= ?|\bprofile_annotation ?= ?|\bkCustomKernel\b(?:[ \t]*\[[^\]]*\])?[ \t]+)([^,\s]+)")
_FLAG = re.compile(r"^xla_\w+: (?:true|false|-?\d+(?:\.\d+)?|[A-Z_]+)$")


def module_names(dump: DumpIndex) -> dict[str, str]:
    """The new name of each module, by the old one: program_0, program_1, ... in the order of their numbers."""
    found: dict[str, str] = {}
    for number in dump.numbers:
        found.setdefault(dump.name(number), f"program_{len(found)}")
    return found


def anonymous_dump(dump: DumpIndex, target: Path, names: Mapping[str, str], rename: Renamer) -> int:
    """Writes a dump's files that a report reads into a folder, names taken out; how many files of the dump were left out."""
    target.mkdir(parents=True, exist_ok=True)
    written = 0
    for number in dump.numbers:
        have = dump.files(number)
        module = names[dump.name(number)]
        inside: dict[str, str] = {}
        for suffix in _COPIED:
            if (path := have.get(suffix)) is None:
                continue
            text = files.read_text(path)
            if suffix == files.OPTIMIZED:
                inside = new_names(text, rename)
            (target / _file_name(number, module, suffix)).write_text(_cleaned(text, suffix, module, inside, rename), encoding="utf-8")
            written += 1
    return sum(1 for _ in dump.directory.iterdir()) - written


def _file_name(number: int, module: str, suffix: str) -> str:
    gpu = "sm_0.0_" if suffix in (files.OPTIMIZED, files.BUFFERS) else ""
    return f"module_{number:04}.{module}.{gpu}{suffix}"


def _cleaned(text: str, suffix: str, module: str, inside: Mapping[str, str], rename: Renamer) -> str:
    if suffix == files.OPTIMIZED:
        return without_names(text, module, rename)
    if suffix == files.DEBUG_OPTIONS:
        return "".join(f"{line}\n" for line in text.splitlines() if _FLAG.match(line))
    if suffix == files.THUNK_METADATA:
        return _TEXT_FIELD.sub(lambda match: f'{match[1]}: "{_field(match[1], match[2], inside, rename)}"', text)
    if suffix == files.BUFFERS:
        return renamed(text, inside)
    return _KERNEL.sub(lambda match: match[1] + (inside.get(match[2]) or rename.kernel(match[2])), text)


def _field(name: str, value: str, inside: Mapping[str, str], rename: Renamer) -> str:
    """What stays of a text in thunk metadata: the kind, and the instruction that it was made for."""
    if name == "profile_annotation":
        return inside.get(value, rename(value))
    return value if name == "thunk_kind" else ""
