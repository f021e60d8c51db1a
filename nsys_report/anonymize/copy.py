"""A capture and its dump copied together, so that the names in both stay the same, and the copy analyzed as the original was."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from hlo_mapping import Renamer, anonymous_dump, index_dump, module_names
from nsys_report.anonymize.capture import NameMap, Removed, anonymous_capture
from nsys_report.capture.stores import open_source
from nsys_report.errors import InputError, UsageError
from nsys_report.notebook import Analysis, analyze
from nsys_report.packed import unpacked_dump
from nsys_report.scratch import scratch_folder

MARGIN_NS = 2_000_000
"""What is kept before the first and behind the last execution, for the calls that launched them."""


def copy_without_names(
    capture: Path, out: Path, dump: Path | None = None, keep_names: bool = False, executions: int | None = None
) -> tuple[Removed, Analysis, Analysis]:
    """Writes OUT/capture.sqlite and OUT/xla_dump; what was left out, and the analyses of the original and of the copy.

    Raises UsageError where OUT holds something, InputError and HloError for what cannot be read or written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out}: not an empty directory", "name a new directory: what it holds is passed on", slug="output")
    before = analyze(capture, dump)
    window = _window(before, executions) if executions is not None else None
    index = index_dump(unpacked_dump(dump), before.joined.ran()) if dump is not None else None
    modules = module_names(index) if index is not None else {}
    names = NameMap({old: old for old in modules} if keep_names else modules, Renamer(keep_names), keep_names)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with scratch_folder(out) as folder:
            if index is not None:  # first: the capture's names are those of the dump
                anonymous_dump(index, folder / "xla_dump", names.modules, names.rename)
            source = open_source(capture)
            try:
                removed = anonymous_capture(source, folder / "capture.sqlite", names, window)
            finally:
                source.close()
            if index is not None:
                os.replace(folder / "xla_dump", out / "xla_dump")
            os.replace(folder / "capture.sqlite", out / "capture.sqlite")
    except OSError as error:
        hint = "check the path, its permissions and the disk"
        raise InputError(f"cannot write into {out}: {error.strerror or error}", hint, slug="output") from error
    return removed, before, analyze(out / "capture.sqlite", out / "xla_dump" if index is not None else None)


def _window(analysis: Analysis, executions: int) -> tuple[int, int]:
    """The times around the first complete executions of the program with most busy time."""
    table = analysis.joined.executions
    if not len(table):
        raise UsageError("--executions was given, but no execution was found", "leave it out", slug="executions")
    busy = table["busy_time_ns"].to_numpy()
    keys = list(zip(table["hlo_module"].to_pylist(), table["program_id"].to_pylist(), strict=True))
    sums: dict[tuple[str | None, int | None], int] = {}
    for key, time in zip(keys, busy.tolist(), strict=True):
        sums[key] = sums.get(key, 0) + time
    chosen = max(sums, key=sums.__getitem__)
    mine = np.flatnonzero([key == chosen for key in keys])[:executions]
    start, end = table["start_ns"].to_numpy()[mine], table["end_ns"].to_numpy()[mine]
    gaps = table["host_gap_ns"].to_pylist()[int(mine[0])] or 0
    return int(start.min()) - min(max(gaps, 100_000), MARGIN_NS), int(end.max()) + 100_000
