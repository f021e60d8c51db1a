"""The oldest version of each dependency that pyproject.toml allows, as constraints for pip: `python -m tests.oldest > FILE`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
BOUND = re.compile(r"([\w.-]+)>=([\d.]+)(?:,|$)")


def oldest(requirements: Iterable[str]) -> list[str]:
    """`name==bound` for each `name>=bound,<next`. Raises ValueError for a requirement without a lower bound."""
    pins = []
    for requirement in requirements:
        found = BOUND.match(requirement)
        if found is None:
            raise ValueError(f"{requirement}: no lower bound to test")
        pins.append(f"{found[1]}=={found[2]}")
    return pins


def main() -> None:
    """Prints the constraints of the package itself; the development tools stay new."""
    print(*oldest(tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]), sep="\n")


if __name__ == "__main__":
    main()
