"""What of a program to record, as written after --window, --delay and --duration, and the options of nsys that it means."""

from __future__ import annotations

from dataclasses import dataclass

from nsys_report.errors import UsageError
from nsys_report.profiling.hook.nsys_report_window import SPEC

WRITTEN = "steps=20,skip=10[,module=jit_train_step], range=NAME, or api (the program starts and stops the profiler itself)"
DEFAULT_SKIP = 10


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """One way of bounding the capture; all unset records the program from start to end."""

    steps: int = 0
    skip: int = DEFAULT_SKIP
    module: str = ""
    range_name: str = ""
    is_api: bool = False
    delay_s: float = 0.0
    duration_s: float = 0.0

    @property
    def is_whole(self) -> bool:
        return self == WindowSpec()

    def options(self, end_program: bool = False) -> list[str]:
        """Options of `nsys profile`. `end_program`: the program is ended with its window, and not left to run on."""
        if self.delay_s or self.duration_s:
            bounds = ([f"--delay={self.delay_s:g}"] if self.delay_s else []) + (
                [f"--duration={self.duration_s:g}"] if self.duration_s else []
            )
            return bounds if end_program or not self.duration_s else [*bounds, "--kill=none"]
        end = f"--capture-range-end={'stop-shutdown' if end_program else 'stop'}"
        if self.range_name:
            name = self.range_name if "@" in self.range_name else f"{self.range_name}@*"
            return ["--capture-range=nvtx", f"--nvtx-capture={name}", end]
        if self.steps or self.is_api:
            return ["--capture-range=cudaProfilerApi", end]
        return []

    def environment(self) -> dict[str, str]:
        """Variables that the program needs for it."""
        if self.steps:
            module = f",module={self.module}" if self.module else ""
            return {SPEC: f"steps={self.steps},skip={self.skip}{module}"}
        # a range whose text is not registered starts no capture otherwise
        return {"NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"} if self.range_name else {}

    @property
    def description(self) -> str:
        if self.steps:
            return f"{self.steps} executions of {self.module or 'the first program that has run so often'} after its first {self.skip}"
        if self.range_name:
            return f"the NVTX range {self.range_name}"
        if self.is_api:
            return "where the program starts and stops the profiler"
        if self.delay_s or self.duration_s:
            return f"from {self.delay_s:g} s on" + (f", for {self.duration_s:g} s" if self.duration_s else "")
        return "the whole program"


def parse_window(written: str | None, delay_s: float = 0.0, duration_s: float = 0.0) -> WindowSpec:
    """Reads --window. Raises UsageError for what cannot be meant."""
    if written is None:
        return WindowSpec(delay_s=delay_s, duration_s=duration_s)
    if delay_s or duration_s:
        raise UsageError("--window does not go with --delay and --duration", "bound the capture in one way")
    if written == "api":
        return WindowSpec(is_api=True)
    given = dict(part.partition("=")[::2] for part in written.split(","))
    if set(given) == {"range"} and given["range"]:
        return WindowSpec(range_name=given["range"])
    if not set(given) <= {"steps", "skip", "module"} or "steps" not in given:
        raise UsageError(f"--window {written!r} cannot be read", f"write {WRITTEN}")
    steps, skip = _count(written, given["steps"], 1), _count(written, given.get("skip", str(DEFAULT_SKIP)), 0)
    return WindowSpec(steps=steps, skip=skip, module=given.get("module", ""))


def _count(written: str, text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit() and least <= int(text) <= 10**9):
        raise UsageError(f"--window {written!r}: {text!r} is no whole number of at least {least}", f"write {WRITTEN}")
    return int(text)
