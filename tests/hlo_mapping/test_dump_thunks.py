"""Thunk sequences of every era, and the metadata that ties their ids to instructions."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_mapping.dump.thunks import Thunk, ThunkMetadata, read_thunk_metadata, read_thunk_sequence, walk, with_instructions

DIALECTS = Path(__file__).parents[2] / "fixtures" / "dialects"
SEQUENCES = sorted(DIALECTS.glob("*/*thunk_sequence*.txt"))


def read(directory: str, pattern: str) -> tuple[Thunk, ...]:
    thunks, problems = read_thunk_sequence(next((DIALECTS / directory).glob(f"module_{pattern}.txt")).read_text())
    assert problems == ()
    return thunks


def outline(thunks: tuple[Thunk, ...]) -> list[object]:
    """Kinds, with the branches of those that have any."""
    return [{t.kind: {label: outline(s) for label, s in t.branches}} if t.branches else t.kind for t in thunks]


@pytest.mark.parametrize("path", SEQUENCES, ids=lambda path: f"{path.parent.name}-{path.name[:40]}")
def test_every_thunk_of_every_release_is_read(path: Path) -> None:
    text = path.read_text()
    thunks, problems = read_thunk_sequence(text)
    found = list(walk(thunks))
    assert problems == ()
    labels = sum(line.strip().endswith(":") for line in text.splitlines())
    inline = sum(t.kind == "kSequential" for t in found)
    assert len(found) - inline == len([line for line in text.splitlines() if line.strip()]) - labels
    assert all(t.kernel and t.grid and t.block for t in found if t.kind in ("kKernel", "kCustomKernel"))


def test_flat_text_of_2024() -> None:
    thunks = read("odd-0.4.38", "0025.jit_eff.thunk_sequence")
    assert {t.kind for t in thunks} >= {"kWhile", "kConditional", "kKernel"}
    assert all(t.branches == () and t.id is None and t.instruction is None for t in thunks)
    assert next(t for t in thunks if t.kind == "kKernel").grid == (512, 1, 1)


def test_nested_whiles_without_ids() -> None:
    thunks = read("odd-0.6.2", "0031.jit_eff.thunk_sequence")
    loop = {"kWhile": {"condition": ["kKernel"], "body": ["kKernel", "kKernel"]}}
    other = {"kWhile": {"condition": ["kKernel"], "body": ["kGemm", "kKernel", "kKernel"]}}
    assert outline(thunks) == ["kKernel", "kCopy", "kCopy", loop, other, "kKernel", "kConditional"]
    assert thunks[3].branch("condition")[0].kernel == "wrapped_compare"
    assert thunks[3].branch("else") == ()


def test_command_buffers_inside_a_while() -> None:
    thunks = read("layers-0.6.2", "0001.jit_decode_step.thunk_sequence")
    assert [t.kind for t in thunks] == ["kCommandBuffer", "kWhile", "kKernel", "kCopy", "kKernel", "kKernel"]
    assert [t.kind for t in thunks[0].branch("sequence")] == [*["kKernel"] * 4, "kCopy"]
    body = thunks[1].branch("body")
    assert [len(t.branch("sequence")) for t in body if t.kind == "kCommandBuffer"] == [7, 5]


def test_switch_branches_and_ids_out_of_order() -> None:
    thunks = read("odd-0.8.1", "10601.jit_eff.thunk_sequence")
    switch = thunks[-1]
    assert switch.id == 24
    branches = {label: [t.id for t in inside] for label, inside in switch.branches}
    assert branches == {"branch_0": [18], "branch_1": [20], "branch_2": [22]}


def test_annotations_in_the_lines_of_early_2026() -> None:
    """Equal fusions share the kernel of the one emitted first; the annotations still tell them apart."""
    for directory, kernels in (("layers-0.9.2", ("_2", "_1", "_1")), ("layers-0.10.0", ("_2", "_2", "_2"))):
        thunks = read(directory, "1347.jit_same.thunk_sequence")
        assert [t.id for t in thunks] == list(range(1, 10))
        multiplied = thunks[2::3]
        assert [t.kernel for t in multiplied] == [f"loop_multiply_fusion{suffix}" for suffix in kernels]
        assert [t.instruction for t in multiplied] == ["loop_multiply_fusion.2", "loop_multiply_fusion.1", "loop_multiply_fusion"]


def test_a_sequential_thunk_has_its_first_child_on_its_own_line() -> None:
    for directory, pattern in (("ops-0.4.38", "0021.jit_tri"), ("ops-0.8.1", "6363.jit_tri"), ("ops-0.12.0.1", "3981.jit_tri")):
        thunks = read(directory, f"{pattern}.thunk_sequence")
        sequential = {"kSequential": {"sequence": ["kCopy", "kTriangularSolve"]}}
        assert sequential in outline(thunks), directory
        assert outline(thunks)[-1] in ("kKernel", "kCustomKernel"), directory


def test_the_sequence_after_thunk_passes() -> None:
    thunks = read("layers-0.12.0.1", "0001.jit_decode_step.thunk_sequence_after_thunk_passes")
    assert [t.id for t in thunks] == [1, 2, 3, 4, 49, 50, 51, 52]
    start, *_ = body = thunks[3].branch("body")
    assert (start.kind, start.stream_id, start.async_id) == ("kAsyncStart", 2, 6)
    assert outline((start,)) == [{"kAsyncStart": {"sequence": [{"kDynamicSliceFusion": {"sequence": ["kCopy"]}}]}}]
    buffer = next(t for t in body if t.kind == "kCommandBuffer")
    assert (buffer.id, [t.id for t in buffer.branch("sequence")]) == (0, [32, 33, 34, 35, 36, 37])
    gemm = buffer.branch("sequence")[0]
    assert (gemm.kernel, gemm.grid, gemm.block, gemm.shared_memory) == ("gemm_fusion_dot_2", (96, 1, 1), (64, 1, 1), 768)


def test_conditionals_and_whiles_inside_a_command_buffer() -> None:
    text = """000: kCommandBuffer [source | sink] 
    016: kConditional  [prev=013 (1) | next=018 (2)]       
      false_branch:
        014: kCustomKernel [source | sink] a b<c> grid: [2048, 1, 1] threads: [64, 2, 1]  shared_memory: 512 bytes
      true_branch:
        015: kWhile [source | sink]     
condition:
            020: kCopy [source | sink] kCopy
          body:
            021: kCopy [source | sink] kCopy
    017: kCopy         [prev=016 (1) | sink        ] kCopy
018: kCopy [source | sink] kCopy
"""
    thunks, problems = read_thunk_sequence(text)
    assert problems == ()
    loop = {"kWhile": {"condition": ["kCopy"], "body": ["kCopy"]}}
    conditional = {"kConditional": {"false_branch": ["kCustomKernel"], "true_branch": [loop]}}
    assert outline(thunks) == [{"kCommandBuffer": {"sequence": [conditional, "kCopy"]}}, "kCopy"]
    assert next(t for t in walk(thunks) if t.id == 14).kernel == "a b<c>"


def test_an_empty_branch_is_kept() -> None:
    text = "004: kConditional [source | sink]   \n  false_branch:\n  true_branch:\n    003: kCopy [source | sink] kCopy\n"
    thunks, _ = read_thunk_sequence(text)
    assert [(label, len(inside)) for label, inside in thunks[0].branches] == [("false_branch", 0), ("true_branch", 1)]


def test_lines_that_are_no_thunks_are_told_once() -> None:
    thunks, problems = read_thunk_sequence("kCopy\t\n# what\nmore of it\nkGemm\t\n")
    assert [t.kind for t in thunks] == ["kCopy", "kGemm"]
    assert problems == ("line 2 is no thunk: '# what'",)


def test_metadata_gives_thunks_their_instructions() -> None:
    entries = read_thunk_metadata(next((DIALECTS / "layers-0.12.0.1").glob("module_0001*thunk_metadata.txt")).read_text())
    assert entries[0] == ThunkMetadata(1, "kCustomKernel", "loop_broadcast_fusion")
    thunks = read("layers-0.12.0.1", "0001.jit_decode_step.thunk_sequence_after_thunk_passes")
    annotated = {t.id: t for t in walk(with_instructions(thunks, {e.id: e.profile_annotation for e in entries if e.id}))}
    assert (annotated[28].kernel, annotated[28].instruction) == ("fusion_35", "fusion.35")
    assert (annotated[40].kernel, annotated[40].instruction) == ("fusion_35", "fusion.34")
    assert (annotated[6].instruction, annotated[8].instruction) == ("fusion-start", "loop_dynamic_slice_fusion.7")
    assert annotated[0].instruction is None


def test_metadata_on_one_line_with_a_stream() -> None:
    text = r'thunk_metadata { thunk_info { profile_annotation: "a\"}b.1" execution_stream_id: 1 thunk_id: 6 } thunk_kind: "kGemm" }'
    assert read_thunk_metadata(text) == (ThunkMetadata(6, "kGemm", 'a"}b.1', 1),)
    assert read_thunk_metadata("") == ()
