"""The GPU before a run: is it idle, is it warm, at which clocks. Through NVML (package nvidia-ml-py) where that is installed."""

from __future__ import annotations

import importlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

SAMPLE_SECONDS, SAMPLE_INTERVAL_S, IDLE_PERCENT = 10.0, 0.25, 5.0
"""A GPU is idle when its utilization has a median under 5 % over ten seconds."""
WARM_SECONDS = 2.0
"""Work before a run: an idle GPU clocks down to a fraction of its clock, and up again within a second or two."""
WARM_LIMIT_S = 60
MILLIWATTS = 1000
_WARM = """
import sys, time
from nsys_report.measuring.backends import find_backend
backend = find_backend(None)
work = backend.copy(1 << 28)
until = time.perf_counter() + float(sys.argv[1])
while time.perf_counter() < until:
    backend.wait(work())
"""


class Gauge(Protocol):
    """What is asked of a machine's GPUs."""

    def utilization(self) -> float:
        """Percent of the last sampling period in which the busiest GPU worked."""

    def state(self) -> list[dict[str, Any]]:
        """Name, clocks (MHz), temperature (°C), power (W) of each GPU."""

    def driver(self) -> str:
        """The driver's version."""


class Nvml:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves visible, by NVML. Raises ImportError or pynvml's error where there is none."""

    def __init__(self) -> None:
        self._nvml: Any = importlib.import_module("pynvml")
        self._nvml.nvmlInit()
        self._handles = self._visible(os.environ.get("CUDA_VISIBLE_DEVICES"))

    def _visible(self, chosen: str | None) -> list[Any]:
        every = [self._nvml.nvmlDeviceGetHandleByIndex(i) for i in range(self._nvml.nvmlDeviceGetCount())]
        if chosen is None:
            return every
        names = [name.strip() for name in chosen.split(",") if name.strip()]
        uuids = [_text(self._nvml.nvmlDeviceGetUUID(handle)) for handle in every]
        picked = [h for n in names for i, h in enumerate(every) if n == str(i) or uuids[i].startswith(n)]
        return picked or every

    def utilization(self) -> float:
        return max((float(self._nvml.nvmlDeviceGetUtilizationRates(h).gpu) for h in self._handles), default=0.0)

    def state(self) -> list[dict[str, Any]]:
        nvml = self._nvml
        asked: dict[str, Callable[[Any], Any]] = {
            "name": lambda h: _text(nvml.nvmlDeviceGetName(h)),
            "sm_mhz": lambda h: nvml.nvmlDeviceGetClockInfo(h, nvml.NVML_CLOCK_SM),
            "memory_mhz": lambda h: nvml.nvmlDeviceGetClockInfo(h, nvml.NVML_CLOCK_MEM),
            "temperature_c": lambda h: nvml.nvmlDeviceGetTemperature(h, nvml.NVML_TEMPERATURE_GPU),
            "power_w": lambda h: round(nvml.nvmlDeviceGetPowerUsage(h) / MILLIWATTS),
        }
        return [{key: self._ask(ask, handle) for key, ask in asked.items()} for handle in self._handles]

    def _ask(self, ask: Callable[[Any], Any], handle: Any) -> Any:
        try:
            return ask(handle)
        except self._nvml.NVMLError:  # not every GPU says everything
            return None

    def driver(self) -> str:
        return _text(self._nvml.nvmlSystemGetDriverVersion())


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def find_gauge() -> Gauge | None:
    """NVML's view of the GPUs; None where it cannot be had."""
    try:
        return Nvml()
    except Exception:  # no package, no driver, no GPU: a run goes on without
        return None


@dataclass(frozen=True, slots=True)
class Idleness:
    """What the gate found: `contended` is None where nobody could look."""

    contended: bool | None = None
    utilization: float | None = None
    """Median over the last ten seconds, percent."""
    waited_s: float = 0.0

    @property
    def summary(self) -> str:
        if self.contended is None:
            return "not looked at: NVML is not there (package nvidia-ml-py)"
        seen = f"{self.utilization:.0f} % used before the run"
        waited = f", after waiting {self.waited_s:.0f} s" if self.waited_s else ""
        return f"contended: {seen}{waited}" if self.contended else f"idle: {seen}{waited}"


@dataclass(slots=True)
class Gate:
    """Waits until the GPU is idle. The clock can be another's."""

    gauge: Gauge
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    say: Callable[[str], None] = field(default=lambda text: None)

    def wait(self, limit_s: float, seconds: float = SAMPLE_SECONDS) -> Idleness:
        """Samples for `seconds`, again and again while the median is 5 % or more, until `limit_s` have been waited."""
        start = self.now()
        while True:
            median = self._median(seconds)
            waited = max(self.now() - start - seconds, 0.0)
            if median < IDLE_PERCENT:
                return Idleness(False, median, waited)
            if waited >= limit_s:
                return Idleness(True, median, waited)
            self.say(f"the GPU is {median:.0f} % used by others; waiting until it is idle, {max(limit_s - waited, 0):.0f} s at most")

    def _median(self, seconds: float) -> float:
        until = self.now() + seconds
        samples: list[float] = []
        while not samples or self.now() < until:
            samples.append(self.gauge.utilization())
            self.sleep(SAMPLE_INTERVAL_S)
        return statistics.median(samples)


def warm(seconds: float = WARM_SECONDS) -> bool:
    """Keeps the GPU busy in another process, with whichever framework is there; whether that worked."""
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _WARM, str(seconds)], env=environment, capture_output=True, timeout=WARM_LIMIT_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
