"""Diffs of real captures: again is the same, planted slowdowns are found and named, changed products too."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from nsys_report import Analysis, Diff, analyze, diff
from nsys_report.cli.app import run
from nsys_report.errors import UsageError
from nsys_report.reports.diff_page import build_diff_report
from nsys_report.reports.markdown import render
from tests.nsys_report.planted import plant

Read = Callable[[str], Analysis]


@pytest.fixture(scope="module")
def read(fixture_path: Callable[..., Path]) -> Read:
    found: dict[str, Analysis] = {}

    def analysis(name: str) -> Analysis:
        if name not in found:
            found[name] = analyze(fixture_path("compared", name, "capture.sqlite"), fixture_path("compared", name, "xla_dump"))
        return found[name]

    return analysis


@pytest.fixture(scope="module")
def planted(fixture_path: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Analysis]:
    folder = tmp_path_factory.mktemp("planted")
    dump = fixture_path("compared", "again_1", "xla_dump")

    def analysis(factor: float, starts: set[int] | None = None) -> Analysis:
        target = folder / f"{factor}-{len(starts or ())}.sqlite"
        return analyze(plant(fixture_path("compared", "again_1", "capture.sqlite"), target, factor, starts), dump)

    return analysis


def verdicts(found: Diff, program: int = 0) -> dict[str, Any]:
    return {q.key: q.verdict for q in found.programs[program].quantities}


def test_a_program_captured_again_is_the_same_and_the_hosts_noise_is_told(read: Read) -> None:
    found = diff(read("again_1"), read("again_2"))
    assert verdicts(found)["kernel_time_ns"] == "same"
    assert {c.change for c in found.programs[0].instructions} == {"same"}
    assert not [c for c in found.programs[0].instructions if c.time.verdict in ("slower", "faster")]
    assert found.comparison.setup == ()


def test_parts_add_up_to_the_step_to_the_nanosecond(read: Read) -> None:
    for other in ("again_2", "changed_fusion"):
        for program in diff(read("again_1"), read(other)).programs:
            step = program.quantity("step_ns")
            assert step is not None and step.before is not None and step.after is not None
            assert sum(part.before.total for part in program.parts) == step.before.total
            assert sum(part.after.total for part in program.parts) == step.after.total
            assert {part.before.count for part in program.parts} == {step.before.count}


@pytest.mark.parametrize(("factor", "verdict"), [(1.002, "same"), (1.02, "slower"), (0.97, "faster")])
def test_what_is_planted_on_all_kernels(read: Read, planted: Callable[..., Analysis], factor: float, verdict: str) -> None:
    found = diff(read("again_1"), planted(factor))
    assert verdicts(found)["kernel_time_ns"] == verdict
    assert found.programs[0].common_shift == pytest.approx(factor - 1, abs=0.0005)


def test_ten_percent_on_one_instruction_names_it(read: Read, planted: Callable[..., Analysis]) -> None:
    table = read("again_1").activities
    chosen = table[table.hlo_instruction == "gemm_fusion_dot.95"]
    for before in ("again_1", "again_2"):
        found = diff(read(before), planted(1.1, set(chosen.start_ns)))
        slower = [c for c in found.programs[0].instructions if c.time.verdict == "slower"]
        assert [c.after[0].instruction for c in slower] == ["gemm_fusion_dot.95"]
        assert slower[0].time.relative == pytest.approx(0.1, abs=0.02)


def test_products_that_became_library_calls(read: Read) -> None:
    found = diff(read("again_1"), read("changed_fusion"))
    program = found.programs[0]
    assert found.verdict == "slower" and verdicts(found)["kernel_time_ns"] == "slower"
    became = [c for c in program.instructions if c.became]
    assert len(became) == 25 and {c.time.verdict for c in became} == {"slower"}
    rest = [c for c in program.instructions if not c.became and c.change == "same"]
    assert len(rest) == 126
    alike = [c for c in rest if c.is_identical]
    assert sum(c.time.verdict == "same" for c in alike) >= 0.95 * len(alike)
    assert abs(sum(c.time.difference or 0 for c in alike)) < 3_000  # of 194,000 ns
    gained = sum(c.time.difference or 0 for c in became)
    kernels = program.quantity("kernel_time_ns")
    assert kernels is not None and kernels.difference is not None
    assert gained == pytest.approx(kernels.difference, rel=0.05)
    assert ("launches an execution", "162", "175") in [(s.what, s.before, s.after) for s in program.setup]


def test_several_captures_a_side_measure_the_noise(read: Read) -> None:
    found = diff([read("again_1"), read("again_2")], [read("again_2"), read("again_1")])
    kernels = found.programs[0].quantity("kernel_time_ns")
    assert kernels is not None and kernels.noise_from == "measured" and kernels.verdict == "same"
    assert kernels.before is not None and kernels.before.count == 10
    assert len(found.programs[0].instructions) == 162


def test_without_dumps_kernels_are_compared_by_name(fixture_path: Callable[..., Path]) -> None:
    one, other = (fixture_path("compared", name, "capture.sqlite") for name in ("again_1", "again_2"))
    found = diff(one, other)
    assert verdicts(found)["kernel_time_ns"] == "same"
    assert {p.kind for c in found.programs[0].instructions for p in c.before} == {"kernel"}


def test_the_document_and_the_exit_code(fixture_path: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["diff"]
    for name in ("again_1", "changed_fusion"):
        arguments += [str(fixture_path("compared", name, "capture.sqlite")), "--xla-dump", str(fixture_path("compared", name, "xla_dump"))]
    files = {kind: tmp_path / f"d.{kind}" for kind in ("json", "html", "markdown")}
    outputs = [word for kind, path in files.items() for word in (f"--{kind}", str(path))]
    assert run([*arguments, *outputs, "--fail-on", "slower"]) == 3
    assert "kernel time slower (+" in capsys.readouterr().out.replace("\n", " ")
    assert run([*arguments, "--noise", "0.9", "--host-noise", "0.9", "--fail-on", "slower"]) == 0
    document = json.loads(files["json"].read_text(encoding="utf-8"))
    assert document["verdict"] == "slower"
    program = document["programs"][0]
    assert program["before"].startswith("jit_decode_step#") and program["quantities"]["kernel_time_ns"]["verdict"] == "slower"
    for quantity in program["quantities"].values():
        assert quantity["low"] <= quantity["difference"] <= quantity["high"]
    changes = {i["change"] for i in document["instructions"]}
    assert changes == {"same", "moved", "split", "merged", "gone"}
    split = next(i for i in document["instructions"] if i["change"] == "split")
    assert isinstance(split["before"], str) and isinstance(split["after"], list)
    page = files["html"].read_text(encoding="utf-8")
    assert "<script" not in page and "From before to after" in page and page.count('class="lane"') == 2
    assert "| figure |" in files["markdown"].read_text(encoding="utf-8")


def test_a_program_of_one_side_only_is_shown(read: Read, fixture_path: Callable[..., Path]) -> None:
    other = analyze(fixture_path("train", "capture.sqlite"), fixture_path("train", "xla_dump"))
    found = diff(read("again_1"), other)
    pairs = {(p.before and p.before.split("#")[0], p.after and p.after.split("#")[0]) for p in found.programs}
    assert ("jit_decode_step", None) in pairs and (None, "jit_train_step") in pairs
    assert found.verdict == "unsure"
    assert render(build_diff_report(found.comparison, "test"))


def test_time_rolls_up_by_class_layer_name_and_line(read: Read) -> None:
    """Each roll-up adds up to the time of all instructions; a decode step of six layers has five that are alike."""
    program = diff(read("again_1"), read("changed_fusion")).programs[0]
    whole = [sum(p.time.total for c in program.instructions for p in getattr(c, side)) for side in ("before", "after")]
    for by in ("class", "layer", "op_name", "source"):
        rows = [r for r in program.rollups if r.by == by]
        assert [sum(r.before.total for r in rows), sum(r.after.total for r in rows)] == whole
    assert {"layer 0", "layer 4"} <= {r.name for r in program.rollups if r.by == "layer"}


def test_a_gate_that_compares_nothing_fails(fixture_path: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    one, other = (str(fixture_path(name, "capture.sqlite")) for name in ("train", "torch_mlp"))
    assert run(["diff", one, other]) == 0
    assert run(["diff", one, other, "--fail-on", "slower"]) == 1
    assert "nothing was compared" in capsys.readouterr().err


def test_the_document_keeps_to_its_schema(read: Read, fixture_path: Callable[..., Path]) -> None:
    schema = json.loads((files("nsys_report.reports") / "diff.schema.json").read_text(encoding="utf-8"))
    train = analyze(fixture_path("train", "capture.sqlite"), fixture_path("train", "xla_dump"))
    for other in (read("again_2"), read("changed_fusion"), train):
        jsonschema.validate(json.loads(json.dumps(diff(read("again_1"), other).document())), schema)


def test_the_other_way_round_is_the_opposite(read: Read) -> None:
    there, back = diff(read("again_1"), read("changed_fusion")), diff(read("changed_fusion"), read("again_1"))
    assert (there.verdict, back.verdict) == ("slower", "faster")
    ones, others = (d.programs[0].quantity("kernel_time_ns") for d in (there, back))
    assert ones is not None and others is not None and ones.difference == pytest.approx(-(others.difference or 0))


def test_wrong_use_is_said(fixture_path: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    capture = str(fixture_path("decode", "capture.sqlite"))
    assert run(["diff", capture]) == 2
    assert run(["diff", capture, capture, "--before", capture]) == 2
    assert run(["diff", "--before", capture]) == 2
    assert "both sides" in capsys.readouterr().err
    with pytest.raises(UsageError):
        diff([], capture)
