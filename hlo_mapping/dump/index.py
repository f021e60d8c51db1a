"""The programs in an XLA dump directory, found by file name; their files are read when a program is asked for."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from hlo_mapping.dump import files
from hlo_mapping.dump.files import FileName, parse_file_name
from hlo_mapping.dump.program import Program, load_program
from hlo_mapping.errors import DumpError

_FLAGS = "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text'"
_HEADER_NAME = re.compile(r"\s*HloModule ([^\s,]+)")


@dataclass(frozen=True, slots=True)
class DumpIndex:
    """The programs of one dump directory by number. Programs are read once, when first asked for."""

    directory: Path
    numbers: tuple[int, ...]
    problems: tuple[str, ...] = ()
    """What is odd about the directory as a whole."""
    _files: dict[int, dict[str, Path]] = field(default_factory=dict, repr=False)
    _names: dict[int, str] = field(default_factory=dict, repr=False)
    _programs: dict[int, Program] = field(default_factory=dict, repr=False, compare=False)

    def __contains__(self, number: int) -> bool:
        return number in self._files

    def name(self, number: int) -> str:
        """The module's name, from its file names, or from the module's header where they leave it out."""
        return self._names[number] or self._header_name(number)

    def numbers_by_name(self) -> dict[str, tuple[int, ...]]:
        """The numbers of the programs by their name: a name may stand for several."""
        found: dict[str, tuple[int, ...]] = {}
        for number in self.numbers:
            found[self.name(number)] = (*found.get(self.name(number), ()), number)
        return found

    def files(self, number: int) -> dict[str, Path]:
        """The files of a program by suffix (see hlo_mapping.dump.files); {} for a number that the dump does not have."""
        return dict(self._files.get(number, {}))

    def load(self, number: int) -> Program:
        """The program with this number, read. KeyError where the dump has none."""
        if number not in self._programs:
            self._programs[number] = load_program(number, self.name(number), self.directory, self.files(number))
        return self._programs[number]

    def _header_name(self, number: int) -> str:
        for suffix in (files.OPTIMIZED, files.BEFORE):
            if path := self._files[number].get(suffix):
                try:
                    found = _HEADER_NAME.match(files.read_start(path, 4096))
                except DumpError:  # said when the program is read
                    continue
                if found:
                    return found[1]
        return f"module_{number}"


def index_dump(path: str | Path) -> DumpIndex:
    """Find the programs in a dump directory by file names alone. DumpError where it is missing or holds no optimized GPU module."""
    directory = Path(path)
    names = _list(directory)
    entries = [(parsed, name) for name in names if (parsed := parse_file_name(name)) is not None]
    if not any(entry.suffix == files.OPTIMIZED for entry, _ in entries):
        raise _nothing_found(directory, names, entries)
    by_number: dict[int, list[tuple[FileName, str]]] = {}
    for entry, name in entries:
        if entry.suffix != files.PROTO and not entry.suffix.startswith("cpu_"):
            by_number.setdefault(entry.number, []).append((entry, name))
    problems: list[str] = []
    found, chosen_names = {}, {}
    for number in sorted(by_number):
        chosen = _newest(directory, number, by_number[number], problems)
        found[number] = {entry.suffix: directory / name for entry, name in chosen}
        chosen_names[number] = next((entry.name for entry, _ in chosen if entry.name), "")
    return DumpIndex(directory, tuple(found), tuple(problems), found, chosen_names)


def _list(directory: Path) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:
        raise DumpError(f"there is no directory {directory}", f"Write a dump with {_FLAGS}.") from None
    except NotADirectoryError:
        raise DumpError(f"{directory} is a file", "Give the directory that --xla_dump_to named, not one file of it.") from None
    except OSError as error:
        raise DumpError(f"cannot read {directory}: {error.strerror}", "Check the path, and that you may read it.") from error


def _newest(directory: Path, number: int, entries: list[tuple[FileName, str]], problems: list[str]) -> list[tuple[FileName, str]]:
    """The files of one module, where several modules were written under the same number: those of the newest."""
    times = {entry.timestamp for entry, _ in entries}
    if len(times) > 1:
        newest = max(times)
        problems.append(f"module {number} was written {len(times)} times; the newest, with time stamp {newest}, is used")
        entries = [(entry, name) for entry, name in entries if entry.timestamp == newest]
    modules = {entry.name for entry, _ in entries if entry.name}
    if len(modules) > 1:
        latest = max(entries, key=lambda item: (bool(item[0].name), _written_ns(directory / item[1])))[0].name
        problems.append(
            f"number {number} stands for several modules ({', '.join(sorted(modules))}), as when processes share a dump directory; "
            f"{latest}, written last, is used"
        )
        entries = [(entry, name) for entry, name in entries if entry.name in ("", latest)]
    return entries


def _written_ns(path: Path) -> int:
    """When a file was written; 0 for a link to nothing."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _nothing_found(directory: Path, names: list[str], entries: Iterable[tuple[FileName, str]]) -> DumpError:
    """The error about a directory without optimized GPU modules: what it holds, and how to write what is missing."""
    suffixes = Counter(entry.suffix for entry, _ in entries)
    if not names:
        return DumpError(f"{directory} is empty", f"Write a dump with {_FLAGS}; a warm compilation cache writes none.")
    if inner := _dump_below(directory, names):
        return DumpError(f"{directory} holds no dump, but its directory {inner.name} does", f"Give {inner} instead.")
    if set(suffixes) == {files.PROTO}:
        return DumpError(f"the dump in {directory} holds protos only", f"Write it as text: {_FLAGS}.")
    if not suffixes:
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        files_there = "1 other file" if len(names) == 1 else f"{len(names)} other files"
        return DumpError(f"{directory} holds no XLA dump, but {files_there} ({shown})", f"Write a dump with {_FLAGS}.")
    held = ", ".join(f"{count} {suffix}" for suffix, count in suffixes.most_common())
    if files.CPU_OPTIMIZED in suffixes:
        hint = f"Only CPU modules were compiled into it. Run on the GPU with {_FLAGS}."
    else:
        hint = f"The process may have ended before compiling, or loaded programs from a compilation cache. Disable that, and use {_FLAGS}."
    return DumpError(f"the dump in {directory} holds no *_gpu_after_optimizations.txt (it holds {held})", hint)


def _dump_below(directory: Path, names: list[str]) -> Path | None:
    for name in names[:100]:
        inner = directory / name
        try:
            if inner.is_dir() and any((p := parse_file_name(n)) and p.suffix == files.OPTIMIZED for n in os.listdir(inner)):
                return inner
        except OSError:  # a directory that is not ours to read
            continue
    return None
