"""Roll-ups: sums worked out by hand, and of real captures sums that are the budget's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from nsys_report.analysis.budget.parts import CATEGORIES
from nsys_report.analysis.rollup.dimensions import DIMENSIONS, called
from nsys_report.analysis.rollup.tree import rollup_table
from nsys_report.analysis.rollup.work import WORK
from nsys_report.analysis.roofline.ceilings import find_ceilings
from nsys_report.cli.options import ROLLUPS
from nsys_report.errors import UsageError
from nsys_report.notebook import Analysis, analyze
from nsys_report.selection import Selection


@pytest.fixture(scope="module")
def decode(fixture_path: Callable[..., Path]) -> Analysis:
    return analyze(fixture_path("decode", "capture.sqlite"), fixture_path("decode", "xla_dump"))


CEILINGS = find_ceilings("", None, {"measured": 1e12})


def row(name: str | None, time: float, **more: Any) -> dict[str, Any]:
    """A row of WORK: one launch, its roof known to be half of its time."""
    known = {"roof_ns": time / 2, "known_ns": time, "bytes_accessed": time * 500.0, "floor_ns": 0.0}
    return {"hlo_module": "jit_f", "program_id": 1, "hlo_instruction": name, "kernel_name": f"{name}_7", "launches": 1.0} | {
        "time_ns": time, **known, **more,
    }  # fmt: skip


def work(*rows: dict[str, Any]) -> pa.Table:
    whole = sum(r["time_ns"] for r in rows)
    return pa.Table.from_pylist([{**r, "time_share": r["time_ns"] / whole} for r in rows], WORK)


LAYERS = work(
    *(
        row(f"dot.{i}", 100.0, pattern="h[*].up", label=f"h[{i}].up", layer=f"h[{i}]", class_detail="product", kernel_class="weights",
            source_file="pkg/model.py", source_line=10, scope="net/h/*/up", parameter="h[*].up.w")
        for i in range(3)
    ),
    row("tanh.1", 30.0, pattern="h[*] (elementwise)", label="h[0] (elementwise)", layer="h[0]", class_detail="elementwise",
        kernel_class="other", source_file="pkg/model.py", source_line=11, scope="net/h/*"),
    row("call.1", 50.0, roof_ns=None, known_ns=0.0, bytes_accessed=None, floor_ns=None, class_detail="custom call", kernel_class="other"),
    row(None, 20.0, kernel_name="void mystery<int>(float*)", roof_ns=None, known_ns=0.0, bytes_accessed=None, floor_ns=None),
)  # fmt: skip


def groups(table: pa.Table) -> dict[str, tuple[float, float]]:
    return {r["group"]: (r["launches"], r["time_ns"]) for r in table.to_pylist()}


def test_the_same_work_of_all_layers_is_one_row() -> None:
    rows = rollup_table(LAYERS, "name", CEILINGS).to_pylist()
    assert [r["group"] for r in rows] == ["h[*].up", "call (custom call)", "h[*] (elementwise)", "not joined: mystery"]
    first = rows[0]
    assert (first["instructions"], first["launches"], first["time_ns"], first["each_ns"]) == (3, 3.0, 300.0, 100.0)
    assert (first["time_share"], first["share_of_roof"], first["bytes_accessed"], first["unknown_ns"]) == (0.75, 0.5, 150_000.0, 0.0)


def test_what_is_unknown_is_said() -> None:
    rows = {r["group"]: r for r in rollup_table(LAYERS, "layer", CEILINGS).to_pylist()}
    outside = rows["outside of layers"]
    assert (outside["time_ns"], outside["unknown_ns"], outside["roof_ns"], outside["share_of_roof"]) == (70.0, 70.0, None, None)
    assert outside["instructions"] == 1  # what was not joined is none
    assert rows["h[0]"]["time_ns"] == 130.0


@pytest.mark.parametrize(
    ("by", "found"),
    [
        ("scope", {"net/h/*/up": (3, 300.0), "no scope": (2, 70.0), "net/h/*": (1, 30.0)}),
        ("source", {"model.py:10": (3, 300.0), "no source line": (2, 70.0), "model.py:11": (1, 30.0)}),
        ("parameter", {"h[*].up.w": (3, 300.0), "no parameter": (3, 100.0)}),
        (
            "class",
            {"weights: product": (3, 300.0), "other: custom call": (1, 50.0), "other: elementwise": (1, 30.0), "not joined": (1, 20.0)},
        ),
        ("phase", {"no phase": (6, 400.0)}),
    ],
)  # fmt: skip
def test_flat(by: str, found: dict[str, tuple[float, float]]) -> None:
    assert groups(rollup_table(LAYERS, by, CEILINGS)) == found


def test_groups_of_groups_add_up_and_come_before_what_is_in_them() -> None:
    rows = rollup_table(LAYERS, "scope", CEILINGS, nested=True).to_pylist()
    shown = [(r["depth"], r["group"], r["time_ns"]) for r in rows if r["hlo_instruction"] is None]
    assert shown == [(0, "net/h/*", 330.0), (1, "up", 300.0), (1, "itself", 30.0), (0, "no scope", 70.0)]
    assert [r["group"] for r in rows if r["depth"] == 2] == ["h[0].up", "h[1].up", "h[2].up", "h[0] (elementwise)"]


def test_faster_than_the_roof_is_marked() -> None:
    fast = rollup_table(work(row("copy.1", 10.0, roof_ns=20.0)), "name", CEILINGS).to_pylist()[0]
    assert (fast["share_of_roof"], fast["above_roof"]) == (2.0, True)


def test_training_says_which_of_a_parameters_products() -> None:
    shared = {"pattern": "dense_*", "hlo_instruction": "dot.1", "kernel_name": "k"}
    said = [called({**shared, "class_detail": d, "phase": p}) for d, p in
            (("product", "forward"), ("product", "backward"), ("gradient", "backward"), ("optimizer", "optimizer"))]  # fmt: skip
    assert said == ["dense_*", "dense_* (backward)", "dense_* (gradient)", "dense_* (optimizer)"]


@pytest.mark.parametrize("by", DIMENSIONS)
def test_every_dimension_adds_up_to_the_budgets_kernels(decode: Analysis, by: str) -> None:
    """Of a capture on one stream, in which nothing overlaps."""
    kernels = {"floor", "traffic", "below_roof", "kernels"} & CATEGORIES.keys()
    mine = pc.equal(decode.results.budget["hlo_module"], "jit_decode_step")
    budget = decode.results.budget.filter(mine).to_pylist()
    spent = sum(r["typical_ns"] for r in budget if r["category"] in kernels)
    table = decode.rollup(by, nested=True)
    table = table[table["hlo_module"] == "jit_decode_step"]
    assert table[table["depth"] == 0]["time_ns"].sum() == pytest.approx(spent, abs=2)  # the budget rounds to whole nanoseconds
    leaves = table[table["hlo_instruction"].notna()]
    assert leaves["time_ns"].sum() == pytest.approx(spent, abs=2)
    assert leaves["hlo_instruction"].is_unique


def test_floor_is_the_budgets(decode: Analysis) -> None:
    budget = decode.budget[(decode.budget["hlo_module"] == "jit_decode_step") & (decode.budget["category"] == "floor")]
    rows = decode.rollup("class")
    mine = rows[rows["hlo_module"] == "jit_decode_step"]
    assert mine["floor_ns"].sum() == pytest.approx(budget["typical_ns"].sum(), rel=1e-4)


def test_captured_layers(decode: Analysis) -> None:
    """Six layers, a product each of gate and up merged, two kernels for each of q, k, v and o."""
    rows = decode.rollup("name").set_index("group")
    assert rows.loc["layers[*].{gate_proj, up_proj}", "launches"] == 6
    assert rows.loc["layers[*].q_proj", "launches"] == 12
    assert set(decode.rollup("layer")["group"]) == {f"layers[{i}]" for i in range(6)} | {"outside of layers"}


def test_words(decode: Analysis) -> None:
    assert tuple(DIMENSIONS) == ROLLUPS
    with pytest.raises(UsageError, match="no roll-up by 'line'") as raised:
        decode.rollup("line")
    assert "source" in raised.value.hint


def test_a_class_alone_keeps_its_share_of_the_program(decode: Analysis) -> None:
    """Narrowed to the weights, the roll-up holds nothing else, and shares are of the program still."""
    narrowed = Selection(modules=("jit_decode_step",), classes=("weights",)).narrow(decode)
    rows = narrowed.rollup("class")
    assert {group.partition(":")[0] for group in rows["group"]} == {"weights"}
    known = decode.classes[(decode.classes["hlo_module"] == "jit_decode_step") & (decode.classes["kernel_class"] == "weights")]
    assert rows["time_share"].sum() == pytest.approx(known["time_share"].iloc[0], abs=0.005)
