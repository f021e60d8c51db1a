"""The profiler's own report (.nsys-rep) as an SQLite export: made once by the nsys of this machine, and found again by its content."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import tempfile
from pathlib import Path

from nsys_report.errors import InputError
from nsys_report.nsys_tool import Nsys, find_nsys
from nsys_report.scratch import scratch_folder

SUFFIXES = (".nsys-rep", ".qdrep")
"""The report's ending today, and up to 2021."""
_LINES = 4
"""Last lines of what nsys said that an error repeats."""


def exported(report: Path) -> Path:
    """The SQLite export of a report, in a folder for temporary files that only this user may read.

    An export is named after the report's content and the version of nsys, so that each is made once. Raises InputError where there is no
    nsys, or where it cannot export the report.
    """
    try:
        nsys = find_nsys()
    except InputError as error:
        raise _without_nsys(report, error) from error
    try:
        target = _folder() / f"{_digest(report)}-{'.'.join(map(str, nsys.version))}.sqlite"
        if not target.is_file():
            with scratch_folder(target.parent) as folder:
                _export(nsys, report, folder / target.name)
                os.replace(folder / target.name, target)
    except OSError as error:
        hint = "make room in the folder for temporary files (TMPDIR), or export it yourself: nsys export --type sqlite"
        raise InputError(f"{report}: cannot be exported: {error.strerror or error}", hint, slug="capture-not-exported") from error
    return target


def _folder() -> Path:
    """A folder of this user's own for exports; a name that somebody else holds is not used."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir(), f"nsys-report-exports-{user}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or (hasattr(os, "getuid") and (found.st_uid != user or found.st_mode & 0o077)):
        return Path(tempfile.mkdtemp(prefix="nsys-report-exports-"))
    return folder


def _digest(report: Path) -> str:
    with report.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _export(nsys: Nsys, report: Path, target: Path) -> None:
    command = [nsys.path, "export", "--type=sqlite", "--force-overwrite=true", f"--output={target}", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0 and target.is_file():
        return
    said = "\n".join([line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()][-_LINES:])
    hint = f"a report is opened by the nsys that made it or a newer one; it said last:\n{said or 'nothing'}"
    raise InputError(f"{report}: {nsys.name_and_version} could not export it", hint, slug="capture-not-exported")


def _without_nsys(report: Path, error: InputError) -> InputError:
    beside = report.with_suffix(".sqlite")
    hint = f"on a machine that has nsys, run: nsys export --type sqlite {quote_shell(report)}, then give the .sqlite file"
    if beside.is_file():
        hint = f"did you mean {beside}? Else {hint}"
    message = f"{report}: this is the profiler's own report, and there is no nsys here to export it ({error.message})"
    return InputError(message, hint, slug="capture-not-exported")


def quote_shell(path: Path) -> str:
    """The path as one word of a shell command."""
    text = str(path)
    return text if text.replace("/", "").replace(".", "").replace("_", "").replace("-", "").isalnum() else f"'{text}'"
