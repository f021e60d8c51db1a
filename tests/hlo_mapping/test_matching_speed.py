"""Streams made to be slow: cutting stays linear. The bounds are many times what it takes, and a small part of what a square would."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest

from hlo_mapping.dump.program import Program
from tests.hlo_mapping.hand_programs import Launch, cut, kernel, nest, program, readback

PROGRAM = program("jit_f", *(kernel(f"k{i}_fusion") for i in range(100)))
BODY = [f"b{i % 7}_fusion" for i in range(200)]
LOOP = nest("kWhile", "while.1", condition=[kernel("test_fusion")], body=[kernel(k, f"{k}.{n}") for n, k in enumerate(BODY)])
LOOPING = program("jit_loop", kernel("start_fusion"), LOOP, kernel("end_fusion"))


def looped(trips: int) -> list[Launch]:
    return ["start_fusion", *(["test_fusion", readback(), *BODY] * trips), "test_fusion", readback(), "end_fusion"]


def seconds(launches: Sequence[Launch], *programs: Program) -> tuple[float, list[tuple[str, int, int]]]:
    start = time.process_time()
    _, executions = cut(launches, *programs)
    return time.process_time() - start, executions


def test_kernels_that_match_nothing() -> None:
    took, executions = seconds([f"foreign{n}" for n in range(30_000)], PROGRAM)
    assert executions == []
    assert took < 5


def test_a_programs_kernels_in_no_order() -> None:
    took, _ = seconds([f"k{n}_fusion" for n in np.random.default_rng(0).integers(0, 100, 20_000)], PROGRAM)
    assert took < 5


def test_an_execution_of_twenty_thousand_launches() -> None:
    took, executions = seconds(looped(100), LOOPING)
    assert executions == [("jit_loop", 0, 20_204)]
    assert took < 5


def test_the_same_with_records_lost() -> None:
    rng = np.random.default_rng(1)
    kept = [launch for launch in looped(50) if rng.random() > 0.02]
    took, executions = seconds(kept, LOOPING)
    assert executions == [("jit_loop", 0, len(kept))]
    assert took < 10


@pytest.mark.parametrize("count", [50])
def test_rivals_that_begin_alike(count: int) -> None:
    shared = [f"p{i}_fusion" for i in range(100)]
    programs = [program(f"jit_{n}", *(kernel(k) for k in [*shared, f"own{n}_fusion"]), number=n) for n in range(count)]
    took, executions = seconds([k for n in range(count) for k in [*shared, f"own{n}_fusion"]], *programs)
    assert [e[0] for e in executions] == [f"jit_{n}" for n in range(count)]
    assert took < 10


def test_many_executions_alike_are_copied() -> None:
    run = [f"k{i}_fusion" for i in range(100)]
    took, executions = seconds(run * 2_000, PROGRAM)
    assert len(executions) == 2_000
    assert took < 3
