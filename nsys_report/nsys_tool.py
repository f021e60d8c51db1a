"""Nsight Systems as it is on this machine: where, which version, and what that version cannot do."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nsys_report.errors import InputError, UsageError

PLACES = (
    "/usr/local/cuda*/bin/nsys",
    "/opt/nvidia/nsight-systems/*/bin/nsys",
    "/opt/nvidia/nsight-systems-cli/*/bin/nsys",
    "/opt/nvidia/nsight-compute/*/host/target-linux-*/nsys",
    "/usr/local/cuda*/nsight-compute*/host/target-linux-*/nsys",
)
"""Where the CUDA toolkit, its packages and Nsight Compute put it."""
VERSION_SECONDS = 30
_VERSION = re.compile(r"version (\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Nsys:
    """An nsys executable and its version, (0, 0, 0) where it does not say."""

    path: str
    version: tuple[int, int, int]

    @property
    def name_and_version(self) -> str:
        return f"nsys {'.'.join(map(str, self.version))}" if any(self.version) else "nsys of an unknown version"

    def limits(self) -> list[str]:
        """What this version, as it is installed, cannot do."""
        found = []
        if any(self.version) and self.version < (2025, 1, 0):
            found.append("graphs traced whole get no rows of their own before 2025: --passes 2 cannot pair executions")
        if (2024, 5, 0) <= self.version < (2025, 1, 0):
            found.append("2024.5 and 2024.6 record some graph nodes twice")
        if self.version[0] >= 2025:
            found.append(
                "some programs' NVTX ranges stop its importer, which then loses the CUDA tables: such a run is repeated without NVTX"
            )
        return found + [f"its importer lacks {name}, so that no report can be made" for name in self.missing_libraries()]

    def missing_libraries(self) -> list[str]:
        """Shared libraries that the importer beside it needs and the system does not have."""
        missing: set[str] = set()
        for importer in _importers(Path(self.path)):
            try:
                listed = subprocess.run(["ldd", importer], capture_output=True, text=True, timeout=VERSION_SECONDS, check=False).stdout
            except (OSError, subprocess.SubprocessError):
                continue
            missing |= {line.split()[0] for line in listed.splitlines() if line.endswith("not found")}
        return sorted(missing)


def _importers(nsys: Path) -> list[Path]:
    """QdstrmImporter lies in a folder host-linux-* or linux-desktop-* beside the one of nsys."""
    above = nsys.resolve().parent.parent
    return [path for pattern in ("host-linux-*", "linux-desktop-*") for path in above.glob(f"{pattern}/QdstrmImporter")]


def find_nsys(given: Path | None = None, places: Iterable[str] = PLACES) -> Nsys:
    """The nsys at the path given; else of PATH; else the newest of the known places. Raises UsageError or InputError."""
    if given is not None:
        path = given / "nsys" if given.is_dir() else given
        if not os.access(path, os.X_OK):
            raise UsageError(f"{given}: no nsys that can be run", "give the path of the executable, or of the folder that holds it")
        return Nsys(str(path), _version(str(path)))
    on_path = shutil.which("nsys")
    if on_path:
        return Nsys(on_path, _version(on_path))
    found = [Nsys(path, _version(path)) for pattern in places for path in sorted(glob.glob(pattern)) if os.access(path, os.X_OK)]
    if not found:
        hint = "install Nsight Systems (package nsight-systems-cli), or say where it is with --nsys PATH"
        raise InputError("nsys is not on PATH, and neither in the CUDA toolkit nor with Nsight Compute", hint, slug="no-nsys")
    return max(found, key=lambda nsys: nsys.version)


def _version(path: str) -> tuple[int, int, int]:
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=VERSION_SECONDS, check=False).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(f"{path}: cannot be run: {error}", "give another nsys with --nsys PATH", slug="nsys-broken") from error
    match = _VERSION.search(said)
    return (int(match[1]), int(match[2]), int(match[3])) if match else (0, 0, 0)
