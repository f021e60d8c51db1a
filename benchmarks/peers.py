"""The same capture in other tools, where they are installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path


def peers(capture: Path, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Name and command of each tool that is there: what it takes to say where the time of a capture's kernels goes."""
    if nsys := shutil.which("nsys"):
        summary = [
            nsys,
            "stats",
            "--report",
            "cuda_gpu_kern_sum",
            "--format",
            "csv",
            "--output",
            str(folder / "nsys"),
            "--force-overwrite=true",
        ]
        yield "nsys stats", [*summary, str(capture)]
    if ai := shutil.which("nsys-ai"):
        yield "nsys-ai", [ai, "summary", str(capture)]
