"""Which components of paths number layers, and how a layer is called.

A numbered component, as `3` in `layers[3].mlp` or `block_3` in `block_3/mlp`, is a layer's if another number in its place has the same
things below it. The outermost such component counts: experts and heads within a layer are no layers of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hlo_mapping.naming.paths import Path, dotted

_DIGITS = "0123456789"
LEAST_ALIKE = 0.5
"""Share of what lies below two numbers that must be the same for them to number layers."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of a model."""

    name: str
    """As people write it: `layers[3]`, `block_3`."""
    family: str
    """The same with a star for the number, which all layers of its kind share."""


@dataclass(frozen=True, slots=True)
class Layers:
    """The places of layers in the paths of one program."""

    families: frozenset[tuple[Path, str]]
    """(components before the numbered one, its text before the number)."""

    def of(self, path: Path) -> Layer | None:
        """The layer that a path lies in, or None."""
        place = self._place(path)
        if place < 0:
            return None
        return Layer(dotted(path[: place + 1]), dotted(self.starred(path)[: place + 1]))

    def starred(self, path: Path) -> Path:
        """The path with a star for the number of its layer."""
        place = self._place(path)
        return path if place < 0 else (*path[:place], f"{path[place].rstrip(_DIGITS)}*", *path[place + 1 :])

    def _place(self, path: Path) -> int:
        """Which component numbers the layer; -1 where none does."""
        for place, part in enumerate(path):
            if part[-1:] in _DIGITS and (path[:place], part.rstrip(_DIGITS)) in self.families:
                return place
        return -1


def find_layers(paths: Iterable[Path]) -> Layers:
    """The places of layers in these paths."""
    below: dict[tuple[Path, str], dict[str, set[Path]]] = {}
    for path in set(paths):
        for place, part in enumerate(path):
            stem = part.rstrip(_DIGITS)
            if stem != part:
                below.setdefault((path[:place], stem), {}).setdefault(part[len(stem) :], set()).add(path[place + 1 :])
    return Layers(frozenset(place for place, numbers in below.items() if _are_layers(list(numbers.values()))))


def _are_layers(numbers: list[set[Path]]) -> bool:
    """Whether most numbers have something below them that another has too."""
    whole = [found for found in numbers if found != {()}]
    if len(whole) < 2:
        return False
    return sum(any(_alike(a, b) for b in whole if b is not a) for a in whole) * 2 > len(numbers)


def _alike(one: set[Path], other: set[Path]) -> bool:
    return len(one & other) >= LEAST_ALIKE * min(len(one), len(other)) and bool((one & other) - {()})
