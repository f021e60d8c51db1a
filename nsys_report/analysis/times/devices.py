"""A row per device: what it ran in the whole capture, how long it was busy, how long idle."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hlo_mapping import column
from nsys_report.analysis.arrays.tables import table
from nsys_report.analysis.arrays.view import View
from nsys_report.analysis.times.attribution import BusyTime

DEVICES = pa.schema(
    [
        column("process_id", pa.int64(), "operating system process id; null for a GPU that several processes use"),
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
"""A row per GPU that ran something (per process and device where the capture does not tell GPUs apart), most kernel time first."""


def devices_table(view: View, busy: tuple[BusyTime, ...]) -> pa.Table:
    """Schema DEVICES."""
    count = len(view.devices)
    if count == 0 or len(view.start) == 0:
        return DEVICES.empty_table()
    group, kernel = view.device, view.kernel
    copy = np.flatnonzero(view.activity.isin(frozenset({"memcpy", "memset"})))
    bytes_moved, _ = view.cost("bytes")
    counts = np.bincount(group, minlength=count)
    kernels = np.bincount(group[kernel], minlength=count)
    first, last = np.zeros(count, np.int64), np.zeros(count, np.int64)
    time = np.zeros(count, np.int64)
    for device in np.flatnonzero(counts):
        rows = view.on(int(device))
        first[device], last[device] = view.start[rows].min(), view.end[rows].max()
        time[device] = view.duration[rows].sum(where=kernel[rows])
    busy_time = np.array([one.length for one in busy], np.int64)
    made = table(
        DEVICES,
        {
            "process_id": [None if n in view.shared else process for n, (process, _) in enumerate(view.devices)],
            "device_id": np.array([device for _, device in view.devices]),
            "kernels": kernels,
            "kernel_time_ns": time,
            "copies": np.bincount(group[copy], minlength=count),
            "copy_bytes": np.bincount(group[copy], weights=bytes_moved[copy], minlength=count),
            "span_ns": last - first,
            "busy_time_ns": busy_time,
            "idle_time_ns": last - first - busy_time,
        },
    )
    return made.filter(pa.array(counts > 0)).sort_by([("kernel_time_ns", "descending"), ("copies", "descending")])
