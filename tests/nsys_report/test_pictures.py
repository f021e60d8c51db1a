"""What pictures show: which executions, how many marks, which titles; worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from nsys_report.reports.palette import BUDGET, CLASSES, Color
from nsys_report.reports.pictures.build import build_pictures
from nsys_report.reports.pictures.model import Pictures
from nsys_report.reports.pictures.timeline import ExecutionCutter, _spread, bars
from nsys_report.reports.scales import time_scale, wide
from tests.nsys_report.pages import FIXTURES, analyzed


def pictures(name: str, **limits: int) -> Pictures:
    return build_pictures(analyzed(name).named(name), **limits)


def test_the_parts_of_a_budget_add_up_to_its_step() -> None:
    for name in ("decode", "serve", "train_host", "threads"):
        for program in pictures(name).programs:
            assert program.budget is not None
            assert sum(part.ns for part in program.budget.parts) == pytest.approx(program.budget.step_ns, abs=1)
            assert sum(part.share for part in program.budget.parts) == pytest.approx(1)


def test_titles_say_the_finding() -> None:
    program = pictures("decode").programs[0]
    assert program.budget is not None and program.rates is not None and program.roofline is not None
    assert "a step of jit_decode_step: " in program.budget.title and "% waiting for the host" in program.budget.title
    assert program.rates.title.startswith("jit_decode_step: weights (75.")
    assert program.roofline.title.startswith("jit_decode_step: bandwidth limits its products; ")
    assert "(median" in program.timelines[0].title and "162 kernels in" in program.timelines[0].title


def test_a_timeline_holds_every_activity_of_its_execution() -> None:
    analysis = analyzed("decode")
    for timeline in pictures("decode").programs[0].timelines:
        own = analysis.activities[analysis.activities.execution_id == timeline.execution_id]
        assert len(timeline) == len(own) == 162
        assert timeline.duration_ns.sum() == (own.end_ns - own.start_ns).sum()
        assert (timeline.start_ns + timeline.origin_ns).tolist() == own.start_ns.tolist()
        names = [timeline.kinds[k].name for k in timeline.kind.tolist()]
        assert names == own.hlo_instruction.tolist()


def test_the_median_execution_is_the_one_in_the_middle() -> None:
    analysis = analyzed("decode")
    runs = analysis.executions.query("hlo_module == 'jit_decode_step'").sort_values("kernel_time_ns")
    found = next(t for t in pictures("decode").programs[0].timelines if "median" in t.role)
    assert found.execution_id == runs.execution_id.iloc[(len(runs) - 1) // 2]


def test_room_for_few_bars_still_shows_the_named_executions() -> None:
    few = pictures("decode", most_bars=0).programs[0].timelines
    assert 1 <= len(few) <= 3 and all(t.role for t in few)
    assert len(pictures("decode").programs[0].timelines) == 10


def test_a_spread_reaches_everything_and_begins_wide() -> None:
    rows = np.arange(10)
    assert sorted(_spread(rows).tolist()) == rows.tolist()
    assert _spread(np.arange(8)).tolist() == [0, 4, 2, 6, 1, 5, 3, 7]


def test_executions_share_marks_where_there_are_too_many() -> None:
    whole, few = pictures("decode").runs, pictures("decode", most_marks=8).runs
    assert whole is not None and few is not None
    assert len(whole) == 40 and whole.count.tolist() == [1] * 40 and whole.notes == ()
    assert few.count.sum() == 40 and len(few) < 16 and "A mark stands for up to" in few.notes[0]
    gaps = analyzed("decode").executions.query("hlo_module == 'jit_decode_step'")
    lane = few.lanes.index("jit_decode_step")
    first = np.flatnonzero(few.lane == lane)[0]
    own = gaps.iloc[: few.count[first]]
    assert few.kernel_time_ns[first] == np.median(own.kernel_time_ns)
    assert few.start_ns[first] + few.origin_ns == own.start_ns.min()


def test_a_capture_without_executions_shows_its_activities() -> None:
    found = pictures("torch_mlp")
    assert found.runs is None and found.programs == ()
    assert found.stretch is not None and len(found.stretch) == 102
    assert {kind.kernel_class for kind in found.stretch.kinds} == {"kernel", "copy", "memset"}


def test_two_devices_have_a_lane_each() -> None:
    runs = pictures("sharded_nocb").runs
    assert runs is not None and sorted(runs.lanes) == ["jit_tp_mlp, GPU 0", "jit_tp_mlp, GPU 1"]


def test_the_longest_bars_are_kept_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsys_report.reports.pictures.timeline.MOST_IN_ONE", 5)
    analysis = analyzed("decode")
    table = analysis.joined.complete(analysis.joined.activities.slice(0, 50))
    found = bars(table, 0, 10**9, "", "t", "", None)
    lengths = np.sort((analysis.activities.end_ns - analysis.activities.start_ns)[:50].to_numpy())
    assert sorted(found.duration_ns.tolist()) == lengths[-5:].tolist()
    assert found.notes[0].startswith("The 5 longest of 50 activities are shown: ")


@pytest.mark.parametrize("name", sorted(p.parent.name for p in FIXTURES.glob("*/capture.sqlite")))
def test_every_fixture_has_pictures(name: str) -> None:
    found = pictures(name)
    assert (found.runs is None) != (found.stretch is None) or not len(analyzed(name).activities)
    joined = analyzed(name).joined
    cutter = ExecutionCutter(joined)
    assert sum(cutter.count(row) for row in range(len(joined.executions))) == joined.activities["execution_id"].drop_null().length()


def test_scales() -> None:
    assert time_scale(5e9) == (1e9, "s") and time_scale(1500) == (1e3, "µs") and time_scale(0) == (1.0, "ns")
    low, high = wide(10, 100)
    assert high / low == pytest.approx(10**2.5) and low * high == pytest.approx(1000)
    assert wide(1, 1000) == (1, 1000)


def test_text_on_every_color_can_be_read() -> None:
    """Contrast of at least 4.5 to 1, as WCAG asks for text."""
    for color in (*CLASSES.values(), *BUDGET.values()):
        for dark in (False, True):
            ground = luminance(color.dark if dark else color.light)
            ink = luminance(color.ink(dark))
            assert (max(ground, ink) + 0.05) / (min(ground, ink) + 0.05) >= 4.5, color


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_classes_are_told_apart_without_seeing_red_from_green() -> None:
    """Under deuteranopia and protanopia (Viénot 1999) no two classes of kernels become the same color."""
    for matrix in (((0.29275, 0.70725, 0), (0.29275, 0.70725, 0), (-0.02234, 0.02234, 1)),
                   ((0.11238, 0.88762, 0), (0.11238, 0.88762, 0), (0.00401, -0.00401, 1))):  # fmt: skip
        for dark in (False, True):
            seen = {name: simulated(CLASSES[name], matrix, dark) for name in ("weights", "attention", "kv_gather", "kv_write", "other")}
            for one in seen:
                for other in seen:
                    assert one == other or np.linalg.norm(seen[one] - seen[other]) > 0.08, (one, other, dark)


def simulated(color: Color, matrix: tuple[tuple[float, ...], ...], dark: bool) -> np.ndarray:
    value = color.dark if dark else color.light
    return np.array(matrix) @ np.array([int(value[at : at + 2], 16) / 255 for at in (1, 3, 5)]) ** 2.2
