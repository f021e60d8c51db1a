"""Joins Nsight Systems captures to XLA HLO dumps; `analyze` is the way in from Python and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nsys_report.notebook import Analysis, analyze
    from nsys_report.profiling.window import window

__version__ = "0.1.0"
__all__ = ["Analysis", "__version__", "analyze", "window"]


def __getattr__(name: str) -> Any:
    """Loads the analysis when it is first asked for, so that `nsys-report --help` does not wait for pandas."""
    if name in ("Analysis", "analyze"):
        from nsys_report import notebook

        return getattr(notebook, name)
    if name == "window":
        from nsys_report.profiling.window import window

        return window
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
