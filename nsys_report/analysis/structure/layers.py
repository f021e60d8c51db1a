"""What repeats in a program's kernel sequence: the iterations of its loops, and its layers, folded into one with the spread over all.

The same instructions again and again are iterations of a loop; different instructions of the same kinds are layers, or blocks where they
read no model parameters. Layers are searched within one iteration where the sequence is one of iterations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hlo_mapping import WORD, column
from nsys_report.analysis.arrays.schemas import MODULE_KEY
from nsys_report.analysis.arrays.tables import Column, divide, module_columns, table, word_column
from nsys_report.analysis.arrays.view import Ints, View
from nsys_report.analysis.roofline.ceilings import Ceilings
from nsys_report.analysis.roofline.classes import bandwidth_columns
from nsys_report.analysis.roofline.costs import Costs
from nsys_report.analysis.structure.loops import LOOPS, LoopWindows, loop_row, loop_windows
from nsys_report.analysis.structure.periods import LEAST_ALIKE, Period, find_period
from nsys_report.analysis.structure.sequences import BlockSpans, Sequence, block_spans, block_times, blocks, middle_block, typical_sequences

FEWEST_KERNELS = 8
"""Kernels below which a program is not searched for layers."""
_NUMBER = re.compile(r"[_.]\d+$")

ALIKE = 0.9
"""Share of a block's kernels that are of the same instructions as the next block's, from which blocks are iterations."""

MOST_PARTS = 4
PART_ALIKE = 0.65
"""Share of a block's kernels, if not few, of which a part must be like the next to be a layer: XLA fuses some differently."""
RAGGED_ALIKE = 0.75
"""Share of a layer's kernels that what stands before or after the layers must have in common with one to be a layer itself."""

LAYERS = pa.schema(
    [
        *MODULE_KEY,
        column("kind", WORD, "layer, or block where none of its kernels reads model parameters"),
        column("iterations", pa.int64(), "iterations of a loop that each run these layers; 1 without such a loop"),
        column("layers", pa.int64(), "layers found in one execution, or in one iteration"),
        column("ragged_layers", pa.int64(), "layers before and after those that differ from them by a few kernels"),
        column("kernels_per_layer", pa.int64(), "kernels of a layer"),
        column("kernels_before", pa.int64(), "kernels of an execution before the first layer"),
        column("kernels_after", pa.int64(), "kernels after the last layer"),
        column("time_before_ns", pa.float64(), "their time"),
        column("time_after_ns", pa.float64(), "their time"),
        column("layer_time_min_ns", pa.float64(), "kernel time of the fastest layer"),
        column("layer_time_ns", pa.float64(), "kernel time of a layer; median over layers"),
        column("layer_time_max_ns", pa.float64(), "kernel time of the slowest layer"),
        column("slowest_layer", pa.int64(), "its number, from 0"),
        column("layers_share", pa.float64(), "share of the execution's kernel time in layers, 0 to 1"),
        column("executions", pa.int64(), "executions with this same sequence, which the times are medians over"),
    ]
)
"""A row per program in whose kernel sequence a layer repeats."""

LAYER_ROWS = pa.schema(
    [
        *MODULE_KEY,
        column("position", pa.int64(), "place within the layer, from 0, in order of start"),
        column("hlo_instruction", pa.string(), "the instruction of the middle layer; null where not joined"),
        column("instruction_id", pa.int32(), "its row of the facts; null where not joined"),
        column("kernel_name", WORD, "kernel name without its number"),
        column("kernel_class", WORD, "class"),
        column("class_detail", WORD, "finer kind within the class"),
        column("time_min_ns", pa.float64(), "least over layers"),
        column("time_ns", pa.float64(), "median over layers"),
        column("time_max_ns", pa.float64(), "most over layers"),
        column("slowest_layer", pa.int64(), "the layer with most time here, from 0"),
        column("total_ns", pa.float64(), "sum over layers"),
        column("differing_layers", pa.int64(), "layers that run something else here than most do"),
        column("bytes_accessed", pa.int64(), "bytes in the middle layer; null where unknown"),
        column("bytes_per_s", pa.float64(), "those bytes over the median time"),
        column("share_of_measured", pa.float64(), "bytes_per_s over the measured ceiling; null without one"),
        column("share_of_nominal", pa.float64(), "bytes_per_s over the nominal ceiling; null without one"),
        column("above_measured", pa.bool_(), "bytes_per_s exceeds the measured ceiling's range"),
    ]
)
"""A row per program and position within its layer. Times are of a median execution."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """What repeats in the programs' sequences: schemas LOOPS, LAYERS and LAYER_ROWS."""

    loops: pa.Table
    layers: pa.Table
    layer_rows: pa.Table
    loop_windows: tuple[LoopWindows, ...]
    """When the iterations of each row of `loops` ran."""
    spans: tuple[BlockSpans, ...]
    """When each iteration and each layer ran."""


def find_repeats(view: View, costs: Costs, ceilings: Ceilings) -> Repeats:
    """The loops and layers of every program."""
    loops, summaries, rows = [LOOPS.empty_table()], [LAYERS.empty_table()], [LAYER_ROWS.empty_table()]
    looped: list[LoopWindows] = []
    spans: list[BlockSpans] = []
    for module, sequence in enumerate(typical_sequences(view)):
        if sequence is None or len(sequence.rows) < FEWEST_KERNELS:
            continue
        period, iterations = find_period(_signatures(view, costs, sequence.rows)), 1
        if period is not None and _repeats_itself(view, sequence, period):
            loops.append(loop_row(view, module, sequence, period))
            looped += [loop_windows(view, module, sequence, period)] * len(loops[-1])
            spans += [block_spans(view, "iteration", module, sequence, period)] * len(loops[-1])
            sequence, iterations = middle_block(sequence, period), period.count
            period = find_period(_signatures(view, costs, sequence.rows)) if len(sequence.rows) >= FEWEST_KERNELS else None
        if period is None or _repeats_itself(view, sequence, period):
            continue
        period = _shortest(period, _coarse_signatures(costs, view, sequence.rows))
        summaries.append(_summary(view, costs, module, sequence, period, iterations))
        rows.append(_rows(view, costs, module, sequence, period, ceilings))
        spans.append(block_spans(view, summaries[-1]["kind"][0].as_py(), module, sequence, period))
    return Repeats(pa.concat_tables(loops), pa.concat_tables(summaries), pa.concat_tables(rows), tuple(looped), tuple(spans))


def _repeats_itself(view: View, sequence: Sequence, period: Period) -> bool:
    """Whether the blocks run the same instructions: iterations of a loop, or passes of a library call."""
    ids = view.instruction[blocks(sequence, period)]
    return bool(((ids[1:] == ids[:-1]) & (ids[1:] >= 0)).mean() >= ALIKE)


def _shortest(period: Period, codes: Ints) -> Period:
    """The period, or a whole part of it after which the same kinds of work come again: two layers are also a block."""
    for parts in range(MOST_PARTS, 1, -1):
        length = period.length // parts
        if period.length % parts or length < 2:
            continue
        covered = codes[period.start : period.start + period.length * period.count]
        least = LEAST_ALIKE if length < FEWEST_KERNELS else PART_ALIKE
        if (covered[:-length] == covered[length:]).mean() >= least:
            return Period(period.start, length, period.count * parts)
    return period


def _ragged(period: Period, codes: Ints) -> int:
    """Layers beside the blocks that differ by a few kernels, as a first one that is fused with what comes before it; 0, 1 or 2."""
    block = codes[period.start : period.start + period.length]
    end = period.start + period.length * period.count
    beside = (codes[max(period.start - period.length, 0) : period.start], codes[end : end + period.length])
    found = sum(_shared(block, other) >= RAGGED_ALIKE * period.length for other in beside)
    # Blocks may begin amid a layer: then the first layer's end stands before them and the last one's beginning after.
    return found or int(_shared(block, np.concatenate(beside)) >= RAGGED_ALIKE * period.length)


def _shared(one: Ints, other: Ints) -> int:
    """How many codes two sequences have in common, each as often as in both."""
    codes = np.union1d(one, other)
    counts = [np.bincount(np.searchsorted(codes, part), minlength=len(codes)) for part in (one, other)]
    return int(np.minimum(*counts).sum())


def _coarse_signatures(costs: Costs, view: View, rows: Ints) -> Ints:
    """A code per row that is the same for work of the same class, detail and bytes, whatever XLA called its kernel."""
    kind = costs.kind[rows]
    size = np.where(costs.bytes_known, costs.values["bytes_accessed"], -1)[kind]
    parts = np.stack((costs.classes.codes[kind], costs.details.codes[kind], size), axis=1)
    return np.unique(parts, axis=0, return_inverse=True)[1].ravel().astype(np.int64)


def _signatures(view: View, costs: Costs, rows: Ints) -> Ints:
    """A code per row that is the same for the same kind of kernel: class, detail, name without number, and bytes."""
    name, kind = view.column("name").take(rows), costs.kind[rows]
    stems = [_NUMBER.sub("", w or "") for w in name.words]
    stem = np.array([*(stems.index(s) for s in stems), -1], np.int64)[name.codes]
    size = np.where(costs.bytes_known, costs.values["bytes_accessed"], -1)[kind]
    parts = np.stack((stem, costs.classes.codes[kind], costs.details.codes[kind], size), axis=1)
    return np.unique(parts, axis=0, return_inverse=True)[1].ravel().astype(np.int64)


def _summary(view: View, costs: Costs, module: int, sequence: Sequence, period: Period, iterations: int) -> pa.Table:
    of_layer = block_times(sequence, period).sum(axis=1)
    end = period.start + period.length * period.count
    classes = costs.classes.take(costs.kind[blocks(sequence, period)].ravel())
    row = {
        "kind": ["layer" if classes.isin(frozenset({"weights"})).any() else "block"],
        "iterations": [iterations],
        "layers": [period.count],
        "ragged_layers": [_ragged(period, _coarse_signatures(costs, view, sequence.rows))],
        "kernels_per_layer": [period.length],
        "kernels_before": [period.start],
        "kernels_after": [len(sequence.rows) - end],
        "time_before_ns": [float(sequence.times[: period.start].sum())],
        "time_after_ns": [float(sequence.times[end:].sum())],
        "layer_time_min_ns": [float(of_layer.min())],
        "layer_time_ns": [float(np.median(of_layer))],
        "layer_time_max_ns": [float(of_layer.max())],
        "slowest_layer": [int(of_layer.argmax())],
        "layers_share": [float(of_layer.sum() / sequence.times.sum()) if sequence.times.sum() else None],
        "executions": [sequence.executions],
    }
    return table(LAYERS, {**module_columns([view.modules[module]]), **row})


def _rows(view: View, costs: Costs, module: int, sequence: Sequence, period: Period, ceilings: Ceilings) -> pa.Table:
    times = block_times(sequence, period)
    activities = blocks(sequence, period)
    middle = activities[period.count // 2]
    name, kind = view.column("name"), costs.kind[middle]
    moved = np.where(costs.bytes_known[kind], costs.values["bytes_accessed"][kind].astype(np.float64), np.nan)
    instruction = view.instruction[middle]
    at = pa.array(instruction, pa.int64(), mask=instruction < 0)
    kinds = _signatures(view, costs, activities.ravel()).reshape(period.count, period.length)
    usual = np.array([np.bincount(column_ - column_.min()).argmax() + column_.min() for column_ in kinds.T])
    columns: dict[str, Column] = {
        **module_columns([view.modules[module]] * period.length),
        "position": np.arange(period.length),
        "hlo_instruction": view.joined.facts["hlo_instruction"].take(at),
        "instruction_id": at.cast(pa.int32()),
        "kernel_name": [_NUMBER.sub("", name.words[c]) if c >= 0 else None for c in name.codes[middle]],
        "kernel_class": word_column(costs.classes.codes[kind], costs.classes.words),
        "class_detail": word_column(costs.details.codes[kind], costs.details.words),
        "time_min_ns": times.min(axis=0),
        "time_ns": np.median(times, axis=0),
        "time_max_ns": times.max(axis=0),
        "slowest_layer": times.argmax(axis=0),
        "total_ns": times.sum(axis=0),
        "differing_layers": (kinds != usual).sum(axis=0),
        "bytes_accessed": moved,
        **bandwidth_columns(divide(moved * 1e9, np.median(times, axis=0)), ceilings),
    }
    return table(LAYER_ROWS, columns)
