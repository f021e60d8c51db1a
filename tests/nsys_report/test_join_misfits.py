"""Dumps that do not belong to the capture, captures with parts missing, and work that is spread in unusual ways."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hlo_mapping.dump.index import index_dump
from hlo_mapping.errors import HloError
from hlo_mapping.matching.join import join
from hlo_mapping.matching.result import Annotations, LaunchJoin
from nsys_report.capture import open_capture
from nsys_report.capture.model import Capture
from nsys_report.executions.host import HOST_FUNCTIONS, host_functions_before
from nsys_report.executions.notes import join_notes
from nsys_report.pipeline import join_capture
from tests.conftest import FIXTURES


@cache
def opened(name: str) -> Capture:
    return open_capture(FIXTURES / name / "capture.sqlite", ranges="xla")


def without_ranges(capture: Capture) -> Capture:
    return replace(capture, nvtx=capture.nvtx.slice(0, 0))


def copied(name: str, to: Path) -> Path:
    shutil.copytree(FIXTURES / name / "xla_dump", to, dirs_exist_ok=True)
    return to


def joined_share(found: Any) -> float:
    """Share of the kernel time joined with confidence to an instruction of which there are facts."""
    frame = found.activities.select(["activity", "start_ns", "end_ns", "match_confidence", "instruction_id"]).to_pandas()
    frame = frame[frame.activity == "kernel"]
    time = frame.end_ns - frame.start_ns
    return float(time[(frame.match_confidence >= 0.5) & frame.instruction_id.notna()].sum() / time.sum())


def number_of(dump: Path, name: str) -> int:
    index = index_dump(dump)
    return max(n for n in index.numbers if index.name(n) == name)


# dumps


@pytest.mark.parametrize("ranges", [True, False])
def test_swapped_numbers_are_noticed(tmp_path: Path, ranges: bool) -> None:
    """Two modules of a dump under each other's number: XLA's range names a number whose module has another name."""
    dump = copied("serve", tmp_path / "dump")
    a, b = number_of(dump, "jit_decode_step"), number_of(dump, "jit_prefill_chunk")
    for path in list(dump.iterdir()):
        for one, other in ((a, b), (b, a)):
            if path.name.startswith(f"module_{one:04d}."):
                path.rename(tmp_path / path.name.replace(f"module_{one:04d}", f"module_{other:04d}"))
    for path in tmp_path.glob("module_*"):
        path.rename(dump / path.name)
    capture = opened("serve") if ranges else without_ranges(opened("serve"))
    found = join_capture(capture, dump)
    if ranges:
        assert joined_share(found) < 0.02
        assert any("jit_prefill_chunk; another run's dump?" in note for note in found.notes)
    else:
        # without ranges only the launches count, and they find the right module whatever its number
        assert joined_share(found) > 0.99


def test_a_module_that_is_missing_leaves_the_others_joined(tmp_path: Path) -> None:
    dump = copied("serve", tmp_path / "dump")
    missing = number_of(dump, "jit_prefill_chunk")
    for path in dump.glob(f"module_{missing:04d}.*"):
        path.unlink()
    for capture in (opened("serve"), without_ranges(opened("serve"))):
        found = join_capture(capture, dump)
        table = found.activities.select(["activity", "hlo_module", "hlo_instruction", "match_confidence"]).to_pandas()
        kernels = table[table.activity == "kernel"]
        decode = kernels[kernels.hlo_module == "jit_decode_step"]
        assert len(decode) == 4 * 174
        assert (decode.match_confidence >= 0.99).mean() > 0.98
        rest = kernels[kernels.hlo_module != "jit_decode_step"]
        assert len(rest) == 4 * 129
        assert not (rest.match_confidence >= 0.5).any()
        assert any("the dump" in note for note in found.notes)


def test_an_empty_directory_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(HloError):
        join_capture(opened("int8"), tmp_path)


def test_no_dump_at_all_leaves_what_the_ranges_say() -> None:
    found = join_capture(opened("decode_nocb"), None)
    table = found.activities.select(["activity", "hlo_module", "hlo_instruction", "match_method", "instruction_id"]).to_pandas()
    kernels = table[table.activity == "kernel"]
    assert (kernels.match_method == "nvtx").all()
    assert kernels.instruction_id.isna().all()
    assert found.notes == ()
    blind = join_capture(without_ranges(opened("decode_nocb")), None)
    assert len(blind.executions) == 0
    assert blind.activities["hlo_instruction"].null_count == len(blind.activities)


def test_a_stale_compilation_of_the_same_program_is_doubtful(tmp_path: Path) -> None:
    """The dump of the program as it was before a change: a third of its kernels have other launch dimensions."""
    dump = copied("decode_nocb", tmp_path / "dump")
    for path in dump.glob("*thunk_sequence*"):
        lines = path.read_text().splitlines()
        path.write_text("\n".join(line.replace("grid: [", "grid: [7") if n % 3 == 0 else line for n, line in enumerate(lines)) + "\n")
    found = join_capture(without_ranges(opened("decode_nocb")), dump)
    assert joined_share(found) < 0.02
    assert any("only in part" in note for note in found.notes)


@pytest.mark.parametrize(
    ("capture", "dump"), [("decode", "serve"), ("serve", "decode"), ("decode_nocb", "decode_scan_nocb"), ("moe", "int8")]
)
def test_a_related_programs_dump_gives_no_confident_join(capture: str, dump: str) -> None:
    for one in (opened(capture), without_ranges(opened(capture))):
        found = join_capture(one, FIXTURES / dump / "xla_dump")
        assert joined_share(found) < 0.02
        assert found.notes


# captures


def blind(activities: pa.Table, name: str, host: np.ndarray | None = None) -> LaunchJoin:
    return join(activities, index_dump(FIXTURES / name / "xla_dump"), Annotations.none(len(activities)), host)


def names(found: LaunchJoin) -> list[str]:
    return np.array([*(n for _, n in found.instructions), ""], object)[found.instruction].tolist()


def partition(found: LaunchJoin) -> list[frozenset[int]]:
    rows = np.arange(len(found.execution))
    return [frozenset(rows[found.execution == n].tolist()) for n in range(len(found.executions))]


def changed(activities: pa.Table, column: str, values: np.ndarray) -> pa.Table:
    at = activities.column_names.index(column)
    return activities.set_column(at, activities.schema.field(column), pa.array(values, activities.schema.field(column).type))


@pytest.mark.parametrize("name", ["int8", "decode_nocb"])
def test_a_pool_of_launching_threads(name: str) -> None:
    """Each execution launched by the next of seven threads: streams are by thread, so that nothing changes but the thread."""
    activities = opened(name).activities
    base = blind(activities, name)
    thread = np.where(base.execution >= 0, 100 + base.execution % 7, 1)
    pooled = blind(changed(activities, "launch_thread", thread), name)
    assert set(partition(pooled)) == set(partition(base))
    assert names(pooled) == names(base)
    kernels = [e for e in pooled.executions if e.module.startswith("jit_quantized") or e.module.startswith("jit_decode")]
    assert len({e.thread for e in kernels}) > 3


def test_two_processes_with_equal_ids_and_times() -> None:
    """The same activities twice, under two process ids: equal correlation ids, threads and devices must not mix them."""
    activities = opened("int8").activities
    count = len(activities)
    other = changed(activities, "process_id", np.full(count, 999_999))
    order = np.argsort(np.tile(activities["start_ns"].to_numpy(), 2), kind="stable")
    both = blind(pa.concat_tables([activities, other]).take(order), "int8")
    base = blind(activities, "int8")
    original = np.argsort(order, kind="stable")
    assert (np.array(names(both), object)[original] == np.array(names(base) * 2, object)).all()
    assert len(both.executions) == 2 * len(base.executions)
    of_process = np.repeat([0, 1], count)[order]
    for rows in partition(both):
        assert len({int(of_process[r]) for r in rows}) == 1


def test_two_threads_whose_executions_overlap() -> None:
    """The launches of two threads retimed so that one of each takes turns on the GPU."""
    activities = opened("threads").activities
    base = blind(activities, "threads")
    thread = activities["launch_thread"].fill_null(-1).to_numpy()
    turn = np.zeros(len(activities), np.int64)
    for n, one in enumerate(np.unique(thread)):
        turn[thread == one] = np.arange((thread == one).sum()) * 1000 + n * 100
    order = np.argsort(turn, kind="stable")
    retimed = changed(changed(activities, "start_ns", turn), "end_ns", turn + 50).take(order)
    found = blind(retimed, "threads")
    back = np.argsort(order, kind="stable")
    assert {frozenset(order[list(rows)].tolist()) for rows in partition(found)} == set(partition(base))
    assert np.array(names(found), object)[back].tolist() == names(base)
    assert [e.module for e in found.executions].count("jit_left") == 9
    assert [e.module for e in found.executions].count("jit_right") == 8


def test_every_launch_stands_in_one_execution_at_most_and_none_is_lost() -> None:
    for name in ("decode", "serve", "threads", "cublas_nocb", "cutoff_nocb", "sharded_nocb"):
        activities = opened(name).activities
        found = blind(activities, name)
        assert len(found.execution) == len(found.instruction) == len(found.confidence) == len(activities)
        assert sum(map(len, partition(found))) == int((found.execution >= 0).sum())
        assert ((found.instruction >= 0) <= (found.execution >= 0)).all()
        assert (np.isnan(found.confidence) == (found.instruction < 0)).all()


def test_foreign_kernels_between_executions_are_nobodys() -> None:
    """A kernel of another library after every tenth activity."""
    activities = opened("decode_nocb").activities
    base = blind(activities, "decode_nocb")
    at = np.repeat(np.arange(len(activities)), np.where(np.arange(len(activities)) % 10 == 9, 2, 1))
    made_up = np.concatenate([[False], at[1:] == at[:-1]])
    mixed = activities.take(at)
    words = [w if not m else "elementwise_kernel" for w, m in zip(mixed["name"].to_pylist(), made_up, strict=True)]
    mixed = mixed.set_column(
        mixed.column_names.index("name"), mixed.schema.field("name"), pa.array(words).cast(mixed.schema.field("name").type)
    )
    mixed = changed(mixed, "launch_thread", np.where(made_up, 5, mixed["launch_thread"].fill_null(0).to_numpy()))
    found = blind(mixed, "decode_nocb")
    kernels = np.array(mixed["activity"].to_pylist()) == "kernel"
    assert (found.execution[made_up & kernels] < 0).all()
    assert np.array(names(found), object)[~made_up].tolist() == names(base)


def test_host_functions_of_each_thread_are_counted_before_each_launch() -> None:
    runtime = opened("decode_nocb").runtime
    calls = runtime.filter(pa.array([n in HOST_FUNCTIONS for n in runtime["name"].to_pylist()]))
    activities = opened("decode_nocb").activities
    counts = host_functions_before(activities, runtime)
    thread = activities["launch_thread"].fill_null(-1).to_numpy()
    launch = activities["launch_start_ns"].fill_null(0).to_numpy()
    begun, caller = calls["start_ns"].to_numpy(), calls["thread"].to_numpy()
    for row in range(0, len(activities), 37):
        assert counts[row] == int(((caller == thread[row]) & (begun < launch[row])).sum())
    assert host_functions_before(activities, runtime.slice(0, 0)).tolist() == [0] * len(activities)


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("name", ["decode_nocb", "decode", "cublas_nocb", "while_decode_nocb", "sharded_nocb", "decode_scan_nocb"])
def test_ranges_that_were_lost_are_made_up_for(name: str, share: float) -> None:
    """Without its own range a launch in a loop lies in the loop's, a collective in its start's: the schedule knows better."""
    capture = opened(name)
    kept = np.flatnonzero(np.random.default_rng(5).random(len(capture.nvtx)) >= share)
    whole = join_capture(capture, FIXTURES / name / "xla_dump").activities.select(["activity", "hlo_module", "hlo_instruction"])
    lossy = join_capture(replace(capture, nvtx=capture.nvtx.take(kept)), FIXTURES / name / "xla_dump").activities
    is_kernel = pa.array([a == "kernel" for a in whole["activity"].to_pylist()])
    for column in ("hlo_module", "hlo_instruction"):
        assert lossy[column].filter(is_kernel).to_pylist() == whole[column].filter(is_kernel).to_pylist()


def test_where_the_launches_and_the_host_disagree_it_is_said() -> None:
    """The host's signs agree with the cut; moved by three launches they do not."""
    capture = without_ranges(opened("decode_nocb"))
    host = host_functions_before(capture.activities, capture.runtime)
    agreed = blind(capture.activities, "decode_nocb", host)
    assert all(e.seen for e in agreed.executions)
    steps = [n for n, e in enumerate(agreed.executions) if e.module == "jit_decode_step"]
    assert {agreed.executions[n].confidence for n in steps} == {0.999}
    moved = blind(capture.activities, "decode_nocb", np.concatenate([host[:1].repeat(3), host[:-3]]))
    later = [e for e in moved.executions if e.module == "jit_decode_step"]
    assert [e.seen for e in later] == [False] * 4
    assert {e.confidence for e in later} == {0.9}
    assert any("the host saw none end" in note for note in join_notes(moved, None, {}))
    # the bounds themselves stay where the launches put them
    assert {p for p in partition(moved) if len(p) > 100} == {p for p in partition(agreed) if len(p) > 100}
