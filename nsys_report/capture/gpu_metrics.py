"""Sampled metrics of the GPU (nsys --gpu-metrics-devices): memory traffic and activity of its multiprocessors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from hlo_mapping import WORD, column
from nsys_report.capture import catalogue
from nsys_report.capture.arrays import decode
from nsys_report.capture.source import IsIn, Source
from nsys_report.capture.stores import open_source
from nsys_report.capture.tables import read_table

METRICS = {
    "DRAM Read Bandwidth [Throughput %]": "dram_read",
    "DRAM Read Throughput [Throughput %]": "dram_read",
    "DRAM Write Bandwidth [Throughput %]": "dram_write",
    "DRAM Write Throughput [Throughput %]": "dram_write",
    "SMs Active [Throughput %]": "sms_active",
    "SM Active [Throughput %]": "sms_active",
    "Tensor Active [Throughput %]": "tensor_active",
    "Tensor Active / FP16 Active [Throughput %]": "tensor_active",
}
"""What is read, by the name that the metric sets of nsys 2021 to 2025 give it; numbers of metrics differ between GPUs."""
GPU_NUMBER = 0xFF
"""The bits of a type id that number the GPU."""

GPU_METRICS = pa.schema(
    [
        column("timestamp_ns", pa.int64(), "end of the sample, ns from the start of the session"),
        column("gpu_id", pa.int64(), "the machine's number of the GPU"),
        column("metric", WORD, "dram_read, dram_write, sms_active or tensor_active"),
        column("percent", pa.int64(), "of the metric's peak, whole percent"),
    ]
)
"""A row per sample and metric, in order of time."""


def read_gpu_metrics(path: Path) -> pa.Table:
    """The samples of a capture (schema GPU_METRICS); none where none were taken. Raises InputError for one that cannot be read."""
    with closing(open_source(path)) as source:
        return pa.concat_tables([GPU_METRICS.empty_table(), *_samples(source, _names(source))]).unify_dictionaries().sort_by("timestamp_ns")


def _names(source: Source) -> dict[str, dict[int, list[int]]]:
    """For each metric, the numbers that it has with each type of event."""
    raw = read_table(source, catalogue.GPU_METRIC_NAMES)
    found: dict[str, dict[int, list[int]]] = {}
    for row in pa.table(raw).to_pylist() if raw is not None else ():
        metric = METRICS.get(decode(row["metricName"] or b""))
        if metric is not None and row["typeId"] is not None and row["metricId"] is not None:
            found.setdefault(metric, {}).setdefault(row["typeId"], []).append(row["metricId"])
    return found


def _samples(source: Source, names: dict[str, dict[int, list[int]]]) -> list[pa.Table]:
    tables = []
    for metric, types in names.items():
        for event_type, numbers in types.items():
            where = (IsIn("typeId", (event_type,)), IsIn("metricId", tuple(numbers)))
            raw = read_table(source, catalogue.GPU_METRICS, where)
            if raw is not None:
                tables.append(_table(raw, metric, event_type & GPU_NUMBER))
    return tables


def _table(raw: dict[str, pa.Array], metric: str, gpu: int) -> pa.Table:
    """The samples that can be: a percentage, at a time. Over 100 comes of rounding at the peak's own clock."""
    rows = len(raw["timestamp"])
    arrays: Sequence[pa.Array] = [raw["timestamp"], pa.repeat(gpu, rows), pa.repeat(metric, rows).cast(WORD), raw["value"]]
    table = pa.Table.from_arrays(list(arrays), schema=GPU_METRICS)
    percent = table["percent"]
    return table.filter(pc.and_(pc.is_valid(table["timestamp_ns"]), pc.and_(pc.greater_equal(percent, 0), pc.less_equal(percent, 150))))
