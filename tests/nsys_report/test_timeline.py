"""The timeline of a capture: every mark once, idle time by cause, bounded, in detail where it matters."""

from __future__ import annotations

import functools
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from nsys_report.intervals import length
from nsys_report.notebook import analyze
from nsys_report.reports.budget_page import CATEGORIES
from nsys_report.reports.html.content import Content, build_page
from nsys_report.reports.html.timeline import timeline_data
from nsys_report.reports.timeline.build import step_timeline
from nsys_report.reports.timeline.model import StepTimeline
from nsys_report.reports.timeline.phases import GROUP
from nsys_report.reports.timeline.windows import in_turns, overlapping, step_windows, windows
from tests.nsys_report.pages import FIXTURES, analyzed, page_of


@functools.cache
def content(name: str) -> Content:
    return page_of((name, analyzed(name))).contents[0]


def timeline(name: str) -> StepTimeline:
    made = content(name).timeline
    assert made is not None
    return made


def times(name: str, *kinds: str) -> int:
    return sum(int(row.duration_ns.sum()) for row in timeline(name).rows if row.kind in kinds)


@pytest.mark.parametrize("name", ["decode", "train", "torch_mlp", "threads"])
def test_every_activity_and_every_idle_moment_is_a_mark_once(name: str) -> None:
    view = analyzed(name).results.view
    rows = timeline(name).rows
    assert sum(len(row) for row in rows if row.kind in ("stream", "copies")) == len(view.start)
    assert times(name, "stream", "copies") == int(view.duration.sum())
    idle = sum(length(ranges) for device in analyzed(name).results.idle for ranges in device.by_cause)
    assert times(name, "idle") == idle


def test_marks_of_a_row_never_overlap_and_each_has_its_look() -> None:
    for name in ("decode", "threads"):
        for row in timeline(name).rows:
            assert (row.start_ns[1:] >= (row.start_ns + row.duration_ns)[:-1]).all(), (row.group, row.name)
            assert row.look.min() >= 0 and row.look.max() < len(timeline(name).looks)


def test_the_layers_of_the_decoder_stand_over_its_kernels() -> None:
    rows = {row.name: row for row in timeline("decode").rows if row.group == "GPU 0"}
    layers, stream = rows["layers"], rows["stream 14"]
    names = [timeline("decode").looks[i].name for i in layers.look[:5]]
    assert names == [f"layer {n}" for n in range(5)] and len(layers) == 10 * 5
    inside = (stream.start_ns >= layers.start_ns[0]) & (stream.start_ns < layers.start_ns[0] + layers.duration_ns[0])
    assert inside.sum() == 26


def test_a_kernel_says_its_instruction_source_bytes_and_roof() -> None:
    look = next(look for look in timeline("decode").looks if look.instruction == "gemm_fusion_dot.97")
    said = dict(look.facts)
    assert look.color == "c-weights" and look.program is not None and look.program.startswith("jit_decode_step")
    assert said["source"] == "workloads.py:110" and said["operation"] == "jit(decode_step)/dot_general"
    assert said["bytes"].endswith("B") and said["of its memory roof"].endswith("%")
    assert look.label == said["called"] == "layers[3].{gate_proj, up_proj}"
    assert said["parameters"] == "params['layers'][3]['gate_proj'], params['layers'][3]['up_proj']"


def test_host_threads_have_ranges_and_calls() -> None:
    host = [row for row in timeline("decode").rows if row.kind in ("range", "call")]
    launching = [row for row in host if row.group.endswith("launches")]
    names = {timeline("decode").looks[i].name for row in launching for i in row.look.tolist()}
    assert {"execute jit_decode_step", "cuGraphLaunch"} <= names
    calls = sum(len(row) for row in host if row.kind == "call")
    assert calls == len(analyzed("decode").joined.capture.runtime)


def test_a_strip_adds_up_to_the_devices_time() -> None:
    made = timeline("decode")
    (strip,) = made.strips
    busy = strip.percent[[c.startswith("c-") for c in strip.colors]].sum() * strip.bin_ns / 100
    view = analyzed("decode").results.view
    assert busy == pytest.approx(int(view.duration.sum()), rel=0.02)
    assert strip.percent.sum(axis=0).max() <= 103  # each share is rounded


def test_a_short_room_holds_the_first_step_with_what_is_around_it() -> None:
    starts = [np.arange(0, 1000, 10)]
    whole = windows(starts, (0, 1000), [], 100)
    assert list(zip(*whole, strict=True)) == [(0, 1000)]
    steps = [(200, 300), (250, 400), (700, 800)]
    assert list(zip(*windows(starts, (0, 1000), steps, 30), strict=True)) == [(200, 400)]
    assert list(zip(*windows(starts, (0, 1000), steps, 5), strict=True)) == [(200, 300)]
    assert list(zip(*windows(starts, (0, 1000), [], 30), strict=True)) == [(0, 300)]


def test_a_step_is_shown_from_the_one_before_to_the_one_after() -> None:
    start, end = np.array([100_000, 300_000, 500_000]), np.array([150_000, 350_000, 550_000])
    assert list(step_windows(start, end, [1])) == [(100_000, 550_000)]
    assert list(step_windows(start, end, [0])) == [(30_000, 350_000)]
    assert list(in_turns([[(0, 1), (2, 3)], [(4, 5)]])) == [(0, 1), (4, 5), (2, 3)]


def test_what_reaches_into_a_window_is_in_it() -> None:
    shown = windows([np.arange(4)], (0, 9), [(2, 4), (6, 8)], 3)
    start, end = np.array([0, 1, 3, 4, 5, 9]), np.array([1, 2, 5, 5, 7, 10])
    assert overlapping(start, end, shown).tolist() == [1, 2, 4]


def test_a_long_capture_is_bounded_and_says_so() -> None:
    analysis = analyzed("decode")
    few = step_timeline(analysis.named("decode"), {}, [[5, 3]], 700)
    assert few is not None and len(few) <= 700 and few.windows != ((0, few.span_ns),)
    assert "of 40 executions" in few.notes[-1] and few.strips[0].percent.shape == timeline("decode").strips[0].percent.shape


def test_the_page_holds_as_many_marks_as_the_timeline() -> None:
    data = timeline_data(timeline("decode"), content("decode").pictures, {})
    assert sum(len(row["start"]) for row in data["rows"]) == len(timeline("decode"))
    first = data["rows"][0]
    assert np.cumsum(first["start"]).tolist() == timeline("decode").rows[0].start_ns.tolist()
    assert next(pick["name"] for pick in data["picks"]).endswith("(step of median length)")


def test_a_page_without_captures_has_no_timeline() -> None:
    from nsys_report.reports.model import Report

    assert build_page(Report((), made_by="test"), []).contents == ()


def test_the_programs_own_ranges_are_read_where_there_are_few(tmp_path: Path) -> None:
    """A range that the program opened lies on its thread, beside XLA's, and is no XLA's."""
    path = tmp_path / "capture.sqlite"
    shutil.copyfile(FIXTURES / "train" / "capture.sqlite", path)
    with sqlite3.connect(path) as database:
        thread, start, end = database.execute("SELECT globalTid, min(start), max(end) FROM NVTX_EVENTS WHERE eventType = 59").fetchone()
        event = (start - 10, end + 10, 59, thread, "my epoch")
        database.execute("INSERT INTO NVTX_EVENTS (start, end, eventType, globalTid, text) VALUES (?, ?, ?, ?, ?)", event)
    session = analyze(path, FIXTURES / "train" / "xla_dump").named("own")
    made = step_timeline(session, {}, [])
    assert made is not None
    own = [
        (row, at) for row in made.rows for at in np.flatnonzero(row.look == [look.name for look in made.looks].index("my epoch")).tolist()
    ]
    ((row, at),) = own
    assert row.kind == "range" and row.duration_ns[at] == end - start + 20 and made.looks[row.look[at]].color == "h-own"


def test_the_step_of_median_length_comes_first_with_what_the_host_does_in_it() -> None:
    made = timeline("decode")
    (row,) = [row for row in made.rows if row.group == GROUP]
    phases = [r for r in analyzed("decode").results.host_phases.to_pylist() if r["hlo_module"] == "jit_decode_step"]
    assert [made.looks[i].name for i in row.look.tolist()] == [r["phase"].replace("_", " ") for r in phases]
    assert (row.start_ns[1:] == (row.start_ns + row.duration_ns)[:-1]).all()
    runs = analyzed("decode").results.view.executions
    one = runs.id.tolist().index(made.steps[0].execution_id)
    assert row.start_ns[0] + made.origin_ns >= runs.end[one]
    assert row.start_ns[-1] + row.duration_ns[-1] + made.origin_ns in runs.start


def test_idle_time_is_called_as_the_budget_calls_it() -> None:
    looks = [timeline("decode").looks[i] for row in timeline("decode").rows if row.kind == "idle" for i in np.unique(row.look).tolist()]
    assert {"waiting for the host", "launching"} <= {look.label for look in looks} <= set(CATEGORIES.values())
    assert "other host code" in {look.name for look in looks}
