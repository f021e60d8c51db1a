"""The programs in an XLA dump directory, found by file name; their files are read when a program is asked for."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hlo_mapping.dump import files
from hlo_mapping.dump.choosing import Ran, choose, dumps_below, fit
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
    choices: Mapping[int, str] = field(default_factory=dict)
    """Of programs of which the directory holds several, by several runs or processes: which one is read, and why."""
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

    def said_of(self, programs: Iterable[int]) -> tuple[str, ...]:
        """What there is to say of these programs and of the directory as a whole: which files were chosen."""
        others = set(self.choices.values())
        return (*(p for p in self.problems if p not in others), *(self.choices[n] for n in programs if n in self.choices))

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


def index_dump(path: str | Path, ran: Ran | None = None) -> DumpIndex:
    """Find the programs in a dump directory by file names alone. DumpError where it is missing or holds no optimized GPU module.

    Where several runs or processes wrote into it, or into directories in it, `ran` chooses; else the newest files count.
    """
    directory = Path(path)
    names = _list(directory)
    entries = [(parsed, name) for name in names if (parsed := parse_file_name(name)) is not None]
    if not any(entry.suffix == files.OPTIMIZED for entry, _ in entries):
        if ran is not None and (inner := dumps_below(directory, names)):
            return _of_several(inner, ran)
        raise _nothing_found(directory, names, entries)
    by_number: dict[int, list[tuple[FileName, str]]] = {}
    for entry, name in entries:
        if entry.suffix != files.PROTO and not entry.suffix.startswith("cpu_"):
            by_number.setdefault(entry.number, []).append((entry, name))
    choices: dict[int, str] = {}
    found, chosen_names = {}, {}
    for number in sorted(by_number):
        chosen, said = choose(directory, number, by_number[number], ran)
        if said:
            choices[number] = said
        found[number] = {entry.suffix: directory / name for entry, name in chosen}
        chosen_names[number] = next((entry.name for entry, _ in chosen if entry.name), "")
    return DumpIndex(directory, tuple(found), tuple(choices.values()), choices, found, chosen_names)


def _of_several(directories: list[Path], ran: Ran) -> DumpIndex:
    """The dump, of several in directories beside each other, whose programs ran; the first of those that fit alike."""
    indexes = [index_dump(directory, ran) for directory in directories]
    fits = [fit(((n, index.name(n)) for n in index.numbers), (index.files(n) for n in index.numbers), ran) for index in indexes]
    best = indexes[fits.index(max(fits))]
    if len(indexes) == 1:
        return best
    alike = sum(each == max(fits) for each in fits)
    why = "whose programs and kernels ran" if alike == 1 else f"the first of {alike} whose programs and kernels ran"
    said = f"of the dumps in {len(indexes)} directories that in {best.directory.name} is read, {why}"
    return replace(best, problems=(said, *best.problems))


def _list(directory: Path) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:
        raise DumpError(f"there is no directory {directory}", f"Write a dump with {_FLAGS}.") from None
    except NotADirectoryError:
        raise DumpError(f"{directory} is a file", "Give the directory that --xla_dump_to named, not one file of it.") from None
    except OSError as error:
        raise DumpError(f"cannot read {directory}: {error.strerror}", "Check the path, and that you may read it.") from error


def _nothing_found(directory: Path, names: list[str], entries: Iterable[tuple[FileName, str]]) -> DumpError:
    """The error about a directory without optimized GPU modules: what it holds, and how to write what is missing."""
    suffixes = Counter(entry.suffix for entry, _ in entries)
    if not names:
        return DumpError(f"{directory} is empty", f"Write a dump with {_FLAGS}; a warm compilation cache writes none.")
    if inner := dumps_below(directory, names):
        return DumpError(f"{directory} holds no dump, but its directory {inner[0].name} does", f"Give {inner[0]} instead.")
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
