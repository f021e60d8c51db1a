"""Which devices take part in a collective together: XLA's forms of replica_groups and source_target_pairs.

The forms are those that XLA's parser reads (xla/hlo/parser/hlo_parser.cc, xla/hlo/ir/collective_device_list.h): lists {{0,1},{2,3}},
an iota [2,4]<=[8] or [4,2]<=[2,4]T(1,0), and axes of a mesh mesh['x'=2,'y'=4] {'y'}, whose sub-axes read 'x':(before)size.
"""

from __future__ import annotations

import math
import re

import numpy as np

Groups = tuple[tuple[int, ...], ...]
MOST_DEVICES = 1 << 20
"""More than any run has: larger figures are slips."""

_LIST = re.compile(r"\{([\d,\s]*)\}")
_IOTA = re.compile(r"^\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?$")
_MESH = re.compile(r"^mesh\[([^\]]*)\](?:,\s*device_ids=\((.*?)\))?\s*\{(.*)\}$")
_AXIS = re.compile(r"'([^']*)'(?:=(\d+)|:\((\d+)\)(\d+))?")


def replica_groups(text: str, participants: int) -> Groups | None:
    """The groups that replica_groups means among so many devices: all of them for {}; None for a text of another form."""
    text = text.strip()
    if text.startswith("mesh"):
        return _mesh(text)
    if text.startswith("["):
        return _rows(_iota(text))
    lists = [tuple(int(n) for n in found.split(",") if n.strip()) for found in _LIST.findall(text)]
    groups = tuple(group for group in lists if group)
    if groups:
        return groups
    return (tuple(range(participants)),) if text.startswith("{") and 0 < participants <= MOST_DEVICES else None


def source_target_groups(text: str) -> Groups | None:
    """The devices that source_target_pairs {{0,1},{1,2}} tie together, by who sends to whom; None without pairs."""
    groups: list[set[int]] = []
    for found in _LIST.findall(text):
        pair = {int(n) for n in found.split(",") if n.strip()}
        if pair:
            tied = [group for group in groups if group & pair]
            groups = [*(group for group in groups if group not in tied), pair.union(*tied)]
    return tuple(tuple(sorted(group)) for group in sorted(groups, key=min)) or None


def _iota(text: str) -> np.ndarray | None:
    """[rows, columns]<=[dimensions]T(permutation) as an array of that shape."""
    found = _IOTA.match(text)
    if not found:
        return None
    shape, dimensions = (_numbers(found[n]) for n in (1, 2))
    count = math.prod(dimensions)
    order = _numbers(found[3]) if found[3] else range(len(dimensions))
    if count != math.prod(shape) or not 0 < count <= MOST_DEVICES or sorted(order) != list(range(len(dimensions))):
        return None
    return np.arange(count).reshape(dimensions).transpose(order).reshape(shape)


def _mesh(text: str) -> Groups | None:
    """The groups along some axes of a mesh: devices that differ in nothing else."""
    found = _MESH.match(text)
    axes = [(name, int(size)) for name, size, *_ in _AXIS.findall(found[1]) if size] if found else []
    count = math.prod(size for _, size in axes)
    if not found or not axes or not 0 < count <= MOST_DEVICES:
        return None
    devices = _device_order(found[2], count)
    if devices is None:
        return None
    names, sizes, chosen = [n for n, _ in axes], [s for _, s in axes], list[tuple[str, int, int]]()
    for name, _, before, size in _AXIS.findall(found[3]):
        if name not in names:
            return None
        chosen.append((name, int(before or 1), int(size or dict(axes)[name])))
    return _along(devices, names, sizes, chosen)


def _device_order(text: str | None, count: int) -> np.ndarray | None:
    """The devices in the mesh's order: counted up, listed, or an iota."""
    if text is None:
        return np.arange(count)
    listed = _iota(text) if text.startswith("[") else np.array(_numbers(text))
    return listed.reshape(-1) if listed is not None and listed.size == count else None


def _along(devices: np.ndarray, names: list[str], sizes: list[int], chosen: list[tuple[str, int, int]]) -> Groups | None:
    """Splits every axis at the sub-axes in use, brings those last, and takes the rows."""
    shape: list[int] = []
    moved: dict[tuple[str, int, int], int] = {}
    for name, size in zip(names, sizes, strict=True):
        at = 1
        for _, before, part in sorted((c for c in chosen if c[0] == name), key=lambda c: c[1]):
            if before % at or size % (before * part):
                return None
            shape.append(before // at)
            moved[name, before, part] = len(shape)
            shape.append(part)
            at = before * part
        shape.append(size // at)
    last = [moved[c] for c in chosen]
    order = [axis for axis in range(len(shape)) if axis not in last] + last
    width = math.prod(part for *_, part in chosen)
    return _rows(devices.reshape(shape).transpose(order).reshape(-1, width))


def _rows(array: np.ndarray | None) -> Groups | None:
    return tuple(tuple(int(n) for n in row) for row in np.atleast_2d(array)) if array is not None else None


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n.strip()]
