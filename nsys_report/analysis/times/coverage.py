"""How much of the kernel time was joined to instructions, how, and how surely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nsys_report.analysis.arrays.groups import coded_floats, dense_tuples
from nsys_report.analysis.arrays.schemas import COVERAGE
from nsys_report.analysis.arrays.tables import divide, module_columns, table, word_column
from nsys_report.analysis.arrays.view import Ints, View
from nsys_report.analysis.times.kernels import OUTSIDE, module_of

AUTOTUNING = "autotuning"
"""match_method of kernels that the autotuner ran."""
EXACT, DOUBTFUL = 0.99, 0.5
"""Confidence from which a match is exact, and below which it is doubtful; between them it rests on order."""

CERTAINTIES = ("exact", "by_order", "doubtful", "not_joined", "autotuning", "outside")
NOT_RECORDED = "not_recorded"
"""Certainty of the work that the capture holds no record of (cause not_recorded of idle time)."""


def coverage_table(view: View) -> pa.Table:
    """Schema COVERAGE, over all kernels of the capture, cut-off executions included."""
    if not view.kernel.any():
        return COVERAGE.empty_table()
    groups = _groups(view)
    autotuned = groups.certainty == CERTAINTIES.index("autotuning")
    outside = len(view.modules)
    scope = np.where(autotuned, outside + 1, groups.module)
    return pa.concat_tables([_grouped(view, groups, s) for s in (np.full(len(scope), outside + 2), scope)])


def with_unrecorded(coverage: pa.Table, hidden_ns: int) -> pa.Table:
    """The table with the time of work that was not recorded as rows of the scopes `total` and `outside`; none where there is none."""
    if not hidden_ns or not len(coverage):
        return coverage
    scope = np.array(coverage["scope"].to_pylist(), object)
    time = coverage["kernel_time_ns"].to_numpy(zero_copy_only=False)
    shares = coverage["time_share"].to_numpy(zero_copy_only=False).copy()
    parts = [coverage]
    for name in ("total", "outside"):
        mine = scope == name
        whole = int(time[mine].sum()) + hidden_ns
        shares[mine] = time[mine] / whole
        row = {
            **module_columns([OUTSIDE]),
            "scope": [name],
            "match_method": word_column(np.array([-1]), []),
            "certainty": [NOT_RECORDED],
            "kernels": pa.nulls(1, pa.int64()),
            "kernel_time_ns": [hidden_ns],
            "time_share": [hidden_ns / whole],
            "confidence_mean": pa.nulls(1, pa.float64()),
        }
        parts.append(table(COVERAGE, row))
    at = COVERAGE.get_field_index("time_share")
    parts[0] = coverage.set_column(at, COVERAGE.field(at), pa.array(shares))
    return pa.concat_tables(parts).unify_dictionaries()


def joined_share(coverage: pa.Table) -> float | None:
    """Share of the kernel time joined with confidence 0.5 or more, the autotuner's left out; None without kernels.

    Work that was not recorded counts as not joined.
    """
    total = coverage.filter(pc.equal(coverage["scope"].cast(pa.string()), "total"))
    certainty = np.array(total["certainty"].to_pylist(), object)
    time = total["kernel_time_ns"].to_numpy(zero_copy_only=False)
    counted = time[certainty != "autotuning"].sum()
    return float(time[(certainty == "exact") | (certainty == "by_order")].sum() / counted) if counted else None


@dataclass(frozen=True, slots=True)
class _Groups:
    """The kernels of one program (or none), matched by one method with one confidence: how many, and their time."""

    module: Ints
    method: Ints
    """Code, -1 for none."""
    confidence: NDArray[np.float64]
    certainty: Ints
    """Index into CERTAINTIES."""
    kernels: Ints
    time: Ints


def _groups(view: View) -> _Groups:
    """One pass over the kernels: everything else is worked out by group."""
    method = view.column("match_method")
    rows = slice(None) if view.kernel.all() else np.flatnonzero(view.kernel)
    values, confidence = coded_floats(view.joined.activities["match_confidence"])
    joined, inside = view.instruction[rows] >= 0, view.execution[rows] >= 0
    group, keys = dense_tuples(
        (
            (module_of(view, rows), len(view.modules) + 1),
            (method.codes[rows] + 1, len(method.words) + 1),
            (confidence[rows] + 1, len(values) + 1),
            (joined, 2),
            (inside, 2),
        )
    )
    of_module, of_method, of_confidence, is_joined, is_inside = keys
    sure = np.append(np.nan, values)[of_confidence]
    certainty = np.where(sure >= EXACT, 0, np.where(sure >= DOUBTFUL, 1, 2))
    certainty = np.where(is_joined > 0, certainty, np.where(is_inside > 0, 3, 5))
    autotuned = np.array([False, *(word == AUTOTUNING for word in method.words)])[of_method]
    return _Groups(
        module=of_module,
        method=of_method - 1,
        confidence=np.where(is_joined > 0, sure, np.nan),
        certainty=np.where(autotuned, 4, certainty),
        kernels=np.bincount(group, minlength=len(of_module)),
        time=np.bincount(group, weights=view.duration[rows], minlength=len(of_module)).astype(np.int64),
    )


def _grouped(view: View, found: _Groups, scope: Ints) -> pa.Table:
    """One table of rows by (scope, method, certainty), most time first within each scope."""
    names = view.column("match_method")
    width, kinds = len(names.words) + 1, len(CERTAINTIES)
    keys, group = np.unique((scope * width + found.method + 1) * kinds + found.certainty, return_inverse=True)
    of_scope, size = keys // (width * kinds), len(keys)
    time = np.bincount(group, weights=found.time, minlength=size)
    scope_time = np.bincount(scope, weights=found.time, minlength=len(view.modules) + 3)[of_scope]
    sure = np.bincount(group, weights=np.nan_to_num(found.confidence) * found.time, minlength=size)
    known = np.bincount(group, weights=np.isfinite(found.confidence), minlength=size) > 0
    scopes = [*["module"] * len(view.modules), "outside", "autotuning", "total"]
    keyed = [*view.modules, OUTSIDE, OUTSIDE, OUTSIDE]
    made = table(
        COVERAGE,
        {
            **module_columns([keyed[s] for s in of_scope]),
            "scope": [scopes[s] for s in of_scope],
            "match_method": word_column(keys // kinds % width - 1, names.words),
            "certainty": [CERTAINTIES[c] for c in keys % kinds],
            "kernels": np.bincount(group, weights=found.kernels, minlength=size),
            "kernel_time_ns": time,
            "time_share": divide(time, scope_time),
            "confidence_mean": np.where(known, divide(sure, time), np.nan),
        },
    )
    return made.take(np.lexsort((-time, of_scope)))
