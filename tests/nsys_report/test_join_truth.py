"""The join without XLA's ranges against what the ranges say, on real captures.

Where a program ran without CUDA graphs, XLA put a range around each launch: what the ranges name is the truth, and the same capture
read without them must come to the same executions and instructions.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hlo_mapping.dump.index import index_dump
from nsys_report.capture import open_capture
from nsys_report.joined import Joined
from nsys_report.pipeline import join_capture
from tests.conftest import FIXTURES

ANNOTATED = ("decode_nocb", "decode_scan_nocb", "while_decode_nocb", "sharded_nocb", "cublas_nocb", "cutoff_nocb")
"""Captures with a range around every launch."""

PROGRAMS = ("decode", "serve", "threads", "train", "train_host", "int8", "moe")
"""Captures whose programs run as graphs: XLA says the execution and nothing finer."""


@cache
def joined(name: str, with_ranges: bool, dump: str | None = None) -> Joined:
    """A fixture joined to its own dump, or another's."""
    capture = open_capture(FIXTURES / name / "capture.sqlite", ranges="xla")
    if not with_ranges:
        capture = replace(capture, nvtx=capture.nvtx.slice(0, 0))
    return join_capture(capture, FIXTURES / (dump or name) / "xla_dump")


def kernels(found: Joined) -> pd.DataFrame:
    columns = [
        "start_ns",
        "end_ns",
        "activity",
        "execution_id",
        "hlo_module",
        "hlo_instruction",
        "match_method",
        "match_confidence",
        "instruction_id",
    ]
    frame = found.activities.select(columns).to_pandas()
    return frame[frame.activity == "kernel"]


def same_partition(a: pd.Series, b: pd.Series) -> bool:
    """Whether two numberings group the same rows, whatever the numbers are."""
    pairs = pd.DataFrame({"a": a.to_numpy(), "b": b.to_numpy()}).drop_duplicates()
    return bool(pairs.a.is_unique and pairs.b.is_unique)


@pytest.mark.parametrize("name", ANNOTATED)
def test_blind_finds_the_annotated_instruction_of_every_kernel(name: str) -> None:
    truth, blind = kernels(joined(name, True)), kernels(joined(name, False))
    known = (truth.match_method == "nvtx").to_numpy()
    assert known.mean() > 0.9
    wrong = truth[known].hlo_instruction.astype(str).to_numpy() != blind[known].hlo_instruction.astype(str).to_numpy()
    assert wrong.sum() == 0
    assert same_partition(truth[known].execution_id, blind[known].execution_id)
    assert (truth[known].hlo_module.astype(str).to_numpy() == blind[known].hlo_module.astype(str).to_numpy()).all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_blind_finds_the_annotated_executions(name: str) -> None:
    truth, blind = kernels(joined(name, True)), kernels(joined(name, False))
    assert same_partition(truth.execution_id, blind.execution_id)
    assert (truth.hlo_module.astype(str).to_numpy() == blind.hlo_module.astype(str).to_numpy()).all()
    assert blind.hlo_instruction.notna().all()


def test_kernels_inside_a_graph_are_those_of_the_same_program_without() -> None:
    def sequence(name: str) -> list[tuple[str, ...]]:
        frame = kernels(joined(name, True))
        frame = frame[frame.hlo_module == "jit_decode_step"].sort_values("start_ns")
        return [tuple(group.hlo_instruction.astype(str)) for _, group in frame.groupby("execution_id")]

    graph, plain = set(sequence("decode")), set(sequence("decode_nocb"))
    assert graph == plain
    assert {len(s) for s in graph} == {162}


@pytest.mark.parametrize("name", ANNOTATED)
def test_sure_means_right(name: str) -> None:
    truth, blind = kernels(joined(name, True)), kernels(joined(name, False))
    sure = (blind.match_confidence >= 0.99).to_numpy() & (truth.match_method == "nvtx").to_numpy()
    right = truth.hlo_instruction.astype(str).to_numpy() == blind.hlo_instruction.astype(str).to_numpy()
    assert sure.sum() > 200
    assert right[sure].all()


@pytest.mark.parametrize("with_ranges", [True, False])
@pytest.mark.parametrize(
    ("name", "dump"), [("decode", "train"), ("train", "decode"), ("serve", "int8"), ("threads", "moe"), ("cublas_nocb", "decode_scan_nocb")]
)
def test_another_programs_dump_gives_no_confident_join(name: str, dump: str, with_ranges: bool) -> None:
    found = joined(name, with_ranges, dump)
    frame = kernels(found)
    time = (frame.end_ns - frame.start_ns).to_numpy()
    sure = (frame.match_confidence >= 0.5).to_numpy() & frame.instruction_id.notna().to_numpy()
    assert time[sure].sum() / time.sum() < 0.02
    if with_ranges:
        assert any("the dump" in note for note in found.notes)


def test_facts_of_a_program_that_ran_are_not_lent_to_another_of_its_number(tmp_path: Path) -> None:
    """The decode program renamed in the dump: its annotated executions keep their ranges' names, and nothing is said of their bytes."""
    for path in (FIXTURES / "cutoff_nocb" / "xla_dump").iterdir():
        text = path.read_bytes().replace(b"HloModule jit__lambda", b"HloModule jit_other")
        (tmp_path / path.name.replace("jit__lambda", "jit_other")).write_bytes(text)
    found = join_capture(open_capture(FIXTURES / "cutoff_nocb" / "capture.sqlite", ranges="xla"), tmp_path)
    frame = kernels(found)
    annotated = frame.match_method == "nvtx"
    assert annotated.any() and frame[annotated].instruction_id.isna().all()
    # the kernels before the first range were cut blind, and are that program's by their sequence
    assert frame[~annotated].instruction_id.notna().any()
    assert any("jit_other" in note for note in found.notes)


def test_every_activity_is_kept_and_stands_in_one_execution_at_most() -> None:
    for name in ANNOTATED + PROGRAMS:
        found = joined(name, False)
        assert len(found.activities) == len(found.capture.activities)
        counts = pd.Series(kernels(found).execution_id.dropna().astype(np.int64)).value_counts()
        table = found.executions.to_pandas().set_index("execution_id").kernel_count
        assert (table[counts.index] == counts).all()
        assert table.sum() == counts.sum()


@pytest.mark.parametrize("missing", ["thunk_metadata", "thunk_"])
@pytest.mark.parametrize("name", ["decode_nocb", "decode_scan_nocb", "cublas_nocb", "sharded_nocb"])
def test_without_thunk_files_the_schedule_settles_it(name: str, missing: str, tmp_path: Path) -> None:
    for path in (FIXTURES / name / "xla_dump").iterdir():
        if missing not in path.name:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    capture = open_capture(FIXTURES / name / "capture.sqlite", ranges="none")
    truth, blind = kernels(joined(name, True)), kernels(join_capture(capture, tmp_path))
    known = (truth.match_method == "nvtx").to_numpy()
    right = truth.hlo_instruction.astype(str).to_numpy() == blind.hlo_instruction.astype(str).to_numpy()
    assert right[known].mean() >= 0.999


def test_the_dump_of_an_earlier_run_beside_this_ones_is_a_tie_that_is_named(tmp_path: Path) -> None:
    dump = FIXTURES / "int8" / "xla_dump"
    for path in dump.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    numbers = {n: n + 70_000 for n in index_dump(dump).numbers}
    for path in dump.iterdir():
        number = int(path.name.split(".")[0].removeprefix("module_"))
        (tmp_path / path.name.replace(f"module_{number:04d}", f"module_{numbers[number]}", 1)).write_bytes(path.read_bytes())
    found = join_capture(open_capture(FIXTURES / "int8" / "capture.sqlite", ranges="none"), tmp_path)
    table = found.executions.to_pandas()
    step = table[table.hlo_module == "jit_quantized_mlp"]
    assert step.program_id.isna().all()
    assert step.tied_modules.str.contains("jit_quantized_mlp#").all()
    assert any("launch the same sequence" in note for note in found.notes)
    # identical programs name their instructions alike, so the join itself is not in doubt
    assert (kernels(found).match_confidence >= 0.5).all()
