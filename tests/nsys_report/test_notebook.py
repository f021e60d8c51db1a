"""The way in from notebooks: pictures, selections that compose with pandas, the worked notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from nsys_report.errors import UsageError
from tests import write_notebook
from tests.nsys_report.pages import HOSTILE, analyzed, with_hostile_names


def test_every_picture_is_a_figure_that_shows_itself() -> None:
    plot = analyzed("decode").plot
    for figure in (plot.budget(), plot.classes(), plot.roofline(), plot.executions(), plot.timeline(), plot.timeline(execution=3)):
        assert isinstance(figure, Figure)
        assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_pictures_of_a_program_by_name() -> None:
    plot = analyzed("serve").plot
    for name in ("jit_prefill_chunk", "jit_decode_step"):
        assert f"a step of {name}" in title(plot.budget(name))
        assert title(plot.timeline(module=name)).startswith("Execution ")
    assert title(plot.classes()).startswith("jit_prefill_chunk: ")


def title(figure: Figure) -> str:
    return figure.texts[0].get_text()


def test_a_timeline_is_of_the_execution_asked_for() -> None:
    assert title(analyzed("decode").plot.timeline(execution=3)).startswith("Execution 3 of jit_decode_step: 162 kernels in ")


@pytest.mark.parametrize(
    ("name", "draw", "says", "hint"),
    [
        ("decode", lambda p: p.budget("jit_decod_step"), "no program 'jit_decod_step'", "did you mean jit_decode_step"),
        ("decode", lambda p: p.timeline(execution=999), "no execution 999", "they are numbered 0 to 39"),
        ("torch_mlp", lambda p: p.roofline(), "no program of XLA ran", ""),
        ("torch_mlp", lambda p: p.timeline(execution=0), "no execution 0", "it holds none"),
    ],
)
def test_what_cannot_be_drawn_says_why(name: str, draw: Any, says: str, hint: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        draw(analyzed(name).plot)
    assert hint in caught.value.hint


def test_executions_of_a_capture_without_xla_are_its_activities() -> None:
    assert title(analyzed("torch_mlp").plot.executions()).startswith("102 GPU activities")


def test_selections_compose() -> None:
    analysis = analyzed("decode")
    kernels = analysis.execution(3).kernels
    assert len(kernels) == 162 and set(kernels.execution_id) == {3}
    layers = analysis.module("jit_decode_step").layers
    assert len(layers) == 26 and (layers.time_min_ns <= layers.time_max_ns).all()
    assert "a step of" in title(analysis.module("jit_decode_step").plot.budget())


def test_the_analysis_shows_itself_with_names_as_text() -> None:
    shown = analyzed("decode")._repr_html_()
    assert "jit_decode_step" in shown and "<table>" in shown
    first = analyzed("decode").report().parts[0].findings[0]
    assert first.title in shown
    hostile = with_hostile_names(analyzed("threads"))._repr_html_()
    assert "<img" not in hostile and "<script" not in hostile and HOSTILE not in hostile and "&lt;img" in hostile


def test_the_worked_notebook_runs(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    path = write_notebook.NOTEBOOK
    notebook = nbformat.read(path, as_version=4)
    stored = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert all(stored) and not any(output.output_type == "error" for outputs in stored for output in outputs)
    write_notebook.run(path, tmp_path / "ran.ipynb")
    notebook = nbformat.read(tmp_path / "ran.ipynb", as_version=4)
    pictures = [o for cell in notebook.cells for o in cell.get("outputs", []) if "image/png" in o.get("data", {})]
    tables = [o for cell in notebook.cells for o in cell.get("outputs", []) if "text/html" in o.get("data", {})]
    assert len(pictures) == 5 and len(tables) >= 4


def test_a_timeline_stands_in_a_frame_that_runs_its_own_scripts_alone() -> None:
    frame = analyzed("decode").timeline(3)
    shown = frame._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts"') and shown.count("<") == 2
    assert "Content-Security-Policy" in frame.html and len(frame.html) < 600_000
    assert "stream" in analyzed("torch_mlp").timeline().html
    with pytest.raises(UsageError, match="no execution 999"):
        analyzed("decode").timeline(999)


@pytest.mark.parametrize("name", ["jit_prefill_chunk", "jit_decode_step"])
def test_every_surface_takes_a_program_or_an_execution_alone(name: str, tmp_path: Path) -> None:
    """Narrowed sessions keep the view of the whole capture: rows of the one are not rows of the other."""
    program = analyzed("serve").module(name)
    number = int(program.executions["execution_id"].iloc[-1])
    assert f"Execution {number} of {name}" in program.timeline(number).html
    assert title(program.plot.timeline()).startswith("Execution ")
    for narrowed in (program, analyzed("serve").execution(number)):
        assert narrowed.to_html().startswith("<!doctype html>")
        assert narrowed.save(tmp_path / f"{name}.pftrace").stat().st_size > 10_000
