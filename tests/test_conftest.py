"""The tests' own guard: a test that checks nothing does not pass."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = """
import pytest

@pytest.mark.parametrize("things", [[], [1]])
def test_loops(things):
    for thing in things:
        assert thing == 1

def test_says_so_first():
    things = []
    assert not things
    for thing in things:
        assert thing == 1
"""


def test_a_loop_over_nothing_proves_nothing(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parent / "conftest.py", tmp_path)
    (tmp_path / "test_empty.py").write_text(SOURCE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "1 failed, 2 passed" in ran.stdout
    assert "test_loops[things0]" in ran.stdout and "it asserted nothing: what it loops over is empty" in ran.stdout
