"""JSON and Parquet: whole or absent, the same figures as the pages."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsys_report.errors import InputError
from nsys_report.reports import export
from nsys_report.reports.model import Column, Part, Report, Row, Section, Table
from tests.nsys_report.sample_report import report


def test_the_document_holds_raw_figures_beside_their_words() -> None:
    document = json.loads(export.json_text(report()))
    assert (document["format"], document["version"]) == ("nsys-report", 1)
    capture = document["captures"][0]
    classes = capture["sections"][0]["tables"]["classes"]
    assert classes["rows"][0]["bytes_accessed"] == 735_109_120
    assert classes["text"][0][4] == "735 MB"
    assert classes["rows"][2]["bytes_accessed"] is None
    assert classes["marks"][1][0]["column"] == "bytes_per_s"
    assert capture["facts"]["span_ns"] == {"label": "span", "value": 14_200_000, "unit": "ns", "text": "14.2 ms"}


def test_64_bit_ids_survive() -> None:
    table = Table("t", "t", (Column("id", "id", "number"),), (Row((2**53 + 1,)),))
    document = json.loads(export.json_text(Report((Part("a", "b", sections=(Section("s", "s", tables=(table,)),)),))))
    assert document["captures"][0]["sections"][0]["tables"]["t"]["rows"][0]["id"] == 2**53 + 1


def test_what_is_no_number_is_null_in_json() -> None:
    table = Table("t", "t", (Column("x", "x", "number"),), (Row((float("nan"),)), Row((float("inf"),))))
    text = export.json_text(Report((Part("a", "b", sections=(Section("s", "s", tables=(table,)),)),)))
    assert [row["x"] for row in json.loads(text)["captures"][0]["sections"][0]["tables"]["t"]["rows"]] == [None, None]


def test_a_file_that_fails_half_way_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")

    def fail(out: io.BufferedIOBase) -> None:
        out.write(b"half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        export.write_whole(path, fail)  # type: ignore[arg-type]
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.json"]


def test_json_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    export.write_json(report(), path)
    assert json.loads(path.read_text())["captures"][0]["name"] == "capture.sqlite"
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode


def test_a_link_is_followed_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    export.write_json(report(), tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink() and (tmp_path / "real.json").is_file()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_an_input_error_and_a_device_stays_a_device() -> None:
    with pytest.raises(InputError, match="cannot write /dev/full"):
        export.write_json(report(), Path("/dev/full"))
    assert not Path("/dev/full").is_file()


def test_tables_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    good = pa.table({"start_ns": pa.array([2**62, None], pa.int64())})
    export.write_tables({"activities": good, "classes": good}, tmp_path / os.fsdecode(b"not UTF-8: \xff"))
    export.write_tables({"activities": good, "classes": good}, tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == ["activities.parquet", "classes.parquet"]
    assert pq.read_table(tmp_path / "out" / "activities.parquet")["start_ns"].to_pylist() == [2**62, None]
    with pytest.raises(AttributeError):
        export.write_tables({"activities": good, "classes": None}, tmp_path / "other")  # type: ignore[dict-item]
    assert os.listdir(tmp_path / "other") == []


def test_outputs_that_cannot_be_written_are_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="it is a directory"):
        export.require_file(tmp_path)
    with pytest.raises(InputError, match="there is no directory"):
        export.require_file(tmp_path / "missing" / "report.json")
    with pytest.raises(InputError, match="it is a file"):
        export.require_directory(tmp_path / "file")
    with pytest.raises(InputError):
        export.require_directory(tmp_path / "file" / "below")
    export.require_file(tmp_path / "new.json")
    export.require_directory(tmp_path / "new" / "deep")
    assert not (tmp_path / "new").exists()


def test_a_file_in_the_place_of_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for require in (export.require_file, export.require_directory):
        with pytest.raises(InputError, match="file is a file, not a directory"):
            require(tmp_path / "file" / "deep" / "below")


def test_a_directory_in_a_files_place_keeps_the_other_files_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "classes.parquet").mkdir()
    (tmp_path / "activities.parquet").write_text("old")
    table = pa.table({"start_ns": [1]})
    with pytest.raises(InputError, match=r"classes\.parquet"):
        export.write_tables({"activities": table, "classes": table}, tmp_path)
    assert (tmp_path / "activities.parquet").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["activities.parquet", "classes.parquet"]


def test_file_names_are_plain_short_and_distinct() -> None:
    names = ["a b", "a-b", "A B", "..", "", "../../etc", "é" * 300, "x" * 300, "x" * 299 + "y"]
    stems = export.distinct_stems(names, "table")
    assert stems[:6] == ["a-b", "a-b-2", "A-B-3", "table", "table-2", "etc"]
    assert len({stem.lower() for stem in stems}) == len(names)
    assert all(len(stem.encode()) < 200 and not stem.startswith(("-", ".")) and "/" not in stem for stem in stems)


def test_labels_are_for_pages_and_leave_the_raw_value() -> None:
    table = Table("t", "t", (Column("hlo_module", "program", "name"),), (Row(("jit_f",), labels=(("hlo_module", "jit_f#3"),)),))
    document = json.loads(export.json_text(Report((Part("a", "b", sections=(Section("s", "s", tables=(table,)),)),))))
    written = document["captures"][0]["sections"][0]["tables"]["t"]
    assert (written["rows"], written["text"]) == ([{"hlo_module": "jit_f"}], [["jit_f#3"]])
