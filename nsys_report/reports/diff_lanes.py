"""One execution of each side to be drawn above each other: the one whose step is the median."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsys_report.analysis.budget.table import steps_of
from nsys_report.analysis.times.attribution import windows

if TYPE_CHECKING:
    from nsys_report.comparison.model import ProgramChange
    from nsys_report.session import Session

MOST_BLOCKS = 2_500
"""Longer executions are drawn coarser: neighbors of one class become one block."""


@dataclass(frozen=True, slots=True)
class Block:
    """A kernel or copy, ns from the execution's start."""

    start: int
    end: int
    is_kernel: bool
    kernel_class: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One execution and what lies between it and the next of its program."""

    side: str
    name: str
    execution: int
    length: int
    kernel_time: int
    blocks: tuple[Block, ...]


def lanes_of(programs: Sequence[ProgramChange], before: Session, after: Session) -> dict[str, tuple[Lane, ...]]:
    """The lanes of each program, by the key of its section; programs that cannot be found in the first capture of a side have none."""
    found: dict[str, tuple[Lane, ...]] = {}
    for program in programs:
        both = [
            _lane(side, label, analysis) for side, label, analysis in (("before", program.before, before), ("after", program.after, after))
        ]
        lanes = tuple(lane for lane in both if lane is not None)
        if len(lanes) == 2:
            found[f"program:{program.name}"] = lanes
    return found


def _lane(side: str, label: str | None, analysis: Session) -> Lane | None:
    view = analysis.results.view
    names = [f"{k.hlo_module or '?'}" + (f"#{k.program_id}" if k.program_id is not None else "") for k in view.modules]
    if label not in names:
        return None
    chosen, _ = steps_of(view, names.index(label))
    span = windows(view)
    wall = span.wall[chosen]
    pick = int(chosen[np.argsort(wall, kind="stable")[len(chosen) // 2]])
    start, end = int(span.start[pick]), int(span.end[pick])
    rows = np.flatnonzero((view.start >= start) & (view.start < end) & (view.device == view.executions.device[pick]))
    blocks = _blocks(analysis, rows, start)
    kernels = int(view.duration[rows][view.kernel[rows] & (view.execution[rows] == pick)].sum())
    return Lane(side, label, int(view.executions.id[pick]), end - start, kernels, blocks)


def _blocks(analysis: Session, rows: np.ndarray, start: int) -> tuple[Block, ...]:
    view = analysis.results.view
    table = analysis.joined.complete(analysis.joined.activities.take(rows))
    classes, names, instructions = (table[c].to_pylist() for c in ("kernel_class", "name", "hlo_instruction"))
    spans = zip(view.start[rows] - start, view.end[rows] - start, view.kernel[rows], classes, names, instructions, strict=True)
    blocks = [Block(int(s), int(e), bool(k), c, f"{i or n}") for s, e, k, c, n, i in spans]
    return tuple(blocks) if len(blocks) <= MOST_BLOCKS else _coarser(blocks)


def _coarser(blocks: list[Block]) -> tuple[Block, ...]:
    merged: list[Block] = []
    least = (blocks[-1].end - blocks[0].start) // MOST_BLOCKS
    for block in blocks:
        last = merged[-1] if merged else None
        near = last is not None and block.start - last.end < least
        if last is not None and near and (last.is_kernel, last.kernel_class) == (block.is_kernel, block.kernel_class):
            merged[-1] = Block(last.start, max(last.end, block.end), last.is_kernel, last.kernel_class, "")
        else:
            merged.append(block)
    return tuple(merged)
