"""A row per device: what it ran in the whole capture, how long it was busy, how long idle."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hlo_mapping.columns import column
from nsys_report.analysis.intervals import grouped_union_length
from nsys_report.analysis.tables import table
from nsys_report.analysis.view import View

DEVICES = pa.schema(
    [
        column("process_id", pa.int64(), "operating system process id"),
        column("device_id", pa.int32(), "CUDA device ordinal in its process"),
        column("kernels", pa.int64(), "kernels"),
        column("kernel_time_ns", pa.int64(), "sum of their durations"),
        column("copies", pa.int64(), "copies and memsets"),
        column("copy_bytes", pa.int64(), "bytes they copied or set"),
        column("span_ns", pa.int64(), "from the first activity's start to the last one's end"),
        column("busy_time_ns", pa.int64(), "length of the union of all activities"),
        column("idle_time_ns", pa.int64(), "span without any activity"),
    ]
)
"""A row per process and device that ran something, most kernel time first."""


def devices_table(view: View) -> pa.Table:
    """Schema DEVICES."""
    count = len(view.devices)
    if count == 0 or len(view.start) == 0:
        return DEVICES.empty_table()
    group, kernel = view.device, view.kernel
    copy = view.activity.isin(frozenset({"memcpy", "memset"}))
    bytes_moved, _ = view.cost("bytes")
    first, last = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, group, view.start)
    np.maximum.at(last, group, view.end)
    used = np.bincount(group, minlength=count) > 0
    span = np.where(used, last - first, 0)
    busy = grouped_union_length(group, view.start, view.end, count)
    made = table(
        DEVICES,
        {
            "process_id": np.array([process for process, _ in view.devices]),
            "device_id": np.array([device for _, device in view.devices]),
            "kernels": np.bincount(group[kernel], minlength=count),
            "kernel_time_ns": np.bincount(group[kernel], weights=view.duration[kernel], minlength=count),
            "copies": np.bincount(group[copy], minlength=count),
            "copy_bytes": np.bincount(group[copy], weights=bytes_moved[copy], minlength=count),
            "span_ns": span,
            "busy_time_ns": busy,
            "idle_time_ns": span - busy,
        },
    )
    return made.filter(pa.array(used)).sort_by([("kernel_time_ns", "descending"), ("copies", "descending")])
