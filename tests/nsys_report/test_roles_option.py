"""Roles from a file: they win over what is inferred, and one that matches nothing is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_mapping.errors import HloError
from nsys_report.errors import UsageError
from nsys_report.notebook import analyze
from tests.conftest import FIXTURES

DECODE = FIXTURES / "decode"


def run(roles: Path) -> dict[str, int]:
    """Weight bytes of one decode step by class, with a roles file."""
    a = analyze(DECODE / "capture.sqlite", DECODE / "xla_dump", roles=roles)
    step = a.classes[a.classes.hlo_module == "jit_decode_step"]
    return dict(zip(step.kernel_class, step.weight_bytes, strict=True))


def test_a_given_role_wins(tmp_path: Path) -> None:
    path = tmp_path / "roles.toml"
    path.write_text('[roles]\n"*lm_head*" = "state"\n')
    # the head is 2048 x 32000 values in bf16
    assert run(path)["weights"] == 735_055_872 - 2048 * 32000 * 2


def test_a_pattern_that_matches_nothing_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "roles.toml"
    path.write_text('[roles]\n"decoder*" = "weight"\n')
    with pytest.raises(HloError, match="matches no parameter"):
        run(path)


def test_roles_without_a_dump_are_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "roles.toml"
    path.write_text('[roles]\n"*" = "weight"\n')
    with pytest.raises(UsageError, match="no dump"):
        analyze(DECODE / "capture.sqlite", roles=path)
