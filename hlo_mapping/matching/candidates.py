"""Which programs of a dump a capture can have run, told without parsing those that it cannot.

A directory that several processes or a whole sweep dumped into holds thousands of modules, most of which the capture never saw, and many
of which are the same program again. The kernel names in a thunk sequence tell the first, equal texts the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hlo_mapping.dump import files
from hlo_mapping.dump.index import DumpIndex
from hlo_mapping.matching.names import kernel_name
from hlo_mapping.matching.tokens import Token

SMALL_DUMP = 300
"""Dumps of up to this many modules are read whole; of larger ones only what the capture can have run."""

ENOUGH = 0.5
"""Share of a program's kernel names that the capture must hold for it to have run."""

_KERNEL = re.compile(r"\bkernel ?= ?([\w$]+)|kCustomKernel\s+(?:\[[^\]]*\]\s*)?([\w$]+) grid:")
_FUSION = re.compile(r"^  (?:ROOT )?%?([\w.\-]+) = .*? fusion\(", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The numbers of the programs to read, and for each those of the programs whose files say the very same."""

    numbers: tuple[int, ...]
    duplicates: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


def candidates(dump: DumpIndex, tokens: Sequence[Token], named: Iterable[int] = ()) -> Candidates:
    """The programs that annotations name (`named`), and those whose kernels the capture holds; each distinct one once."""
    if len(dump.numbers) <= SMALL_DUMP:
        return Candidates(tuple(dump.numbers))
    wanted = set(named) & set(dump.numbers)
    kernels = {t.name for t in tokens if t.kind == "kernel"}
    alike: dict[int, list[int]] = {}
    for number in dump.numbers:
        if number in wanted:
            continue
        found = dump.files(number)
        thunks = _text(found.get(files.FINAL_THUNKS) or found.get(files.THUNKS))
        if not (_holds(set(_names(thunks)), kernels) if thunks else _scheduled(found.get(files.OPTIMIZED), kernels)):
            continue
        # sizes and trip counts stand in the module alone; its own name may differ
        module = _text(found.get(files.OPTIMIZED)).replace(dump.name(number), "")
        key = hash((thunks, module, _text(found.get(files.THUNK_METADATA))))
        alike.setdefault(key, []).append(number)
    # of equal programs the one compiled last stands for all
    duplicates = {numbers[-1]: tuple(numbers[:-1]) for numbers in alike.values() if len(numbers) > 1}
    return Candidates(tuple(sorted(wanted | {numbers[-1] for numbers in alike.values()})), duplicates)


def _names(thunks: str) -> Iterable[str]:
    return (a or b for a, b in _KERNEL.findall(thunks))


def _holds(names: set[str], kernels: set[str]) -> bool:
    """Whether a capture holds enough of a program's kernels; a program of library calls and copies alone may always have run."""
    return len(names & kernels) >= ENOUGH * len(names)


def _scheduled(path: Path | None, kernels: set[str]) -> bool:
    """The same for a program without thunks: fusions with equal bodies share a kernel, so that any of its names may do."""
    names = {kernel_name(n) for n in _FUSION.findall(_text(path))}
    return not names or bool(names & kernels)


def _text(path: Path | None) -> str:
    try:
        return path.read_text(errors="replace") if path is not None else ""
    except OSError:
        return ""  # loading it says what is wrong
