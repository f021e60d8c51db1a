"""Joins Nsight Systems captures to XLA HLO dumps; `analyze` is the way in from Python and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_report.version import __version__

if TYPE_CHECKING:
    from nsys_report.diffing import Diff, diff
    from nsys_report.notebook import Analysis, analyze
    from nsys_report.profiling.window import window
    from nsys_report.run_of_ranks import Ranks, analyze_ranks
    from nsys_report.stepbench.benchmark import StepBenchmark

_HOMES = {
    "Analysis": "nsys_report.notebook",
    "Diff": "nsys_report.diffing",
    "Ranks": "nsys_report.run_of_ranks",
    "StepBenchmark": "nsys_report.stepbench.benchmark",
    "analyze": "nsys_report.notebook",
    "analyze_ranks": "nsys_report.run_of_ranks",
    "diff": "nsys_report.diffing",
    "window": "nsys_report.profiling.window",
}
"""Where each name lives: loaded when it is first asked for, so that `nsys-report --help` does not wait for pandas."""
__all__ = ["Analysis", "Diff", "Ranks", "StepBenchmark", "__version__", "analyze", "analyze_ranks", "diff", "window"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
