"""What the launching threads did between launches: where XLA told the host to wait for the end of an execution."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

HOST_FUNCTIONS = frozenset({"cuLaunchHostFunc", "cudaLaunchHostFunc", "cuStreamAddCallback", "cudaStreamAddCallback"})
"""Calls that put a host function on a stream. XLA's runtime makes one after the last launch of every execution, to free its buffers,
and none within one that has no host callbacks: on captures with annotations it stood at each boundary and nowhere else."""


def host_functions_before(activities: pa.Table, runtime: pa.Table) -> np.ndarray:
    """For each activity (LAUNCHES columns) how many host functions its launching thread had put on streams before it; 0 where unknown."""
    counts = np.zeros(len(activities), np.int64)
    names = pc.is_in(runtime["name"], pa.array(sorted(HOST_FUNCTIONS))) if len(runtime) else None
    if names is None or not pc.any(names).as_py():
        return counts
    calls = runtime.select(["start_ns", "thread"]).filter(names)
    begun, caller = calls["start_ns"].to_numpy(), calls["thread"].to_numpy()
    thread = pc.fill_null(activities["launch_thread"], -1).to_numpy()
    time = pc.fill_null(activities["launch_start_ns"], 0).to_numpy()
    for one in np.unique(caller).tolist():
        rows = np.flatnonzero(thread == one)
        if len(rows):
            counts[rows] = np.searchsorted(np.sort(begun[caller == one]), time[rows])
    return counts
