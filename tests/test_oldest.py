"""The oldest versions that CI tests are those that pyproject.toml states."""

from __future__ import annotations

import pytest

from tests.oldest import PYPROJECT, oldest


def test_bounds_become_pins() -> None:
    assert oldest(["numpy>=2.0,<3", "a-b.c>=1.2.3"]) == ["numpy==2.0", "a-b.c==1.2.3"]


def test_a_requirement_without_a_lower_bound_is_named() -> None:
    with pytest.raises(ValueError, match="rich<16"):
        oldest(["numpy>=2.0", "rich<16"])


def test_ci_tests_the_oldest_versions() -> None:
    assert "bash .ci/oldest" in (PYPROJECT.parent / ".ci" / "run").read_text(encoding="utf-8")
