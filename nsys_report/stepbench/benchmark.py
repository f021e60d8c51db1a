"""A benchmark of steps: the first alone, warm-up until nothing compiles any more, then each step synchronized and timed alone.

As a test:

    def test_step_is_fast_enough():
        result = StepBenchmark(timed_steps=30).run(lambda: step(state, batch), compile_count=step)
        assert result.median_ns < 2_000_000
        print(result.to_json("train step"))  # nsys-report record takes this line
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nsys_report.errors import InputError, UsageError
from nsys_report.stepbench.gpu import clock_mhz, gpu_state, warm_gpu
from nsys_report.stepbench.result import StepResult

Step = Callable[[], Any]
Counter = Callable[[], int]
SETTLED = 2
"""So many steps running must leave the compile count as it was."""


@dataclass(frozen=True, slots=True)
class StepBenchmark:
    """How steps are timed: at least `min_warmup` and at most `max_warmup` steps of warm-up, then `timed_steps`."""

    min_warmup: int = 10
    max_warmup: int = 40
    timed_steps: int = 50
    warm_gpu: bool = True
    """Whether an idle GPU is first kept at work for two seconds, so that its clock is up."""

    def __post_init__(self) -> None:
        if not 0 <= self.min_warmup <= self.max_warmup or self.timed_steps < 1:
            raise UsageError("0 <= min_warmup <= max_warmup and timed_steps >= 1 must hold", f"given were {self}", slug="step-benchmark")

    def run(self, step: Step, compile_count: Any = None, peak_bytes: Callable[[], int | None] | None = None) -> StepResult:
        """Times `step`, which is called without arguments and whose result is waited for.

        `compile_count` is a jitted function (its cache is counted) or a function that gives the count; without one, `step` itself is
        asked, and where it cannot tell nothing is counted. `peak_bytes` gives the most memory used; without one, JAX's device is asked.
        Raises InputError where compiling never stops, or goes on among the timed steps.
        """
        count = _counter(step if compile_count is None else compile_count, asked=compile_count is not None)
        state = gpu_state()
        if self.warm_gpu:
            warm_gpu()
        first = _timed(step)
        warmup = self._warm_up(step, count)
        compiled = count() if count is not None else None
        times = []
        for number in range(self.timed_steps):
            times.append(_timed(step))
            if count is not None and count() != compiled:
                raise InputError(
                    f"timed step {number + 1} of {self.timed_steps} compiled ({compiled} compiles before, {count()} after)",
                    "does every step have the same shapes, types and static arguments?",
                    slug="compiled-while-timed",
                )
        clocks = {"clock_mhz_before": state.clock_mhz, "clock_mhz_after": clock_mhz()} if state else {}
        return StepResult(
            first_step_ns=first,
            warmup_steps=warmup,
            steps_ns=tuple(times),
            compile_count=compiled,
            peak_bytes=(peak_bytes or _jax_peak)(),
            gpu=state.name if state else _jax_device(),
            contended=state.contended if state else None,
            environment=_environment()
            | ({"driver": state.driver} if state else {})
            | {k: str(v) for k, v in clocks.items() if v is not None},
        )

    def _warm_up(self, step: Step, count: Counter | None) -> int:
        """Runs steps until the compile count stays the same on two running; gives how many."""
        settled, last = 0, count() if count is not None else 0
        for number in range(1, self.max_warmup + 1):
            _timed(step)
            now = count() if count is not None else 0
            settled = settled + 1 if now == last else 0
            last = now
            if number >= self.min_warmup and settled >= SETTLED:
                return number
        if count is None or settled >= SETTLED or not self.max_warmup:
            return self.max_warmup
        raise InputError(
            f"compiling did not stop within {self.max_warmup} steps of warm-up ({last} compiles)",
            "does every step have the same shapes, types and static arguments? Or give more: max_warmup",
            slug="compiling-never-stops",
        )


def _timed(step: Step) -> int:
    """The time of one step with all its work, ns."""
    began = time.perf_counter_ns()
    _wait(step())
    return time.perf_counter_ns() - began


def _wait(result: Any) -> None:
    """Waits for what a step gave: JAX's arrays in any tree, or whatever can be waited for."""

    jax = sys.modules.get("jax")
    if jax is not None:
        jax.block_until_ready(result)
    elif hasattr(result, "block_until_ready"):
        result.block_until_ready()


def _counter(source: Any, asked: bool) -> Counter | None:
    """What counts compiles: a jitted function's cache, or the function given. Raises UsageError for what can do neither."""
    size = getattr(source, "_cache_size", None)
    if callable(size):  # jax.jit's functions (jaxlib's PjitFunction)
        return lambda: int(size())
    if not asked:
        return None
    if callable(source):
        return lambda: int(source())
    raise UsageError(
        f"compile_count is {type(source).__name__}", "give the jitted function, or a function that gives the count", "step-benchmark"
    )


def _jax_peak() -> int | None:
    """The most memory of JAX's first device, where its backend counts it."""

    jax = sys.modules.get("jax")
    statistics = jax.devices()[0].memory_stats() if jax is not None else None
    return int(statistics["peak_bytes_in_use"]) if statistics and "peak_bytes_in_use" in statistics else None


def _jax_device() -> str | None:

    jax = sys.modules.get("jax")
    return str(jax.devices()[0].device_kind) if jax is not None else None


def _environment() -> dict[str, str]:
    """Versions of JAX and its compiler, where they are there."""
    from importlib.metadata import PackageNotFoundError, version

    if "jax" not in sys.modules:
        return {}
    found = {}
    for package in ("jax", "jaxlib"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
