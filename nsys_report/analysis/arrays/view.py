"""The columns of a joined capture that the analyses compute with, as NumPy arrays, made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nsys_report.capture.arrays import flat
from nsys_report.capture.model import Place, shared_places
from nsys_report.joined import Joined

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

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
        chosen = [n for n, w in enumerate(self.words) if w in words]
        if len(chosen) < 2:
            return self.codes == (chosen[0] if chosen else -2)
        return np.asarray(np.isin(np.arange(-1, len(self.words)), chosen)[self.codes + 1], np.bool_)

    def take(self, rows: Ints) -> Coded:
        """The column's values in some rows."""
        return Coded(self.codes[rows], self.words)


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


@dataclass(frozen=True)
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
    """(process id, device ordinal) pairs that ran something; of a GPU that several processes share, the first pair."""
    shared: frozenset[int]
    """The devices, by index, that several processes use."""
    _columns: dict[str, Coded] = field(default_factory=dict, repr=False, compare=False)
    _costs: dict[str, tuple[Ints, Flags]] = field(default_factory=dict, repr=False, compare=False)
    kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What functions of the view alone have found (see once_per_view)."""

    @cached_property
    def duration(self) -> Ints:
        """Duration of each activity, ns; never negative."""
        return np.maximum(self.end - self.start, 0)

    @cached_property
    def whole_work(self) -> Flags:
        """Which activities are the work of complete executions."""
        return self.work & self.in_complete

    @cached_property
    def in_complete(self) -> Flags:
        """Which activities belong to complete executions."""
        if self.executions.complete.all():
            return self.execution >= 0
        complete = np.append(self.executions.complete, False)
        return np.asarray(complete[self.execution], np.bool_)

    @cached_property
    def copies_between(self) -> Ints:
        """The rows of copies that belong to no execution."""
        return np.flatnonzero((self.column("copy_kind").codes >= 0) & (self.execution < 0))

    @cached_property
    def inside(self) -> Ints:
        """The rows of work that belongs to an execution, complete or not."""
        return np.flatnonzero(self.work & (self.execution >= 0))

    def __reduce__(self) -> tuple[Any, ...]:
        """Carried across processes as what it was made from."""
        return make_view, (self.joined,)

    def on(self, device: int) -> Ints | slice:
        """What picks the activities of a device out of a column."""
        return np.flatnonzero(self.device == device) if len(self.devices) > 1 else slice(None)

    def column(self, name: str) -> Coded:
        """A word column of the activities."""
        if name not in self._columns:
            self._columns[name] = coded(self.joined.activities, name)
        return self._columns[name]

    def cost(self, name: str) -> tuple[Ints, Flags]:
        """A cost column of the activities: values (0 where unknown) and which are known."""
        if name not in self._costs:
            self._costs[name] = ints(self.joined.activities, name)
        return self._costs[name]


Found = TypeVar("Found")


def once_per_view(function: Callable[[View], Found]) -> Callable[[View], Found]:
    """A function of a view alone that is computed once for each view."""
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def kept(view: View) -> Found:
        if name not in view.kept:
            view.kept[name] = function(view)
        found: Found = view.kept[name]
        return found

    return kept


@once_per_view
def executions_by_module(view: View) -> list[Ints]:
    """The executions of each program of View.modules, in the order of the table."""
    return _split(np.arange(len(view.executions)), view.executions.module, len(view.modules))


@once_per_view
def work_by_module(view: View) -> list[Ints]:
    """The rows of work that belongs to executions of each program of View.modules, in order of time."""
    rows = view.inside
    return _split(rows, view.executions.module[view.execution[rows]], len(view.modules))


def _split(rows: Ints, group: Ints, groups: int) -> list[Ints]:
    """The rows of each group, in their order."""
    if groups < 2:
        return [rows][:groups]
    order = np.argsort(group.astype(np.int16) if groups < 1 << 15 else group, kind="stable")  # of short integers by their digits
    return np.split(rows[order], np.cumsum(np.bincount(group, minlength=groups))[:-1])


def make_view(joined: Joined) -> View:
    """The arrays of a joined capture. Executions whose completeness is null count as complete."""
    activities, table = joined.activities, joined.executions
    shared = shared_places(joined.capture.info.gpus) if joined.capture is not None else {}
    devices, (of_activity, of_execution) = _devices(activities, table, shared)
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
    activity, copies = coded(activities, "activity"), coded(activities, "copy_kind")
    kernel = activity.isin(frozenset({"kernel"}))
    instruction = ints(activities, "instruction_id", missing=-1)[0]
    work = kernel.copy()
    others = np.flatnonzero(~kernel)
    by_instruction = (instruction[others] >= 0) & activity.take(others).isin(frozenset({"memcpy", "memset"}))
    work[others] = by_instruction & ~copies.take(others).isin(HOST_COPIES)
    return View(
        joined=joined,
        start=ints(activities, "start_ns")[0],
        end=ints(activities, "end_ns")[0],
        kernel=kernel,
        work=work,
        activity=activity,
        device=of_activity,
        execution=_rows(ints(activities, "execution_id", missing=-1)[0], executions.id),
        instruction=instruction,
        executions=executions,
        modules=names,
        devices=devices,
        shared=frozenset(n for n, place in enumerate(devices) if place in shared.values()),
        _columns={"activity": activity, "copy_kind": copies},
    )


def ints(table: pa.Table, name: str, missing: int = 0) -> tuple[Ints, Flags]:
    """An integer column as int64 with `missing` for null, and which rows are not null. An absent column is all null."""
    if name not in table.column_names:
        return np.full(len(table), missing, np.int64), np.zeros(len(table), np.bool_)
    return _filled(_whole(table[name]), missing, np.int64)


def coded(table: pa.Table, name: str) -> Coded:
    """A word column as codes; plain strings are encoded first, an absent column is all null."""
    if name not in table.column_names or len(table) == 0:
        return Coded(np.full(len(table), -1, np.int32), ())
    array = _whole(table[name])
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    return Coded(_filled(array.indices, -1, np.int32)[0], tuple(array.dictionary.to_pylist()))


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one piece."""
    return flat(column.unify_dictionaries() if isinstance(column, pa.ChunkedArray) else column)


def _filled(array: pa.Array, missing: int, kind: type[np.signedinteger[Any]]) -> tuple[NDArray[Any], Flags]:
    """Values with `missing` for null, and which are not null; shares the array's memory where it can."""
    if array.null_count == 0:
        return array.to_numpy(zero_copy_only=False).astype(kind, copy=False), np.ones(len(array), np.bool_)
    if array.null_count == len(array):
        return np.full(len(array), missing, kind), np.zeros(len(array), np.bool_)
    known = array.is_valid().to_numpy(zero_copy_only=False)
    stored = np.frombuffer(array.buffers()[1], array.type.to_pandas_dtype())[array.offset : array.offset + len(array)]
    values = stored.astype(kind)
    values[~known] = missing
    return values, np.asarray(known, np.bool_)


def _rows(ids: Ints, sorted_or_not: Ints) -> Ints:
    """The row of each id, -1 for those not there."""
    if len(sorted_or_not) == 0:
        return np.full(len(ids), -1, np.int64)
    if (sorted_or_not == np.arange(len(sorted_or_not))).all() and (not len(ids) or ids.max() < len(sorted_or_not)):
        return ids  # negative ids are -1
    order = np.argsort(sorted_or_not, kind="stable")
    at = np.minimum(np.searchsorted(sorted_or_not, ids, sorter=order), len(order) - 1)
    row = order[at]
    return np.where(sorted_or_not[row] == ids, row, -1)


def _devices(
    activities: pa.Table, executions: pa.Table, shared: Mapping[Place, Place]
) -> tuple[tuple[tuple[int, int], ...], tuple[Ints, Ints]]:
    """The (process, device) pairs that occur, and the place among them of each activity's and execution's; pairs on one GPU are one."""
    pairs = [(ints(t, "process_id", -1)[0], ints(t, "device_id", -1)[0]) for t in (activities, executions)]
    if len(activities) and (only := _only_pair(pairs)) is not None:
        return (only,), (np.zeros(len(activities), np.int64), np.zeros(len(executions), np.int64))
    both = [np.concatenate(columns) for columns in zip(*pairs, strict=True)]
    seen = pa.array((both[0] << 16) | (both[1] & 0xFFFF)).dictionary_encode()
    keys, code = seen.dictionary.to_pylist(), np.asarray(seen.indices.to_numpy(), np.int64)
    names = tuple((k >> 16, k & 0xFFFF) for k in keys)
    if shared:
        one_for_all = [shared.get(name, name) for name in names]
        names = tuple(dict.fromkeys(one_for_all))
        code = np.array([names.index(name) for name in one_for_all], np.int64)[code]
    return names, (code[: len(activities)], code[len(activities) :])


def _only_pair(pairs: list[tuple[Ints, Ints]]) -> tuple[int, int] | None:
    """The pair that all activities and executions have in common; None where there are several, or one that is not known."""
    first = tuple(int(column[0]) for column in pairs[0])
    same = all((column == value).all() for columns in pairs for column, value in zip(columns, first, strict=True))
    return (first[0], first[1]) if same and first[1] >= 0 else None


def _modules(executions: pa.Table) -> tuple[tuple[ModuleKey, ...], Ints]:
    """The distinct programs in order of first execution, and the index of each execution's."""
    names, (numbers, known) = coded(executions, "hlo_module"), ints(executions, "program_id")
    seen: dict[tuple[int, int | None], int] = {}
    rows = zip(names.codes.tolist(), numbers.tolist(), known.tolist(), strict=True)
    code = np.array([seen.setdefault((n, p if k else None), len(seen)) for n, p, k in rows], np.int64)
    keys = tuple(ModuleKey(names.words[n] if n >= 0 else None, p) for n, p in seen)
    return keys, code
