"""Each instruction and class against the roof that limits it: bandwidth, or arithmetic of its types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hlo_mapping import WORD, column
from nsys_report.analysis.arrays.schemas import MODULE_KEY
from nsys_report.analysis.arrays.tables import Column, divide, table
from nsys_report.analysis.roofline.ceilings import Ceilings

AT_THE_ROOF = 0.95
"""Share of a measured roof from which nothing is left to win."""

ROOFLINE = pa.schema(
    [
        *MODULE_KEY,
        column("level", WORD, "instruction or class"),
        column("kernel_class", WORD, "class; null where unknown"),
        column("class_detail", WORD, "finer kind within the class; null for classes"),
        column("hlo_instruction", pa.string(), "the instruction; null for classes"),
        column("instruction_id", pa.int32(), "row of the facts; null for classes"),
        column("time_ns", pa.float64(), "time in an execution that has it, of typical steps, of the kernels whose bytes are known"),
        column("bytes_accessed", pa.int64(), "bytes an execution"),
        column("flops", pa.int64(), "floating-point operations an execution; null where unknown"),
        column("flops_per_byte", pa.float64(), "arithmetic intensity; null without flops"),
        column("bytes_per_s", pa.float64(), "implied bandwidth"),
        column("flops_per_s", pa.float64(), "rate of arithmetic; null without flops"),
        column("compute_type", WORD, "the compute ceiling of its types: bf16, tf32, f32, fp8, int8; of a class that with most roof time"),
        column("ridge_flops_per_byte", pa.float64(), "intensity at which bandwidth and arithmetic limit alike; null without both ceilings"),
        column("roof", WORD, "what limits it: memory or compute"),
        column("roof_kind", WORD, "how that ceiling is known: measured, nominal, capture or given"),
        column("roof_time_ns", pa.float64(), "the time it would take at that roof; of a class the sum over its instructions"),
        column("share_of_roof", pa.float64(), "roof time over time: 1 is at the roof"),
        column("at_roof", pa.bool_(), "within 5 % of a measured roof: stop; null where the roof was not measured"),
        column("above_roof", pa.bool_(), "faster than the roof's range allows: served from L2, or the count is wrong"),
        column("headroom_ns", pa.float64(), "time above the roof's, per execution; 0 for what is above the roof"),
    ]
)
"""A row per program and instruction with known bytes, and per program and class; most headroom first within program and level."""


def roofline_table(instructions: pa.Table, classes: pa.Table, types: list[str | None], ceilings: Ceilings) -> pa.Table:
    """Schema ROOFLINE, from the tables of instructions and classes and the compute type of each row of the facts.

    Empty without a bandwidth ceiling.
    """
    if ceilings.roof is None or len(instructions) == 0:
        return ROOFLINE.empty_table()
    rows = instructions.filter(pc.is_valid(instructions["bytes_per_s"]))
    of_instruction = _instruction_rows(rows, types, ceilings)
    of_class = _class_rows(classes, rows, of_instruction, ceilings)
    return pa.concat_tables([of_class, of_instruction])


def _instruction_rows(rows: pa.Table, types: list[str | None], ceilings: Ceilings) -> pa.Table:
    moved, flops = (_floats(rows, name) for name in ("bytes_accessed", "flops"))
    time = divide(moved * 1e9, _floats(rows, "bytes_per_s"))
    ids = rows["instruction_id"].to_pylist()
    kind = [types[i] if i is not None and f > 0 else None for i, f in zip(ids, flops, strict=True)]
    columns: dict[str, Column] = {
        **{name: rows[name] for name in ("hlo_module", "program_id", "kernel_class", "class_detail", "hlo_instruction", "instruction_id")},
        "level": ["instruction"] * len(rows),
        "compute_type": kind,
        **_figures(time, moved, flops, kind, ceilings),
    }
    return _ordered(table(ROOFLINE, columns))


def _figures(time: NDArray[Any], moved: NDArray[Any], flops: NDArray[Any], kind: list[str | None], ceilings: Ceilings) -> dict[str, Column]:
    bandwidth = ceilings.roof
    assert bandwidth is not None
    limits = [ceilings.flops_per_s(k) if k else None for k in kind]
    peak = np.array([limit.value if limit else np.nan for limit in limits])
    memory_time = moved / bandwidth.value * 1e9
    compute_time = np.nan_to_num(flops / peak * 1e9)
    bound = compute_time > memory_time
    roof_time = np.maximum(memory_time, compute_time)
    kinds = [limit.kind if b and limit else bandwidth.kind for b, limit in zip(bound, limits, strict=True)]
    fastest = ceilings.fastest_bytes_per_s or bandwidth.high
    range_ = np.array([limit.high / limit.value if b and limit else fastest / bandwidth.value
                       for b, limit in zip(bound, limits, strict=True)])  # fmt: skip
    share = divide(roof_time, time)
    return {
        "time_ns": time,
        "bytes_accessed": moved,
        "flops": flops,
        "flops_per_byte": divide(flops, moved),
        "bytes_per_s": divide(moved * 1e9, time),
        "flops_per_s": divide(flops * 1e9, time),
        "ridge_flops_per_byte": peak / bandwidth.value,
        "roof": np.where(bound, "compute", "memory").tolist(),
        "roof_kind": kinds,
        "roof_time_ns": roof_time,
        **_verdict(share, range_, np.isin(kinds, ("measured", "given"))),
        "headroom_ns": np.maximum(time - roof_time, 0),
    }


def _verdict(share: NDArray[np.float64], range_: NDArray[np.float64], measured: NDArray[np.bool_]) -> dict[str, Column]:
    above = share > range_
    known = ~np.isnan(share)
    return {
        "share_of_roof": share,
        "at_roof": pa.array((share >= AT_THE_ROOF) & ~above, mask=~(measured & known)),
        "above_roof": pa.array(above, mask=~known),
    }


def _class_rows(classes: pa.Table, rows: pa.Table, of_instruction: pa.Table, ceilings: Ceilings) -> pa.Table:
    """Classes: the sum of their instructions' roof times against the time of the kernels whose bytes are known."""
    classes = classes.filter(pc.is_valid(classes["bytes_per_s"]))
    key = ["hlo_module", "program_id", "kernel_class"]
    sums: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in of_instruction.select([*key, "roof", "roof_time_ns", "compute_type"]).to_pylist():
        mine = sums.setdefault(tuple(row[k] for k in key), {"roof_time": 0.0, "memory": 0.0, "compute": 0.0})
        mine["roof_time"] += row["roof_time_ns"]
        mine[row["roof"]] += row["roof_time_ns"]
        if row["compute_type"]:
            mine[f"type {row['compute_type']}"] = mine.get(f"type {row['compute_type']}", 0.0) + row["roof_time_ns"]
    found = [sums.get(tuple(r[k] for k in key), {}) for r in classes.select(key).to_pylist()]
    moved, flops, rate = (_floats(classes, name) for name in ("bytes_accessed", "flops", "bytes_per_s"))
    time = divide(moved * 1e9, rate)
    kind = [max((k for k in f if k.startswith("type ")), key=f.__getitem__, default="")[5:] or None for f in found]
    figures = _figures(time, moved, flops, kind, ceilings)
    roof_time = np.array([f.get("roof_time", np.nan) for f in found])
    bound = [("compute" if f["compute"] > f["memory"] else "memory") if f else None for f in found]
    measured = np.isin(np.array(figures["roof_kind"]), ("measured", "given"))
    bandwidth = ceilings.roof
    assert bandwidth is not None
    range_ = (ceilings.fastest_bytes_per_s or bandwidth.high) / bandwidth.value
    columns: dict[str, Column] = {
        **{name: classes[name] for name in key},
        "level": ["class"] * len(classes),
        "compute_type": kind,
        **figures,
        "roof": bound,
        "roof_time_ns": roof_time,
        **_verdict(divide(roof_time, time), np.full(len(classes), range_), measured),
        "headroom_ns": np.maximum(time - roof_time, 0),
    }
    return _ordered(table(ROOFLINE, columns))


def _ordered(made: pa.Table) -> pa.Table:
    """Programs in the order given, most headroom first within each."""
    keys = list(zip(made["hlo_module"].to_pylist(), made["program_id"].to_pylist(), strict=True))
    place = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    headroom = np.nan_to_num(made["headroom_ns"].to_numpy(zero_copy_only=False).astype(np.float64))
    return made.take(np.lexsort((-headroom, np.array([place[k] for k in keys], np.int64)))) if keys else made


def _floats(rows: pa.Table, name: str) -> NDArray[np.float64]:
    return np.asarray(rows[name].to_numpy(zero_copy_only=False), np.float64)
