"""From the analysis to the report: what is shown, with figures that can be worked out on paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from nsys_report.analysis import compute_results, find_ceilings
from nsys_report.analysis.roofline.ceilings import override
from nsys_report.capture.health import Health
from nsys_report.capture.health_items import HealthItem
from nsys_report.capture.model import CaptureInfo, Gpu
from nsys_report.fact import Fact
from nsys_report.findings.model import Elsewhere, Finding, Place
from nsys_report.reports.build import build_report
from nsys_report.reports.check import check_section
from nsys_report.reports.export import document
from nsys_report.reports.model import Part, Section, Table
from nsys_report.reports.terminal_page import render
from nsys_report.selection import Selection
from nsys_report.session import Session
from tests.nsys_report.joined_samples import copy, fact, joined, kernel

GPU = Gpu(0, 1, "NVIDIA H200", None, None, None, None, None)
INFO = CaptureInfo("2025.3.2", "3.20.3", (GPU, GPU), None, "node", (0, 2_000_000), 0, None)
FACTS = [
    fact("dot.1", kernel_class="weights", class_detail="projection", bytes_accessed=1_200_000, weight_bytes=1_000_000, kv_read_bytes=0,
         kv_write_bytes=0, flops=2_000_000),
    fact("gather.2", kernel_class="kv_gather", class_detail="pages", bytes_accessed=400_000, weight_bytes=0, kv_read_bytes=100_000,
         kv_write_bytes=0),
    fact("call.3", kernel_class="other", class_detail="library"),
]  # fmt: skip


def step(at: int, execution: int, **more: Any) -> list[dict[str, Any]]:
    """1,000 ns of weights, 100 ns of a gather, 400 ns whose bytes nobody knows."""
    return [
        kernel(at, at + 1000, execution, 0, **more),
        kernel(at + 1000, at + 1100, execution, 1, **more),
        kernel(at + 1100, at + 1500, execution, 2, **more),
    ]


def health(*items: HealthItem, xla_modules: int = 0) -> Health:
    return Health(items, "node", 1, xla_modules, 0, 0, 0, 0, 0)


def session(rows: list[dict[str, Any]], facts: list[dict[str, Any]] = FACTS, **more: Any) -> Session:
    """A session with ceilings of 2,000 and 4,000 GB/s."""
    made = joined(rows, facts, more.pop("executions", None))
    nothing = {name: (pa.table({"start_ns": pa.array([], pa.int64())})) for name in ("synchronizations", "memory_usage")}
    about = {"info": INFO, "path": Path("capture.sqlite"), "tables": {}}
    capture = SimpleNamespace(**vars(made.capture) | about | nothing)
    made = replace(made, capture=capture, notes=more.pop("notes", ()))  # type: ignore[arg-type]
    ceilings = override(find_ceilings("none"), {"measured": 2000.0, "nominal": 4000.0})
    return Session("capture.sqlite", made, compute_results(made, ceilings), more.pop("health", health()), **more)


def part(rows: list[dict[str, Any]], top: int | None = 12, **more: Any) -> Part:
    return build_report([session(rows, **more)], "test", top).parts[0]


def section(found: Part, key: str) -> Section:
    chosen = found.section(key)
    assert chosen is not None
    return chosen


def table(found: Section, key: str) -> Table:
    return next(t for t in found.tables if t.key == key)


DUMP = Path("dump")
DECODE = step(0, 0) + step(10_000, 1) + step(20_000, 2)


def test_the_headline_is_the_capture_in_one_line() -> None:
    assert part(DECODE).headline == "2 × NVIDIA H200 · nsys 2025.3.2 · 2.00 ms span · 9 kernels, 4.50 µs of kernel time"


def test_the_second_line_is_the_ceilings_and_where_they_come_from() -> None:
    assert part(DECODE).lines == ("Bandwidth ceilings: 2,000 GB/s measured (given), 4,000 GB/s nominal (given).",)


def test_programs_stand_side_by_side_with_medians_first() -> None:
    (row,) = table(section(part(DECODE), "modules"), "modules").records()
    assert (row["hlo_module"], row["executions"], row["kernels_per_execution"]) == ("jit_step", 3, 3)
    assert (row["kernel_time_ns"], row["busy_time_ns"], row["host_gap_ns"]) == (1500, 1500, 8500)


def test_a_program_opens_with_its_floor() -> None:
    found = section(part(DECODE, xla_dump=DUMP), "program:jit_step#1")
    assert found.lines[0] == "3 executions, 3 kernels and 1.50 µs of kernel time each."
    assert found.lines[1] == "A typical step takes 10.0 µs; the GPU is idle for 8.50 µs of it, 85.0 %."
    assert found.lines[2] == (
        "It must move at least 1.10 MB an execution (weights, KV caches): 550 ns at the measured ceiling, 36.7 % of its kernel time."
    )
    facts = {fact.key: fact.value for fact in found.facts}
    assert (facts["step_ns"], facts["typical_kernel_time_ns"], facts["idle_ns"]) == (10_000, 1500, 8500)
    assert facts["of_floor_nominal"] == pytest.approx(275 / 1500)


def test_classes_end_in_a_row_that_sums_them_up() -> None:
    classes = table(section(part(DECODE), "program:jit_step#1"), "classes")
    weights, other, gather, total = classes.records()
    assert [r["kernel_class"] for r in (weights, other, gather, total)] == ["weights", "other", "kv_gather", "all"]
    assert (weights["bytes_per_s"], weights["share_of_measured"], weights["share_of_nominal"]) == (1.2e12, 0.6, 0.3)
    assert weights["floor_measured_ns"] == 500
    assert total["bytes_accessed"] == 1_600_000
    assert total["floor_measured_ns"] == 550
    assert (total["typical_ns"], total["time_per_execution_ns"]) == (1500, 1500)
    assert total["bytes_per_s"] is None, "the library call's bytes are unknown"
    assert classes.rows[-1].is_total


def test_the_sum_has_a_bandwidth_where_all_bytes_are_known() -> None:
    rows = [r for r in DECODE if r["instruction_id"] != 2]
    *_, total = table(section(part(rows), "program:jit_step#1"), "classes").records()
    assert total["bytes_per_s"] == pytest.approx(1.6e6 * 1e9 / 1100)


def test_the_budget_adds_up_to_a_typical_step() -> None:
    """Steps begin every 10,000 ns."""
    budget = table(section(part(DECODE), "program:jit_step#1"), "budget")
    *rows, total = budget.records()
    assert total["typical_ns"] == 10_000
    assert sum(r["typical_ns"] for r in rows) == pytest.approx(10_000)  # type: ignore[misc,arg-type]
    assert sum(r["share"] for r in rows) == pytest.approx(1)  # type: ignore[misc,arg-type]
    assert {r["category"] for r in rows} >= {"floor", "kernels below the roof", "kernels of unknown bytes"}


def test_above_the_measured_ceiling_is_marked() -> None:
    classes = table(section(part(DECODE), "program:jit_step#1"), "classes")
    gather = next(row for row in classes.rows if row.values[0] == "kv_gather")
    assert [(m.column, m.sign) for m in gather.marks] == [("bytes_per_s", "▲")]
    assert not next(row for row in classes.rows if row.values[0] == "weights").marks


def test_doubtful_joins_are_marked() -> None:
    rows = step(0, 0, match_confidence=0.3)
    instructions = table(section(part(rows), "program:jit_step#1"), "instructions")
    assert all("?" in text for row in instructions.rows for text in instructions.texts(row)[:1])


def test_top_shortens_the_terminal_page_and_not_the_report() -> None:
    instructions = table(section(part(DECODE, top=2), "program:jit_step#1"), "instructions")
    assert (len(instructions.rows), len(instructions.shown())) == (3, 2)
    assert table(section(part(DECODE, top=None), "program:jit_step#1"), "instructions").lead is None


def test_what_ran_outside_the_programs_is_said_and_autotuning_is_one_line() -> None:
    rows = [
        *DECODE,
        kernel(30_000, 30_100, None, name="tuned", match_method="autotuning"),
        kernel(31_000, 31_050, None, name="plain"),
        copy(32_000, 32_010, "HtoD", 64, None),
    ]
    assert section(part(rows), "outside").lines == (
        "Autotuning: 1 kernel, 100 ns; in no program's figures.",
        "In no execution: 1 kernel, 50 ns; in no program's figures.",
        "In no execution: 1 copies and memsets, 10 ns.",
    )


def test_coverage_says_how_much_was_joined_and_how() -> None:
    found = section(part([*DECODE, kernel(30_000, 30_500, 2, None)]), "coverage")
    assert found.lines == ("90.0 % of the kernel time is joined to an HLO instruction with confidence.",)
    rows = list(table(found, "coverage").records())
    assert [(r["certainty"], r["kernels"], r["time_share"]) for r in rows] == [("exact", 9, 0.9), ("not joined", 1, 0.1)]


def test_without_xla_kernels_are_reported_by_name_with_busy_and_idle_time() -> None:
    rows = [kernel(0, 100, None, name="void gemm<8>(float*)"), kernel(50, 150, None, name="gemm"), copy(200, 210, "DtoH", 8, None)]
    found = part(rows, facts=[])
    assert [n.slug for n in found.notices] == ["no-xla"]
    (device,) = table(section(found, "kernels"), "devices").records()
    assert (device["kernels"], device["kernel_time_ns"], device["span_ns"]) == (2, 200, 210)
    assert (device["busy_time_ns"], device["idle_time_ns"]) == (160, 50)
    kernels = table(section(found, "kernels"), "kernels")
    assert {kernels.texts(row)[0] for row in kernels.rows} == {"gemm<8>", "gemm"}
    assert found.section("coverage") is None


def test_a_capture_with_nothing_in_it_still_makes_a_page() -> None:
    assert "0 kernels" in render(build_report([session([], [])], "test"), 80)


def test_programs_without_a_dump_show_their_kernels_and_say_so() -> None:
    rows = [{**r, "instruction_id": None, "match_method": None, "match_confidence": None} for r in DECODE]
    found = part(rows, facts=[])
    assert [n.slug for n in found.notices] == ["no-dump"]
    keys = [t.key for t in section(found, "program:jit_step#1").tables]
    assert "kernels" in keys and not {"classes", "instructions"} & set(keys)


def test_a_dump_that_nothing_fits_is_a_warning() -> None:
    (notice,) = part([kernel(0, 100, None, name="gemm")], facts=[], xla_dump=DUMP).notices
    assert (notice.slug, notice.severity) == ("no-fit", "warning")


def test_the_worst_lack_comes_first_and_what_is_well_is_left_to_the_check() -> None:
    items = (
        HealthItem("kernels", "ok", "9 kernels are recorded"),
        HealthItem("window-end", "warning", "recording stopped inside an execution", "wait for the device"),
        HealthItem("graphs", "fatal", "graph work is unmeasured", "nsys profile --cuda-graph-trace=node"),
    )
    judged = health(*items)
    found = part(DECODE, health=judged, xla_dump=DUMP)
    assert [(n.slug, n.severity) for n in found.notices] == [("graphs", "error"), ("window-end", "warning")]
    assert found.notices[0].hint == "nsys profile --cuda-graph-trace=node."
    assert [n.slug for n in check_section(session(DECODE, health=judged)).notices] == [
        "records",
        "window-end",
        "graphs",
        "executions",
        "no-dump",
    ]


def test_cut_off_executions_are_counted_and_left_out() -> None:
    found = part(DECODE + step(30_000, 3), executions={3: {"is_complete": False}})
    (row,) = table(section(found, "modules"), "modules").records()
    assert (row["executions"], row["complete_executions"]) == (4, 3)
    assert section(found, "program:jit_step#1").lines[0].startswith("4 executions, 3 of them complete, ")
    assert any("1 execution cut off" in note for note in table(section(found, "modules"), "modules").notes)


def test_several_captures_are_summed_up_side_by_side() -> None:
    slow = [{**r, "end_ns": r["end_ns"] + 500} if r["instruction_id"] == 2 else r for r in DECODE]
    sessions = [replace(session(DECODE), name="one"), replace(session(slow), name="two"), replace(session([], []), name="none")]
    summary = build_report(sessions, "test").summary
    assert summary is not None
    rows = list(summary.records())
    assert [(r["name"], r["program"], r["kernel_time_ns"]) for r in rows] == [
        ("one", "jit_step", 1500),
        ("two", "jit_step", 2000),
        ("none", None, None),
    ]
    assert rows[0]["of_floor_measured"] == pytest.approx(550 / 1500)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_page_fits_its_width(width: int) -> None:
    text = render(build_report([session(DECODE, xla_dump=DUMP)], "test"), width)
    assert max(map(len, text.splitlines())) <= width


def test_narrowing_to_one_execution_keeps_the_captures_own_figures() -> None:
    from nsys_report.notebook import Analysis

    made = session(DECODE + step(30_000, 3), executions={3: {"is_complete": False}})
    whole = Analysis(made.name, made.joined, made.results, made.health)
    one = Selection(executions=(3,)).narrow(whole)
    assert one.narrowed == "execution 3"
    assert one.results.modules.to_pylist()[0]["complete_executions"] == 1, "asked for, so shown although cut off"
    assert len(one.joined.activities) == 3
    assert one.results.devices.equals(whole.results.devices)
    weights = Selection(classes=("weights",)).narrow(whole)
    assert weights.results.classes["kernel_class"].to_pylist() == ["weights"]
    assert Selection().narrow(whole) is whole


def test_the_same_instructions_again_are_said_to_be_iterations() -> None:
    """Three kernels four times in each of three executions: 1,500 ns an iteration."""
    rows = [{**r, "execution_id": n // 4} for n in range(12) for r in step(n * 2000 + n // 4 * 50_000, 0)]
    found = section(part(rows, xla_dump=DUMP), "program:jit_step#1")
    said = (
        "4 iterations of 3 kernels make up 100.0 % of the kernel time: 1.50 µs each (1.50 µs to 1.50 µs), one every 2.00 µs, "
        "of which the GPU is idle 500 ns."
    )
    assert said in found.lines


def test_executions_that_stand_out_are_said() -> None:
    rows = [r for n in range(12) for r in step(n * 10_000, n)]
    slow = [{**r, "end_ns": r["end_ns"] + 3000} if r["execution_id"] == 5 and r["instruction_id"] == 2 else r for r in rows]
    assert "1 of 12 executions stands out by its kernel time: 3.00 µs more in all." in section(part(slow), "program:jit_step#1").lines


def found(**more: object) -> Finding:
    """A finding of 300 ns in a step of 10,000 ns, seen in one instruction."""
    parts: dict[str, object] = {
        "slug": "split-product",
        "title": "A product is written out and reduced by a second kernel",
        "why": "Its products go to memory and come back.",
        "remedy": "Keep the product in one kernel.",
        "confidence": "sure",
        "basis": "bytes above the floor at the ceiling",
        "hlo_module": "jit_step",
        "program_id": 1,
        "executions": 3,
        "gain_ns": 300.0,
        "share": 0.03,
        "facts": (Fact("wasted_bytes", "written and read back", 600_000, "bytes"),),
        "places": (Place("dot.1", 1000.0, 1.0, 1_200_000, "%dot.1 = f32[8] dot(...)", "jit(step)/dot", "model.py", 12),),
    }
    return Finding(**parts | more)  # type: ignore[arg-type]


def test_findings_open_the_page_with_what_they_would_give_back() -> None:
    report = build_report(
        [session(DECODE, xla_dump=DUMP, causes=(found(), found(slug="other", gain_ns=None, share=None, to_capture="Trace NVTX.")))],
        "test",
    )
    short, page = (render(report, 120, full=full).splitlines() for full in (False, True))
    assert short[short.index("WHAT TO DO") + 1 :][:4] == [
        "1. A product is written out and reduced by a second kernel (300 ns to gain, 3.0 % of a step; sure; jit_step#1)",
        "   → Keep the product in one kernel.",
        "   in dot.1 (jit(step)/dot, model.py:12)",
        "2. A product is written out and reduced by a second kernel (gain unknown; sure; jit_step#1)",
    ]
    at = page.index("WHAT TO DO")
    assert (
        page[at + 1]
        == "1. A product is written out and reduced by a second kernel (jit_step#1; 300 ns to gain each time, 3.0 % of a step; sure)"
    )
    assert page[at + 2 : at + 5] == [
        "   Its products go to memory and come back.",
        "   in dot.1 (jit(step)/dot, model.py:12)",
        "   → Keep the product in one kernel.",
    ]
    assert "   to decide it: Trace NVTX." in page
    assert at < page.index("PROGRAMS")
    first, second = document(report)["captures"][0]["findings"]
    assert first["gains"]["gain_ns"]["value"] == 300
    assert first["facts"]["wasted_bytes"]["text"] == "600 kB"
    assert first["places"]["rows"][0]["source"] == "model.py:12"
    assert second["gains"] == {}


def test_a_cause_in_several_programs_says_what_it_is_ranked_by() -> None:
    also = (Elsewhere("jit_other", 2, 150.0, 100.0, 5),)
    report = build_report([session(DECODE, xla_dump=DUMP, causes=(found(also=also, total_gain_ns=1400.0),))], "test")
    assert "300 ns to gain each time, 3.0 % of a step, 1.40 µs over the capture, in other programs too; sure" in render(
        report, 200, full=True
    )


def test_percentiles_over_few_executions_are_not_said() -> None:
    five = [row for n in range(5) for row in step(n * 10_000, n)]
    few, many = (table(section(part(rows), "modules"), "modules") for rows in (DECODE, five))
    assert [row["kernel_time_p10_ns"] for row in few.records()] == [None]
    assert [row["kernel_time_p10_ns"] for row in many.records()] == [1500]
    classes = table(section(part(DECODE), "program:jit_step#1"), "classes")
    assert all(row["time_per_execution_p90_ns"] is None for row in classes.records())


def test_kernels_side_by_side_are_said_where_they_add_up_to_more_than_the_time_they_take() -> None:
    """2.81 ms of kernels and 2.00 ms idle in a step of 4.55 ms: they overlap, since 4.55 - 2.00 = 2.55 ms."""
    from nsys_report.reports.program_facts import _step_line

    step = {
        "typical_ns": 4_550_000.0,
        "idle_ns": 2_000_000.0,
        "typical_kernel_time_ns": 2_810_000.0,
        "is_alone": False,
        "tokens_per_s": None,
    }
    assert _step_line(step).endswith("Kernels run side by side: 2.81 ms of them take 2.55 ms of it.")
    assert "side by side" not in _step_line({**step, "typical_kernel_time_ns": 2_550_000.0})
