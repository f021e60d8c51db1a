"""Which programs of a large dump are read, and which identical ones are known without reading them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_mapping.dump.index import index_dump
from hlo_mapping.matching.candidates import SMALL_DUMP, Candidates, candidates
from tests.hlo_mapping.hand_programs import copy, launched

HLO = """\
HloModule {name}, is_scheduled=true

%fused (p: f32[{size}]) -> f32[{size}] {{
  ROOT %p = f32[{size}]{{0}} parameter(0)
}}

ENTRY %main (x: f32[{size}]) -> f32[{size}] {{
  %x = f32[{size}]{{0}} parameter(0)
  ROOT %{kernel} = f32[{size}]{{0}} fusion(%x), kind=kLoop, calls=%fused
}}
"""
THUNKS = "001: kCustomKernel [source | sink] {kernel} grid: [1, 1, 1] threads: [128, 1, 1]  shared_memory: 0 bytes\n"


def write(directory: Path, number: int, name: str, kernel: str | None, size: int = 8, thunks: bool = True) -> None:
    """One program of one kernel, or of nothing but a copy."""
    stem = directory / f"module_{number:04d}.{name}"
    Path(f"{stem}.sm_9.0a_gpu_after_optimizations.txt").write_text(HLO.format(name=name, kernel=kernel or "copy.1", size=size))
    if thunks:
        text = THUNKS.format(kernel=kernel) if kernel else "001: kCopy [source | sink] kCopy\n"
        Path(f"{stem}.thunk_sequence.txt").write_text(text)


def others(directory: Path, count: int = SMALL_DUMP) -> None:
    for number in range(1000, 1000 + count):
        write(directory, number, f"jit_other{number}", f"other{number}_fusion")


RAN = (launched("a_fusion"), copy(32))


def test_a_small_dump_is_read_whole(tmp_path: Path) -> None:
    write(tmp_path, 1, "jit_a", "a_fusion")
    write(tmp_path, 2, "jit_b", "b_fusion")
    assert candidates(index_dump(tmp_path), RAN) == Candidates((1, 2))


def test_of_a_large_dump_only_what_can_have_run(tmp_path: Path) -> None:
    others(tmp_path)
    write(tmp_path, 1, "jit_a", "a_fusion")
    write(tmp_path, 2, "jit_copies", None)
    assert candidates(index_dump(tmp_path), RAN) == Candidates((1, 2))


def test_what_annotations_name_is_read_whatever_its_kernels(tmp_path: Path) -> None:
    others(tmp_path)
    write(tmp_path, 1, "jit_a", "a_fusion")
    assert candidates(index_dump(tmp_path), RAN, named=(1005, 77)).numbers == (1, 1005)


def test_equal_programs_are_read_once(tmp_path: Path) -> None:
    others(tmp_path)
    for number in range(1, 40):
        write(tmp_path, number, f"jit_a{number}", "a_fusion")
    chosen = candidates(index_dump(tmp_path), RAN)
    assert chosen.numbers == (39,)
    assert chosen.duplicates == {39: tuple(range(1, 39))}


def test_programs_that_differ_in_size_alone_are_not_equal(tmp_path: Path) -> None:
    others(tmp_path)
    write(tmp_path, 1, "jit_a", None, size=8)
    write(tmp_path, 2, "jit_a", None, size=16)
    assert candidates(index_dump(tmp_path), RAN) == Candidates((1, 2))


@pytest.mark.parametrize("kernel", ["a_fusion", "a.fusion"])
def test_without_thunks_the_fusions_tell(tmp_path: Path, kernel: str) -> None:
    others(tmp_path)
    write(tmp_path, 1, "jit_a", kernel, thunks=False)
    write(tmp_path, 2, "jit_b", "b_fusion", thunks=False)
    assert candidates(index_dump(tmp_path), RAN).numbers == (1,)
