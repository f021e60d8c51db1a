"""Dump directories: what is found in them, what is read, and what is wrong with bad ones."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from hlo_mapping.dump import files
from hlo_mapping.dump.choosing import Ran
from hlo_mapping.dump.debug_options import parse_debug_options, read_debug_options
from hlo_mapping.dump.files import FileName, parse_file_name
from hlo_mapping.dump.index import index_dump
from hlo_mapping.errors import DumpError

DIALECTS = Path(__file__).parents[2] / "fixtures" / "dialects"
MODULE = "HloModule {name}\n\nENTRY e {{\n  p = f32[] parameter(0)\n}}\n"


def write(directory: Path, *names: str, module: str = "jit_f") -> None:
    for name in names:
        (directory / name).write_text(MODULE.format(name=module))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("module_0001.jit_f.sm_9.0a_gpu_after_optimizations.txt", FileName(1, "jit_f", files.OPTIMIZED)),
        ("module_16972.jit_we_ird.f-1.sm_9.0_gpu_after_optimizations.txt", FileName(16972, "jit_we_ird.f-1", files.OPTIMIZED)),
        ("module_3979.sm_9.0a_gpu_after_optimizations.txt", FileName(3979, "", files.OPTIMIZED)),
        ("module_0001.f.gpu_after_optimizations.txt", FileName(1, "f", files.OPTIMIZED)),
        ("module_0001.f.gfx942_gpu_after_optimizations.txt", FileName(1, "f", files.OPTIMIZED)),
        ("module_0001.f.sm_9.0a_gpu_after_optimizations-buffer-assignment.txt", FileName(1, "f", files.BUFFERS)),
        ("module_0001.f.cpu_after_optimizations.txt", FileName(1, "f", files.CPU_OPTIMIZED)),
        ("module_0001.thunk_sequence.txt", FileName(1, "", files.THUNKS)),
        ("module_0001.a.b.thunk_sequence_after_thunk_passes.txt", FileName(1, "a.b", files.FINAL_THUNKS)),
        ("module_0001.f.thunk_metadata.txt", FileName(1, "f", files.THUNK_METADATA)),
        ("module_0001.f.debug_options", FileName(1, "f", files.DEBUG_OPTIONS)),
        ("1760000000000000.module_0007.f.before_optimizations.txt", FileName(7, "f", files.BEFORE, 1760000000000000)),
        ("module_0001.f.sm_9.0a_gpu_after_optimizations.hlo.pb", FileName(1, "f", files.PROTO)),
        ("module_0001.f.before_optimizations.hlo.pb.gz", FileName(1, "f", files.PROTO)),
        ("module_0001.f.ptx", None),
        ("module_0001.f.0003.pipeline.after_dce.before_cse.txt", None),
        ("notes.txt", None),
        ("module_x.f.thunk_sequence.txt", None),
    ],
)
def test_file_names(name: str, parts: FileName | None) -> None:
    parsed = parse_file_name(name)
    if parsed is not None and parsed.suffix == files.PROTO:
        assert parts is not None
        assert parsed.number == parts.number
    else:
        assert parsed == parts


@pytest.mark.parametrize("directory", sorted(p.name for p in DIALECTS.iterdir() if p.is_dir()))
def test_every_fixture_loads_without_problems_but_the_known_one(directory: str) -> None:
    index = index_dump(DIALECTS / directory)
    assert index.problems == ()
    for number in index.numbers:
        program = index.load(number)
        assert program.number == number
        assert (program.module is None) == (files.OPTIMIZED not in index.files(number))
        expected = () if program.module else ("the dump holds no optimized module of this program",)
        assert program.problems == expected
        assert program.has_thunk_sequence == bool(program.thunks)


def test_a_program_with_its_thunks_and_their_instructions() -> None:
    program = index_dump(DIALECTS / "layers-0.12.0.1").load(1)
    assert (program.name, program.has_thunk_sequence, program.has_thunk_metadata) == ("jit_decode_step", True, True)
    assert program.module is not None
    loop = program.thunks[3]
    assert loop.instruction == "while.7"
    assert loop.branch("condition")[0].instruction == "loop_compare_fusion"
    assert any(t.kind == "kCommandBuffer" for t in loop.branch("body")), "the sequence after thunk passes is the one that ran"
    assert program.module.instruction("while.7") is not None


def test_names_dropped_for_length_come_from_the_header() -> None:
    index = index_dump(DIALECTS / "odd-0.12.0.1")
    assert index.name(3979).startswith("jit_")
    assert len(index.name(3979)) > 200
    assert index.load(3979).name == index.name(3979)
    assert index.name(4642) == "jit_we_ird_na_me_.f-1"


def test_a_name_in_some_files_only(tmp_path: Path) -> None:
    write(tmp_path, "module_0005.sm_9.0a_gpu_after_optimizations.txt", module="jit_long")
    (tmp_path / "module_0005.jit_long.thunk_sequence.txt").write_text("kCopy\t\n")
    index = index_dump(tmp_path)
    assert index.numbers == (5,)
    assert index.name(5) == "jit_long"
    assert index.load(5).has_thunk_sequence


def test_numbers_sort_as_numbers(tmp_path: Path) -> None:
    write(tmp_path, *(f"module_{n}.f.gpu_after_optimizations.txt" for n in ("10601", "0002", "2121")))
    assert index_dump(tmp_path).numbers == (2, 2121, 10601)
    assert 2 in index_dump(tmp_path)
    assert 3 not in index_dump(tmp_path)


def test_of_two_time_stamps_the_newest_wins(tmp_path: Path) -> None:
    write(tmp_path, "100.module_0001.f.sm_9.0_gpu_after_optimizations.txt", module="old")
    write(tmp_path, "200.module_0001.f.sm_9.0_gpu_after_optimizations.txt", module="new")
    index = index_dump(tmp_path)
    assert index.load(1).name == "new"
    assert index.problems == ("module 1 was written 2 times; the newest, with time stamp 200, is used",)


def test_processes_that_share_a_directory(tmp_path: Path) -> None:
    write(tmp_path, "module_0001.g.sm_9.0_gpu_after_optimizations.txt", module="g")
    write(tmp_path, "module_0001.f.sm_9.0_gpu_after_optimizations.txt", module="f")
    os.utime(tmp_path / "module_0001.g.sm_9.0_gpu_after_optimizations.txt", (1e9, 1e9))
    index = index_dump(str(tmp_path))
    assert index.load(1).name == "f"
    assert "number 1 stands for several modules (f, g)" in index.problems[0]


def test_one_broken_module_does_not_spoil_the_others(tmp_path: Path) -> None:
    write(tmp_path, "module_0001.f.gpu_after_optimizations.txt")
    (tmp_path / "module_0002.g.gpu_after_optimizations.txt").write_text("HloModule g\n\nENTRY e {\n  p = f32[] param")
    (tmp_path / "module_0002.g.thunk_sequence.txt").write_text("kCopy\t\nkCop")
    (tmp_path / "module_0002.g.thunk_metadata.txt").write_text("thunk_metadata {")
    index = index_dump(tmp_path)
    assert index.load(1).problems == ()
    broken = index.load(2)
    assert (broken.module, broken.name) == (None, "g")
    assert broken.problems[0].startswith("module_0002.g.gpu_after_optimizations.txt:4:18: the text ends inside instruction p")
    assert [t.kind for t in broken.thunks] == ["kCopy", "kCop"]
    assert not broken.has_thunk_metadata


def test_a_program_whose_executable_came_from_a_cache(tmp_path: Path) -> None:
    write(tmp_path, "module_0001.f.gpu_after_optimizations.txt")
    (tmp_path / "module_0009.g.thunk_sequence.txt").write_text("kCopy\t\n")
    program = index_dump(tmp_path).load(9)
    assert (program.module, program.name) == (None, "g")
    assert program.problems == ("the dump holds no optimized module of this program",)


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    line = b'  p = f32[] parameter(0), backend_config={ir = "\xff\xfe{"}\n'
    (tmp_path / "module_0001.f.gpu_after_optimizations.txt").write_bytes(b"HloModule f\n\nENTRY e {\n" + line + b"}\n")
    module = index_dump(tmp_path).load(1).module
    assert module is not None
    assert module.entry.root.attribute("backend_config") == r'{ir = "\xff\xfe{"}'


def test_programs_are_read_once(tmp_path: Path) -> None:
    write(tmp_path, "module_0001.f.gpu_after_optimizations.txt")
    index = index_dump(tmp_path)
    assert index.load(1) is index.load(1)
    with pytest.raises(KeyError):
        index.load(2)
    assert index.files(2) == {}


def test_thousands_of_modules_index_fast(tmp_path: Path) -> None:
    suffixes = ("sm_9.0a_gpu_after_optimizations.txt", "thunk_sequence.txt", "thunk_metadata.txt", "before_optimizations.txt")
    for number in range(2000):
        for suffix in suffixes:
            (tmp_path / f"module_{number:04d}.jit_some_function_name.{suffix}").touch()
    start = time.process_time()
    index = index_dump(tmp_path)
    assert len(index.numbers) == 2000
    assert time.process_time() - start < 2


def fail(path: Path) -> DumpError:
    with pytest.raises(DumpError) as raised:
        index_dump(path)
    return raised.value


def test_a_directory_that_is_missing_or_a_file(tmp_path: Path) -> None:
    assert "there is no directory" in fail(tmp_path / "none").message
    write(tmp_path, "module_0001.f.gpu_after_optimizations.txt")
    error = fail(tmp_path / "module_0001.f.gpu_after_optimizations.txt")
    assert "is a file" in error.message
    assert "--xla_dump_to" in error.hint


def test_an_empty_directory(tmp_path: Path) -> None:
    error = fail(tmp_path)
    assert "is empty" in error.message
    assert "--xla_dump_to=DIR --xla_dump_hlo_as_text" in error.hint


def test_protos_only(tmp_path: Path) -> None:
    write(tmp_path, "module_0001.f.before_optimizations.hlo.pb", "module_0001.f.sm_9.0a_gpu_after_optimizations.hlo.pb")
    error = fail(tmp_path)
    assert "holds protos only" in error.message
    assert "--xla_dump_hlo_as_text" in error.hint


def test_something_else(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "b.txt")
    assert "holds no XLA dump, but 2 other files (a.txt, b.txt)" in fail(tmp_path).message


def test_one_thing_else_is_not_plural(tmp_path: Path) -> None:
    write(tmp_path, "a.txt")
    assert "but 1 other file (a.txt)" in fail(tmp_path).message


def test_a_directory_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loop").symlink_to("loop")
    error = fail(tmp_path / "loop")
    assert "cannot read" in error.message and error.hint


def test_files_that_cannot_be_read_are_a_problem_of_their_program_alone(tmp_path: Path) -> None:
    """Links to nothing and to themselves, a directory, and a pipe, which must not be waited for."""
    write(tmp_path, "module_0001.f.sm_9.0a_gpu_after_optimizations.txt")
    (tmp_path / "module_0002.f.sm_9.0a_gpu_after_optimizations.txt").symlink_to("nowhere")
    (tmp_path / "module_0003.f.sm_9.0a_gpu_after_optimizations.txt").symlink_to("module_0003.f.sm_9.0a_gpu_after_optimizations.txt")
    (tmp_path / "module_0004.f.sm_9.0a_gpu_after_optimizations.txt").mkdir()
    os.mkfifo(tmp_path / "module_0005.f.sm_9.0a_gpu_after_optimizations.txt")
    os.mkfifo(tmp_path / "module_0006.sm_9.0a_gpu_after_optimizations.txt")  # its name would be in its text
    (tmp_path / "module_0007.f.sm_9.0a_gpu_after_optimizations.txt").symlink_to("nowhere")
    (tmp_path / "module_0007.g.sm_9.0a_gpu_after_optimizations.txt").symlink_to("nowhere")
    index = index_dump(tmp_path)
    assert [index.load(number).module is not None for number in index.numbers] == [True] + [False] * 6
    assert all("cannot read" in index.load(number).problems[0] for number in index.numbers[1:])


def test_what_cannot_be_parsed_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "module_0001.f.sm_9.0a_gpu_after_optimizations.txt").write_text("HloModule f\n\nENTRY e {\n  p = f32[] ")
    (problem,) = index_dump(tmp_path).load(1).problems
    assert "cut off" in problem and "\n" not in problem


def test_modules_that_were_never_optimized(tmp_path: Path) -> None:
    write(tmp_path, "module_0001.f.before_optimizations.txt", "module_0002.f.before_optimizations.txt")
    error = fail(tmp_path)
    assert "it holds 2 before_optimizations.txt" in error.message
    assert "compilation cache" in error.hint


def test_cpu_modules_only(tmp_path: Path) -> None:
    write(tmp_path, "module_0001.f.cpu_after_optimizations.txt")
    assert "Only CPU modules" in fail(tmp_path).hint


def test_the_directory_above(tmp_path: Path) -> None:
    shutil.copytree(DIALECTS / "layers-0.5.3", tmp_path / "xla_dump")
    error = fail(tmp_path)
    assert "its directory xla_dump does" in error.message
    assert str(tmp_path / "xla_dump") in error.hint


def test_debug_options() -> None:
    program = index_dump(DIALECTS / "layers-0.12.0.1").load(1)
    options = read_debug_options(program)
    assert options["xla_gpu_autotune_level"] == ("0",)
    assert options["xla_dump_to"] == ("d0.12.0.1",)
    assert read_debug_options(index_dump(DIALECTS / "layers-0.4.38").load(33)) == {}
    assert parse_debug_options("a: FUSION\na: CUBLAS\nb {\n  c: 1\n}\n") == {"a": ("FUSION", "CUBLAS")}


@pytest.mark.parametrize(("keep", "end"), [(0.5, ""), (0.5, "12: kKern")], ids=["at a line", "in a line"])
def test_a_half_written_thunk_sequence_is_left_out_and_said(tmp_path: Path, keep: float, end: str) -> None:
    """Half a sequence fits nothing that ran: the order of the module's schedule does."""
    shutil.copytree(DIALECTS.parent / "decode" / "xla_dump", tmp_path / "dump")
    index = index_dump(tmp_path / "dump")
    number = next(n for n in index.numbers if index.name(n) == "jit_decode_step")
    whole = len(index.load(number).thunks)
    for suffix in (files.THUNKS, files.FINAL_THUNKS):
        path = index.files(number)[suffix]
        path.chmod(0o644)
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[: int(len(lines) * keep)]) + end)
    cut = index_dump(tmp_path / "dump").load(number)
    assert whole > 0 and cut.thunks == ()
    assert [p.split(" is ")[1][:7] for p in cut.problems] == ["cut off", "cut off"]


def variant(directory: Path, name: str, kernels: str, module: str = "f") -> None:
    """A module under number 1 whose thunks launch these kernels."""
    directory.mkdir(exist_ok=True)
    write(directory, f"{name}.sm_9.0_gpu_after_optimizations.txt", module=module)
    lines = "".join(f"00{n}: kKernel, kernel = {kernel}, launch dimensions = ...\n" for n, kernel in enumerate(kernels.split()))
    (directory / f"{name}.thunk_sequence.txt").write_text(lines)


def test_of_two_runs_the_one_whose_kernels_were_recorded(tmp_path: Path) -> None:
    """The older of two compilations ran: its kernels say so."""
    variant(tmp_path, "100.module_0001.f", "loop_add_fusion gemm_fusion_dot_3")
    variant(tmp_path, "200.module_0001.f", "loop_add_fusion input_reduce_fusion")
    index = index_dump(tmp_path, Ran(frozenset({"loop_add_fusion", "gemm_fusion_dot_3"})))
    assert {path.name[:3] for path in index.files(1).values()} == {"100"}
    said = "module 1 was written 2 times; that with time stamp 100, whose kernels were recorded, is used"
    assert index.said_of([1]) == (said,) and index.said_of([2]) == ()
    assert index_dump(tmp_path).choices[1].endswith("the newest, with time stamp 200, is used")


def test_of_two_processes_the_one_that_ranges_name(tmp_path: Path) -> None:
    variant(tmp_path, "module_0001.f", "a_kernel", "f")
    variant(tmp_path, "module_0001.g", "a_kernel", "g")
    os.utime(tmp_path / "module_0001.f.sm_9.0_gpu_after_optimizations.txt", (1e9, 1e9))
    os.utime(tmp_path / "module_0001.f.thunk_sequence.txt", (1e9, 1e9))
    assert index_dump(tmp_path, Ran(modules={1: "f"})).load(1).name == "f"
    assert (
        "(f, g), as when processes share a dump directory; f, as XLA's ranges name it, is used"
        in index_dump(tmp_path, Ran(modules={1: "f"})).choices[1]
    )
    assert index_dump(tmp_path, Ran()).load(1).name == "g"  # written last


def test_of_dumps_in_directories_the_one_that_ran(tmp_path: Path) -> None:
    variant(tmp_path / "rank_0", "module_0001.f", "loop_add_fusion", "f")
    variant(tmp_path / "rank_1", "module_0001.f", "gemm_fusion_dot_3", "f")
    index = index_dump(tmp_path, Ran(frozenset({"gemm_fusion_dot_3"}), {1: "f"}))
    assert index.directory.name == "rank_1"
    assert index.problems == ("of the dumps in 2 directories that in rank_1 is read, whose programs and kernels ran",)
    assert "the first of 2 whose" in index_dump(tmp_path, Ran(modules={1: "f"})).problems[0]
    assert "its directory rank_0 does" in fail(tmp_path).message  # nothing says what ran
