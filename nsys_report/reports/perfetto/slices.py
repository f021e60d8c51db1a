"""What a trace shows of an analyzed capture: slices on tracks, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nsys_report.reports.arrays import NONE, codes, ints
from nsys_report.reports.lanes import lanes
from nsys_report.units import kernel, size, visible

if TYPE_CHECKING:
    from nsys_report.analysis.results import AnalysisResults
    from nsys_report.joined import Joined

Ints = NDArray[np.int64]
MOST_ACTIVITIES = 1_000_000
"""GPU activities in a trace; of a longer capture the first so many, rounded down to complete executions."""
CLASSES = ("weights", "attention", "kv_gather", "kv_write", "other")


@dataclass(frozen=True, slots=True)
class Track:
    """A line of the trace: its name under its group's."""

    group: str
    name: str


@dataclass(frozen=True, slots=True)
class Slices:
    """Slices by column: times in ns, the rest indices into `tracks` and `names`, or NONE.

    `flow` joins the slice of an API call (`is_source`) to that of the first activity that it launched.
    """

    start: Ints
    end: Ints
    track: Ints
    name: Ints
    kernel: Ints
    bytes: Ints
    stream: Ints
    execution: Ints
    flow: Ints
    is_source: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.start)


class Words:
    """Numbers for texts, in order of first use."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.numbers.setdefault(visible(text), len(self.numbers))

    def of(self, table: pa.Table, column: str, missing: int = NONE, shown: object = str) -> Ints:
        """The number of each row's word."""
        numbers_of, words = codes(table, column)
        numbers = np.array([self.number(shown(w)) for w in words] + [missing], np.int64)  # type: ignore[operator]
        return numbers[numbers_of]


@dataclass(frozen=True, slots=True)
class Picture:
    """Slices, the tracks and texts that they point at, and what was left out."""

    slices: Slices
    tracks: tuple[Track, ...]
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def picture(joined: Joined, results: AnalysisResults, most: int = MOST_ACTIVITIES, title: str = "") -> Picture:
    """Executions, kernels by class, copies, host gaps and launching calls of a capture, as slices."""
    activities, executions, notes = _limited(joined, most)
    activities = joined.complete(activities)
    names, tracks = Words(), Words()
    gpus = {gpu.device_id: gpu.name for gpu in joined.capture.info.gpus}
    parts = [p for p in (*_activities(activities, names, tracks, gpus), *_executions(executions, results, names, tracks, gpus)) if len(p)]
    parts += [p for p in [_launches(activities, names, tracks)] if len(p)]
    slices = _stacked(parts)
    before = f"{visible(title)}: " if title else ""
    pairs = (text.split("\x1f", 1) for text in _raw(tracks))
    return Picture(slices, tuple(Track(before + group, name) for group, name in pairs), _raw(names), notes)


def _raw(words: Words) -> tuple[str, ...]:
    return tuple(words.numbers)


def _limited(joined: Joined, most: int) -> tuple[pa.Table, pa.Table, tuple[str, ...]]:
    """The first activities and the executions that end within them."""
    activities, executions = joined.activities, joined.executions
    if len(activities) <= most:
        return activities, executions, ()
    until = activities["start_ns"][most].as_py()
    executions = executions.filter(pc.less(executions["end_ns"], until))
    if len(executions):
        until = pc.max(executions["end_ns"]).as_py()
    kept = activities.slice(0, most)
    kept = kept.filter(pc.less_equal(kept["end_ns"], until))
    note = f"The first {len(kept):,} of {len(activities):,} GPU activities"
    return kept, executions, (f"{note}: longer traces do not load well. --execution and --module show others.",)


def _activities(table: pa.Table, names: Words, tracks: Words, gpus: dict[int, str | None]) -> Iterator[Slices]:
    """Kernels on a track for each class, copies and memsets on one for each kind, graphs on theirs."""
    kind, kinds = codes(table, "activity")
    group = _group(table, gpus)
    is_kernel = kind == (kinds.index("kernel") if "kernel" in kinds else -2)
    class_code, classes = codes(table, "kernel_class")
    labels = [f"Kernels: {c}" for c in classes] + ["Kernels: unknown class"]
    copy_code, copies = codes(table, "copy_kind")
    copy_labels = [f"Copies: {c}" for c in copies] + [""]
    kind_labels = ["Memsets" if k == "memset" else "Graphs" if k == "graph" else f"Copies: {k}" for k in kinds] + ["Other"]
    every = list(dict.fromkeys([*(f"Kernels: {c}" for c in CLASSES), *labels, *copy_labels, *kind_labels]))
    of = {label: i for i, label in enumerate(every)}
    label = np.array([of[t] for t in labels])[class_code]
    label = np.where(is_kernel, label, np.array([of[t] for t in kind_labels])[kind])
    label = np.where(~is_kernel & (copy_code >= 0), np.array([of[t] for t in copy_labels])[copy_code], label)
    start, end = ints(table, "start_ns"), ints(table, "end_ns")
    end = np.maximum(end, start)
    lane = lanes(start, end, group.codes * len(every) + label)
    kernel_name = names.of(table, "name", shown=kernel)
    instruction = names.of(table, "hlo_instruction")
    moved = ints(table, "bytes")
    name = np.where(instruction >= 0, instruction, kernel_name)
    name = np.where(is_kernel, name, _copy_names(names, label, every, moved))
    yield Slices(
        start,
        end,
        _tracks(tracks, group, label, every, lane),
        name,
        np.where(is_kernel, kernel_name, NONE),
        np.where(is_kernel, ints(table, "bytes_accessed"), moved),
        ints(table, "stream_id"),
        ints(table, "execution_id"),
        _flows(table),
        np.zeros(len(table), bool),
    )


def _copy_names(names: Words, label: Ints, every: list[str], moved: Ints) -> Ints:
    """Copies by kind and size: few sizes are ever copied."""
    pairs, code = np.unique(np.stack([label, moved]), axis=1, return_inverse=True)
    texts = [every[at].removeprefix("Copies: ") + (f" {size(n)}" if n >= 0 else "") for at, n in pairs.T.tolist()]
    return np.array([names.number(t) for t in texts] or [0], np.int64)[code.reshape(-1)] if len(moved) else moved


@dataclass(frozen=True, slots=True)
class _Groups:
    codes: Ints
    names: tuple[str, ...]


def _group(table: pa.Table, gpus: dict[int, str | None]) -> _Groups:
    """The group of tracks of each row: its device, with the process where several used it."""
    device, process = ints(table, "device_id"), ints(table, "process_id")
    pairs, code = np.unique(np.stack([device, process]), axis=1, return_inverse=True)
    several = len(set(pairs[0].tolist())) < pairs.shape[1]
    texts = [f"GPU {d}" + (f" ({gpus[d]})" if gpus.get(d) else "") + (f", process {p}" if several else "") for d, p in pairs.T.tolist()]
    return _Groups(code.reshape(-1), tuple(texts))


def _tracks(tracks: Words, group: _Groups, label: Ints, every: list[str], lane: Ints) -> Ints:
    """The track of each slice; tracks are numbered in the order of groups and labels, not of time."""
    keys, code = np.unique(np.stack([group.codes, label, lane]), axis=1, return_inverse=True)
    numbers = []
    for g, at, n in keys.T.tolist():
        numbers.append(_track(tracks, group.names[g], every[at] + (f" ({n + 1})" if n else "")))
    return np.array(numbers or [0], np.int64)[code.reshape(-1)] if len(label) else label


def _track(tracks: Words, group: str, name: str) -> int:
    return tracks.numbers.setdefault(f"{visible(group)}\x1f{visible(name)}", len(tracks.numbers))


def _flows(table: pa.Table) -> Ints:
    """The launch of each first activity of a launch, NONE for the rest."""
    process, correlation = ints(table, "process_id"), ints(table, "correlation_id")
    key = (process << 32) | (correlation & 0xFFFFFFFF)
    out = np.full(len(table), NONE, np.int64)
    known = np.flatnonzero((correlation >= 0) & (ints(table, "launch_start_ns") >= 0))
    first = known[np.unique(key[known], return_index=True)[1]]
    out[first] = key[first]
    return out


def _executions(table: pa.Table, results: AnalysisResults, names: Words, tracks: Words, gpus: dict[int, str | None]) -> Iterator[Slices]:
    """Executions by program, and the host gaps before them."""
    if not len(table):
        return
    start, end = ints(table, "start_ns"), ints(table, "end_ns")
    group = _group(table, gpus)
    ids = ints(table, "execution_id")
    lane = lanes(start, end, group.codes)
    name = names.of(table, "hlo_module", names.number("unknown program"))
    yield _plain(start, end, _tracks(tracks, group, np.zeros_like(start), ["Executions"], lane), name, ids)
    gap = ints(table, "host_gap_ns")
    there = np.flatnonzero(gap > 0)
    if len(there):
        begin = start[there] - gap[there]
        some = _Groups(group.codes[there], group.names)
        track = _tracks(tracks, some, np.zeros_like(begin), ["Host gaps"], lanes(begin, start[there], some.codes))
        yield _plain(begin, start[there], track, _gap_names(results, ids[there], names), ids[there])


def _gap_names(results: AnalysisResults, ids: Ints, names: Words) -> Ints:
    """What each gap was mostly."""
    parts = results.gap_parts
    causes = [name for name in parts.column_names if name.endswith("_ns") and name != "host_gap_ns"]
    table = np.stack([ints(parts, cause) for cause in causes])
    own = ints(parts, "execution_id")
    order = np.argsort(own)
    at = order[np.minimum(np.searchsorted(own, ids, sorter=order), len(own) - 1)]
    texts = np.array([names.number(f"host gap, mostly {c.removesuffix('_ns').replace('_', ' ')}") for c in causes], np.int64)
    return np.where(own[at] == ids, texts[table[:, at].argmax(axis=0)], names.number("host gap"))


def _launches(table: pa.Table, names: Words, tracks: Words) -> Slices:
    """The API calls that launched the activities, on a track for each host thread."""
    flow = _flows(table)
    rows = np.flatnonzero(flow >= 0)
    start = ints(table, "launch_start_ns")[rows]
    end = np.maximum(ints(table, "launch_end_ns")[rows], start)
    thread = ints(table, "launch_thread")[rows]
    threads, code = np.unique(thread, return_inverse=True)
    lane = lanes(start, end, code)
    keys, of = np.unique(np.stack([code, lane]), axis=1, return_inverse=True)
    texts = [f"thread {threads[c] & 0xFFFFFF}" + (f" ({n + 1})" if n else "") for c, n in keys.T.tolist()]
    track = np.array([_track(tracks, "Host: calls that launch", t) for t in texts] or [0], np.int64)[of.reshape(-1)]
    name = names.of(table, "launch_api", names.number("launch"))[rows]
    slices = _plain(start, end, track, name, ints(table, "execution_id")[rows])
    return Slices(
        start, end, track, name, slices.kernel, slices.bytes, slices.stream, slices.execution, flow[rows], np.ones(len(rows), bool)
    )


def _plain(start: Ints, end: Ints, track: Ints, name: Ints, execution: Ints) -> Slices:
    none = np.full(len(start), NONE, np.int64)
    return Slices(start, end, track, name, none, none, none, execution, none, np.zeros(len(start), bool))


def _stacked(parts: list[Slices]) -> Slices:
    fields = Slices.__dataclass_fields__
    if not parts:
        return Slices(*(np.empty(0, bool if name == "is_source" else np.int64) for name in fields))
    return Slices(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))
