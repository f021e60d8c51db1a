"""Thunks tied to instructions by the schedule, where the dump has no metadata: checked against the metadata of dumps that have it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from hlo_mapping.dump.index import index_dump
from hlo_mapping.dump.program import Program
from hlo_mapping.dump.thunks import Thunk
from hlo_mapping.matching.attribution import attributed_thunks
from hlo_mapping.matching.names import base_name, kernel_name
from hlo_mapping.matching.schedule import KERNEL, LIBRARY, build_schedule
from hlo_mapping.matching.scheduled_hlo import kernel_names, sort_kernels
from tests.conftest import FIXTURES
from tests.hlo_mapping.hand_programs import module

DIALECTS = sorted(p.name for p in (FIXTURES / "dialects").iterdir() if p.is_dir())
WITH_METADATA = ("layers-0.10.2", "layers-0.11.2", "layers-0.12.0.1", "odd-0.10.2", "odd-0.12.0.1", "ops-0.12.0.1")
"""Dialects whose thunk files say the instruction of each thunk; those before 0.10.2 do not."""
CAPTURES = sorted(p.parent.name for p in FIXTURES.glob("*/xla_dump"))


def programs(path: str) -> list[Program]:
    dump = index_dump(FIXTURES / path)
    return [p for p in map(dump.load, dump.numbers) if p.module is not None and p.thunks]


def leaves(thunks: tuple[Thunk, ...]) -> Iterator[Thunk]:
    for thunk in thunks:
        if not thunk.branches and not thunk.kind.endswith("Done") and thunk.kind != "kWaitForStreams":
            yield thunk
        for _, inside in thunk.branches:
            yield from leaves(inside)


def bare(thunks: tuple[Thunk, ...]) -> tuple[Thunk, ...]:
    """The thunks as a dump without metadata has them."""
    return tuple(replace(t, instruction=None, branches=tuple((label, bare(inside)) for label, inside in t.branches)) for t in thunks)


@pytest.mark.parametrize("path", [f"dialects/{d}" for d in WITH_METADATA] + [f"{c}/xla_dump" for c in CAPTURES])
def test_the_schedule_gives_what_the_metadata_says(path: str) -> None:
    found = [p for p in programs(path) if p.has_thunk_metadata]
    assert found
    for one in found:
        assert one.module is not None
        guessed = attributed_thunks(bare(one.thunks), one.module)
        said = [(t.kind, t.kernel, t.instruction) for t in leaves(one.thunks)]
        assert [(t.kind, t.kernel, t.instruction) for t in leaves(guessed)] == said, one.name


@pytest.mark.parametrize("dialect", DIALECTS)
def test_in_every_era_each_launch_finds_its_instruction(dialect: str) -> None:
    for one in programs(f"dialects/{dialect}"):
        schedule = build_schedule(one)
        assert one.module is not None
        assert schedule.steps, one.name
        for step in schedule.steps:
            if step.kind in (KERNEL, LIBRARY):
                assert step.instruction is not None, (one.name, step)
                assert one.module.instruction(step.instruction) is not None, (one.name, step)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_kernel_is_called_after_a_fusion_with_the_same_body(dialect: str) -> None:
    for one in programs(f"dialects/{dialect}"):
        assert one.module is not None
        names, sorts = kernel_names(one.module), sort_kernels(one.module)
        for step in build_schedule(one).steps:
            if step.kind != KERNEL or step.instruction not in names or step.instruction in sorts:
                continue
            if step.grid is None:
                # the dump leaves out what a loop holds, and the module fills in
                assert step.names == names[step.instruction]
                continue
            (kernel,) = step.names
            # the fusion's own name, one of the same body, or at least one of the same kind that XLA found equal
            alike = {base_name(n) for n in names[step.instruction]}
            assert kernel in names[step.instruction] or base_name(kernel) in alike, (one.name, step)


def test_fusions_with_equal_bodies_share_their_kernel_names() -> None:
    bodies = "".join(
        f"%body{n} (p: f32[8]) -> f32[8] {{\n  %p = f32[8]{{0}} parameter(0)\n  ROOT %r{n} = f32[8]{{0}} {op}(%p)\n}}\n"
        for n, op in enumerate(("negate", "negate", "sine"))
    )
    hlo = module(
        "%x = f32[8]{0} parameter(0)",
        "%a.1 = f32[8]{0} fusion(%x), kind=kLoop, calls=%body0",
        "%b.2 = f32[8]{0} fusion(%a.1), kind=kLoop, calls=%body1",
        "ROOT %c.3 = f32[8]{0} fusion(%b.2), kind=kLoop, calls=%body2",
        computations=bodies,
    )
    assert kernel_names(hlo) == {"a.1": {"a_1", "b_2"}, "b.2": {"a_1", "b_2"}, "c.3": {"c_3"}}


@pytest.mark.parametrize(
    ("instruction", "symbol"),
    [
        ("loop_multiply_fusion.2", "loop_multiply_fusion_2"),
        ("gemm_fusion_dot.6.0", "gemm_fusion_dot_6_0"),
        ("triton_softmax", "triton_softmax"),
        ("a-b.c$d", "a_b_c$d"),
        ("2nd.fusion", "_2nd_fusion"),
    ],
)
def test_the_symbol_of_an_instruction(instruction: str, symbol: str) -> None:
    assert kernel_name(instruction) == symbol


@pytest.mark.parametrize(
    ("kernel", "base"),
    [("loop_add_fusion_12", "loop_add_fusion"), ("sort_8_1__3", "sort"), ("fusion", "fusion"), ("my_kernel__1", "my_kernel")],
)
def test_the_base_of_a_kernel_name(kernel: str, base: str) -> None:
    assert base_name(kernel) == base
