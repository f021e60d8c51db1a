"""Modules, classes, instructions, copies and coverage of a capture small enough to work out on paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nsys_report.analysis import AnalysisResults, compute_results, find_ceilings
from nsys_report.analysis.arrays.groups import distinct_rows
from nsys_report.analysis.roofline.ceilings import override
from nsys_report.analysis.times.coverage import joined_share, with_unrecorded
from tests.nsys_report.joined_samples import copy, fact, joined, kernel

CEILINGS = override(find_ceilings("none"), {"measured": 2.0, "nominal": 4.0})  # bytes a nanosecond
FACTS = [
    fact("dot.1", kernel_class="weights", class_detail="projection", bytes_accessed=1200, weight_bytes=1000, kv_read_bytes=0,
         kv_write_bytes=0, flops=4000),
    fact("gather.2", kernel_class="kv_gather", class_detail="pages", bytes_accessed=200, weight_bytes=0, kv_read_bytes=100,
         kv_write_bytes=0),
    fact("call.3", kernel_class="other", class_detail="library"),
]  # fmt: skip


def step(at: int, execution: int, slow: int = 0) -> list[dict[str, Any]]:
    """weights 1000 ns in two kernels of one instruction, a gather of 40 ns, a library call of unknown bytes 100 ns."""
    rest = {"bytes_accessed": 0, "weight_bytes": 0, "kv_read_bytes": 0, "kv_write_bytes": 0, "flops": 0}
    return [
        kernel(at, at + 900 + slow, execution, 0),
        kernel(at + 900 + slow, at + 1000 + slow, execution, 0, name="reduce", **rest),
        kernel(at + 1010 + slow, at + 1050 + slow, execution, 1, match_confidence=0.8),
        kernel(at + 1050 + slow, at + 1150 + slow, execution, 2, match_confidence=0.3),
        copy(at + 1200 + slow, at + 1210 + slow, "DtoH", 8, execution),
    ]


@pytest.fixture(scope="module")
def results() -> AnalysisResults:
    cut = [kernel(100_000, 100_500, 9, 0)]
    outside = [kernel(200_000, 200_060, None, name="plain"), kernel(300_000, 300_040, None, name="tuned", match_method="autotuning")]
    rows = step(0, 0) + step(10_000, 1, slow=10) + step(20_000, 2, slow=50) + cut + outside
    return compute_results(joined(rows, FACTS, {9: {"is_complete": False}}), CEILINGS)


def test_modules(results: AnalysisResults) -> None:
    (row,) = results.modules.to_pylist()
    assert (row["executions"], row["complete_executions"], row["devices"]) == (4, 3, 1)
    assert row["kernels_per_execution"] == 4
    assert (row["kernel_time_ns"], row["kernel_time_p10_ns"], row["kernel_time_p90_ns"]) == (1150, pytest.approx(1142), pytest.approx(1182))
    assert row["busy_time_ns"] == 1160
    assert row["span_ns"] == 1220
    assert row["host_gap_ns"] == pytest.approx((8790 + 8780) / 2)
    assert row["interval_ns"] == 10_000
    assert row["total_kernel_time_ns"] == 1140 + 1150 + 1190 + 500
    assert row["kernel_time_share"] == pytest.approx(3980 / 4080)


def test_classes(results: AnalysisResults) -> None:
    weights, other, gather = results.classes.to_pylist()
    assert [r["kernel_class"] for r in (weights, other, gather)] == ["weights", "other", "kv_gather"]
    assert weights["time_per_execution_ns"] == 1010
    assert weights["time_mean_ns"] == pytest.approx(1020)
    assert weights["typical_ns"] == 1005, "of the two steps of 10,000 ns; the third one is longer"
    assert weights["typical_share"] == pytest.approx(1005 / 1145)
    assert weights["time_share"] == pytest.approx(3060 / 3480)
    assert weights["launches_per_execution"] == 2
    assert (weights["bytes_accessed"], weights["weight_bytes"], weights["floor_bytes"], weights["wasted_bytes"]) == (1200, 1000, 1000, 200)
    assert (weights["floor_measured_ns"], weights["floor_nominal_ns"]) == (500, 250)
    assert weights["bytes_per_s"] == pytest.approx(1200 / 1005 * 1e9)
    assert weights["share_of_measured"] == pytest.approx(600 / 1005)
    assert weights["flops_per_s"] == pytest.approx(4000 / 1005 * 1e9)
    assert weights["above_measured"] is False
    assert gather["above_measured"] is True  # 200 bytes in 40 ns: 5 bytes a nanosecond against 2
    assert (gather["flops"], gather["flops_per_s"]) == (None, None)


def test_unknown_costs_stay_unknown(results: AnalysisResults) -> None:
    other = results.classes.to_pylist()[1]
    assert other["unknown_bytes_time_share"] == 1
    nothing = ("bytes_accessed", "floor_bytes", "wasted_bytes", "bytes_per_s", "share_of_measured", "above_measured", "floor_measured_ns")
    assert [other[name] for name in nothing] == [None] * len(nothing)
    assert results.details.to_pylist()[1]["class_detail"] == "library"


def test_instructions(results: AnalysisResults) -> None:
    dot, call, gather = results.instructions.to_pylist()
    assert (dot["hlo_instruction"], dot["instruction_id"], dot["kernels"], dot["kernel_name"]) == ("dot.1", 0, 2, "kernel_0")
    assert (dot["launches_per_execution"], dot["executions"]) == (2, 3)
    assert (dot["time_per_execution_ns"], dot["time_min_ns"], dot["time_max_ns"]) == (1010, 1000, 1050)
    assert (dot["bytes_accessed"], dot["flops"], dot["opcode"], dot["match_confidence"]) == (1200, 4000, "fusion", 1.0)
    assert (call["hlo_instruction"], call["bytes_accessed"], call["bytes_per_s"]) == ("call.3", None, None)
    assert gather["match_confidence"] == 0.8


def test_kernels_and_copies(results: AnalysisResults) -> None:
    names = {r["name"]: r for r in results.kernels.to_pylist()}
    assert (names["kernel_0"]["launches"], names["kernel_0"]["total_time_ns"]) == (4, 900 + 910 + 950 + 500)
    assert (names["plain"]["hlo_module"], names["plain"]["unjoined_time_ns"]) == (None, 60)
    (out,) = results.copies.to_pylist()
    assert (out["copy_kind"], out["count_per_execution"], out["bytes_per_execution"], out["time_per_execution_ns"]) == ("DtoH", 1, 8, 10)
    assert out["bytes_per_s"] == pytest.approx(0.8e9)


def test_coverage(results: AnalysisResults) -> None:
    rows = results.coverage.to_pylist()
    total = {r["certainty"]: r["kernel_time_ns"] for r in rows if r["scope"] == "total"}
    assert total == {"exact": 3560, "by_order": 120, "doubtful": 300, "autotuning": 40, "outside": 60}
    assert sum(r["kernel_time_ns"] for r in rows if r["scope"] != "total") == sum(total.values()) == 4080
    assert results.joined_share == pytest.approx(3680 / 4040)


def test_without_ceilings_there_are_no_floors_and_no_flags() -> None:
    row = compute_results(joined(step(0, 0), FACTS), find_ceilings("none")).classes.to_pylist()[0]
    assert [row[name] for name in ("floor_measured_ns", "share_of_measured", "share_of_nominal", "above_measured")] == [None] * 4
    assert row["bytes_per_s"] is not None


def test_a_capture_without_executions_still_has_its_kernels() -> None:
    found = compute_results(joined([kernel(0, 10, None, name="gemm"), kernel(20, 25, None, name="gemm")]), CEILINGS)
    assert (len(found.modules), len(found.classes), len(found.instructions)) == (0, 0, 0)
    assert found.kernels.to_pylist()[0]["duration_ns"] == 7.5
    assert found.joined_share == 0.0


def test_an_empty_capture() -> None:
    found = compute_results(joined([]), CEILINGS)
    assert found.joined_share is None
    assert len(found.kernels) == len(found.copies) == len(found.coverage) == 0


def test_a_program_whose_only_execution_was_cut_off_has_no_figures() -> None:
    found = compute_results(joined(step(0, 0), FACTS, {0: {"is_complete": False}}), CEILINGS)
    (row,) = found.modules.to_pylist()
    assert (row["executions"], row["complete_executions"], row["kernel_time_ns"]) == (1, 0, None)
    assert len(found.classes) == 0


def test_optimizer_state_is_needed_traffic() -> None:
    costs = {"bytes_accessed": 600, "weight_bytes": 0, "kv_read_bytes": 0, "kv_write_bytes": 0, "floor_bytes": 600}
    facts = [fact("adam", kernel_class="other", class_detail="optimizer", **costs)]
    row = compute_results(joined([kernel(0, 1000, 0, 0)], facts), CEILINGS).classes.to_pylist()[0]
    assert (row["floor_bytes"], row["wasted_bytes"], row["floor_measured_ns"]) == (600, 0, 300)


def test_the_upper_bound_of_bytes_is_per_execution_too() -> None:
    facts = [
        fact("gather", kernel_class="other", bytes_accessed=100, bytes_upper=150),
        fact("copy", kernel_class="other", bytes_accessed=30),
    ]
    parts = [kernel(0, 10, 0, 0), kernel(10, 20, 0, 0, bytes_accessed=0), kernel(20, 30, 0, 0), kernel(30, 40, 0, 1)]
    found = compute_results(joined(parts, facts), CEILINGS)
    assert {r["hlo_instruction"]: (r["bytes_accessed"], r["bytes_upper"]) for r in found.instructions.to_pylist()} == {
        "gather": (200, 300),
        "copy": (30, 30),
    }
    assert found.classes.to_pylist()[0]["bytes_upper"] == 330


@pytest.mark.parametrize(
    ("moved", "kernels", "time_ms", "measured_ms", "nominal_ms", "percent"),
    [
        (4.14e9, 444, 18.3, 17.8, 15.2, 97.1),  # TinyLlama f32
        (2.38e9, 621, 11.4, 10.2, 8.7, 89.6),  # Qwen3-0.6B f32
        (1.19e9, 648, 6.7, 5.1, 4.4, 76.2),  # Qwen3-0.6B bf16
    ],
)
def test_published_results_of_small_decoders_on_gb10(
    moved: float, kernels: int, time_ms: float, measured_ms: float, nominal_ms: float, percent: float
) -> None:
    each, time = int(moved / kernels), int(time_ms * 1e6 / kernels)
    costs = {"bytes_accessed": each, "weight_bytes": each, "kv_read_bytes": 0, "kv_write_bytes": 0}
    rows = [kernel(n * time, (n + 1) * time, 0, 0) for n in range(kernels)]
    found = compute_results(joined(rows, [fact("w", kernel_class="weights", **costs)]), find_ceilings("NVIDIA GB10"))
    (module,), (row,), (step,) = (t.to_pylist() for t in (found.modules, found.classes, found.steps))
    assert (module["kernels_per_execution"], row["launches_per_execution"]) == (kernels, kernels)
    assert round(row["floor_measured_ns"] / 1e6, 1) == measured_ms
    assert round(row["floor_nominal_ns"] / 1e6, 1) == nominal_ms
    assert round(row["share_of_measured"] * 100, 1) == percent
    assert round(step["floor_ns"] / 1e6, 1) == measured_ms


def test_published_results_of_a_decoder_on_gb10() -> None:
    """53.0 GB of bf16 weights in 243 ms of kernels: floors 227.5 and 194.1 ms, 93.6 % of the measured ceiling."""
    costs = {"bytes_accessed": 53_000_000_000, "weight_bytes": 53_000_000_000, "kv_read_bytes": 0, "kv_write_bytes": 0}
    facts = [fact("w", kernel_class="weights", **costs)]
    found = compute_results(joined([kernel(0, 243_000_000, 0, 0)], facts), find_ceilings("NVIDIA GB10"))
    (row,) = found.classes.to_pylist()
    assert round(row["floor_measured_ns"] / 1e6, 1) == 227.5
    assert round(row["floor_nominal_ns"] / 1e6, 1) == 194.1
    assert round(row["share_of_measured"] * 100, 1) == 93.6
    assert row["above_measured"] is False
    fast = compute_results(joined([kernel(0, 220_000_000, 0, 0)], facts), find_ceilings("NVIDIA GB10")).classes.to_pylist()[0]
    assert fast["above_measured"] is True  # 240.9 GB/s


def test_work_that_was_not_recorded_counts_as_not_joined(results: AnalysisResults) -> None:
    """4,040 ns of kernels, 3,680 joined; 960 that were not recorded make it 3,680 of 5,000."""
    found = with_unrecorded(results.coverage, 960)
    assert joined_share(found) == pytest.approx(3680 / 5000)
    for scope in ("total", "outside"):
        rows = [row for row in found.to_pylist() if row["scope"] == scope]
        assert sum(row["time_share"] for row in rows) == pytest.approx(1)
        assert [(row["kernels"], row["kernel_time_ns"]) for row in rows if row["certainty"] == "not_recorded"] == [(None, 960)]
    assert with_unrecorded(results.coverage, 0) is results.coverage


def test_distinct_rows_are_numbered_in_the_order_they_come() -> None:
    number, first = distinct_rows([np.array([7, 5, 7, 7]), np.array([1, 1, 1, 2])])
    assert (number.tolist(), first.tolist()) == ([0, 1, 0, 2], [0, 1, 3])
    number, first = distinct_rows([np.empty(0, np.int64)])
    assert len(number) == len(first) == 0
