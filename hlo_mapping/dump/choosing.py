"""Which of several runs' or processes' files in one dump directory are those of what ran."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hlo_mapping.dump import files
from hlo_mapping.dump.files import FileName, parse_file_name
from hlo_mapping.errors import DumpError

Entry = tuple[FileName, str]
_SYMBOL = re.compile(r"[A-Za-z_][\w.\-]*")
_NOT_IN_SYMBOLS = re.compile(r"[.\-]")
_MOST_LISTED = 100
"""Entries of a directory that are looked at for dumps in it."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a capture recorded: the names of its kernels, and the modules' names by number where XLA's ranges give them."""

    kernels: frozenset[str] = frozenset()
    modules: Mapping[int, str] = field(default_factory=dict)


def choose(directory: Path, number: int, entries: list[Entry], ran: Ran | None) -> tuple[list[Entry], str]:
    """The files of one module, where several modules were written under the same number, and a sentence on which; "" where only one was.

    What ran decides: the name that XLA's ranges give the number, then the kernels that were recorded; then the newest, by time stamp or by
    when its files were written.
    """
    variants = _variants(entries)
    if len(variants) < 2:
        return entries, ""
    named = [key for key in variants if ran is not None and key[1] == ran.modules.get(number)]
    left = named or list(variants)
    known = {key: _recorded(directory, variants[key], ran) for key in left} if ran is not None and len(left) > 1 else {}
    if known and max(known.values()) > min(known.values()):
        left = [key for key in left if known[key] == max(known.values())]
        why = "whose kernels were recorded"
    elif len(left) == 1:
        why = "as XLA's ranges name it"
    else:
        why = ""
    chosen = max(left, key=lambda key: (key[0], max(_written_ns(directory / name) for _, name in variants[key])))
    return variants[chosen], _sentence(number, list(variants), chosen, why)


def _variants(entries: list[Entry]) -> dict[tuple[int, str], list[Entry]]:
    """The files by time stamp and module; a file whose name leaves the module out may be any's of its time."""
    found: dict[tuple[int, str], list[Entry]] = {}
    for entry, name in entries:
        if entry.name:
            found.setdefault((entry.timestamp, entry.name), []).append((entry, name))
    for entry, name in entries:
        if not entry.name:
            of_its_time = [key for key in found if key[0] == entry.timestamp] or [(entry.timestamp, "")]
            for key in of_its_time:
                found.setdefault(key, []).append((entry, name))
    return found


def _sentence(number: int, variants: list[tuple[int, str]], chosen: tuple[int, str], why: str) -> str:
    times, names = {time for time, _ in variants}, sorted({name for _, name in variants if name})
    if len(names) > 1:
        found = f"number {number} stands for several modules ({', '.join(names)}), as when processes share a dump directory"
        return f"{found}; {chosen[1]}, {why or 'written last'}, is used"
    which = f"that with time stamp {chosen[0]}, {why}," if why else f"the newest, with time stamp {chosen[0]},"
    return f"module {number} was written {len(times)} times; {which} is used"


def _recorded(directory: Path, entries: list[Entry], ran: Ran) -> int:
    """How many of the recorded kernels' names one module's files have."""
    paths = {entry.suffix: directory / name for entry, name in entries}
    for suffix in (files.FINAL_THUNKS, files.THUNKS, files.OPTIMIZED):
        if suffix in paths:
            try:
                words = set(_SYMBOL.findall(files.read_text(paths[suffix])))
            except DumpError:  # said when the program is read
                continue
            return len(ran.kernels & {_NOT_IN_SYMBOLS.sub("_", word) for word in words})
    return 0


def fit(programs: Iterable[tuple[int, str]], found: Iterable[Mapping[str, Path]], ran: Ran) -> tuple[int, int]:
    """How well a dump fits what ran: programs of its that XLA's ranges name, and kernels of its that were recorded."""
    named = sum(ran.modules.get(number) == name for number, name in programs)
    if named == 0 and ran.modules:
        return 0, 0
    kernels = 0
    for paths in found:
        entries = [(FileName(0, "", suffix), path.name) for suffix, path in paths.items()]
        kernels += _recorded(next(iter(paths.values())).parent, entries, ran) if paths else 0
    return named, kernels


def dumps_below(directory: Path, names: list[str]) -> list[Path]:
    """The directories in a directory, of those that it holds, that hold optimized GPU modules."""
    found = []
    for name in names[:_MOST_LISTED]:
        inner = directory / name
        try:
            if inner.is_dir() and any((p := parse_file_name(n)) and p.suffix == files.OPTIMIZED for n in os.listdir(inner)):
                found.append(inner)
        except OSError:  # a directory that is not ours to read
            continue
    return found


def _written_ns(path: Path) -> int:
    """When a file was written; 0 for a link to nothing."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
