"""The table of opcodes: whole, and agreeing with what XLA does."""

from __future__ import annotations

from hlo_mapping import opcodes
from hlo_mapping.dump.index import index_dump
from hlo_mapping.matching.scheduled_hlo import pseudo_thunks
from hlo_mapping.opcodes import OPCODES, TRAITS, base_opcode, having, is_collective
from tests.hlo_mapping.hlo_samples import FIXTURES, module, program, rows


def test_every_trait_is_explained_and_used() -> None:
    assert set().union(*(row.traits for row in OPCODES.values())) == set(TRAITS)
    assert all(row.name == name for name, row in OPCODES.items())


def test_every_opcode_of_the_fixtures_has_a_row() -> None:
    found = {i.opcode for path in (FIXTURES / "programs").glob("*.txt") for c in program(path.stem).computations for i in c.instructions}
    dump = index_dump(FIXTURES / "sharded_nocb" / "xla_dump")
    found |= {i.opcode for n in dump.numbers if (m := dump.load(n).module) for c in m.computations for i in c.instructions}
    assert len(found) > 50
    assert found <= OPCODES.keys()


def test_halves_are_of_their_operation() -> None:
    assert base_opcode("all-gather-start") == "all-gather"
    assert is_collective("all-reduce-done")
    assert is_collective("ragged-all-to-all")
    assert not is_collective("async-start")
    assert opcodes.STARTS["all-gather-start"] == 1  # (operand, result)
    assert opcodes.STARTS["all-reduce-start"] is None  # the result itself
    assert all(base_opcode(name) in OPCODES for name in having("collective"))


def test_what_launches_nothing_has_no_kernel_and_what_sets_four_bytes_is_a_memset() -> None:
    """XLA's ReplicaOrPartitionIdThunk is a memset of four bytes: a launch, of a kernel's instruction, and no kernel."""
    lines = "%p = f32[8] parameter(0)\n %id = u32[] partition-id()\n %b = f32[2,4] bitcast(%p)"
    made = module(lines + "\n ROOT %t = (f32[2,4], u32[]) tuple(%b, %id)")
    assert rows(made).keys() == {"id"}
    assert [(t.kind, t.instruction) for t in pseudo_thunks(made)] == [("kMemset32BitValue", "id")]
