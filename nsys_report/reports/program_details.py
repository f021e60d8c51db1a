"""A closer look at one program: its repeated layer, how its executions differ, which roof limits what, the types of its products."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from nsys_report.analysis.program_rows import of_program
from nsys_report.reports.model import Mark, Table
from nsys_report.reports.present import Record, Show, present
from nsys_report.reports.programs import ABOVE
from nsys_report.units import Value, count, duration, share, things

if TYPE_CHECKING:
    from nsys_report.analysis.results import AnalysisResults

LAYER = (
    Show("hlo_instruction", "in the middle layer", unit="name"),
    Show("kernel_class", "class"),
    Show("class_detail", "detail", 5),
    Show("time_ns", "median layer"),
    Show("time_min_ns", "least", 2),
    Show("time_max_ns", "most", 2),
    Show("slowest_layer", "slowest", 3, "number"),
    Show("total_ns", "all layers", 1),
    Show("bytes_accessed", "bytes", 1),
    Show("bytes_per_s", drop_rank=1),
    Show("share_of_measured", drop_rank=4),
    Show("position", "position", 6, "number"),
    Show("differing_layers", "differing layers", 8),
    Show("kernel_name", "kernel", 9, "kernel"),
)
REPEATS = (
    Show("measure", "per execution"),
    Show("executions", "executions"),
    Show("min_ns", "least"),
    Show("p10_ns", "p10"),
    Show("median_ns", "median"),
    Show("p90_ns", "p90"),
    Show("max_ns", "most"),
    Show("mad_ns", "median deviation"),
    Show("slow_executions", "slow ones"),
    Show("drift_ns_per_execution", "drift each execution", unit="ns"),
    Show("drifts", "drifts"),
    Show("is_bimodal", "two levels"),
)
SLOW = (
    Show("execution_id", "execution"),
    Show("measure", "slow in"),
    Show("time_ns", "time"),
    Show("excess_ns", "above the median"),
    Show("hlo_instruction", "instruction", unit="name"),
    Show("instruction_excess_ns", "above its median"),
)
ROOFLINE = (
    Show("level", "level"),
    Show("hlo_instruction", "instruction", unit="name"),
    Show("kernel_class", "class"),
    Show("class_detail", "detail"),
    Show("time_ns", "time"),
    Show("roof_time_ns", "at the roof"),
    Show("share_of_roof", unit="ratio"),
    Show("headroom_ns", "headroom"),
    Show("roof", "roof"),
    Show("roof_kind", "known by"),
    Show("at_roof", "at the roof"),
    Show("above_roof", "above it"),
    Show("flops_per_byte", "flops a byte", unit="number"),
    Show("ridge_flops_per_byte", "ridge", unit="number"),
    Show("bytes_per_s"),
    Show("flops_per_s", "compute"),
    Show("compute_type", "type"),
)
PRECISION = (
    Show("hlo_instruction", "instruction", unit="name"),
    Show("kind", "product"),
    Show("lhs_type", "left"),
    Show("rhs_type", "right"),
    Show("accumulation_type", "sums"),
    Show("result_type", "result"),
    Show("precision", "precision"),
    Show("algorithm", "algorithm"),
    Show("compute_type", "ceiling"),
    Show("typical_ns"),
    Show("typical_share"),
    Show("time_per_execution_ns", drop_rank=9),
    Show("time_share", "share in all executions", 9),
    Show("bytes_accessed", "bytes"),
    Show("flops", "flops"),
    Show("weight_type", "weights as"),
    Show("narrower_type", "narrower"),
    Show("saved_bytes", "would not read"),
    Show("saved_ns", "would save"),
    Show("saved_at_its_rate_ns", "would save at its rate"),
)
Words = dict[str, Callable[[Record], Value]]
MEASURES = {
    "kernel_time_ns": "kernel time",
    "busy_time_ns": "busy time",
    "span_ns": "span",
    "host_gap_ns": "host gap",
    "interval_ns": "step",
}
REMARKED = {"kernel_time_ns": "kernel time", "host_gap_ns": "host gap"}
"""The measures that sentences are about; the others follow from them."""


def layer_tables(results: AnalysisResults, record: Record, top: int | None) -> tuple[tuple[str, ...], tuple[Table, ...]]:
    """What repeats in a program, loops and layers, in a sentence each, and the layer's table, most time first."""
    loops = tuple(map(_loop_line, of_program(results.loops, record).to_pylist()))
    found = of_program(results.layers, record).to_pylist()
    rows = of_program(results.layer_rows, record)
    if not found or not len(rows):
        return loops, ()
    layer = found[0]
    times = f"{duration(layer['layer_time_min_ns'])} to {duration(layer['layer_time_max_ns'])}"
    what = "layer" if layer["kind"] == "layer" else "similar block"
    where, whole = ("each iteration", "its kernel time") if layer["iterations"] > 1 else ("it", "the kernel time")
    text = (
        f"{things(layer['layers'], what)} of {things(layer['kernels_per_layer'], 'kernel')} repeat in {where}: "
        f"{duration(layer['layer_time_ns'])} each ({times}), {share(layer['layers_share'])} of {whole}."
        + _ragged_words(layer["ragged_layers"], what)
    )
    order = sorted(range(len(rows)), key=lambda i: -(rows["total_ns"][i].as_py() or 0))
    words = {"hlo_instruction": _joined}
    table = present(
        rows.take(pa.array(order, pa.int64())),
        LAYER,
        "layer",
        "One layer" if layer["kind"] == "layer" else "One block",
        marks=_above,
        words=words,
        lead=top,
    )
    return (*loops, text), (table,)


def _ragged_words(ragged: int, what: str) -> str:
    return "" if not ragged else f" {things(ragged, what)} more beside them {'differ' if ragged > 1 else 'differs'} by a few kernels."


def _loop_line(loop: Record) -> str:
    times = f"{duration(loop['iteration_time_min_ns'])} to {duration(loop['iteration_time_max_ns'])}"
    each = (
        f"{things(loop['iterations'], 'iteration')} of {things(loop['kernels_per_iteration'], 'kernel')} make up "
        f"{share(loop['loop_share'])} of the kernel time: {duration(loop['iteration_time_ns'])} each ({times}), one every "
        f"{duration(loop['period_ns'])}, of which the GPU is idle {duration(loop['idle_per_iteration_ns'])}"
    )
    launches, back = loop["launches_per_iteration"], loop["readbacks_per_iteration"]
    launched = f"; {things(max(round(launches), 1), 'launching call')} an iteration" if launches else ""
    return each + launched + (f"; {things(round(back * loop['iterations']), 'read-back')} in all" if back >= 0.5 else "") + "."


def _joined(record: Record) -> Value:
    return record["hlo_instruction"] if record["hlo_instruction"] is not None else "not joined"


def _above(record: Record) -> tuple[Mark, ...]:
    return (ABOVE,) if record["above_measured"] else ()


def repeat_lines(results: AnalysisResults, record: Record) -> Iterable[str]:
    """What is remarkable about how executions differ: drift, two levels, slow ones."""
    for row in of_program(results.repeats, record).to_pylist():
        name = REMARKED.get(row["measure"])
        if name is None:
            continue
        if row["drifts"]:
            low, high = duration(row["drift_low_ns"]), duration(row["drift_high_ns"])
            yield f"Its {name} drifts by {duration(row['drift_ns_per_execution'])} each execution ({low} to {high})."
        if row["is_bimodal"]:
            levels = f"{duration(row['lower_level_ns'])} and {duration(row['upper_level_ns'])}"
            yield f"Its {name} has two levels, {levels}; {share(row['upper_share'])} of executions are on the upper one."
        elif row["slow_executions"]:
            slow = f"{count(row['slow_executions'])} of {things(row['executions'], 'execution')}"
            one = row["slow_executions"] == 1
            yield f"{slow} {'stands out by its' if one else 'stand out by their'} {name}: {duration(row['slow_excess_ns'])} more in all."


def full_tables(results: AnalysisResults, record: Record) -> list[Table]:
    """Tables for the long pages and the documents."""
    measure: Words = {"measure": _measure}
    ratios: Words = {"flops_per_byte": _intensity, "ridge_flops_per_byte": _ridge}
    made = (
        _full(results.repeats, record, REPEATS, "repeats", "How executions differ", measure),
        _full(results.slow, record, SLOW, "slow", "Slow executions", measure),
        _full(results.roofline, record, ROOFLINE, "roofline", "Roofline", ratios),
        _full(results.precision, record, PRECISION, "precision", "Products and their types", {}),
    )
    return [table for table in made if table.rows]


def _full(data: pa.Table, record: Record, shows: tuple[Show, ...], key: str, title: str, words: Words) -> Table:
    return present(of_program(data, record), shows, key, title, words=words, in_full=True)


def _measure(record: Record) -> Value:
    return MEASURES.get(record["measure"], record["measure"])


def _intensity(record: Record) -> Value:
    value = record["flops_per_byte"]
    return None if value is None else round(value, 3)


def _ridge(record: Record) -> Value:
    value = record["ridge_flops_per_byte"]
    return None if value is None else round(value, 1)
