"""Runs of many ranks, made on paper (made_ranks.Made): what differs between the clocks, who is late, in which steps, and why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsys_report.analysis.roofline.ceilings import find_ceilings
from nsys_report.ranks.bandwidth import bus_factor, hosts_of
from nsys_report.ranks.findings import run_findings
from nsys_report.ranks.recognize import are_ranks
from nsys_report.ranks.run import Run, analyze_run
from nsys_report.ranks.summary import Failure
from nsys_report.reports.rank_notices import run_notices
from nsys_report.reports.ranks_page import ranks_section
from tests.nsys_report.made_ranks import MOVING, MS, US, Made


def slugs(run: Run) -> set[str]:
    return {notice.slug for notice in run_notices(run)}


def rows(run: Run, table: str) -> list[dict[str, object]]:
    return list(next(t for t in ranks_section(run).tables if t.key == table).records())


def test_a_rank_that_sleeps_in_every_third_step_is_late_by_what_it_sleeps() -> None:
    late = {(2, step): 4 * MS for step in range(2, 12, 3)}
    run = analyze_run(Made(late=late).captures())
    (one,) = run.late
    assert (one.rank, one.steps, one.of, one.every) == (2, (2, 5, 8, 11), 12, 3)
    assert abs(one.median_ns - 4 * MS) < 5 * US
    assert one.cause == "host_work" and abs(dict(one.causes)["host"] - 4 * MS) < 5 * US
    (finding,) = run_findings(run)
    assert "Rank 2 arrives 4.00 ms late in every third step" in finding.title
    assert finding.gain_ns == pytest.approx(4 * MS * 4 / 12, rel=0.01)
    waited = [row["waited_ns"] for row in rows(run, "arrivals") if row["rank"] == 0 and row["collective"] == "all-reduce.0"]
    assert [round(float(str(ns)) / MS) for ns in waited] == [0, 0, 4, 0, 0, 4, 0, 0, 4, 0, 0, 4]


def test_clocks_are_told_from_the_collectives_whatever_they_read() -> None:
    offsets = {1: 87 * MS, 2: 3_600_000 * MS, 3: 12_345}
    run = analyze_run(Made(offset=offsets, late={(1, 4): 3 * MS}).captures())
    assert np.abs(run.clocks.offset_ns - [0, 87 * MS, 3_600_000 * MS, 12_345]).max() < US
    assert run.clocks.error_ns.max() < 2 * US
    assert [(one.rank, one.steps) for one in run.late] == [(1, (4,))]
    assert set(run.alignment.method[1:]) == {"collectives"}


def test_a_clock_that_runs_fast_is_seen_to_drift() -> None:
    run = analyze_run(Made(steps=60, offset={1: 5 * MS}, drift={1: 50e-6}).captures())
    assert run.clocks.drift[1] == pytest.approx(50e-6, rel=0.05)
    assert run.clocks.drift[[0, 2, 3]] == pytest.approx(0, abs=1e-6)
    assert run.clocks.error_ns.max() < 3 * US and not run.late


def test_captures_that_begin_and_end_elsewhere_are_laid_step_on_step() -> None:
    missing = frozenset({(1, 0), (1, 1), (2, 5), (2, 6), (3, 11)})
    run = analyze_run(Made(missing=missing, offset={1: 9 * MS, 2: 70 * MS}, late={(3, 8): 2 * MS}).captures())
    steps = [run.alignment.steps[0][rank] for rank in range(4)]
    assert [None if s is None else s.tolist() for s in steps] == [
        list(range(12)),
        list(range(2, 12)),
        [0, 1, 2, 3, 4, 7, 8, 9, 10, 11],
        list(range(11)),
    ]
    assert [(one.rank, one.steps) for one in run.late] == [(3, (8,))]
    assert "steps-differ" in slugs(run)


def test_the_first_capture_may_be_the_one_that_begins_last() -> None:
    run = analyze_run(Made(missing=frozenset((0, step) for step in range(5)), offset={1: 40 * MS}).captures())
    first, second = run.alignment.steps[0][0], run.alignment.steps[0][1]
    assert first is not None and second is not None
    assert first.tolist() == list(range(5, 12)) and second.tolist() == list(range(12))
    assert run.clocks.offset_ns[1] == pytest.approx(40 * MS, abs=US)


def test_waiting_for_a_capture_to_begin_is_nobodys_lateness() -> None:
    made = Made(late={(0, 0): 80 * MS}, begins={0: 51 * MS})
    captures = made.captures()
    captures[0] = replace(captures[0], span_ns=(100 * MS, captures[0].span_ns[1]))
    captures[0] = replace(captures[0], devices=Made(late={(0, 0): 80 * MS}).captures()[0].devices)
    run = analyze_run(captures)
    assert not run.late
    assert [row["counted"] for row in rows(run, "arrivals") if row["step"] == 0 and row["rank"] == 0] == [False, True]
    assert "capture-begins" in slugs(run)


def test_a_gpu_that_is_slower_throughout_is_named_with_its_ratio() -> None:
    run = analyze_run(Made(slower={3: 1.08}).captures())
    (one,) = run.late
    assert (one.rank, one.cause, one.every) == (3, "kernels", 1)
    assert one.median_ns == pytest.approx(2 * 0.08 * MS, abs=5 * US)  # two collectives a step
    assert run.kernel_ratio[3] == pytest.approx(1.08) and run.is_uniform.tolist() == [False, False, False, True]
    (finding,) = run_findings(run)
    assert "all of its kernels take 8.0 % longer" in finding.title


def test_even_steps_are_unsure_unless_the_sessions_say_when_they_began() -> None:
    made = Made(ranks=2, even=True, missing=frozenset({(1, 0)}), offset={1: 30 * MS})
    unsure = analyze_run(made.captures())
    assert "steps-unsure" in slugs(unsure)
    sure = analyze_run(replace(made, realtime=True).captures())
    steps = sure.alignment.steps[0][1]
    assert steps is not None and steps.tolist() == list(range(1, 12)) and "steps-unsure" not in slugs(sure)
    assert sure.clocks.offset_ns[1] == pytest.approx(30 * MS, abs=US)


def test_groups_meet_apart_and_a_late_rank_holds_up_its_own_group_alone() -> None:
    groups = ((0, 1), (2, 3))
    run = analyze_run(Made(groups=groups, late={(3, 6): 2 * MS}, realtime=True).captures())
    met = {(row["step"], row["rank"]): row for row in rows(run, "arrivals") if row["collective"] == "all-reduce.0"}
    assert met[6, 2]["waited_ns"] == pytest.approx(2 * MS, abs=5 * US)
    assert met[6, 0]["waited_ns"] == pytest.approx(0, abs=5 * US)
    assert {one.ranks for one in run.collectives} == {2}


def test_ranks_of_other_programs_are_told_and_the_rest_compared() -> None:
    run = analyze_run(replace(Made(late={(1, 3): 2 * MS}), signature={3: "jit_step/other"}).captures())
    assert [(one.rank, one.steps) for one in run.late] == [(1, (3,))]  # one name and the same collectives: one program all the same
    captures = Made(late={(1, 3): 2 * MS}).captures()
    stage = replace(captures[3].devices[0].programs[0], name="jit_other", signature="jit_other/x", collectives=())
    stage = replace(stage, runs=replace(stage.runs, **{f: getattr(stage.runs, f)[:0] for f in type(stage.runs).__dataclass_fields__}))
    captures[3] = replace(captures[3], devices=(replace(captures[3].devices[0], programs=(stage,)),))
    run = analyze_run(captures)
    assert "programs-differ" in slugs(run) and "clocks-none" in slugs(run) and "groups-incomplete" in slugs(run)
    assert [(one.rank, one.steps) for one in run.late] == [(1, (3,))]


def test_captures_without_collectives_are_aligned_by_their_sessions_alone() -> None:
    captures = Made(ranks=2, offset={1: 5 * MS}, realtime=True).captures()
    for n, capture in enumerate(captures):
        program = capture.devices[0].programs[0]
        empty = replace(program.runs, **{f: getattr(program.runs, f)[:0] for f in type(program.runs).__dataclass_fields__})
        program = replace(program, collectives=(), runs=empty)
        captures[n] = replace(capture, devices=(replace(capture.devices[0], programs=(program,)),))
    run = analyze_run(captures)
    assert run.alignment.method == ("reference", "session") and run.clocks.offset_ns[1] == 5 * MS and np.isnan(run.clocks.error_ns[1])
    assert not run.grids and not run.late and [row["steps"] for row in rows(run, "ranks")] == [12, 12]


def test_missing_and_damaged_ranks_are_named() -> None:
    captures = Made().captures()
    run = analyze_run([captures[0], captures[1], captures[3]])
    assert {"ranks-missing", "groups-incomplete"} <= slugs(run)
    assert [rank.number for rank in run.ranks] == [0, 1, 3]
    run = analyze_run([captures[0], captures[1], captures[3]], [Failure("rank_2.sqlite", "2", "it is no SQLite file")])
    assert "ranks-missing" not in slugs(run) and "rank-failed" in slugs(run)


def test_sixty_four_ranks_name_the_one_that_is_late() -> None:
    run = analyze_run(Made(ranks=64, steps=6, late={(41, 2): MS, (41, 4): MS}).captures())
    assert [(one.rank, one.steps) for one in run.late] == [(41, (2, 4))]
    assert len(rows(run, "ranks")) == 64 and len(rows(run, "arrivals")) == 64 * 6 * 2


def test_what_a_collective_moves_and_how_fast() -> None:
    run = analyze_run(Made(late={(0, 0): 5 * MS}, scatter=1).captures())
    one = next(c for c in run.collectives if c.instruction == "all-reduce.1")
    assert one.moving_ns == MOVING and one.waiting_ns == 0
    assert one.algorithm_bytes_per_s == pytest.approx(10e6 / 100e-6)
    assert one.bus_bytes_per_s == pytest.approx(10e6 / 100e-6 * 2 * 3 / 4)
    first = next(c for c in run.collectives if c.instruction == "all-reduce.0")
    assert first.waiting_ns == pytest.approx(5 * MS * 3 / (12 * 4))  # three ranks wait in one of twelve steps


@pytest.mark.parametrize(
    ("kind", "ranks", "factor"),
    [
        ("all-reduce", 8, 1.75),
        ("all-gather", 8, 0.875),
        ("reduce-scatter", 2, 0.5),
        ("all-to-all", 4, 0.75),
        ("collective-permute", 8, 1.0),
    ],
)
def test_bus_bandwidth_by_kind(kind: str, ranks: int, factor: float) -> None:
    assert bus_factor(kind, ranks) == factor


def test_runs_apart_are_no_ranks() -> None:
    captures = Made(ranks=2, realtime=True).captures()
    assert are_ranks(tuple(captures))
    later = replace(captures[1], realtime_ns=(captures[1].realtime_ns or 0) + 3_600_000 * MS)
    assert not are_ranks((captures[0], later))
    assert not are_ranks((captures[0], replace(captures[0], name="a copy")))
    whole = Made(ranks=2, groups=((0,),)).captures()
    assert not are_ranks(tuple(whole))  # each holds all the devices that its program needs


def test_ranks_that_are_late_together_are_one_finding_that_counts_once() -> None:
    late = {(rank, step): 4 * MS for rank in (5, 6, 7) for step in (2, 5, 8, 11)}
    run = analyze_run(Made(ranks=16, late=late).captures())
    assert [one.rank for one in run.late] != [] and {one.rank for one in run.late} == {5, 6, 7}
    (finding,) = run_findings(run, shown=0)
    assert (
        finding.title
        == "3 ranks (5, 6, 7) arrive 4.00 ms late in every third step: on each, its host does something else between two calls"
    )
    assert finding.gain_ns == pytest.approx(4 * MS * 4 / 12, rel=0.01)
    assert finding.explained_ns == pytest.approx(4 * MS * 4 / 12, rel=0.01)
    (own,) = run_findings(run, shown=5)
    assert own.explained_ns == 0  # what it does itself, its own findings explain


def test_hosts_are_told_by_when_they_booted_and_links_by_hosts() -> None:
    captures = [replace(c, realtime_ns=10**18 + n, monotonic_ns=5 * 10**9) for n, c in enumerate(Made(scatter=1).captures())]
    assert hosts_of(captures) == (0, 0, 0, 0)
    captures[3] = replace(captures[3], monotonic_ns=900 * 10**9)
    assert hosts_of(captures) == (1, 1, 1, 0)  # in order of boot
    assert hosts_of([*captures[:2], replace(captures[2], realtime_ns=None)]) == (0, 0, None)
    assert {one.link for one in analyze_run(captures).collectives} == {"network"}
    ceilings = find_ceilings("NVIDIA H200", overrides={"network": 50.0})
    rows = next(t for t in ranks_section(analyze_run(captures), ceilings).tables if t.key == "collectives").records()
    assert [row["share_of_link"] for row in rows] == pytest.approx([3.0, 3.0])  # 150 GB/s on the bus
    nvlink = ceilings.link("nvlink")
    assert nvlink is not None and nvlink.value == 450e9


def test_a_link_is_unknown_where_hosts_or_ranks_are() -> None:
    assert {one.link for one in analyze_run(Made(realtime=True).captures()).collectives} == {None}
