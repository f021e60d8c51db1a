"""One program of a dump: its optimized module, and the thunks that run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hlo_mapping.dump import files
from hlo_mapping.dump.thunks import Thunk, read_thunk_metadata, read_thunk_sequence, walk, with_instructions
from hlo_mapping.errors import HloError
from hlo_mapping.ir import Module
from hlo_mapping.text.parser import parse_module

_CUT = ", as when the process died or was still writing"


@dataclass(frozen=True, slots=True)
class Program:
    """What a dump says of the executable with this number, which is program_id in XLA's NVTX ranges.

    `thunks` are the top level of the sequence that ran: the one after thunk passes where that was written; () where none was.
    `module` is None where there is no optimized module that can be read, and `problems` say why; they name files without their directory,
    since reports pass them on.
    """

    number: int
    name: str
    module: Module | None
    thunks: tuple[Thunk, ...]
    has_thunk_sequence: bool
    has_thunk_metadata: bool
    problems: tuple[str, ...]
    directory: Path
    files: Mapping[str, Path] = field(default_factory=dict, compare=False, repr=False)
    """Its files by suffix (see hlo_mapping.dump.files)."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Carried across processes with its module's text, a third of the module's size, which is parsed again when it arrives."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        text = (self.module.text, self.module.source) if self.module is not None and self.module.text else None
        return _carried, ({**values, "module": None} if text else values, text)


def _carried(values: dict[str, Any], text: tuple[str, str] | None) -> Program:
    return Program(**{**values, "module": parse_module(*text)} if text else values)


def load_program(number: int, name: str, directory: Path, found: Mapping[str, Path]) -> Program:
    """Read the files of one program. What cannot be read is said in the program's problems."""
    problems: list[str] = []
    module = _read_module(found.get(files.OPTIMIZED), problems)
    annotations = _read_annotations(found.get(files.THUNK_METADATA), problems)
    thunks = _read_thunks(found, annotations, problems, module is not None)
    return Program(
        number=number,
        name=module.name if module is not None else name,
        module=module,
        thunks=with_instructions(thunks, annotations) if annotations else thunks,
        has_thunk_sequence=files.THUNKS in found or files.FINAL_THUNKS in found,
        has_thunk_metadata=bool(annotations),
        problems=tuple(problems),
        directory=directory,
        files=found,
    )


def read_before(program: Program) -> Module | None:
    """The program before XLA's passes; None where the dump does not hold it, or it cannot be read."""
    path = program.files.get(files.BEFORE)
    return None if path is None else _read_module(path, [])


def _read_module(path: Path | None, problems: list[str]) -> Module | None:
    if path is None:
        problems.append("the dump holds no optimized module of this program")
        return None
    try:
        return parse_module(files.read_text(path), path.name)
    except HloError as error:
        problems.append(error.brief)
        return None


def _read_thunks(found: Mapping[str, Path], annotations: Mapping[int, str], problems: list[str], has_schedule: bool) -> tuple[Thunk, ...]:
    """The thunks after passes, or where that file is missing, empty or cut off those before.

    Half a sequence fits nothing that ran: where the module is there (`has_schedule`) its own order is the better one.
    """
    for suffix in (files.FINAL_THUNKS, files.THUNKS):
        if (path := found.get(suffix)) is None:
            continue
        text = _read_optional(path, problems)
        thunks, unread = read_thunk_sequence(text)
        if thunks and has_schedule and (not text.endswith("\n") or annotations.keys() - {t.id for t in walk(thunks)}):
            problems.append(f"{path.name} is cut off{_CUT}; launches are expected in the order of the module's schedule")
            continue
        problems.extend(f"{path.name}: {problem}" for problem in unread)
        if thunks:
            return thunks
    return ()


def _read_annotations(path: Path | None, problems: list[str]) -> dict[int, str]:
    if path is None:
        return {}
    text = _read_optional(path, problems)
    if text and not text.endswith("}\n"):
        problems.append(f"{path.name} is cut off{_CUT}; thunks are tied to instructions by their order")
        return {}
    return {entry.id: entry.profile_annotation for entry in read_thunk_metadata(text) if entry.id and entry.profile_annotation}


def _read_optional(path: Path, problems: list[str]) -> str:
    try:
        return files.read_text(path)
    except HloError as error:
        problems.append(error.brief)
        return ""
