"""Runs a workload: every stream in a thread of its own, closed loop, and the figures of what came back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from nsys_report.serving.drivers import Driver, Request
from nsys_report.serving.workloads import Workload

QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class Spread:
    """p50, p90 and p99, ns; None where there is nothing to measure."""

    p50: float | None
    p90: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """What a workload's clients saw. Tokens a second are those of all streams from the first request to the last token."""

    workload: Workload
    requests: int
    failed: int
    tokens: int
    tokens_are_counted: bool
    wall_ns: int
    first_token: Spread
    """From sending to the first piece of the answer."""
    between_tokens: Spread
    """Between two pieces of an answer; of all requests together."""
    latency: Spread
    """From sending to the end of the answer."""
    failures: tuple[str, ...] = ()

    @property
    def tokens_per_s(self) -> float | None:
        return self.tokens * 1e9 / self.wall_ns if self.wall_ns and self.tokens else None

    @property
    def requests_per_s(self) -> float | None:
        """Of those that succeeded."""
        return (self.requests - self.failed) * 1e9 / self.wall_ns if self.wall_ns else None


@dataclass(frozen=True, slots=True)
class ServerTimes:
    """Of one workload, by difference of the server's sums: times of a request, ns; rows of a batch, and executions by batch size."""

    requests: int
    executions: int
    queue_ns: float
    input_ns: float
    compute_ns: float
    output_ns: float
    batch_sizes: Mapping[int, int]

    @property
    def mean_batch(self) -> float | None:
        return self.requests / self.executions if self.executions else None


def run_workload(driver: Driver, workload: Workload) -> list[Request]:
    """Sends everything and waits for the last answer."""

    def client(stream: int) -> list[Request]:
        return [driver.send(stream, n, workload.prompt_tokens, workload.output_tokens) for n in range(workload.rounds)]

    with ThreadPoolExecutor(workload.streams) as pool:
        return [request for requests in pool.map(client, range(workload.streams)) for request in requests]


def figures(workload: Workload, runs: Sequence[Sequence[Request]]) -> LoadFigures:
    """Sums and spreads of the requests that succeeded, of all runs together; failed ones are counted, and the first few quoted."""
    requests = [request for run in runs for request in run]
    good = [r for r in requests if _is_good(r)]
    gaps = [gap for r in good for gap in np.diff(r.arrivals_ns).tolist()]
    wall = sum(_wall([r for r in run if _is_good(r)]) for run in runs)
    return LoadFigures(
        workload,
        len(requests),
        len(requests) - len(good),
        sum(r.tokens for r in good),
        bool(good) and all(r.is_counted for r in good),
        wall,
        _spread([r.arrivals_ns[0] - r.sent_ns for r in good]),
        _spread(gaps),
        _spread([r.finished_ns - r.sent_ns for r in good]),
        tuple(dict.fromkeys(r.failed or "an answer without a token" for r in requests if not _is_good(r)))[:3],
    )


def _is_good(request: Request) -> bool:
    return not request.failed and bool(request.arrivals_ns)


def _wall(requests: Sequence[Request]) -> int:
    return max(r.finished_ns for r in requests) - min(r.sent_ns for r in requests) if requests else 0


def _spread(values: Iterable[float]) -> Spread:
    listed = list(values)
    return Spread(*np.quantile(listed, QUANTILES).tolist()) if listed else Spread(None, None, None)


def server_times(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> ServerTimes | None:
    """The difference of two answers of /v2/models/NAME/stats; None where the server keeps none, or did nothing in between."""
    if before is None or after is None:
        return None

    def grown(name: str, what: str) -> int:
        old, new = (stats.get("inference_stats", {}).get(name, {}) for stats in (before, after))
        return int(new.get(what, 0)) - int(old.get(what, 0))

    count = grown("success", "count")
    if not count:
        return None
    executions = int(after.get("execution_count", 0)) - int(before.get("execution_count", 0))
    queue, given, computed, taken = (grown(name, "ns") / count for name in ("queue", "compute_input", "compute_infer", "compute_output"))
    return ServerTimes(count, executions, queue, given, computed, taken, _batches(before, after))


def _batches(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[int, int]:
    old, new = ({int(b["batch_size"]): int(b["compute_infer"]["count"]) for b in stats.get("batch_stats", ())} for stats in (before, after))
    return {size: grown for size, number in sorted(new.items()) if (grown := number - old.get(size, 0))}
