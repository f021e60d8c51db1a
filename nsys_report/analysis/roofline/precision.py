"""The precision audit: types, precision and algorithm of every product, its time and bytes, and what narrower weights would save."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from hlo_mapping import ELEMENT_BITS, WORD, Dot, column
from nsys_report.analysis.arrays.schemas import MODULE_KEY
from nsys_report.analysis.arrays.tables import Column, table
from nsys_report.analysis.roofline.ceilings import Ceilings

NARROWER = {"f64": ("bf16", 16), "f32": ("bf16", 16), "bf16": ("8 bits", 8), "f16": ("8 bits", 8), "s8": ("4 bits", 4), "u8": ("4 bits", 4)}
"""The next narrower storage of weights of a type, and its bits; 8-bit floats go to 4 bits as well."""

PRECISION = pa.schema(
    [
        *MODULE_KEY,
        column("hlo_instruction", pa.string(), "instruction that runs the product"),
        column("instruction_id", pa.int32(), "row of the facts"),
        column("kernel_name", WORD, "name of its kernel; of several, the one with most time"),
        column("kernel_class", WORD, "class; null where unknown"),
        column("kind", WORD, "dot, convolution, ragged-dot, library (cuBLAS, cuDNN), or split: multiply, then reduce"),
        column("products", pa.int64(), "products in the kernel; types are of the first"),
        column("lhs_type", WORD, "type of the left operand as the product reads it; null for split ones"),
        column("rhs_type", WORD, "type of the right operand"),
        column("result_type", WORD, "type of the result as the product gives it"),
        column("accumulation_type", WORD, "type that sums are kept in"),
        column("precision", WORD, "default, high or highest"),
        column("algorithm", WORD, "algorithm that the program asks for; null where it leaves it open"),
        column("library_algorithm", WORD, "the autotuner's number of the library's algorithm; null outside library calls"),
        column("compute_type", WORD, "the compute ceiling that bounds it"),
        column("launches_per_execution", pa.float64(), "activities an execution"),
        column("typical_ns", pa.float64(), "its time in a typical step"),
        column("typical_share", pa.float64(), "share of the typical time of the program's kernels and own copies, 0 to 1"),
        column("time_per_execution_ns", pa.float64(), "median time in an execution"),
        column("time_share", pa.float64(), "share of the program's kernel time in all executions, 0 to 1"),
        column("bytes_accessed", pa.int64(), "bytes an execution"),
        column("flops", pa.int64(), "operations an execution"),
        column("weight_type", WORD, "type that its weights are stored in; null where it reads none"),
        column("weight_bytes", pa.int64(), "weight bytes an execution"),
        column("narrower_type", WORD, "the next narrower storage of such weights"),
        column("saved_bytes", pa.int64(), "weight bytes that it would not read then"),
        column("saved_ns", pa.float64(), "those bytes at the bandwidth ceiling: the least that would be saved; null without one"),
        column("saved_at_its_rate_ns", pa.float64(), "those bytes at the bandwidth it now has: what would be saved if it kept that"),
    ]
)
"""A row per program and instruction with a product, most time first within the program."""


def precision_table(
    instructions: pa.Table, dots: dict[int, tuple[Dot, ...]], types: list[str | None],
                    ceilings: Ceilings) -> pa.Table:  # fmt: skip
    """Schema PRECISION, from the table of instructions (whose order is kept), the products and the compute types of the facts."""
    rows = [r for r in instructions.to_pylist() if r["instruction_id"] in dots]
    weights = [r["weight_type"] for r in rows]
    columns: dict[str, Column] = {name: [r[name] for r in rows] for name in PRECISION.names if name in instructions.column_names}
    columns |= _dot_columns([dots[r["instruction_id"]] for r in rows])
    columns["compute_type"] = [types[r["instruction_id"]] for r in rows]
    columns |= _savings(rows, weights, ceilings)
    return table(PRECISION, columns)


def _dot_columns(found: list[tuple[Dot, ...]]) -> dict[str, Column]:
    first = [d[0] if d else None for d in found]
    return {
        "kind": [d.kind if d else "split" for d in first],
        "products": [max(len(d), 1) for d in found],
        "lhs_type": [d.lhs if d else None for d in first],
        "rhs_type": [d.rhs if d else None for d in first],
        "result_type": [d.result if d else None for d in first],
        "accumulation_type": [d.accumulation if d else None for d in first],
        "precision": [d.precision if d else None for d in first],
        "algorithm": [(d.algorithm or None) if d else None for d in first],
        "library_algorithm": [(d.library_algorithm or None) if d else None for d in first],
    }


def _savings(rows: list[dict[str, Any]], weights: list[str | None], ceilings: Ceilings) -> dict[str, Column]:
    narrower = [narrower_type(w) for w in weights]
    share = [1 - bits / ELEMENT_BITS[w] if w is not None and bits else 0.0 for w, (_, bits) in zip(weights, narrower, strict=True)]
    saved = np.array([r["weight_bytes"] * s if s else np.nan for r, s in zip(rows, share, strict=True)])
    rate = np.array([r["bytes_per_s"] or np.nan for r in rows], np.float64)
    roof = ceilings.roof
    return {
        "narrower_type": [name for name, _ in narrower],
        "saved_bytes": saved,
        "saved_ns": saved / roof.value * 1e9 if roof else np.full(len(rows), np.nan),
        "saved_at_its_rate_ns": saved / rate * 1e9,
    }


def narrower_type(name: str | None) -> tuple[str | None, int | None]:
    """The next narrower storage of weights of a type, and its bits; (None, None) where there is none to speak of."""
    if name is None:
        return None, None
    if name.startswith("f8"):
        return "4 bits", 4
    return NARROWER.get(name, (None, None))
