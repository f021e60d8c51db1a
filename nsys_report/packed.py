"""Captures and dumps as they are sent: packed by gzip, zstd, xz, bzip2 or lz4, or in a tar or zip archive; unpacked once a process."""

from __future__ import annotations

import atexit
import bz2
import contextlib
import gzip
import io
import lzma
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from nsys_report.errors import InputError
from nsys_report.scratch import scratch_folder


def _by_arrow(codec: str) -> Callable[[Path], IO[bytes]]:
    def opened(path: Path) -> IO[bytes]:
        import pyarrow as pa

        return io.BufferedReader(cast(io.RawIOBase, pa.input_stream(path, compression=codec)))

    return opened


PACKERS: tuple[tuple[bytes, str, Callable[[Path], Any]], ...] = (
    (b"\x1f\x8b", "gzip", gzip.GzipFile),
    (b"\x28\xb5\x2f\xfd", "zstd", _by_arrow("zstd")),
    (b"\xfd7zXZ", "xz", lzma.LZMAFile),
    (b"BZh", "bzip2", bz2.BZ2File),
    (b"\x04\x22\x4d\x18", "lz4", _by_arrow("lz4")),
)
"""How each packer's files begin, its name, and what reads through it."""
_SQLITE = b"SQLite format 3\x00"
_ZIP = b"PK\x03\x04"
_TAR_AT, _TAR = 257, b"ustar"
"""Where a tar archive says what it is (POSIX.1-1988)."""
_START = 512
_DUMP_FILE = re.compile(r"(?:\d+\.)?module_\d+\.")
_OPTIMIZED = "gpu_after_optimizations.txt"
_UNREADABLE = (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
Member = tuple[PurePosixPath, Callable[[], IO[bytes] | None]]
"""A regular file of an archive: its path in it, and what opens it."""

_kept: dict[tuple[str, Path, int, int], Path] = {}
_folders = contextlib.ExitStack()
atexit.register(_folders.close)


def unpacked_capture(path: Path) -> Path:
    """The database in a packed file, or in an archive that holds one; any other path as it is. Raises InputError."""
    return _once("capture", path, _take_database)


def unpacked_dump(path: Path) -> Path:
    """The directory of the dump in an archive; any other path as it is. Raises InputError."""
    return _once("dump", path, _take_dump)


def _once(kind: str, path: Path, take: Callable[[Path, bytes, Path], Path]) -> Path:
    try:
        if (start := _first_bytes(path)) is None:
            return path
        state = path.stat()
        key = (kind, path.absolute(), state.st_size, state.st_mtime_ns)
        if key not in _kept:
            folder = _folders.enter_context(scratch_folder(Path(tempfile.gettempdir())))
            _kept[key] = take(path, start, folder)
    except _UNREADABLE as error:
        reason = getattr(error, "strerror", None) or str(error) or "it ends too early"
        raise InputError(f"{path}: cannot be unpacked: {reason}", "copy it again, or unpack it yourself", slug="packed") from error
    return _kept[key]


def _first_bytes(path: Path) -> bytes | None:
    """The first bytes of what is packed in a file, or of an archive; None for what is neither, or cannot be read: its reader says so."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            head = file.read(_START)
    except (OSError, ValueError):
        return None
    if head.startswith(_ZIP) or head[_TAR_AT:].startswith(_TAR):
        return head
    for begins, _, opens in PACKERS:
        if head.startswith(begins):
            with opens(path) as stream:
                return bytes(stream.read(_START))
    return None


@contextlib.contextmanager
def _stream(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as file:
        head = file.read(len(_SQLITE))
    with next((opens for begins, _, opens in PACKERS if head.startswith(begins)), lambda p: p.open("rb"))(path) as stream:
        yield stream


def _take_database(path: Path, start: bytes, folder: Path) -> Path:
    if start.startswith(_SQLITE):
        target = folder / (path.stem if path.stem.endswith(".sqlite") else f"{path.stem}.sqlite")
        with _stream(path) as stream, target.open("wb") as file:
            shutil.copyfileobj(stream, file)
        return target
    found: list[Path] = []
    for name, opens in _members(path, start):
        inside = opens()
        if inside is None or inside.read(len(_SQLITE)) != _SQLITE:
            continue
        if found:
            hint = "unpack it, and give one"
            raise InputError(f"{path}: an archive of several captures, {found[0].name} and {name}", hint, slug="packed")
        found.append(folder / name.name)
        with found[0].open("wb") as file:
            file.write(_SQLITE)
            shutil.copyfileobj(inside, file)
    if not found:
        hint = "pack the .sqlite file, or an archive that holds it"
        raise InputError(f"{path}: packed, but what it holds is no capture", hint, slug="packed")
    return found[0]


def _take_dump(path: Path, start: bytes, folder: Path) -> Path:
    target = folder / path.name.split(".")[0]
    target.mkdir()
    holders = set()
    for name, opens in _members(path, start):
        if not _DUMP_FILE.match(name.name) or (stream := opens()) is None:
            continue
        place = target.joinpath(*(part for part in name.parent.parts if part not in ("/", "..")))
        place.mkdir(parents=True, exist_ok=True)
        with (place / name.name).open("wb") as file:
            shutil.copyfileobj(stream, file)
        if name.name.endswith(_OPTIMIZED):
            holders.add(place)
    if len(holders) != 1:
        what = f"an archive of {len(holders)} dumps" if holders else "packed, but what it holds is no dump of XLA"
        raise InputError(f"{path}: {what}", "give an archive of the directory that --xla_dump_to named", slug="packed")
    return holders.pop()


def _members(path: Path, start: bytes) -> Iterator[Member]:
    """The regular files of an archive, each of which can be opened until the next is asked for; none of what is no archive."""
    if start.startswith(_ZIP):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    yield PurePosixPath(entry.filename), partial(archive.open, entry)
    elif start[_TAR_AT:].startswith(_TAR):
        with _stream(path) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                if member.isfile():
                    yield PurePosixPath(member.name), partial(tar.extractfile, member)
