"""Pictures as PNG: the same bytes each time, something on them, names as text, nothing global touched."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib
import matplotlib.image
import numpy as np
import pytest
from matplotlib.text import Annotation

from nsys_report.cli import app
from nsys_report.reports.figures.canvas import plain, png
from nsys_report.reports.figures.files import figures, write_png
from nsys_report.reports.figures.roofline import roofline_figure
from nsys_report.reports.figures.times import runs_figure, timeline_figure
from nsys_report.reports.pictures.build import build_pictures
from nsys_report.reports.pictures.model import Pictures
from tests.nsys_report.pages import HOSTILE, analyzed, with_hostile_names


def pictures(name: str) -> Pictures:
    return build_pictures(analyzed(name).named(name))


def test_every_picture_has_a_file_with_ink_and_the_same_bytes_again(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_png(pictures("decode"), tmp_path / folder)
    names = sorted(p.name for p in (tmp_path / "one").iterdir())
    kinds = ("budget", "classes", "roofline", "timeline")
    assert [n.partition(".")[2] for n in names if n.startswith("jit_decode_step-21184.")] == [f"{kind}.png" for kind in kinds]
    assert "executions.png" in names
    for name in names:
        data = (tmp_path / "one" / name).read_bytes()
        assert data == (tmp_path / "two" / name).read_bytes()
        pixels = matplotlib.image.imread(io.BytesIO(data), format="png")
        assert pixels.shape[1] == 1600 and 0.005 < np.mean(pixels[..., :3].min(axis=2) < 0.95) < 0.6
        assert b"matplotlib" not in data and b"Software" not in data


@pytest.mark.parametrize("name", ["torch_mlp", "decode_graph", "graph_2025", "shapes", "sharded_nocb", "train_host", "threads"])
def test_odd_captures_are_drawn_or_left_out(name: str) -> None:
    made = dict(figures(pictures(name)))
    assert made and all(png(figure).startswith(b"\x89PNG") for figure in made.values())


def test_text_stays_within_the_picture() -> None:
    for name in ("decode", "train_host", "sharded_nocb"):
        for key, figure in figures(pictures(name)):
            figure.canvas.draw()
            renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
            width, height = figure.bbox.width, figure.bbox.height
            ticks = [t for axes in figure.axes for t in axes.get_yticklabels()]
            for text in [*figure.texts, *ticks, *(t for axes in figure.axes for t in axes.texts)]:
                box = text.get_window_extent(renderer)
                inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
                assert inside or not text.get_text().strip() or text.get_clip_on(), (name, key, text.get_text())


def test_hostile_names_are_drawn_as_text() -> None:
    analysis = with_hostile_names(analyzed("threads"))
    assert all(png(figure) for _, figure in figures(build_pictures(analysis.named(HOSTILE))))
    assert plain("$x^2$ \u202e\u4e2d") == "$x^2$ \\u202e\\u4e2d"
    runs = pictures("threads").runs
    assert runs is not None
    drawn = runs_figure(replace(runs, title=r"$\frac{1}{2}$ and $unclosed"))
    assert drawn.texts[0].get_text() == r"$\frac{1}{2}$ and $unclosed" and png(drawn)


def test_more_programs_than_there_is_room_for_are_said() -> None:
    runs = pictures("serve").runs
    assert runs is not None
    many = replace(runs, lanes=(*runs.lanes, *(f"program {i}" for i in range(9))))
    assert any(f"{len(many.lanes) - 8} more programs are not drawn" in text.get_text() for text in runs_figure(many).texts)


def test_drawing_touches_nothing_global() -> None:
    before = dict(matplotlib.rcParams)
    assert all(png(figure) for _, figure in figures(pictures("torch_mlp")))
    assert dict(matplotlib.rcParams) == before
    script = (
        "import sys; from nsys_report import analyze; "
        "analyze('fixtures/torch_mlp/capture.sqlite').plot.executions()._repr_png_(); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[2])


def test_the_option_writes_a_folder_for_each_of_several_captures(tmp_path: Path) -> None:
    captures = [str(Path(__file__).parents[2] / "fixtures" / name / "capture.sqlite") for name in ("torch_mlp", "decode_graph")]
    assert app.run([*captures, "--png", str(tmp_path)]) == 0
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.png"))[0].endswith("/executions.png")
    assert len(list(tmp_path.iterdir())) == 2


def test_rows_with_long_names_have_room_for_them() -> None:
    timeline = pictures("decode").programs[0].timelines[0]
    figure = timeline_figure(replace(timeline, rows=("GPU 7 stream 123456 (12)",)))
    figure.canvas.draw()
    (label,) = figure.axes[0].get_yticklabels()
    assert label.get_text() == "GPU 7 stream 123456 (12)"
    assert label.get_window_extent().x0 >= 0


@pytest.mark.parametrize("name", ["decode", "threads", "train_host"])
def test_names_on_a_roofline_cover_no_dot_and_no_other_name(name: str) -> None:
    for program in pictures(name).programs:
        if program.roofline is None:
            continue
        figure = roofline_figure(program.roofline)
        figure.canvas.draw()
        chart = figure.axes[0]
        dots = chart.transData.transform([(p.flops_per_byte, p.flops_per_s / 1e12) for p in program.roofline.points])
        boxes = [t.get_window_extent() for t in chart.texts if isinstance(t, Annotation)]
        assert boxes
        assert not any(box.contains(x, y) for box in boxes for x, y in dots)
        assert not any(one.overlaps(other) for at, one in enumerate(boxes) for other in boxes[:at])
