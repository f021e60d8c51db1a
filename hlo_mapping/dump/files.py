"""The names of the files in an XLA dump directory: `[TIMESTAMP.]module_NUMBER[.NAME].SUFFIX`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from hlo_mapping.errors import DumpError

OPTIMIZED = "gpu_after_optimizations.txt"
BEFORE = "before_optimizations.txt"
THUNKS = "thunk_sequence.txt"
FINAL_THUNKS = "thunk_sequence_after_thunk_passes.txt"
THUNK_METADATA = "thunk_metadata.txt"
BUFFERS = "gpu_after_optimizations-buffer-assignment.txt"
DEBUG_OPTIONS = "debug_options"
CPU_OPTIMIZED = "cpu_after_optimizations.txt"
PROTO = "hlo.pb"
"""Any dump of a module as a proto, which is not read."""

_TARGET = r"(?:(?:sm_\d+\.\d+\w*|[^.]+)_)?"
"""The GPU in front of a suffix, as sm_9.0a; the only part of a suffix that holds a dot of its own."""
_SUFFIXES = (
    rf"{_TARGET}(?P<gpu>gpu_after_optimizations(?:-[\w\-]+)?\.txt)",
    rf"{_TARGET}(?P<cpu>cpu_after_optimizations(?:-[\w\-]+)?\.txt)",
    r"(?P<text>before_optimizations|thunk_sequence|thunk_sequence_after_thunk_passes|thunk_metadata)\.txt",
    r"(?P<options>debug_options)(?:\.txt)?",
    r"(?:[\w.\-]+\.)?(?P<proto>hlo)(?:\.unoptimized)?\.pb(?:\.gz)?",
)
_NAME = re.compile(rf"(?:(?P<time>\d+)\.)?module_(?P<number>\d+)(?:\.(?P<name>.+?))??\.(?:{'|'.join(_SUFFIXES)})")


@dataclass(frozen=True, slots=True)
class FileName:
    """What a file's name says. `name` is "" where XLA left the module's name out to keep the file name short."""

    number: int
    name: str
    suffix: str
    timestamp: int = 0
    """Microseconds since 1970, where the dump was written with --xla_dump_include_timestamp; 0 otherwise."""


def parse_file_name(file_name: str) -> FileName | None:
    """The parts of a dump file's name; None for names that no reader here needs."""
    found = _NAME.fullmatch(file_name)
    if found is None:
        return None
    kinds = found.groupdict()
    suffix = kinds["gpu"] or kinds["cpu"] or kinds["options"]
    if suffix is None:
        suffix = f"{kinds['text']}.txt" if kinds["text"] else PROTO
    return FileName(int(found["number"]), found["name"] or "", suffix, int(found["time"] or 0))


def read_text(path: Path) -> str:
    """The text of a dump file, without a mark of its byte order. Bytes that are not UTF-8 (XLA writes any bytes in strings) come as \\xNN.

    DumpError if unreadable.
    """
    with _reading(path) as stream:
        return stream.read()


def read_start(path: Path, letters: int) -> str:
    """The first letters of a dump file, like read_text."""
    with _reading(path) as stream:
        return stream.read(letters)


@contextmanager
def _reading(path: Path) -> Iterator[TextIO]:
    try:
        if not (path.is_file() or path.is_dir()) and path.exists():  # a pipe would be waited for
            raise DumpError(f"cannot read {path.name}: it is a pipe or device")
        with path.open(encoding="utf-8-sig", errors="backslashreplace") as stream:
            yield stream
    except OSError as error:
        raise DumpError(f"cannot read {path.name}: {error.strerror or error}") from error
