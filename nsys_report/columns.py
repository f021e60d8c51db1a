"""The tables this package makes. Column names, types and meanings live here once; units stand in the names."""

from __future__ import annotations

import pyarrow as pa

from hlo_mapping import ACTIVITIES, COSTS, JOIN, WORD, column

ACTIVITY_TABLE = pa.schema([*ACTIVITIES, *JOIN, *COSTS])
"""activities.parquet: a row per GPU activity, in time order. Null where unknown."""

EXECUTION_TABLE = pa.schema(
    [
        column("execution_id", pa.int64(), "number of the execution, in order of start"),
        column("device_id", pa.int32(), "CUDA device ordinal in its process"),
        column("process_id", pa.int64(), "operating system process id"),
        column("hlo_module", WORD, "name of the HLO module"),
        column("program_id", pa.int64(), "XLA's number of that module; null where unknown or tied"),
        column("start_ns", pa.int64(), "start of its first GPU activity"),
        column("end_ns", pa.int64(), "end of its last GPU activity"),
        column("kernel_count", pa.int64(), "kernels in it; null where a CUDA graph was recorded whole, which hides them"),
        column("kernel_time_ns", pa.int64(), "sum of its kernels' durations; null where kernel_count is"),
        column("busy_time_ns", pa.int64(), "length of the union of its activities"),
        column(
            "host_gap_ns",
            pa.int64(),
            "from the end of the device's activity before to its first; 0 if they overlap, null for the first",
        ),
        column("cut_method", WORD, "how the execution was found: nvtx, sequence, ..."),
        column("cut_confidence", pa.float64(), "how surely, 0 to 1"),
        column("is_complete", pa.bool_(), "false where the capture window or lost records cut it off"),
        column("launch_thread", pa.int64(), "the thread that launched it (global thread id)"),
        column("tied_modules", pa.string(), "other modules that fit as well, comma-separated name#number; null without a tie"),
    ]
)
"""executions.parquet: a row per execution of one XLA program on one device, in order of start."""
