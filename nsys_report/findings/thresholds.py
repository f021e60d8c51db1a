"""From which size on something is worth saying: data/thresholds.toml as values."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files


@cache
def thresholds() -> dict[str, dict[str, float]]:
    """The thresholds by subject and name."""
    text = (files(__package__) / "data" / "thresholds.toml").read_text(encoding="utf-8")
    return {subject: {name: float(value) for name, value in table.items()} for subject, table in tomllib.loads(text).items()}


def threshold(subject: str, name: str) -> float:
    """One threshold. Raises KeyError for one that the file does not have."""
    return thresholds()[subject][name]
