"""The check of a capture alone: what counting says is what reading says."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsys_report.capture import open_capture
from nsys_report.capture.health import health
from nsys_report.capture.sql import quoted
from nsys_report.capture.sqlite import SqliteSource
from nsys_report.capture.stores import open_source
from nsys_report.capture.survey import survey
from nsys_report.cli.app import run

FIXTURES = ("decode", "decode_graph", "graph_2025", "threads", "torch_mlp", "train_host", "serve")


@pytest.mark.parametrize("name", FIXTURES)
def test_counting_agrees_with_reading(name: str, fixture_path: Callable[..., Path]) -> None:
    path = fixture_path(name, "capture.sqlite")
    counted, capture = survey(path), open_capture(path)
    read = health(capture)
    assert (counted.kernels, counted.modules, counted.calls) == (read.kernels, read.xla_modules, len(capture.runtime))
    said = {item.slug: (item.severity, item.text) for item in read.items}
    assert {item.slug: (item.severity, item.text) for item in counted.items}.items() <= said.items()


def test_a_parquet_directory_is_counted_as_the_database_is(tmp_path: Path, fixture_path: Callable[..., Path]) -> None:
    source = open_source(fixture_path("decode", "capture.sqlite"))
    with sqlite3.connect(source.path) as database:
        for table, columns in source.columns.items():
            rows = database.execute(f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(table)}").fetchall()
            pq.write_table(pa.table({c: [row[n] for row in rows] for n, c in enumerate(columns)}), tmp_path / f"{table}.parquet")
    counted, parquet = survey(source.path), survey(tmp_path)
    assert (parquet.kernels, parquet.calls, parquet.modules, parquet.items) == (1620, counted.calls, counted.modules, counted.items)


def test_a_check_of_a_capture_alone_reads_no_kernel(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fixture_path: Callable[..., Path]
) -> None:
    read: list[str] = []
    reading = SqliteSource.read
    monkeypatch.setattr(SqliteSource, "read", lambda self, table, *rest: read.append(table) or reading(self, table, *rest))
    assert run(["check", str(fixture_path("decode", "capture.sqlite"))]) == 0
    assert not [table for table in read if table.startswith(("CUPTI_ACTIVITY", "NVTX"))]
    assert "Nothing was joined" in capsys.readouterr().out
