"""What all tests share: the fixtures' paths, opened captures, and a plain terminal of 80 columns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from nsys_report.capture import open_capture
from nsys_report.capture.model import Capture

FIXTURES = Path(__file__).parent.parent / "fixtures"
CAPTURES = tuple(sorted(path.parent.name for path in FIXTURES.glob("*/capture.sqlite")))


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns, no colour, UTC: what a test sees does not depend on who runs it."""
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
