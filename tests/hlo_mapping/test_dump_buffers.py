"""Buffer assignments of both eras."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_mapping.dump.buffers import Allocation, BufferValue, parse_buffer_assignment, read_buffer_assignment
from hlo_mapping.dump.index import index_dump

DIALECTS = Path(__file__).parents[2] / "fixtures" / "dialects"


@pytest.mark.parametrize("path", sorted(DIALECTS.glob("*/*buffer-assignment.txt")), ids=lambda path: f"{path.parent.name}-{path.name[:24]}")
def test_every_allocation_and_value_is_read(path: Path) -> None:
    text = path.read_text()
    allocations = parse_buffer_assignment(text)
    assert [a.number for a in allocations] == list(range(text.count("\nallocation ")))
    assert sum(len(a.values) for a in allocations) == text.count("\n value: ")
    assert all(v.offset + v.size <= a.size for a in allocations for v in a.values)


def test_donated_parameters_live_out() -> None:
    allocations = read_buffer_assignment(index_dump(DIALECTS / "layers-0.12.0.1").load(1))
    donated = {a.parameter for a in allocations if a.parameter is not None and a.maybe_live_out}
    assert donated == {9, 10}
    cache = next(a for a in allocations if a.parameter == 9)
    assert (cache.size, cache.shape) == (4 * 2 * 256 * 8 * 64 * 2, "bf16[4,2,256,8,64]")
    assert [v.name for v in cache.values] == ["cache__k__.1", "copy.16"]
    temporary = next(a for a in allocations if a.temp)
    assert BufferValue("loop_broadcast_fusion", (1,), 2097152, 2097152, "bf16[4,2,256,8,64]{4,3,2,1,0}") in temporary.values
    assert any(v.is_phi and v.name == "while.7" for v in temporary.values)


def test_kinds_of_allocations() -> None:
    text = """BufferAssignment:
allocation 0: size 8, parameter 1, shape |(s32[], f32[])| at ShapeIndex {0}, maybe-live-out:
 value: <1 p{0} @0> (size=4,offset=0): s32[]
allocation 1: size 4, page 0, constant:
allocation 2: size 4, thread-local:
allocation 3: size 16, color 5, output shape is |(f32[2])|, maybe-live-out:
allocation 4: size 9, preallocated-temp:
 value: <7 x @0> (size=9,offset=0): s8[9]{0}

Total bytes used: 41 (41B)

Used values:
<7 x @0>
"""
    assert parse_buffer_assignment(text) == (
        Allocation(0, 8, 1, (0,), "(s32[], f32[])", maybe_live_out=True, values=(BufferValue("p", (0,), 4, 0, "s32[]"),)),
        Allocation(1, 4, constant=True),
        Allocation(2, 4, thread_local=True),
        Allocation(3, 16, shape="(f32[2])", maybe_live_out=True, memory_space=5),
        Allocation(4, 9, temp=True, values=(BufferValue("x", (), 9, 0, "s8[9]{0}"),)),
    )


def test_a_dump_without_buffer_assignment() -> None:
    assert read_buffer_assignment(index_dump(DIALECTS / "layers-0.9.2").load(1347)) == ()
    assert parse_buffer_assignment("") == ()


def test_a_size_beyond_any_memory_makes_the_whole_unknown() -> None:
    """A digit too many in a damaged text: sums of the other allocations would be false."""
    text = "BufferAssignment:\nallocation 0: size 64, parameter 0, shape |f32[16]| at ShapeIndex {}:\nallocation 1: size 1END\n"
    assert [a.size for a in parse_buffer_assignment(text.replace("END", ""))] == [64, 1]
    assert parse_buffer_assignment(text.replace("END", "0" * 22)) == ()
