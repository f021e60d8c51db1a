"""Bytes and operations of whole programs against XLA's own cost analysis, and why they differ where they do.

XLA's figures are those of jaxlib 0.11.2 on the CPU (`jaxlib._jax.hlo_module_cost_analysis` of the module's text). It adds them up as
32-bit floats, so they are exact to about one part in ten million. Its rules differ on purpose in these places:

gather tables      a gather inside a fusion counts its whole table; ours the entries it takes
library calls      cuBLAS calls count nothing but 8 bytes for each result (ours: operands and result; operations too)
async results      an async-done counts its result again
partly read slices a slice of which a gather takes a part counts whole; ours what is taken
elementwise        every elementwise operation and every step of a reduction counts as an operation; ours are those of products

A while loop's body counts once in both.
"""

from __future__ import annotations

import pytest

from hlo_mapping.costs.traffic import launch_traffic
from hlo_mapping.dataflow import Graph, build_graph
from hlo_mapping.ir import Module
from hlo_mapping.opcodes import ELEMENTWISE
from tests.hlo_mapping.hlo_samples import captured, captured_rows, program, program_rows, total

XLA = {
    "decode": ("jit_decode_step", 836_945_792, 1_467_943_168),
    "serve": ("jit_decode_step", 913_640_064, 1_548_751_104),
    "cublas_nocb": ("jit_decode_step", 228_895_360, 1_515_354_880),
    "decode_scan_nocb": ("jit_decode_step", 248_764_128, 1_922_680_448),
    "while_decode_nocb": ("jit_generate", 837_233_792, 1_467_945_728),
    "int8": ("jit_quantized_mlp", 1_209_270_272, 143_196_160),
    "moe": ("jit_moe_layer", 17_209_638_912, 191_334_688),
    "sharded_nocb": ("jit_tp_mlp", 25_811_484_672, 643_301_376),
    "train": ("jit_train_step", 350_322_688, 604_307_584),
}
BIG = (10_637_874_176, 14_072_882_176)
ROUNDING = 1e-6


def bytes_of(capture: str) -> int:
    return total(captured_rows(capture, XLA[capture][0]), "bytes_accessed")


def untaken_table_bytes(found: Module) -> int:
    """Bytes of the tables that gathers inside fusions read, beyond the entries they take."""
    graph = build_graph(found)
    extra = 0
    for kernel in graph.kernels:
        reads = launch_traffic(graph, kernel).reads
        for node in range(kernel.first, kernel.end):
            table = graph.viewed(graph.inputs[node][0]) if graph.ops[node] == "gather" else -1
            if table in reads:
                extra += graph.shapes[table].byte_size - reads[table]
    return extra


def library_bytes(found: Module) -> int:
    """Operands and results of library calls, less the 8 bytes that XLA counts for each of two results."""
    graph = build_graph(found)
    calls = [k for k in graph.kernels if graph.ops[k.first] == "custom-call"]
    operands = sum(graph.shapes[graph.viewed(i)].byte_size for k in calls for i in graph.inputs[k.first])
    return operands + sum(graph.shapes[k.results[0]].byte_size - 16 for k in calls)


def async_results(found: Module) -> int:
    return sum(i.shape.byte_size + 8 for c in found.computations for i in c.instructions if i.opcode == "async-done")


@pytest.mark.parametrize("capture", ["int8", "moe"])
def test_where_the_rules_are_the_same_the_bytes_are(capture: str) -> None:
    assert bytes_of(capture) == pytest.approx(XLA[capture][2], rel=2e-5)


def test_bytes_of_weights_converted_on_the_way_are_exactly_xlas() -> None:
    assert bytes_of("int8") == XLA["int8"][2]


@pytest.mark.parametrize("capture", ["decode", "serve", "while_decode_nocb"])
def test_gather_tables_are_the_difference_in_a_decode_step(capture: str) -> None:
    name, _, theirs = XLA[capture]
    assert bytes_of(capture) + untaken_table_bytes(captured(capture, name)) == pytest.approx(theirs, rel=ROUNDING)


def test_gather_tables_are_the_difference_in_a_large_decode_step() -> None:
    mine = total(program_rows("big_decode"), "bytes_accessed")
    assert mine + untaken_table_bytes(program("big_decode")) == pytest.approx(BIG[1], rel=ROUNDING)


def test_in_decode_the_gather_tables_are_the_whole_pools() -> None:
    pools, gathered = 12 * 1024 * 16 * 8 * 128 * 2, 12_582_912
    assert untaken_table_bytes(captured("decode", "jit_decode_step")) == pools - gathered == 390_070_272


def test_library_calls_are_the_difference_in_training() -> None:
    assert bytes_of("train") - library_bytes(captured("train", "jit_train_step")) == pytest.approx(XLA["train"][2], rel=ROUNDING)


def test_library_calls_and_gather_tables_are_the_difference_with_cublas() -> None:
    found = captured("cublas_nocb", "jit_decode_step")
    mine = bytes_of("cublas_nocb") + untaken_table_bytes(found) - library_bytes(found)
    assert mine == pytest.approx(XLA["cublas_nocb"][2], rel=ROUNDING)


def test_async_results_are_the_difference_over_two_devices() -> None:
    mine = bytes_of("sharded_nocb") + async_results(captured("sharded_nocb", "jit_tp_mlp"))
    assert mine == pytest.approx(XLA["sharded_nocb"][2], rel=ROUNDING)


def test_async_results_and_partly_read_slices_are_the_difference_in_a_loop_over_layers() -> None:
    found = captured("decode_scan_nocb", "jit_decode_step")
    layer, taken = 1024 * 16 * 8 * 128 * 2, 32 * 16 * 8 * 128 * 2
    partly_read = 2 * (layer - taken)  # keys and values: the gather takes 32 pages of the layer's 1024
    mine = bytes_of("decode_scan_nocb") + async_results(found) + partly_read
    assert mine == pytest.approx(XLA["decode_scan_nocb"][2], rel=1e-5)


def elementwise_operations(graph: Graph) -> int:
    """Elementwise operations of floating-point values, and the steps of reductions."""
    counted = ELEMENTWISE - {"bitcast", "reshape", "transpose", "copy", "reverse", "bitcast-convert"} - TRANSCENDENTAL
    count = 0
    for node, op in enumerate(graph.ops):
        if op in counted:
            count += graph.count(node)
        elif op == "reduce" and not graph.shapes[node].is_tuple:
            count += graph.count(graph.inputs[node][0]) - graph.count(node)
    return count


TRANSCENDENTAL = frozenset({"exponential", "log", "tanh", "rsqrt", "sqrt", "sine", "cosine", "power", "logistic", "cbrt", "atan2", "erf"})


@pytest.mark.parametrize("capture", ["decode", "serve", "while_decode_nocb", "int8", "moe", "sharded_nocb", "decode_scan_nocb"])
def test_elementwise_operations_are_the_difference_in_operations(capture: str) -> None:
    name, theirs, _ = XLA[capture]
    found = captured(capture, name)
    products = total(captured_rows(capture, name), "flops")
    graph = build_graph(found)
    # a product that XLA split is elementwise work and a reduction to XLA, so it must not count twice
    split = sum(
        row["flops"]
        for row in captured_rows(capture, name).values()
        if row["flops"] and ("written out" in row["class_rule"] or "another launch wrote out" in row["class_rule"])
    )
    assert products - split + elementwise_operations(graph) == pytest.approx(theirs, rel=1e-2)


def test_operations_of_library_calls_are_ours_alone() -> None:
    assert total(captured_rows("train", "jit_train_step"), "flops") == 11 * 2 * 512 * 2048 * 2048
    assert XLA["train"][1] < 11 * 2 * 512 * 2048 * 2048 / 100
