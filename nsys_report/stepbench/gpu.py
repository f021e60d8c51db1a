"""What NVML tells of the GPU, where it is there; and two seconds of work for one that idles at a low clock."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from statistics import median
from types import ModuleType
from typing import Any

IDLE_PERCENT = 5.0
"""A median utilization from here on is somebody else's work."""
SAMPLES, INTERVAL_S = 20, 0.05
WARMING_S = 2.0
"""An idle GPU takes about this long to raise its clock (a GB10 idles at a few hundred MHz)."""


@dataclass(frozen=True, slots=True)
class GpuState:
    """The first GPU as NVML sees it: name, driver, clock, and utilization before the run (median percent)."""

    name: str
    driver: str
    clock_mhz: int
    utilization: float

    @property
    def contended(self) -> bool:
        return self.utilization >= IDLE_PERCENT


def gpu_state() -> GpuState | None:
    """What NVML says now, after a second of sampling; None without NVML or without a GPU."""
    nvml = _nvml()
    if nvml is None:
        return None
    try:
        handle = _first_visible(nvml)
        used = []
        for _ in range(SAMPLES):
            used.append(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
            time.sleep(INTERVAL_S)
        clock = nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)
        return GpuState(_text(nvml.nvmlDeviceGetName(handle)), _text(nvml.nvmlSystemGetDriverVersion()), int(clock), float(median(used)))
    except nvml.NVMLError:
        return None
    finally:
        nvml.nvmlShutdown()


def clock_mhz() -> int | None:
    """The clock of the GPU's multiprocessors now; None without NVML or without a GPU."""
    nvml = _nvml()
    if nvml is None:
        return None
    try:
        return int(nvml.nvmlDeviceGetClockInfo(_first_visible(nvml), nvml.NVML_CLOCK_SM))
    except nvml.NVMLError:
        return None
    finally:
        nvml.nvmlShutdown()


def _first_visible(nvml: ModuleType) -> Any:
    """NVML's handle of the first GPU that CUDA sees, by CUDA_VISIBLE_DEVICES (numbers or UUIDs)."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    if first.startswith(("GPU-", "MIG-")):
        return nvml.nvmlDeviceGetHandleByUUID(first)
    return nvml.nvmlDeviceGetHandleByIndex(int(first) if first.isascii() and first.isdigit() else 0)


def _nvml() -> ModuleType | None:
    """The module pynvml (package nvidia-ml-py), set up; None where it is not there or finds no driver."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    module: ModuleType = pynvml
    return module


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def warm_gpu(seconds: float = WARMING_S) -> bool:
    """Keeps JAX's GPU at work for so long; False where JAX has none."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return False
    if jax.default_backend() != "gpu":
        return False
    square = jax.jit(lambda x: x @ x * 1e-3)
    value = jnp.ones((2048, 2048), jnp.bfloat16)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = square(value)
        value.block_until_ready()
    return True
