"""How much work a report does, counted: calls of our functions and rows read, which the length of a capture must not multiply."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from benchmarks.captures import repeat
from benchmarks.raw_read import raw_read
from nsys_report.capture.sqlite import SqliteSource
from nsys_report.pipeline import analyze

SHORT, LONG = 2, 6
OURS = ("/nsys_report/", "/hlo_mapping/")
CALLS_AN_EXECUTION = 4
"""Python functions of ours that one more execution may call: few, whatever its kernels."""


def calls(work: Callable[[], Any]) -> Counter[str]:
    """How often each of our functions is called."""
    found: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and any(part in frame.f_code.co_filename for part in OURS):
            found[f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_qualname}"] += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory, fixture_path: Callable[..., Path]) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("long")
    made = tuple(folder / f"{copies}.sqlite" for copies in (SHORT, LONG))
    for path, copies in zip(made, (SHORT, LONG), strict=True):
        repeat(fixture_path("moe", "capture.sqlite"), path, copies)
    return made[0], made[1]


def test_calls_do_not_grow_with_kernels(captures: tuple[Path, Path], fixture_path: Callable[..., Path]) -> None:
    dump, runs = fixture_path("moe", "xla_dump"), []

    def work(path: Path) -> Counter[str]:
        return calls(lambda: runs.append(len(analyze(path, dump).joined.executions)))

    short, long = (work(path) for path in captures)
    executions = runs[1] - runs[0]
    grown = {name: number - short[name] for name, number in long.items() if number - short[name] >= executions}
    assert sum(long.values()) - sum(short.values()) <= CALLS_AN_EXECUTION * executions, grown


def test_each_row_is_read_once(captures: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, fixture_path: Callable[..., Path]) -> None:
    read: Counter[str] = Counter()
    filling = SqliteSource._fill

    def fill(self: SqliteSource, query: str, *rest: Any, **options: Any) -> int:
        rows = filling(self, query, *rest, **options)
        read[query.split(' FROM "')[1].split('"')[0]] += rows
        return rows

    monkeypatch.setattr(SqliteSource, "_fill", fill)
    analyze(captures[0], fixture_path("moe", "xla_dump"))
    assert read["CUPTI_ACTIVITY_KIND_KERNEL"] == raw_read(captures[0])
    source = SqliteSource(captures[0])
    large = ("CUPTI_ACTIVITY", "NVTX_EVENTS")
    assert all(rows <= source.count(table) for table, rows in read.items() if table.startswith(large))
