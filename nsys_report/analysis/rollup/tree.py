"""Work summed up over the groups of a dimension, and groups of groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import fsum

import pyarrow as pa

from hlo_mapping import column
from nsys_report.analysis.arrays.schemas import MODULE_KEY
from nsys_report.analysis.rollup.dimensions import DIMENSIONS, Dimension, Path, Record, flat
from nsys_report.analysis.roofline.ceilings import Ceilings

ROLLUP = pa.schema(
    [
        *MODULE_KEY,
        column("depth", pa.int64(), "0 for the widest groups; the rows under one follow it"),
        column("group", pa.string(), "what is grouped: a name, scope, source line, layer, parameter, class, opcode or phase"),
        column("path", pa.string(), "the groups around it and itself, with ' > ' between them"),
        column("hlo_instruction", pa.string(), "of a row for a single instruction; null for groups"),
        column("instructions", pa.int64(), "instructions in it"),
        column("launches", pa.float64(), "kernels and own copies in a typical step"),
        column("time_ns", pa.float64(), "their time in a typical step; rows of depth 0 add up to the program's, rows under one to it"),
        column("time_share", pa.float64(), "share of the program's, 0 to 1"),
        column("each_ns", pa.float64(), "time a launch"),
        column("bytes_accessed", pa.float64(), "bytes they must move at least, as far as known; null where unknown"),
        column("floor_ns", pa.float64(), "the least time of what cannot be done without, as far as known; null where unknown"),
        column("roof_ns", pa.float64(), "their least time: bytes or arithmetic at the ceiling, as far as known; null where unknown"),
        column("share_of_roof", pa.float64(), "roof_ns over the time of what roofs are known of; null where unknown"),
        column("unknown_ns", pa.float64(), "the time of what no roof is known of"),
        column("above_roof", pa.bool_(), "faster than the roof's range allows: L2 served it, or the count is wrong; null where unknown"),
    ]
)
"""A row per program and group, most time first within its group; a group's own groups follow it."""


@dataclass(frozen=True, slots=True)
class Node:
    """A group, with the rows of WORK in it, and the groups in it."""

    group: str
    path: Path
    rows: tuple[Record, ...]
    groups: tuple[Node, ...] = ()

    @property
    def time_ns(self) -> float:
        return fsum(row["time_ns"] for row in self.rows)


@dataclass(slots=True)
class _Growing:
    rows: list[Record] = field(default_factory=list)
    groups: dict[str, _Growing] = field(default_factory=dict)


def rollup_table(work: pa.Table, by: str, ceilings: Ceilings, *, nested: bool = False) -> pa.Table:
    """Schema ROLLUP: the work of each program (schema work.WORK) by one of DIMENSIONS.

    Without `nested` there is one row for each of the groups that the dimension is about, all of depth 0; with it there are the groups
    around and within those, and a row for each instruction.
    """
    found: list[dict[str, object]] = []
    for mine in by_program(work):
        for node, depth in walk(tree(mine, by, nested=nested)):
            found.append(_row(node, depth, ceilings))
            if nested and not node.groups:
                singles = (Node(str(r["label"] or r["hlo_instruction"]), node.path, (r,)) for r in node.rows if r["hlo_instruction"])
                found += [_row(one, depth + 1, ceilings) | {"hlo_instruction": one.rows[0]["hlo_instruction"]} for one in singles]
    return pa.Table.from_pylist(found, ROLLUP)


def by_program(work: pa.Table) -> list[list[Record]]:
    """The rows of each program, in the order of the table."""
    programs: dict[tuple[object, object], list[Record]] = {}
    for row in work.to_pylist():
        programs.setdefault((row["hlo_module"], row["program_id"]), []).append(row)
    return list(programs.values())


def tree(rows: list[Record], by: str, *, nested: bool = True) -> tuple[Node, ...]:
    """The groups of one program's rows, most time first. A group that holds nothing but one other is that other."""
    root, way = _Growing(), DIMENSIONS[by]
    for row in rows:
        at = root
        for part in way.path(row) if nested else flat(way, row):
            at = at.groups.setdefault(part, _Growing())
            at.rows.append(row)
    return _finish(root, (), way)


def _finish(growing: _Growing, above: Path, by: Dimension) -> tuple[Node, ...]:
    made = []
    for group, one in growing.groups.items():
        while len(one.groups) == 1 and len((only := next(iter(one.groups.items())))[1].rows) == len(one.rows):
            group, one = by.join(group, only[0]), only[1]
        path = (*above, group)
        made.append(Node(group, path, tuple(one.rows), _with_rest(one, path, by)))
    return tuple(sorted(made, key=lambda node: -node.time_ns))


def _with_rest(one: _Growing, path: Path, by: Dimension) -> tuple[Node, ...]:
    """The groups in a group; what is in none of them is one more, so that they add up."""
    groups = _finish(one, path, by)
    if not groups:
        return ()
    inside = {id(row) for node in groups for row in node.rows}
    rest = tuple(row for row in one.rows if id(row) not in inside)
    return tuple(sorted((*groups, Node("itself", (*path, "itself"), rest)), key=lambda node: -node.time_ns)) if rest else groups


def walk(nodes: tuple[Node, ...], depth: int = 0) -> Iterator[tuple[Node, int]]:
    """Every group with its depth, each before the groups in it."""
    for node in nodes:
        yield node, depth
        yield from walk(node.groups, depth + 1)


def _row(node: Node, depth: int, ceilings: Ceilings) -> dict[str, object]:
    first = node.rows[0]
    time, launches = node.time_ns, fsum(row["launches"] for row in node.rows)
    moved, floor, roof = (_sum(node, name) for name in ("bytes_accessed", "floor_ns", "roof_ns"))
    known = fsum(row["known_ns"] for row in node.rows)
    share = roof / known if roof is not None and known else None
    bandwidth = ceilings.roof
    highest = (ceilings.fastest_bytes_per_s or bandwidth.high) / bandwidth.value if bandwidth else None
    return {
        "hlo_module": first["hlo_module"],
        "program_id": first["program_id"],
        "depth": depth,
        "group": node.group,
        "path": " > ".join(node.path),
        "instructions": sum(row["hlo_instruction"] is not None for row in node.rows),
        "launches": launches,
        "time_ns": time,
        "time_share": _sum(node, "time_share"),
        "each_ns": time / launches if launches else None,
        "bytes_accessed": moved,
        "floor_ns": floor,
        "roof_ns": roof,
        "share_of_roof": share,
        "unknown_ns": max(time - known, 0.0),
        "above_roof": None if share is None or highest is None else share > highest,
    }


def _sum(node: Node, name: str) -> float | None:
    known = [row[name] for row in node.rows if row[name] is not None]
    return fsum(known) if known else None
