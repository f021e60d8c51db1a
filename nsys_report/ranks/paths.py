"""The captures of a run from what the user names: files, a directory of ranks, or a pattern; the rank of each, and its dump."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from pathlib import Path

from nsys_report.errors import InputError, UsageError

RANK = "{rank}"
WITHIN = ("*/capture.sqlite", "*.sqlite", "*/*.sqlite", "*.nsys-rep", "*/*.nsys-rep")
"""Where the captures of a directory of ranks are looked for: the first pattern that finds several counts."""
PACKED = ("", ".gz", ".zst", ".xz", ".bz2", ".lz4")
"""What a capture's name may end with beside; the first that is there counts."""
_DIGITS = re.compile(r"(\d+)")


def expanded(given: Sequence[Path]) -> list[Path]:
    """The captures that paths mean: a path with {rank} or a wildcard those that fit, a directory those in it, any other itself.

    Raises InputError for a pattern that nothing fits.
    """
    found: list[Path] = []
    for path in given:
        text = str(path)
        if RANK in text or (glob.has_magic(text) and not path.exists()):
            matches = _matches(text)
            if not matches:
                raise InputError(f"no capture fits {text}", f"name captures, or a pattern such as 'rank_{RANK}/capture.sqlite'", "ranks")
            found += matches
        else:
            found += _within(path) if path.is_dir() else [path]
    return list(dict.fromkeys(found))


def is_pattern(given: Sequence[Path]) -> bool:
    """Whether paths name a run by a pattern or as a directory, and not capture by capture."""
    return any(RANK in str(path) or glob.has_magic(str(path)) for path in given)


def _matches(text: str) -> list[Path]:
    """What fits a pattern, in order of its numbers; {rank} stands for the same digits wherever it is written."""
    wanted = re.compile(_pattern(text)) if RANK in text else None
    paths = glob.glob(RANK.join(map(_magic, text.split(RANK))).replace(RANK, "*"), recursive=True)
    return [Path(p) for p in sorted(paths, key=_natural) if wanted is None or wanted.fullmatch(p)]


def _magic(text: str) -> str:
    return text if glob.has_magic(text) else glob.escape(text)


def _pattern(text: str) -> str:
    """A pattern with {rank} as a regular expression: digits at its first place, the same at the others."""
    first, *rest = (re.escape(piece).replace(r"\*\*", ".*").replace(r"\*", "[^/]*").replace(r"\?", "[^/]") for piece in text.split(RANK))
    return first + "".join((r"(?P<rank>\d+)" if n == 0 else r"(?P=rank)") + piece for n, piece in enumerate(rest))


def _within(directory: Path) -> list[Path]:
    """The captures in a directory of ranks; itself where it holds none, for an export can be a directory."""
    for pattern in WITHIN:
        found: dict[str, Path] = {}
        for ending in PACKED:
            for path in directory.glob(pattern + ending):
                if path.is_file():
                    found.setdefault(str(path).removesuffix(ending), path)
        if len(found) > 1:
            return [found[name] for name in sorted(found, key=_natural)]
    return [directory]


def _natural(text: str) -> list[tuple[int, str]]:
    """Text in an order in which rank_2 comes before rank_10."""
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in _DIGITS.split(text)]


def ranks_of(captures: Sequence[Path]) -> list[str]:
    """What varies in the captures' paths: the number that differs; where not just one differs, each one's place in the list."""
    pieces = [_DIGITS.split(str(path)) for path in captures]
    places = [str(n) for n in range(len(captures))]
    if len(captures) < 2 or len({len(p) for p in pieces}) != 1 or len({tuple(p[::2]) for p in pieces}) != 1:
        return places
    differing = [column for column in zip(*(p[1::2] for p in pieces), strict=True) if len(set(column)) > 1]
    numbers = {tuple(int(digits) for digits in column) for column in differing}
    if len(numbers) != 1 or len(set(next(iter(numbers)))) != len(captures):
        return places
    return [str(number) for number in next(iter(numbers))]


def in_order(captures: Sequence[Path]) -> list[Path]:
    """The captures by the number that varies in their paths."""
    return [path for _, path in sorted(zip(map(int, ranks_of(captures)), captures, strict=True), key=lambda pair: pair[0])]


def dumps_for(captures: Sequence[Path], dumps: Sequence[Path]) -> list[Path | None]:
    """The dump of each capture: none, one for all, one each, or a pattern in which {rank} is the capture's.

    Raises UsageError where they do not go together.
    """
    if not dumps:
        return [None] * len(captures)
    if len(dumps) == 1:
        text = str(dumps[0])
        digits = _written(captures) if RANK in text else []
        return [Path(text.replace(RANK, rank)) for rank in digits] if digits else [dumps[0]] * len(captures)
    if len(dumps) != len(captures):
        raise UsageError(
            f"{len(dumps)} --xla-dump for {len(captures)} captures",
            f"give one for all, one for each, or a pattern such as 'dump{RANK}'",
        )
    return [*dumps]


def expanded_inputs(captures: Sequence[Path], dumps: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The captures and the dumps that paths mean: a pattern of dumps those of the captures, whether or not they are ranks of one run."""
    found = tuple(expanded(captures))
    if not any(RANK in str(dump) for dump in dumps):
        return found, tuple(dumps)
    return found, tuple(dump for dump in dumps_for(found, dumps) if dump is not None)


def _written(captures: Sequence[Path]) -> list[str]:
    """The ranks as the paths write them, leading zeros and all."""
    labels = ranks_of(captures)
    return [
        next((d for d in _DIGITS.findall(str(path)) if int(d) == int(label)), label) for path, label in zip(captures, labels, strict=True)
    ]
