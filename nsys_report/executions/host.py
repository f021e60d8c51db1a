"""What the launching threads did between launches: where XLA told the host to wait for the end of an execution."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.executions.runs import RowRuns

HOST_FUNCTIONS = frozenset({"cuLaunchHostFunc", "cudaLaunchHostFunc", "cuStreamAddCallback", "cudaStreamAddCallback"})
"""Calls that put a host function on a stream. XLA's runtime makes one after the last launch of every execution, to free its buffers,
and none within one that has no host callbacks: on captures with annotations it stood at each boundary and nowhere else."""


def host_functions_before(activities: pa.Table, runtime: pa.Table) -> np.ndarray:
    """For each activity (LAUNCHES columns) how many host functions its launching thread had put on streams before it; 0 where unknown."""
    names = pc.is_in(runtime["name"], pa.array(sorted(HOST_FUNCTIONS))) if len(runtime) else None
    if names is None or not pc.any(names).as_py():
        return np.zeros(len(activities), np.int64)
    calls = runtime.select(["start_ns", "thread"]).filter(names)
    begun, caller = calls["start_ns"].to_numpy(), calls["thread"].to_numpy()
    launches = [pc.fill_null(activities[name], null).to_numpy() for name, null in (("launch_thread", -1), ("launch_start_ns", 0))]
    runs = RowRuns.of(*launches)
    thread, time = (column[runs.first] for column in launches)
    counts = np.zeros(len(thread), np.int64)
    for one in np.unique(caller).tolist():
        chosen = np.flatnonzero(thread == one)
        if len(chosen):
            counts[chosen] = np.searchsorted(np.sort(begun[caller == one]), time[chosen])
    return runs.expand(counts)
