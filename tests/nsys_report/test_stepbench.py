"""The step benchmark, on a jitted function on JAX's CPU backend and on plain functions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nsys_report import StepBenchmark
from nsys_report.cli.app import run
from nsys_report.errors import InputError, UsageError
from nsys_report.history.store import open_store
from nsys_report.stepbench.result import StepResult

FAST = StepBenchmark(min_warmup=3, max_warmup=8, timed_steps=5, warm_gpu=False)


class Compiling:
    """A step that compiles in its first calls, and in some others."""

    def __init__(self, first: int, others: tuple[int, ...] = ()) -> None:
        self.calls, self.compiles, self.first, self.others = 0, 0, first, others

    def __call__(self) -> None:
        self.calls += 1
        self.compiles += self.calls <= self.first or self.calls in self.others


def measure(step: Compiling) -> StepResult:
    return FAST.run(step, compile_count=lambda: step.compiles, peak_bytes=lambda: 7)


def test_warm_up_lasts_until_the_count_stays_for_two_steps() -> None:
    """The first step is alone; with compiles up to the fifth call, warm-up is calls 2 to 7."""
    step = Compiling(first=5)
    result = measure(step)
    assert result.warmup_steps == 6 and len(result.steps_ns) == 5
    assert step.calls == 1 + 6 + 5 and result.compile_count == 5 and result.peak_bytes == 7


def test_at_least_the_least_warm_up() -> None:
    assert measure(Compiling(first=1)).warmup_steps == 3


def test_compiling_that_never_stops_is_an_error() -> None:
    with pytest.raises(InputError) as raised:
        measure(Compiling(first=100))
    assert raised.value.slug == "compiling-never-stops"


def test_a_compile_among_the_timed_steps_is_an_error() -> None:
    with pytest.raises(InputError) as raised:
        measure(Compiling(first=1, others=(6,)))
    assert raised.value.slug == "compiled-while-timed"


def test_statistics_are_those_of_the_steps() -> None:
    result = StepResult(first_step_ns=9, warmup_steps=2, steps_ns=(1, 2, 3, 4, 10), compile_count=1)
    figures = (result.median_ns, result.mean_ns, result.min_ns, result.max_ns, result.p10_ns, result.p90_ns)
    assert figures == (3.0, 4.0, 1, 10, pytest.approx(1.4), pytest.approx(7.6))


def test_wrong_numbers_of_steps_are_wrong_use() -> None:
    for wrong in ({"timed_steps": 0}, {"min_warmup": 5, "max_warmup": 4}, {"min_warmup": -1}):
        with pytest.raises(UsageError):
            StepBenchmark(**wrong)
    with pytest.raises(UsageError):
        FAST.run(lambda: None, compile_count=3)


def test_a_jitted_function_of_jax(tmp_path: Path) -> None:
    """Its compiles are counted from its own cache: one for its one shape; its line goes into a history."""
    jax = pytest.importorskip("jax")
    jnp = pytest.importorskip("jax.numpy")
    step: Any = jax.jit(lambda x: jnp.tanh(x @ x).sum())
    x = jnp.ones((64, 64))
    result = FAST.run(lambda: step(x), compile_count=step)
    assert result.compile_count == 1 and result.warmup_steps == 3
    assert result.first_step_ns > result.median_ns > 0
    assert result.environment["jax"] == jax.__version__
    line = tmp_path / "steps.json"
    line.write_text("some other output\n" + result.to_json("tanh") + "\n", encoding="utf-8")
    assert json.loads(result.to_json("tanh"))["timed_steps"] == 5
    assert run(["record", str(line), "--registry", str(tmp_path / "h.jsonl")]) == 0
    record = open_store(tmp_path / "h.jsonl").read()[0]
    assert record.case == "tanh" and record.figures["step_ns"] == result.median_ns and record.source == "steps"


def test_a_jitted_function_that_compiles_for_every_shape() -> None:
    jax = pytest.importorskip("jax")
    jnp = pytest.importorskip("jax.numpy")
    step: Any = jax.jit(lambda x: x.sum())
    lengths = iter(range(1, 1000))
    with pytest.raises(InputError) as raised:
        FAST.run(lambda: step(jnp.ones(next(lengths))), compile_count=step)
    assert raised.value.slug == "compiling-never-stops"


def test_on_a_gpu_when_there_is_one() -> None:
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("no GPU")
    step: Any = jax.jit(lambda x: x @ x)
    x = jax.numpy.ones((1024, 1024))
    result = StepBenchmark(min_warmup=3, timed_steps=10).run(lambda: step(x), compile_count=step)
    assert result.gpu and result.peak_bytes and result.compile_count == 1


def test_what_nvml_says_of_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that others use is contended: median utilization of 5 % or more; the one that CUDA sees first is asked."""
    asked: list[object] = []

    class Nvml:
        NVMLError = RuntimeError
        NVML_CLOCK_SM = 1
        nvmlInit = nvmlShutdown = staticmethod(lambda: None)
        nvmlSystemGetDriverVersion = staticmethod(lambda: b"580.1")
        nvmlDeviceGetName = staticmethod(lambda handle: "A GPU")
        nvmlDeviceGetClockInfo = staticmethod(lambda handle, kind: 1980)
        nvmlDeviceGetHandleByIndex = staticmethod(lambda index: asked.append(index))
        nvmlDeviceGetUtilizationRates = staticmethod(lambda handle: SimpleNamespace(gpu=7))

    monkeypatch.setitem(sys.modules, "pynvml", Nvml)  # type: ignore[arg-type]
    monkeypatch.setattr("nsys_report.stepbench.gpu.INTERVAL_S", 0.0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    result = measure(Compiling(first=1))
    assert result.contended is True and result.gpu == "A GPU" and set(asked) == {3}
    assert result.environment["driver"] == "580.1" and result.environment["clock_mhz_after"] == "1980"
