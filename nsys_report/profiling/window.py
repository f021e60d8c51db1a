"""`nsys_report.window`: the bounds of a capture, for those who would rather have a line in their program.

    for batch in nsys_report.window(batches, steps=20, skip=10):
        train(batch)

    with nsys_report.window():
        train(batch)

Under `nsys-report capture --window api` (or `nsys profile -c cudaProfilerApi`) what is inside is recorded; elsewhere nothing happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TypeVar, overload

from nsys_report.errors import UsageError
from nsys_report.profiling.hook.nsys_report_window import Profiler, bracket

Item = TypeVar("Item")


class Window(AbstractContextManager[None]):
    """The profiler runs inside."""

    def __init__(self, profiler: Profiler | None = None) -> None:
        self._profiler = profiler or Profiler()

    def __enter__(self) -> None:
        self._profiler.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._profiler.stop()


@overload
def window() -> Window: ...
@overload
def window(items: Iterable[Item], *, steps: int = 20, skip: int = 10) -> Iterator[Item]: ...
def window(items: Iterable[Item] | None = None, *, steps: int = 20, skip: int = 10) -> Window | Iterator[Item]:
    """Over items: records while items `skip` to `skip + steps - 1` are worked on. Without: a context, which records what is inside.

    The devices are waited for at both ends, so that no execution is cut. Raises UsageError where `steps` is not positive.
    """
    if items is None:
        return Window()
    if steps < 1 or skip < 0:
        raise UsageError(f"window(steps={steps}, skip={skip}): there is nothing to record", "steps is at least 1, skip at least 0")
    return bracket(iter(items), steps, skip, Profiler())
