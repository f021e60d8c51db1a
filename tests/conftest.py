"""What all tests share: the fixtures' paths, opened captures, and a plain terminal of 80 columns."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from nsys_report.capture import open_capture
from nsys_report.capture.model import Capture

FIXTURES = Path(__file__).parent.parent / "fixtures"
CAPTURES = tuple(sorted(path.parent.name for path in FIXTURES.glob("*/capture.sqlite")))


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns, no color, UTC: what a test sees does not depend on who runs it."""
    for name, value in {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC", "LC_ALL": "C.UTF-8"}.items():
        monkeypatch.setenv(name, value)
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "NSYS_REPORT_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def fixture_path() -> Callable[..., Path]:
    """fixture_path("decode", "xla_dump") is that path in fixtures/."""

    def path(*parts: str) -> Path:
        found = FIXTURES.joinpath(*parts)
        assert found.exists(), f"no fixture {found}"
        return found

    return path


@pytest.fixture(scope="session")
def capture() -> Callable[[str], Capture]:
    """capture("decode") is that fixture, opened once."""

    @functools.cache
    def opened(name: str) -> Capture:
        return open_capture(FIXTURES / name / "capture.sqlite")

    return opened


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """A test whose assertions all stand in loops and that reaches none of them proves nothing: it fails."""
    is_plain = isinstance(item, pytest.Function) and not hasattr(item.obj, "hypothesis")  # Hypothesis runs a test often, and traces it
    lines = _assertions_in_loops(item.obj) if is_plain and isinstance(item, pytest.Function) else frozenset()
    if not isinstance(item, pytest.Function) or not lines or sys.gettrace() is not None:
        return (yield)
    code, reached = inspect.unwrap(item.obj).__code__, set[int]()

    def within(frame: FrameType, event: str, _argument: object) -> Any:
        reached.add(frame.f_lineno)
        return within

    sys.settrace(lambda frame, event, argument: within if frame.f_code is code else None)
    try:
        yield
    finally:
        sys.settrace(None)
    if not reached & lines:
        pytest.fail("it asserted nothing: what it loops over is empty", pytrace=False)


@functools.cache
def _assertions_in_loops(function: Callable[..., object]) -> frozenset[int]:
    """The lines of a test's assertions where every one of them stands in a loop over what may be empty; none where one always runs."""
    source, first = inspect.getsourcelines(inspect.unwrap(function))
    tree = ast.parse(textwrap.dedent("".join(source)))
    loops = [loop for loop in ast.walk(tree) if isinstance(loop, ast.For) and not isinstance(loop.iter, (ast.Tuple, ast.List))]
    inside = {node.lineno for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Assert)}
    every = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)}
    return frozenset(line + first - 1 for line in inside) if inside == every else frozenset()
