"""The repeated layer in a program's kernel sequence, folded: one layer's table with the spread over layers."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hlo_mapping.columns import WORD, column
from nsys_report.analysis.ceilings import Ceilings
from nsys_report.analysis.classes import bandwidth_columns
from nsys_report.analysis.columns import MODULE_KEY
from nsys_report.analysis.periods import Period, find_period
from nsys_report.analysis.quantiles import Floats
from nsys_report.analysis.tables import Column, divide, module_columns, table, words
from nsys_report.analysis.view import Ints, View

FEWEST_KERNELS = 8
"""Kernels below which a program is not searched for layers."""
_NUMBER = re.compile(r"[_.]\d+$")

LAYERS = pa.schema(
    [
        *MODULE_KEY,
        column("layers", pa.int64(), "layers found in one execution"),
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
class Sequence:
    """The kernels of a typical execution: rows of the activities, their median times over executions alike, and how many those are."""

    rows: Ints
    times: Floats
    executions: int


def layer_tables(view: View, ceilings: Ceilings) -> tuple[pa.Table, pa.Table]:
    """Schemas LAYERS and LAYER_ROWS."""
    signature = _signatures(view)
    summaries, rows = [LAYERS.empty_table()], [LAYER_ROWS.empty_table()]
    for module in range(len(view.modules)):
        sequence = typical_sequence(view, module)
        period = find_period(signature[sequence.rows]) if sequence is not None and len(sequence.rows) >= FEWEST_KERNELS else None
        if sequence is not None and period is not None:
            summaries.append(_summary(view, module, sequence, period))
            rows.append(_rows(view, module, sequence, period, signature, ceilings))
    return pa.concat_tables(summaries), pa.concat_tables(rows)


def typical_sequence(view: View, module: int) -> Sequence | None:
    """The commonest kernel sequence of a program's complete executions, by instruction; None for a program without kernels."""
    chosen = view.whole_work
    chosen[chosen] = view.executions.module[view.execution[chosen]] == module
    rows = np.flatnonzero(chosen)
    if len(rows) == 0:
        return None
    rows = rows[np.argsort(view.execution[rows], kind="stable")]
    first = np.flatnonzero(np.diff(view.execution[rows], prepend=-1))
    count = np.diff(first, append=len(rows))
    usual = int(np.bincount(count).argmax())
    starts = first[count == usual]
    matrix = rows[starts[:, None] + np.arange(usual)]
    what = view.instruction[matrix]
    _, first_seen, group, alike = np.unique(what, axis=0, return_index=True, return_inverse=True, return_counts=True)
    best = int(np.argmax(alike))
    same = matrix[group.ravel() == best]
    return Sequence(matrix[first_seen[best]], np.median(view.duration[same], axis=0), len(same))


def _signatures(view: View) -> Ints:
    """A code per activity that is the same for the same kind of kernel: class, detail, opcode, name without number, and bytes."""
    name = view.column("name")
    stems = [_NUMBER.sub("", w or "") for w in name.words]
    stem = np.array([*(stems.index(s) for s in stems), -1], np.int64)[name.codes]
    classes, details = view.column("kernel_class").codes, view.column("class_detail").codes
    size, known = view.cost("bytes_accessed")
    code = np.zeros(len(view.start), np.int64)
    for part in (stem, classes, details, np.where(known, size, -1)):
        code = np.asarray(pa.array(code * 0x9E3779B1 + part).dictionary_encode().indices.to_numpy(), np.int64)
    return code


def _layer_times(sequence: Sequence, period: Period) -> Floats:
    """Shape (layers, positions)."""
    end = period.start + period.length * period.count
    return sequence.times[period.start : end].reshape(period.count, period.length)


def _summary(view: View, module: int, sequence: Sequence, period: Period) -> pa.Table:
    of_layer = _layer_times(sequence, period).sum(axis=1)
    end = period.start + period.length * period.count
    row = {
        "layers": [period.count],
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


def _rows(view: View, module: int, sequence: Sequence, period: Period, signature: Ints, ceilings: Ceilings) -> pa.Table:
    times = _layer_times(sequence, period)
    end = period.start + period.length * period.count
    activities = sequence.rows[period.start : end].reshape(period.count, period.length)
    middle = activities[period.count // 2]
    name, classes, details = (view.column(c) for c in ("name", "kernel_class", "class_detail"))
    size, known = view.cost("bytes_accessed")
    moved = np.where(known[middle], size[middle].astype(np.float64), np.nan)
    instruction = view.instruction[middle]
    at = pa.array(instruction, pa.int64(), mask=instruction < 0)
    kinds = signature[activities]
    usual = np.array([np.bincount(column_ - column_.min()).argmax() + column_.min() for column_ in kinds.T])
    columns: dict[str, Column] = {
        **module_columns([view.modules[module]] * period.length),
        "position": np.arange(period.length),
        "hlo_instruction": view.joined.facts["hlo_instruction"].take(at),
        "instruction_id": at.cast(pa.int32()),
        "kernel_name": [_NUMBER.sub("", name.words[c]) if c >= 0 else None for c in name.codes[middle]],
        "kernel_class": words(classes.codes[middle], classes.words),
        "class_detail": words(details.codes[middle], details.words),
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
