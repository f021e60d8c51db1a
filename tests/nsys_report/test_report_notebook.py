"""The way in from Python: frames that keep what is unknown and what is large, and a page for Jupyter."""

from __future__ import annotations

import html.parser
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import nsys_report
from nsys_report.columns import ACTIVITY_TABLE, EXECUTION_TABLE
from nsys_report.errors import InputError, UsageError
from nsys_report.notebook import frame
from nsys_report.reports.html.cell import render_cell
from nsys_report.reports.model import Part, Section
from tests.nsys_report.sample_report import instructions


@pytest.fixture(scope="module")
def decode(fixture_path: Callable[..., Path]) -> nsys_report.Analysis:
    return nsys_report.analyze(fixture_path("decode", "capture.sqlite"), xla_dump=fixture_path("decode", "xla_dump"))


def test_frames_have_the_promised_columns(decode: nsys_report.Analysis) -> None:
    assert list(decode.activities.columns) == ACTIVITY_TABLE.names
    assert list(decode.executions.columns) == EXECUTION_TABLE.names
    assert (decode.activities["activity"] == "kernel").sum() == 1620
    assert (decode.executions["hlo_module"] == "jit_decode_step").sum() == 10


def test_a_step_of_the_decoder_reads_its_weights_and_writes_its_entries(decode: nsys_report.Analysis) -> None:
    """On paper: 735,051,776 bytes of products, 53,248 of norms, one embedding row; 6 × 2 × 8 × 128 × 2 bytes written to the caches."""
    classes = decode.classes[decode.classes["hlo_module"] == "jit_decode_step"]
    assert classes["weight_bytes"].sum() == pytest.approx(735_051_776 + 53_248 + 4_096, rel=1e-3)
    assert classes["kv_write_bytes"].sum() == 24_576
    assert classes["kv_read_bytes"].sum() == pytest.approx(12_582_912, rel=5e-3)


def test_frames_compose_with_pandas(decode: nsys_report.Analysis) -> None:
    kernels = decode.activities.query("activity == 'kernel' and hlo_module == 'jit_decode_step'")
    per_execution = (kernels["end_ns"] - kernels["start_ns"]).groupby(kernels["execution_id"]).sum()
    stated = decode.executions.set_index("execution_id").loc[per_execution.index, "kernel_time_ns"]
    assert (per_execution == stated).all()


def test_selections_are_analyses_too(decode: nsys_report.Analysis) -> None:
    step = decode.module("jit_decode_step")
    assert step.narrowed == "program jit_decode_step"
    assert set(step.executions["hlo_module"]) == {"jit_decode_step"}
    assert len(step.layers) == 26
    number = int(step.executions["execution_id"].iloc[3])
    one = decode.execution(number)
    assert len(one.kernels) == 162
    assert one.kernels["hlo_instruction"].notna().all()
    with pytest.raises(UsageError, match="no program 'jit_decode'"):
        decode.module("jit_decode")


def test_large_ids_and_holes_survive() -> None:
    made = frame(pa.table({"id": pa.array([2**53 + 1, None], pa.int64()), "flag": pa.array([True, None])}))
    assert made["id"][0] == 2**53 + 1
    assert made["id"].isna().tolist() == [False, True]
    assert made["flag"].isna().tolist() == [False, True]
    assert isinstance(made["id"].dtype, pd.Int64Dtype)


class Tags(html.parser.HTMLParser):
    """Counts start tags."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)


def test_an_analysis_shows_itself_as_tables(decode: nsys_report.Analysis) -> None:
    page = decode._repr_html_()
    tags = Tags()
    tags.feed(page)
    assert tags.seen.count("table") >= 4
    assert "jit_decode_step" in page and "NVIDIA H200" in page
    assert repr(decode).startswith("<Analysis of capture.sqlite: NVIDIA H200")


def test_names_in_the_page_are_escaped() -> None:
    table = instructions(('<script>alert("x")</script>',))
    page = render_cell(Part("capture", "a capture", sections=(Section("one", "One", tables=(table,)),)))
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.seen
    assert "&lt;script&gt;" in page


def test_wrong_input_raises_errors_of_this_package(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        nsys_report.analyze(tmp_path / "none.sqlite")
    with pytest.raises(UsageError, match="speed"):
        nsys_report.analyze(tmp_path / "none.sqlite", ceilings={"speed": 3})


def test_ceilings_can_be_given(fixture_path: Callable[..., Path]) -> None:
    made = nsys_report.analyze(fixture_path("torch_mlp", "capture.sqlite"), ceilings={"measured": 233, "nominal": 273})
    assert made.results.ceilings.measured is not None
    assert made.results.ceilings.measured.value == 233e9
