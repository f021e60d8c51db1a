"""How much of the kernel time was joined to instructions, how, and how surely."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.analysis.columns import COVERAGE
from nsys_report.analysis.kernels import OUTSIDE, module_of
from nsys_report.analysis.tables import divide, module_columns, table, words
from nsys_report.analysis.view import Ints, View

AUTOTUNING = "autotuning"
"""match_method of kernels that the autotuner ran."""
EXACT, DOUBTFUL = 0.99, 0.5
"""Confidence from which a match is exact, and below which it is doubtful; between them it rests on order."""

CERTAINTIES = ("exact", "by_order", "doubtful", "not_joined", "autotuning", "outside")


def coverage_table(view: View) -> pa.Table:
    """Schema COVERAGE, over all kernels of the capture, cut-off executions included."""
    rows, method = np.flatnonzero(view.kernel), view.column("match_method")
    if len(rows) == 0:
        return COVERAGE.empty_table()
    certainty, confidence = _certainty(view, rows)
    module, outside = module_of(view, rows), len(view.modules)
    autotuned = certainty == CERTAINTIES.index("autotuning")
    scope = np.where(autotuned, outside + 1, module)
    methods = method.codes[rows].astype(np.int64)
    parts = [_grouped(view, rows, s, methods, certainty, confidence) for s in (np.full(len(rows), outside + 2), scope)]
    return pa.concat_tables(parts)


def joined_share(coverage: pa.Table) -> float | None:
    """Share of the kernel time joined with confidence 0.5 or more, the autotuner's left out; None without kernels."""
    total = coverage.filter(pc.equal(coverage["scope"].cast(pa.string()), "total"))
    certainty = np.array(total["certainty"].to_pylist(), object)
    time = total["kernel_time_ns"].to_numpy(zero_copy_only=False)
    counted = time[certainty != "autotuning"].sum()
    return float(time[(certainty == "exact") | (certainty == "by_order")].sum() / counted) if counted else None


def _certainty(view: View, rows: Ints) -> tuple[Ints, np.ndarray]:
    confidence = view.joined.activities["match_confidence"].to_numpy()[rows].astype(np.float64)
    joined = view.instruction[rows] >= 0
    sure = np.nan_to_num(confidence, nan=0.0)
    out = np.where(sure >= EXACT, 0, np.where(sure >= DOUBTFUL, 1, 2))
    out = np.where(joined, out, np.where(view.execution[rows] >= 0, 3, 5))
    autotuned = view.column("match_method").isin(frozenset({AUTOTUNING}))[rows]
    return np.where(autotuned, 4, out), np.where(joined, confidence, np.nan)


def _grouped(view: View, rows: Ints, scope: Ints, method: Ints, certainty: Ints, confidence: np.ndarray) -> pa.Table:
    """One table of rows by (scope, method, certainty), most time first within each scope."""
    names, duration = view.column("match_method"), view.duration[rows]
    width, kinds = len(names.words) + 1, len(CERTAINTIES)
    seen = pa.array((scope * width + method + 1) * kinds + certainty).dictionary_encode()
    keys, group = np.asarray(seen.dictionary.to_numpy(zero_copy_only=False), np.int64), np.asarray(seen.indices.to_numpy(), np.int64)
    of_scope, size = keys // (width * kinds), len(keys)
    time = np.bincount(group, weights=duration, minlength=size)
    scope_time = np.bincount(scope, weights=duration, minlength=len(view.modules) + 3)[of_scope]
    sure = np.bincount(group, weights=np.nan_to_num(confidence) * duration, minlength=size)
    known = np.bincount(group, weights=np.isfinite(confidence), minlength=size) > 0
    scopes = [*["module"] * len(view.modules), "outside", "autotuning", "total"]
    keyed = [*view.modules, OUTSIDE, OUTSIDE, OUTSIDE]
    made = table(
        COVERAGE,
        {
            **module_columns([keyed[s] for s in of_scope]),
            "scope": [scopes[s] for s in of_scope],
            "match_method": words(keys // kinds % width - 1, names.words),
            "certainty": [CERTAINTIES[c] for c in keys % kinds],
            "kernels": np.bincount(group, minlength=size),
            "kernel_time_ns": time,
            "time_share": divide(time, scope_time),
            "confidence_mean": np.where(known, divide(sure, time), np.nan),
        },
    )
    return made.take(np.lexsort((-time, of_scope)))
