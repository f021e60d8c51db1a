"""What XLA's own NVTX ranges say of each GPU activity: the execution and the thunk that were open on the launching thread.

XLA opens `XlaModule:#...hlo_module=NAME,program_id=N#` around each execution and `Thunk:#...hlo_op=NAME...#` around each launch. A module
range without program_id is of an executable that carries no module (xla/service/gpu/gpu_executable.cc): the autotuner's trial runs, which
are never dumped, and some that were loaded from a cache. Thunks nest; the innermost counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hlo_mapping import Annotations
from nsys_report.capture.arrays import integers
from nsys_report.executions.runs import RowRuns

_MODULE = re.compile(r"XlaModule:#(?:.*,)?hlo_module=([^,#]+)")
_PROGRAM = re.compile(r"program_id=(\d+)")
_DIGITS = 18
"""A program's number fits in 64 bits; a longer one is no number of a program."""
_THUNK = re.compile(r"Thunk:#(?:.*,)?hlo_op=([^,#]+)")
NOT_INSTRUCTIONS = re.compile(r"^(command_buffer|call)(\W|_|$)")
"""Thunks around a graph launch: they name the command buffer, not the instruction (`call` up to mid-2025)."""


@dataclass(frozen=True, slots=True)
class ModuleRanges:
    """XLA's execution ranges as annotated executions: a row per (range, device) that launched something.

    `without_work` counts ranges by module that launched nothing the capture holds.
    """

    annotations: Annotations
    without_work: dict[str, int]


def named_programs(texts: Iterable[str | None]) -> dict[int, str]:
    """The names of modules by program number, as the texts of XLA's ranges give them."""
    found = {}
    for text in texts:
        module, program = _MODULE.search(text or ""), _PROGRAM.search(text or "")
        if module and program and len(program.group(1)) <= _DIGITS:
            found[int(program.group(1))] = module.group(1)
    return found


def annotate(activities: pa.Table, nvtx: pa.Table, dumped: Mapping[str, Sequence[int]] | None = None) -> ModuleRanges:
    """Annotations of a capture's activities (with LAUNCHES columns) from its NVTX table.

    `dumped` holds the numbers of the dump's programs by name. A range without number is an execution of the only program of its name;
    of several it says nothing; of none it is a trial run of the autotuner, if other ranges carry numbers, and else says nothing.
    """
    texts = _dictionary(nvtx, "text", dumped or {})
    modules = np.array([*texts.says, False], bool)
    thunks = np.array([*(bool(_THUNK.search(t)) for t in texts.words), False], bool)
    if not len(nvtx) or not modules.any():
        return ModuleRanges(Annotations.none(len(activities)), {})
    launches = [integers(activities[name]) for name in ("launch_start_ns", "launch_thread", "device_id")]
    runs = RowRuns.of(*launches)
    time, thread, device = (column[runs.first] for column in launches)
    known = nvtx["thread"].is_valid().to_numpy()  # of a range without a thread nobody knows what was launched in it
    starts, ends = integers(nvtx["start_ns"]), integers(nvtx["end_ns"], np.iinfo(np.int64).max)
    owner = integers(nvtx["thread"])
    chosen = np.flatnonzero(modules[texts.codes] & known)
    if not len(chosen):
        return ModuleRanges(Annotations.none(len(activities)), {})
    found = _innermost(starts[chosen], ends[chosen], owner[chosen], time, thread)
    around = np.where(found >= 0, chosen[found], -1)
    annotations = _executions(runs, texts, around, device)
    inner = np.flatnonzero(thunks[texts.codes] & known)
    if len(inner):
        found = _innermost(starts[inner], ends[inner], owner[inner], time, thread)
        thunk = runs.expand(np.where(found >= 0, texts.codes[inner[found]], -1))
        annotations = _with_instructions(annotations, texts, thunk, activities)
    idle = np.setdiff1d(chosen, around)
    return ModuleRanges(annotations, _count_modules(texts, idle))


def _executions(runs: RowRuns, texts: _Words, around: np.ndarray, device: np.ndarray) -> Annotations:
    """Numbers the ranges that launched work, one for each device they launched on; `around` and `device` hold one value a run."""
    name, program = texts.modules()
    text = np.where(around >= 0, texts.codes[around], -1)
    trial = (text >= 0) & (program[text] < 0)
    real = (text >= 0) & ~trial
    pairs = around[real] * (int(device.max(initial=0)) + 2) + device[real]
    _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    execution = np.full(len(around), -1, np.int64)
    execution[real] = inverse
    codes = text[real][first]
    expanded = runs.expand(execution)
    return Annotations(
        expanded,
        tuple(name[c] for c in codes.tolist()),
        tuple(int(program[c]) for c in codes.tolist()),
        np.full(len(expanded), -1, np.int64),
        (),
        runs.expand(trial),
    )


def _with_instructions(annotations: Annotations, texts: _Words, thunk: np.ndarray, activities: pa.Table) -> Annotations:
    names = [m.group(1) if (m := _THUNK.search(t)) else "" for t in texts.words]
    in_graph = activities["graph_node_id"].is_valid().to_numpy()
    # inside a graph the range names what was launched as a whole
    vague = np.array([bool(NOT_INSTRUCTIONS.match(n)) for n in names] + [True])
    code = np.where((thunk >= 0) & ~vague[thunk] & ~in_graph & (annotations.execution >= 0), thunk, -1)
    return Annotations(annotations.execution, annotations.modules, annotations.programs, code, tuple(names), annotations.autotuning)


def _count_modules(texts: _Words, ranges: np.ndarray) -> dict[str, int]:
    name, program = texts.modules()
    counts: dict[str, int] = {}
    codes, numbers = np.unique(texts.codes[ranges], return_counts=True)
    for code, number in zip(codes.tolist(), numbers.tolist(), strict=True):
        if program[code] >= 0:
            counts[name[code]] = counts.get(name[code], 0) + number
    return counts


def _innermost(starts: np.ndarray, ends: np.ndarray, owner: np.ndarray, time: np.ndarray, thread: np.ndarray) -> np.ndarray:
    """For each (time, thread) the index of the range open then on that thread that opened last; -1 where none was.

    Ranges of one thread nest, so those of one depth follow each other and a binary search at each depth finds the candidate.
    """
    found = np.full(len(time), -1)
    best = np.full(len(time), np.iinfo(np.int64).min)
    for one in np.unique(owner):
        ranges = np.flatnonzero(owner == one)
        asked = np.flatnonzero(thread == one)
        if not len(asked):
            continue
        ranges = ranges[np.lexsort((-ends[ranges], starts[ranges]))]
        for level in _levels(starts[ranges], ends[ranges]):
            here = ranges[level]
            at = np.searchsorted(starts[here], time[asked], side="right") - 1
            candidate = here[np.maximum(at, 0)]
            hit = (at >= 0) & (ends[candidate] >= time[asked]) & (starts[candidate] >= best[asked])
            found[asked[hit]] = candidate[hit]
            best[asked[hit]] = starts[candidate[hit]]
    return found


def _levels(starts: np.ndarray, ends: np.ndarray) -> list[np.ndarray]:
    """Splits ranges, sorted by start, into groups whose members do not overlap: their nesting depths."""
    times = np.concatenate([starts, ends])
    # at one instant a range opens after others close, except that it never closes before it opened
    kind = np.concatenate([np.ones(len(starts), np.int8), np.zeros(len(ends), np.int8)])
    kind[len(starts) :][ends <= starts] = 2
    order = np.lexsort((kind, times))
    step = np.where(order < len(starts), 1, -1)
    depth = np.cumsum(step)
    of_range = np.empty(len(starts), np.int64)
    opened = order < len(starts)
    of_range[order[opened]] = depth[opened]
    return [np.flatnonzero(of_range == d) for d in np.unique(of_range)]


class _Words:
    """A dictionary column as codes and words, with what its module texts say; `says` marks the module texts that say what runs."""

    def __init__(self, codes: np.ndarray, words: list[str], dumped: Mapping[str, Sequence[int]]) -> None:
        self.codes, self.words, self._dumped = codes, words, dumped
        is_numbered = any(_MODULE.search(word) and _PROGRAM.search(word) for word in words)
        name, program = self.modules()
        self.says = [
            bool(n) and (p >= 0 or (is_numbered and n not in dumped)) for n, p in zip(name[:-1], program[:-1].tolist(), strict=True)
        ]

    def modules(self) -> tuple[list[str], np.ndarray]:
        """Module name and program number (-1 for none) of each word, with one more entry for code -1."""
        names, numbers = [], []
        for word in self.words:
            module, program = _MODULE.search(word), _PROGRAM.search(word)
            names.append(module.group(1) if module else "")
            alone = self._dumped.get(names[-1], ())
            number = int(program.group(1)) if program and len(program.group(1)) <= _DIGITS else alone[0] if len(alone) == 1 else -1
            numbers.append(number if module else -1)
        return [*names, ""], np.array([*numbers, -1], np.int64)


def _dictionary(table: pa.Table, name: str, dumped: Mapping[str, Sequence[int]]) -> _Words:
    column = table[name].combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = pc.dictionary_encode(column)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    words = [w or "" for w in column.dictionary.to_pylist()] or [""]
    return _Words(column.indices.fill_null(-1).to_numpy(zero_copy_only=False), words, dumped)
