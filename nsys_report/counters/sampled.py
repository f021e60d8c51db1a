"""Memory traffic that the GPU's counters sampled while a program ran, beside what its instructions must move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nsys_report.analysis.program_rows import rows_of_program
from nsys_report.analysis.results import AnalysisResults
from nsys_report.capture.model import Gpu
from nsys_report.joined import Joined

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST_SAMPLES = 50
"""Of all a program's executions together: a sample holds whole percents, and its edges lie beside the executions'."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """One program's executions together, complete ones on one GPU. Bytes are of an execution; None where a metric was not sampled.

    A sample is a share of the peak, rounded to a whole percent, of everything that ran on the GPU meanwhile, copies too. The peak is
    the nominal bandwidth that the capture states. Activity is the mean over the executions' spans.
    """

    hlo_module: str | None
    program_id: int | None
    executions: int
    samples: float
    """How many samples the executions' spans hold."""
    interval_ns: int
    """Between two samples."""
    read_bytes: float | None
    written_bytes: float | None
    implied_bytes: int | None
    """What an execution's instructions must move; None where that of one is unknown."""
    sms_active: float | None
    tensor_active: float | None

    @property
    def moved_bytes(self) -> float | None:
        return None if self.read_bytes is None or self.written_bytes is None else self.read_bytes + self.written_bytes

    @property
    def of_implied(self) -> float | None:
        """Bytes at the memory over bytes that instructions access: below 1 where caches serve some, above where more than they must."""
        return self.moved_bytes / self.implied_bytes if self.moved_bytes is not None and self.implied_bytes else None


def sampled_programs(joined: Joined, results: AnalysisResults, metrics: pa.Table) -> tuple[Sampled, ...]:
    """A row a program and device with enough samples, in the order of the programs. `metrics`: schema GPU_METRICS."""
    if not len(metrics):
        return ()
    series = dict(_series(metrics))
    implied = _implied(results)
    found = []
    for module in results.modules.to_pylist():
        key = (module["hlo_module"], module["program_id"])
        for gpu, starts, ends in _spans(joined, key):
            mine = {metric: one for (gpu_id, metric), one in series.items() if gpu_id == gpu.gpu_id or len(joined.capture.info.gpus) == 1}
            if mine and (row := _sampled(key, gpu, starts, ends, mine, implied.get(key))) is not None:
                found.append(row)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Series:
    """The integral of a metric over time: percent times ns up to each sample's end."""

    times: Ints
    sums: Floats
    interval_ns: int

    def within(self, starts: Ints, ends: Ints) -> float:
        """Of all spans together; NaN where one lies outside of the samples."""
        upto = [np.interp(times, self.times, self.sums, left=np.nan, right=np.nan) for times in (starts, ends)]
        return float((upto[1] - upto[0]).sum())


def _series(metrics: pa.Table) -> Iterator[tuple[tuple[int, str], _Series]]:
    """By GPU and metric. A sample lasts from the one before it, where none is missing in between; the first is only an edge."""
    for key in metrics.group_by(["gpu_id", "metric"]).aggregate([]).to_pylist():
        mask = pc.and_(pc.equal(metrics["gpu_id"], key["gpu_id"]), pc.equal(metrics["metric"], key["metric"]))
        mine = metrics.filter(mask)
        times, percent = mine["timestamp_ns"].to_numpy(), mine["percent"].to_numpy()
        if len(times) > 1:
            lasts = np.diff(times)
            interval = int(np.median(lasts))
            sums = np.concatenate(([0.0], np.cumsum(percent[1:] * lasts, dtype=np.float64)))
            sums[1:][np.maximum.accumulate(lasts > 2 * interval)] = np.nan  # after a hole nothing is summed
            yield (key["gpu_id"], key["metric"]), _Series(times, sums, interval)


def _spans(joined: Joined, key: tuple[str | None, int | None]) -> Iterator[tuple[Gpu, Ints, Ints]]:
    """The complete executions of a program by the GPU that they ran on."""
    mine = rows_of_program(joined.executions.filter(joined.executions["is_complete"]), *key)
    for gpu in joined.capture.info.gpus:
        here = pc.equal(mine["device_id"], gpu.device_id)
        if gpu.process_id is not None:
            here = pc.and_(here, pc.fill_null(pc.equal(mine["process_id"], gpu.process_id), True))
        there = mine.filter(here)
        if len(there):
            yield gpu, there["start_ns"].to_numpy(), there["end_ns"].to_numpy()


def _implied(results: AnalysisResults) -> dict[tuple[str | None, int | None], int]:
    """Bytes that an execution of each program accesses, of those none of whose instructions' bytes are unknown."""
    found: dict[tuple[str | None, int | None], int | None] = {}
    for row in results.classes.to_pylist():
        key = (row["hlo_module"], row["program_id"])
        known = row["kernel_class"] is not None and row["bytes_accessed"] is not None and not row["unknown_bytes_time_share"]
        before = found.get(key, 0)
        found[key] = before + row["bytes_accessed"] if known and before is not None else None
    return {key: value for key, value in found.items() if value is not None}


def _sampled(
    key: tuple[str | None, int | None], gpu: Gpu, starts: Ints, ends: Ints, series: dict[str, _Series], implied: int | None
) -> Sampled | None:
    interval = min(one.interval_ns for one in series.values())
    span = float((ends - starts).sum())
    if interval <= 0 or span / interval < LEAST_SAMPLES:
        return None
    count = len(starts)

    def mean(metric: str) -> float | None:
        total = series[metric].within(starts, ends) if metric in series else np.nan
        return None if np.isnan(total) else total / span / 100

    def moved(metric: str) -> float | None:
        share, peak = mean(metric), gpu.nominal_bytes_per_s
        return None if share is None or not peak else share * peak * span / 1e9 / count

    return Sampled(
        *key,
        executions=count,
        samples=span / interval,
        interval_ns=interval,
        read_bytes=moved("dram_read"),
        written_bytes=moved("dram_write"),
        implied_bytes=implied,
        sms_active=mean("sms_active"),
        tensor_active=mean("tensor_active"),
    )
