"""A copy of a capture that holds what a report reads and nothing else: tables and columns of a list, texts of known kinds, XLA's ranges."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hlo_mapping import Renamer, is_known_kernel
from nsys_report.capture import catalogue
from nsys_report.capture.arrays import decode
from nsys_report.capture.catalogue import Extent, Field, Integer, TableSpec, resolve
from nsys_report.capture.source import Source
from nsys_report.capture.strings import Strings

TABLES = (
    catalogue.KERNEL,
    catalogue.MEMCPY,
    catalogue.MEMSET,
    catalogue.GRAPH_TRACE,
    catalogue.RUNTIME,
    catalogue.SYNCHRONIZATION,
    catalogue.NVTX,
    catalogue.GRAPH_NODE,
    catalogue.PROFILER_OVERHEAD,
    catalogue.CUPTI_OVERHEAD,
    catalogue.MEMORY_USAGE,
    catalogue.DETAILS,
    catalogue.GPU,
    catalogue.CUDA_DEVICE,
    catalogue.CONTEXT,
    catalogue.EXPORT_META,
    catalogue.CAPTURE_META,
)
"""All that is copied, and of each table its columns there; the strings that they refer to come as a table of their own."""

TIMED = frozenset(spec.name for spec in TABLES if any(field.name == "start" for field in spec.fields))
_NAME_COLUMNS = ("shortName", "demangledName", "nameId", "textId")
_META = {
    "EXPORT_PRODUCT_VERSION": r"[\d.]+",
    "EXPORT_SCHEMA_VERSION": r"[\d.]+",
    "EXPORT_CONFIG_TIME_SHIFT": r"-?\d+",
    "MODE": r"(?i:node|graph|none)(?:[:=]\w+)?",
}
"""The settings that are kept, by the end of their names, and what their values look like."""
_API = re.compile(r"^(?:cu|cuda|cudnn|cublas|nvtx|nccl)[A-Z][A-Za-z0-9]*(?:_v\d+|_ptsz|_ptds)*$")
_GPU_KINDS = r"SXM\d?|PCIe|NVL|HBM\d\w?|Ti|SUPER|Ada|Generation|Max-Q|Laptop|GPU|\d+GB|MIG|Blackwell|Server|Workstation|Edition|\dg\.\d+gb"
_GPU = re.compile(
    r"^(?:NVIDIA )?(?:(?:Tesla|GeForce|Quadro|RTX|GTX|TITAN|PRO) )*[A-Z]{0,3}\d{1,4}[A-Za-z]{0,3}" + rf"(?: (?:{_GPU_KINDS}|-))*$"
)
_OVERHEAD = re.compile(
    r"CUPTI|profil|TLS allocation|Chunk Allocation|instrument|buffer flush|lazy|module load|driver compiler|JIT|command buffer full"
)


@dataclass(frozen=True, slots=True)
class NameMap:
    """What a copy calls things: the new names of modules by the old ones, and what renames the rest as in the dump."""

    modules: Mapping[str, str]
    rename: Renamer
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Removed:
    """What a copy leaves out. Counts are of rows."""

    tables: tuple[str, ...]
    ranges: int
    """NVTX ranges that are not XLA's."""
    outside: int
    """Rows outside the window that was asked for."""
    kernels: int
    """Kernel names that neither XLA nor a known library gives, which are numbered instead."""


def anonymous_capture(source: Source, target: Path, names: NameMap, window: tuple[int, int] | None) -> Removed:
    """Writes an SQLite export; `names` are the new ones, `window` the times (ns) outside of which rows go."""
    strings = _Texts(Strings(source), names)
    taken, ranges, outside = set[str](), 0, 0
    with sqlite3.connect(target) as database:
        for spec in TABLES:
            table = resolve(spec.name, source.columns)
            if table is None:
                continue
            taken.add(table)
            columns = _read(source, table, spec)
            if not columns:
                continue  # nothing of it that a report reads
            columns, left_out = _in_window(columns, window) if spec.name in TIMED else (columns, 0)
            outside += left_out
            if spec is catalogue.NVTX:
                before = len(columns["start"])
                columns = strings.ranges(columns)
                ranges = before - len(columns["start"])
            _write(database, spec.name, _texts(spec, columns), strings)
        rows = sorted(strings.written.items())
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, text) for number, text in rows])
    database.close()
    left = tuple(sorted(n for n in source.columns if n not in taken and n != "StringIds" and not n.startswith(("ENUM_", "sqlite_"))))
    return Removed(left, ranges, outside, strings.numbered)


def _read(source: Source, table: str, spec: TableSpec) -> dict[str, pa.Array]:
    """The columns of a spec that a table has, dimensions one by one."""
    fields: list[Field] = []
    for field in spec.fields:
        fields += [Integer(part) for part in field.parts] if isinstance(field, Extent) else [field]
    have = [field for field in fields if field.name in source.columns[table]]
    return source.read(table, have)


def _in_window(columns: dict[str, pa.Array], window: tuple[int, int] | None) -> tuple[dict[str, pa.Array], int]:
    """The rows that lie in a window, ends that are not known counting as starts; and how many do not."""
    if window is None:
        return columns, 0
    start = columns["start"].to_numpy(zero_copy_only=False)
    end = pc.coalesce(columns["end"], columns["start"]).to_numpy(zero_copy_only=False) if "end" in columns else start
    kept = pa.array((start >= window[0]) & (end <= window[1]))
    return {name: values.filter(kept) for name, values in columns.items()}, int(len(start) - (pc.sum(kept).as_py() or 0))


def _texts(spec: TableSpec, columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """The text columns of the small tables, with values that can name nobody; rows whose setting is not kept are gone."""
    if spec is catalogue.GPU and "name" in columns:
        names = [decode(name) for name in columns["name"].to_pylist()]
        return columns | {"name": pa.array([name if _GPU.match(name) else "GPU" for name in names], pa.string())}
    if spec in (catalogue.EXPORT_META, catalogue.CAPTURE_META) and {"name", "value"} <= columns.keys():
        pairs = [(decode(n), decode(v)) for n, v in zip(columns["name"].to_pylist(), columns["value"].to_pylist(), strict=True)]
        kept = [(n, v) for n, v in pairs if any(n.endswith(key) and re.fullmatch(pattern, v) for key, pattern in _META.items())]
        names = [n if n.startswith("EXPORT_") else "CUDA_GRAPH_TRACE_OPTIONS:MODE" for n, _ in kept if n in _META or n.endswith("MODE")]
        return {"name": pa.array(names, pa.string()), "value": pa.array([v for _, v in kept][: len(names)], pa.string())}
    return columns


class _Texts:
    """The strings of a copy: which are referred to, what they become, and the ranges that stay."""

    def __init__(self, strings: Strings, names: NameMap) -> None:
        self._strings, self._modules, self._names = strings, dict(names.modules), names
        self.written: dict[int, str] = {}
        self.numbered = 0

    def take(self, column: str, ids: list[int]) -> None:
        """Keeps what these ids of a column stand for, in the words that may be passed on."""
        for number, text in self._strings.fetch(i for i in ids if i not in self.written).items():
            self.written[number] = self._said(column, text)

    def _said(self, column: str, text: str) -> str:
        if column == "textId":
            return self.range(text) or ""
        if column == "nameId":
            return text if _API.match(text) or (_OVERHEAD.search(text) and text.isascii() and len(text) < 60) else "call"
        rename = self._names.rename
        if self._names.keep or is_known_kernel(text) or rename.knows(text):
            return rename.kernel(text)
        self.numbered += 1
        return f"kernel_of_its_own_{self.numbered}"

    def range(self, text: str) -> str | None:
        """An XLA range with the names of modules and instructions alone; None for a range that is not XLA's."""
        kind, _, rest = text.partition(":")
        if not kind.startswith("Xla") and kind != "Thunk":
            return None
        known = dict(re.findall(r"(hlo_module|module|program_id|hlo_op|unique_hlo_op_id)=([^,#]+)", rest))
        for key in ("hlo_module", "module"):
            if key in known:
                known[key] = self._modules.setdefault(known[key], known[key] if self._names.keep else f"program_{len(self._modules)}")
        for key in ("hlo_op", "unique_hlo_op_id"):
            if key in known:
                known[key] = self._names.rename(known[key])
        return f"{kind if kind.isalnum() else 'Xla'}:#{','.join(f'{key}={value}' for key, value in known.items())}#"

    def ranges(self, columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """The rows of XLA's own ranges, their texts in a column of their own."""
        own = (
            [decode(text) if text else None for text in columns["text"].to_pylist()]
            if "text" in columns
            else [None] * len(columns["start"])
        )
        ids = columns["textId"].to_pylist() if "textId" in columns else [None] * len(own)
        known = self._strings.fetch(i for i in ids if i is not None)
        texts = [self.range(o if o is not None else known.get(i, "")) for o, i in zip(own, ids, strict=True)]
        kept = pa.array(np.array([text is not None for text in texts], bool))
        left = {name: values.filter(kept) for name, values in columns.items() if name not in ("text", "textId", "domainId")}
        return left | {"text": pa.array([text for text in texts if text is not None], pa.string())}


def _write(database: sqlite3.Connection, name: str, columns: dict[str, pa.Array], strings: _Texts) -> None:
    for column in _NAME_COLUMNS:
        if column in columns:
            strings.take(column, [i for i in pc.unique(columns[column]).to_pylist() if isinstance(i, int)])
    names = list(columns)
    kinds = [
        "TEXT" if pa.types.is_string(values.type) or pa.types.is_large_string(values.type) else "INTEGER" for values in columns.values()
    ]
    quoted = ", ".join(f'"{column}" {kind}' for column, kind in zip(names, kinds, strict=True))
    database.execute(f'CREATE TABLE "{name}" ({quoted})')
    marks = ", ".join("?" for _ in names)
    database.executemany(f'INSERT INTO "{name}" VALUES ({marks})', zip(*(values.to_pylist() for values in columns.values()), strict=True))
