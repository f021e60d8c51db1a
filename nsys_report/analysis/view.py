"""The columns of a joined capture that the analyses compute with, as NumPy arrays, made once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nsys_report.joined import Joined

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]

HOST_COPIES = frozenset({"HtoD", "HtoA", "DtoH", "AtoH", "HtoH", "UVM HtoD", "UVM DtoH"})
"""Kinds of copies that cross the host, which belong to no class of work."""
COST_COLUMNS = ("bytes_accessed", "weight_bytes", "kv_read_bytes", "kv_write_bytes", "flops")


@dataclass(frozen=True, slots=True)
class ModuleKey:
    """A program: module name and XLA's number, either None where unknown."""

    hlo_module: str | None
    program_id: int | None


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of words as codes; -1 is null."""

    codes: Codes
    words: tuple[str, ...]

    def code(self, word: str) -> int:
        """The code of a word, -2 where the column never holds it (so that no row equals it)."""
        return self.words.index(word) if word in self.words else -2

    def isin(self, words: frozenset[str]) -> Flags:
        """Which rows hold one of the words."""
        chosen = np.array([w in words for w in self.words] + [False])
        return np.asarray(chosen[self.codes], np.bool_)


@dataclass(frozen=True, slots=True)
class Executions:
    """The executions' columns, in the table's order; `module` and `device` are indices into View.modules and View.devices."""

    id: Ints
    start: Ints
    end: Ints
    module: Ints
    device: Ints
    complete: Flags
    thread: Ints
    """Global thread id of the launching thread, -1 where unknown."""

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class View:
    """Activities in time order; `execution` is the row of `executions`, `instruction` the row of the facts, -1 for none."""

    joined: Joined
    start: Ints
    end: Ints
    kernel: Flags
    work: Flags
    """Kernels, and the copies and memsets on the device that instructions ask for: XLA runs a copy or a slice as either."""
    activity: Coded
    device: Ints
    execution: Ints
    instruction: Ints
    executions: Executions
    modules: tuple[ModuleKey, ...]
    devices: tuple[tuple[int, int], ...]
    """(process id, device ordinal) pairs that ran something."""

    @property
    def duration(self) -> Ints:
        """Duration of each activity, ns; never negative."""
        return np.maximum(self.end - self.start, 0)

    @property
    def whole_work(self) -> Flags:
        """Which activities are the work of complete executions."""
        return self.work & self.in_complete

    @property
    def in_complete(self) -> Flags:
        """Which activities belong to complete executions."""
        complete = np.append(self.executions.complete, False)
        return np.asarray(complete[self.execution], np.bool_)

    def column(self, name: str) -> Coded:
        """A word column of the activities."""
        return coded(self.joined.activities, name)

    def cost(self, name: str) -> tuple[Ints, Flags]:
        """A cost column of the activities: values (0 where unknown) and which are known."""
        return ints(self.joined.activities, name)


def make_view(joined: Joined) -> View:
    """The arrays of a joined capture. Executions whose completeness is null count as complete."""
    activities, table = joined.activities, joined.executions
    devices, (of_activity, of_execution) = _devices(activities, table)
    names, modules = _modules(table)
    executions = Executions(
        id=ints(table, "execution_id")[0],
        start=ints(table, "start_ns")[0],
        end=ints(table, "end_ns")[0],
        module=modules,
        device=of_execution,
        complete=np.asarray(pc.fill_null(table["is_complete"], True).to_numpy(), np.bool_) if len(table) else np.empty(0, np.bool_),
        thread=ints(table, "launch_thread", missing=-1)[0],
    )
    activity = coded(activities, "activity")
    kernel = activity.isin(frozenset({"kernel"}))
    instruction = ints(activities, "instruction_id", missing=-1)[0]
    to_or_from_host = coded(activities, "copy_kind").isin(HOST_COPIES)
    return View(
        joined=joined,
        start=ints(activities, "start_ns")[0],
        end=ints(activities, "end_ns")[0],
        kernel=kernel,
        work=kernel | ((instruction >= 0) & activity.isin(frozenset({"memcpy", "memset"})) & ~to_or_from_host),
        activity=activity,
        device=of_activity,
        execution=_rows(ints(activities, "execution_id", missing=-1)[0], executions.id),
        instruction=instruction,
        executions=executions,
        modules=names,
        devices=devices,
    )


def ints(table: pa.Table, name: str, missing: int = 0) -> tuple[Ints, Flags]:
    """An integer column as int64 with `missing` for null, and which rows are not null. An absent column is all null."""
    if name not in table.column_names:
        return np.full(len(table), missing, np.int64), np.zeros(len(table), np.bool_)
    column = table[name]
    known = np.ones(len(table), np.bool_) if column.null_count == 0 else np.asarray(column.is_valid().to_numpy(), np.bool_)
    filled = column if column.null_count == 0 else pc.fill_null(column, missing)
    return np.asarray(filled.to_numpy(), np.int64), known


def coded(table: pa.Table, name: str) -> Coded:
    """A word column as codes; plain strings are encoded first, an absent column is all null."""
    if name not in table.column_names or len(table) == 0:
        return Coded(np.full(len(table), -1, np.int32), ())
    column = table[name]
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = array.unify_dictionaries().chunk(0) if array.num_chunks else pa.array([], array.type)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    codes = np.asarray(pc.fill_null(array.indices, -1).to_numpy(zero_copy_only=False), np.int32)
    return Coded(codes, tuple(array.dictionary.to_pylist()))


def _rows(ids: Ints, sorted_or_not: Ints) -> Ints:
    """The row of each id, -1 for those not there."""
    if len(sorted_or_not) == 0:
        return np.full(len(ids), -1, np.int64)
    order = np.argsort(sorted_or_not, kind="stable")
    at = np.minimum(np.searchsorted(sorted_or_not, ids, sorter=order), len(order) - 1)
    row = order[at]
    return np.where(sorted_or_not[row] == ids, row, -1)


def _devices(activities: pa.Table, executions: pa.Table) -> tuple[tuple[tuple[int, int], ...], tuple[Ints, Ints]]:
    pairs = [np.stack([ints(t, "process_id", -1)[0], ints(t, "device_id", -1)[0]]) for t in (activities, executions)]
    both = np.concatenate(pairs, axis=1)
    seen = pa.array((both[0] << 16) | (both[1] & 0xFFFF)).dictionary_encode()
    keys, code = seen.dictionary.to_pylist(), np.asarray(seen.indices.to_numpy(), np.int64)
    names = tuple((k >> 16, k & 0xFFFF) for k in keys)
    return names, (code[: len(activities)], code[len(activities) :])


def _modules(executions: pa.Table) -> tuple[tuple[ModuleKey, ...], Ints]:
    """The distinct programs in order of first execution, and the index of each execution's."""
    names, (numbers, known) = coded(executions, "hlo_module"), ints(executions, "program_id")
    seen: dict[tuple[int, int | None], int] = {}
    rows = zip(names.codes.tolist(), numbers.tolist(), known.tolist(), strict=True)
    code = np.array([seen.setdefault((n, p if k else None), len(seen)) for n, p, k in rows], np.int64)
    keys = tuple(ModuleKey(names.words[n] if n >= 0 else None, p) for n, p in seen)
    return keys, code
