"""Instructions are paired by what they compute: renumbered, split, merged, moved, new and gone ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_mapping.dump.index import index_dump
from hlo_mapping.dump.program import load_program
from hlo_mapping.pairing.instructions import InstructionPair, pair_instructions
from hlo_mapping.pairing.programs import Described, pair_programs
from hlo_mapping.pairing.work import Work, works_of
from hlo_mapping.text.parser import parse_module

HEAD = "HloModule m, is_scheduled=true\n\n"
BODIES = """\
scale (p: f32[64]) -> f32[64] {
  p = f32[64]{0} parameter(0)
  two = f32[] constant(2)
  twos = f32[64]{0} broadcast(two), dimensions={}
  ROOT doubled = f32[64]{0} multiply(p, twos), metadata={op_name="jit(f)/mul"}
}

root_of (q: f32[64]) -> f32[64] {
  q = f32[64]{0} parameter(0)
  ROOT rooted = f32[64]{0} sqrt(q), metadata={op_name="jit(f)/sqrt"}
}

both (r: f32[64]) -> f32[64] {
  r = f32[64]{0} parameter(0)
  two.1 = f32[] constant(2)
  twos.1 = f32[64]{0} broadcast(two.1), dimensions={}
  doubled.1 = f32[64]{0} multiply(r, twos.1), metadata={op_name="jit(f)/mul"}
  ROOT rooted.1 = f32[64]{0} sqrt(doubled.1), metadata={op_name="jit(f)/sqrt"}
}

negated (s: f32[64]) -> f32[64] {
  s = f32[64]{0} parameter(0)
  ROOT negative = f32[64]{0} negate(s), metadata={op_name="jit(f)/neg"}
}

"""
APART = """\
ENTRY e (x: f32[64]) -> f32[64] {
  x = f32[64]{0} parameter(0)
  a = f32[64]{0} fusion(x), kind=kLoop, calls=scale
  ROOT b = f32[64]{0} fusion(a), kind=kLoop, calls=root_of
}
"""
FUSED = """\
ENTRY e (x: f32[64]) -> f32[64] {
  x = f32[64]{0} parameter(0)
  ROOT z.9 = f32[64]{0} fusion(x), kind=kLoop, calls=both
}
"""
LONGER = APART.replace("ROOT b =", "b =").replace("root_of\n", "root_of\n  ROOT c = f32[64]{0} fusion(b), kind=kLoop, calls=negated\n")


def works(entry: str) -> tuple[Work, ...]:
    return works_of(parse_module(HEAD + BODIES + entry, "test"))


def summary(pairs: tuple[InstructionPair, ...]) -> list[tuple[str, list[str], list[str]]]:
    return [(p.change, [w.instruction for w in p.before], [w.instruction for w in p.after]) for p in pairs]


def test_two_fusions_that_became_one_are_merged_and_the_other_way_split() -> None:
    assert summary(pair_instructions(works(APART), works(FUSED))) == [("merged", ["a", "b"], ["z.9"])]
    assert summary(pair_instructions(works(FUSED), works(APART))) == [("split", ["z.9"], ["a", "b"])]


def test_what_is_on_one_side_only_is_new_or_gone() -> None:
    assert summary(pair_instructions(works(APART), works(LONGER))) == [("same", ["a"], ["a"]), ("same", ["b"], ["b"]), ("new", [], ["c"])]
    assert summary(pair_instructions(works(LONGER), works(APART)))[-1] == ("gone", ["c"], [])


def test_names_and_numbers_do_not_matter() -> None:
    renamed = APART.replace("a =", "loop_fusion.77 =").replace("(a)", "(loop_fusion.77)").replace("ROOT b", "ROOT a")
    pairs = pair_instructions(works(APART), works(renamed))
    assert summary(pairs) == [("same", ["a"], ["loop_fusion.77"]), ("same", ["b"], ["a"])]
    assert all(p.is_identical for p in pairs)


def test_other_sizes_are_the_same_work_but_not_identical() -> None:
    larger = parse_module((HEAD + BODIES + APART).replace("f32[64]", "f32[128]"), "test")
    pairs = pair_instructions(works(APART), works_of(larger))
    assert [(p.change, p.is_identical) for p in pairs] == [("same", False), ("same", False)]


def test_layers_that_were_added_are_new_and_the_others_keep_their_order() -> None:
    """Two layers of the same two fusions become three: four pairs, two new."""

    def layers(count: int) -> str:
        lines, last = ["ENTRY e (x: f32[64]) -> f32[64] {", "  x = f32[64]{0} parameter(0)"], "x"
        for n in range(count):
            lines += [
                f"  a{n} = f32[64]{{0}} fusion({last}), kind=kLoop, calls=scale",
                f"  b{n} = f32[64]{{0}} fusion(a{n}), kind=kLoop, calls=root_of",
            ]
            last = f"b{n}"
        lines[-1] = lines[-1].replace("  b", "  ROOT b")
        return "\n".join([*lines, "}\n"])

    pairs = pair_instructions(works(layers(2)), works(layers(3)))
    assert Counter(p.change for p in pairs) == {"same": 4, "new": 2}
    before = [p.before[0].instruction for p in pairs if p.before]
    assert before == ["a0", "b0", "a1", "b1"]


def test_programs_pair_by_name_and_then_by_what_they_compute() -> None:
    before = {1: Described("jit_step", works(APART), 9.0), 2: Described("jit_other", works(LONGER), 5.0), 3: Described("jit_old", (), 1.0)}
    after = {7: Described("jit_renamed", works(LONGER), 5.0), 8: Described("jit_step", works(FUSED), 8.0)}
    assert pair_programs(before, after) == ((1, 8), (2, 7), (3, None))


def decode_step(path: Path) -> tuple[Work, ...]:
    dump = index_dump(path)
    number = next(n for n in dump.numbers if dump.name(n) == "jit_decode_step")
    module = load_program(number, "jit_decode_step", dump.directory, dump.files(number)).module
    assert module is not None
    return works_of(module)


@pytest.fixture(scope="session")
def compared(fixture_path: Callable[..., Path]) -> Callable[[str, str], tuple[InstructionPair, ...]]:
    def paired(one: str, other: str) -> tuple[InstructionPair, ...]:
        return pair_instructions(*(decode_step(fixture_path("compared", name, "xla_dump")) for name in (one, other)))

    return paired


def test_a_program_compiled_again_is_identical_throughout(compared: Callable[..., tuple[InstructionPair, ...]]) -> None:
    pairs = compared("again_1", "again_2")
    assert len(pairs) == 162
    assert all(p.change == "same" and p.is_identical for p in pairs)


def test_products_that_became_library_calls_are_named(compared: Callable[..., tuple[InstructionPair, ...]]) -> None:
    """--xla_gpu_enable_triton_gemm=false: 25 Triton products (12 of attention, 6 + 6 of feed-forward, the head) are cuBLAS calls."""
    pairs = compared("again_1", "changed_fusion")
    became = [p for p in pairs if p.became]
    assert len(became) == 25
    assert {p.before[0].instruction.rsplit(".", 1)[0] for p in became} == {"gemm_fusion_dot"}
    assert Counter(p.change for p in became) == {"split": 13, "moved": 12}
    assert all(any(w.kind == "call __cublas$lt$matmul" for w in p.after) for p in became)
    assert Counter(p.change for p in pairs if not p.became) == {"same": 126, "merged": 5, "gone": 1}


@pytest.mark.parametrize("version", ["0.9.2", "0.10.2", "0.12.0.1"])
def test_versions_of_the_compiler_pair(fixture_path: Callable[..., Path], version: str) -> None:
    """The same program from two compilers: most of its works find a counterpart."""
    sides = []
    for name in ("layers-0.11.2", f"layers-{version}"):
        dump = index_dump(fixture_path("dialects", name))
        number = next(n for n in dump.numbers if dump.name(n) == "jit_same")
        module = load_program(number, dump.name(number), dump.directory, dump.files(number)).module
        assert module is not None
        sides.append(works_of(module))
    pairs = pair_instructions(*sides)
    assert sum(bool(p.before and p.after) for p in pairs) >= 0.8 * len(pairs)
