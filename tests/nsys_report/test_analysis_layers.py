"""The repeated layer, found in sequences whose layers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nsys_report.analysis import find_ceilings
from nsys_report.analysis.arrays.view import make_view
from nsys_report.analysis.idle.idle_times import idle_times
from nsys_report.analysis.roofline.ceilings import override
from nsys_report.analysis.roofline.costs import costs_of
from nsys_report.analysis.structure.layers import _ragged, find_repeats
from nsys_report.analysis.structure.loops import loop_idle
from nsys_report.analysis.structure.periods import Period, find_period
from tests.nsys_report.joined_samples import copy, fact, joined, kernel

CEILINGS = override(find_ceilings("none"), {"measured": 2.0})


def codes(text: str) -> np.ndarray:
    return np.array([ord(c) for c in text], np.int64)


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("xyABCDEABCDEABCDEABCDEz", Period(2, 5, 4)),
        ("ABCDABCDABCD", Period(0, 4, 3)),
        ("xABBBCABBBCABBBCy", Period(1, 5, 3)),  # repeats within the layer are no layers
        ("ABCDEFGH", None),
        ("AB", None),
        ("", None),
        ("AAAAAAAA", Period(0, 1, 8)),
        ("abcdefghijklmnopqrstuvwxyzAA", None),  # too little of the sequence to be worth it
    ],
)
def test_periods(text: str, period: Period | None) -> None:
    assert find_period(codes(text)) == period


def test_a_first_layer_that_differs_in_one_kernel_is_still_a_layer() -> None:
    layer = "ABCDEFGHIJ"
    assert find_period(codes("xy" + "ABQDEFGHIJ" + layer * 4 + "z")) == Period(2, 10, 5)


def test_a_first_layer_with_a_kernel_more_moves_the_blocks_by_less_than_one() -> None:
    layer = "ABCDEFGHIJ"
    found = find_period(codes("xy" + "ABQCDEFGHIJ" + layer * 4 + "z"))
    assert found is not None and (found.length, found.count) == (10, 5)


def step(at: int, execution: int, slow: int = 0) -> list[dict[str, Any]]:
    """An embedding of 50 ns; three layers of a dot (100 ns, one of them slower) and a norm (10 ns); a head of 200 ns."""
    rows = [kernel(at, at + 50, execution, 0, name="embed")]
    time = at + 50
    for layer in range(3):
        for position, (length, what) in enumerate(((100 + (slow if layer == 1 else 0), "dot"), (10, "norm"))):
            number = f"_{layer}" if layer else ""
            rows.append(kernel(time, time + length, execution, 1 + layer * 2 + position, name=f"{what}_fusion{number}"))
            time += length
    return [*rows, kernel(time, time + 200, execution, 7, name="head")]


FACTS = [
    fact("embed", kernel_class="weights", bytes_accessed=1),
    *(
        f
        for n in range(3)
        for f in (fact(f"dot.{n}", kernel_class="weights", bytes_accessed=150), fact(f"norm.{n}", kernel_class="other", bytes_accessed=8))
    ),
    fact("head", kernel_class="weights", bytes_accessed=9),
]


def test_layers_folded() -> None:
    view = make_view(joined([*step(0, 0, 20), *step(10_000, 1, 20), *step(20_000, 2, 60)], FACTS))
    found = find_repeats(view, costs_of(view), CEILINGS)
    (one,), rows = found.layers.to_pylist(), found.layer_rows
    assert (one["kind"], one["iterations"], len(found.loops)) == ("layer", 1, 0)
    assert (one["layers"], one["kernels_per_layer"], one["kernels_before"], one["kernels_after"]) == (3, 2, 1, 1)
    assert (one["time_before_ns"], one["time_after_ns"]) == (50, 200)
    assert (one["layer_time_min_ns"], one["layer_time_ns"], one["layer_time_max_ns"], one["slowest_layer"]) == (110, 110, 130, 1)
    assert (one["executions"], one["layers_share"]) == (3, pytest.approx(350 / 600))
    dot, norm = rows.to_pylist()
    assert (dot["hlo_instruction"], dot["kernel_name"], dot["kernel_class"]) == ("dot.1", "dot_fusion", "weights")
    assert (dot["time_min_ns"], dot["time_ns"], dot["time_max_ns"], dot["slowest_layer"], dot["total_ns"]) == (100, 100, 120, 1, 320)
    assert (dot["bytes_accessed"], dot["bytes_per_s"], dot["share_of_measured"]) == (150, 1.5e9, 0.75)
    assert (norm["position"], norm["differing_layers"], norm["time_ns"]) == (1, 0, 10)


def test_a_program_without_layers_has_no_rows() -> None:
    view = make_view(joined([kernel(n * 10, n * 10 + 5, 0, 0, name="abcdefghij"[n]) for n in range(10)], FACTS))
    found = find_repeats(view, costs_of(view), CEILINGS)
    assert [len(t) for t in (found.loops, found.layers, found.layer_rows)] == [0, 0, 0]


def kernels(*instructions: int) -> list[dict[str, Any]]:
    """Kernels of 10 ns of these instructions, named by their kinds."""
    kinds = ["embed", *("dot", "norm") * 3, "head"]
    return [kernel(n * 10, n * 10 + 10, 0, i, name=f"{kinds[i]}_fusion_{i}") for n, i in enumerate(instructions)]


def test_the_same_instructions_again_are_iterations_and_no_layers() -> None:
    """Five times a dot and its norm, between an embedding and a head."""
    view = make_view(joined(kernels(0, *(1, 2) * 5, 7), FACTS))
    found = find_repeats(view, costs_of(view), CEILINGS)
    (loop,) = found.loops.to_pylist()
    assert (loop["iterations"], loop["kernels_per_iteration"], loop["kernels_before"], loop["kernels_after"]) == (5, 2, 1, 1)
    assert (loop["iteration_time_ns"], loop["loop_share"]) == (20, pytest.approx(100 / 120))
    assert len(found.layers) == len(found.layer_rows) == 0


def test_layers_are_found_within_an_iteration() -> None:
    """Four iterations of three layers and a head: a loop that decodes."""
    view = make_view(joined(kernels(*(0, 1, 2, 3, 4, 5, 6, 7) * 4), FACTS))
    found = find_repeats(view, costs_of(view), CEILINGS)
    (loop,), (layer,) = found.loops.to_pylist(), found.layers.to_pylist()
    assert (loop["iterations"], loop["kernels_per_iteration"]) == (4, 8)
    assert (layer["layers"], layer["kernels_per_layer"], layer["iterations"], layer["kind"]) == (3, 2, 4, "layer")


def test_passes_of_one_call_are_neither() -> None:
    view = make_view(joined([kernel(n * 10, n * 10 + 10, 0, 2, name=f"sort_pass_{n % 2}") for n in range(14)], FACTS))
    found = find_repeats(view, costs_of(view), CEILINGS)
    assert len(found.loops) == len(found.layers) == 0


def test_what_reads_no_parameters_is_no_layer() -> None:
    facts = [fact(f["hlo_instruction"], kernel_class="other", bytes_accessed=f["bytes_accessed"]) for f in FACTS]
    view = make_view(joined([*step(0, 0, 20), *step(10_000, 1, 20)], facts))
    (block,) = find_repeats(view, costs_of(view), CEILINGS).layers.to_pylist()
    assert (block["kind"], block["layers"]) == ("block", 3)


def test_an_iteration_has_a_period_pauses_and_launches() -> None:
    """Three iterations of a dot and a norm of 10 ns each, every 40 ns: 5 ns between the two and 15 after; each launches a graph."""
    rows = [
        kernel(40 * n + 15 * position, 40 * n + 15 * position + 10, 0, 1 + position, name=f"k{position}", **graph(40 * n))
        for n in range(4)
        for position in (0, 1)
    ]
    view = make_view(joined([*rows, copy(190, 191, "DtoH", 1, 0, **graph(200)), kernel(200, 210, 0, 7)], FACTS))
    found = find_repeats(view, costs_of(view), CEILINGS)
    (loop,), (windows,) = found.loops.to_pylist(), found.loop_windows
    assert (loop["iterations"], loop["period_ns"], loop["idle_per_iteration_ns"]) == (4, 40, 5 + 15)
    assert (loop["launches_per_iteration"], loop["readbacks_per_iteration"]) == (1, 0)  # the copy comes after the last iteration
    assert (windows.start.tolist(), windows.end.tolist()) == ([0], [145])
    idle = loop_idle(view, idle_times(view), found.loop_windows).to_pylist()
    assert sum(row["idle_ns"] for row in idle) == 4 * 5 + 3 * 15


def graph(at: int) -> dict[str, Any]:
    """A graph launched 30 ns before its first kernel, in a call of 5 ns."""
    return {"launch_start_ns": at - 30, "launch_end_ns": at - 25, "launch_api": "cuGraphLaunch", "launch_thread": 11}


def coded(text: str) -> np.ndarray:
    """What a program of kernels by these letters, each of an instruction of its own, is folded into: kind, layers, ragged, kernels."""
    facts = [fact(f"{letter}.{n}", kernel_class="weights", bytes_accessed=ord(letter)) for n, letter in enumerate(text)]
    rows = [kernel(n * 10, n * 10 + 10, 0, n, name=f"{letter}_fusion_{n}") for n, letter in enumerate(text)]
    view = make_view(joined(rows, facts))
    (one,) = find_repeats(view, costs_of(view), CEILINGS).layers.to_pylist()
    return np.array([one["layers"], one["ragged_layers"], one["kernels_per_layer"]])


def test_layers_that_are_fused_differently_in_turn_are_layers() -> None:
    """Twelve layers of nine kernels, of which every other one differs in three of them."""
    assert coded("ABCDEFGHIABCDEFXYZ" * 6).tolist() == [12, 0, 9]


def test_a_layer_whose_two_parts_stand_before_and_after_the_blocks_is_counted() -> None:
    """Blocks of ten that begin amid a layer: three of its kernels stand before them and five after, eight of ten."""
    text = "xyABQD" + "EFGHIJABCD" * 3 + "EFGHIzw"
    assert _ragged(Period(6, 10, 3), codes(text)) == 1
    assert _ragged(Period(6, 10, 3), codes(text.replace("EFGHIzw", "EFuvwzw"))) == 0
