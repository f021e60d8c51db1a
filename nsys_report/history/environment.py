"""What stands beside a record apart from its figures: the commit, and what the caller says."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from nsys_report.errors import UsageError

GIT_PATIENCE_S = 5.0


def environment(labels: Sequence[str], directory: Path | None = None) -> dict[str, str]:
    """The commit of the directory (the one at hand), and KEY=VALUE labels, which win. Raises UsageError for a label that is none."""
    found = {"commit": commit} if (commit := commit_of(directory or Path())) else {}
    for label in labels:
        key, separator, value = label.partition("=")
        if not separator or not key.strip():
            raise UsageError(f"{label!r} is no label", "such as --label xla=0.11.2", slug="label")
        found[key.strip()] = value.strip()
    return found


def commit_of(directory: Path) -> str | None:
    """The commit that is checked out there, with + where files differ from it; None outside of git."""
    head = _git(directory, "rev-parse", "--short=12", "HEAD")
    if not head:
        return None
    return head + ("+" if _git(directory, "status", "--porcelain", "--untracked-files=no") else "")


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=directory, capture_output=True, text=True, timeout=GIT_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
