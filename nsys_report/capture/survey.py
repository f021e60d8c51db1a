"""What a capture holds, by counting alone: the store counts rows, and only its small tables are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nsys_report.capture import catalogue, tables
from nsys_report.capture.catalogue import TableSpec, api_stem, resolve
from nsys_report.capture.health_items import GraphMode, HealthItem, diagnostic_items, kernel_items, other_items, range_items
from nsys_report.capture.model import ACTIVITY, GRAPH_NODES, NVTX, OVERHEAD, RUNTIME, SYNCHRONIZATIONS, Capture, Omitted
from nsys_report.capture.opening import check_contents, read_info
from nsys_report.capture.source import Condition, IsIn, Source
from nsys_report.capture.stores import open_source
from nsys_report.capture.strings import Strings

_GRAPH_LAUNCHES = ("cuGraphLaunch", "cudaGraphLaunch")
_MODULE_RANGES = ("XlaModule:",)


@dataclass(frozen=True, slots=True)
class Survey:
    """Counts of rows in a capture's tables, and what follows from them."""

    capture: Capture
    """The capture without the rows of its large tables."""
    kernels: int
    graphs: int
    """Graph launches that were recorded whole."""
    copies: int
    """Copies and memsets."""
    calls: int
    """API calls that do more than read or set a thread's state."""
    ranges: int
    """NVTX events."""
    synchronizations: int
    modules: int
    """XlaModule ranges: executions by XLA's own account."""
    items: tuple[HealthItem, ...]

    @property
    def is_damaged(self) -> bool:
        """True when too much is missing for figures about the GPU's work."""
        return any(item.severity == "fatal" for item in self.items)


def survey(path: Path) -> Survey:
    """Counts what a capture holds, without reading its kernels; raises InputError as open_capture does."""
    source = open_source(path)
    try:
        check_contents(source)
        return _survey(source)
    finally:
        source.close()


def _survey(source: Source) -> Survey:
    strings = Strings(source)
    silent = tables.state_call_ids(strings)
    calls = _count(source, catalogue.RUNTIME, (IsIn("nameId", silent, negated=True),) if silent else ())
    kernels, graphs = _count(source, catalogue.KERNEL), _count(source, catalogue.GRAPH_TRACE)
    launches = _count(source, catalogue.RUNTIME, (IsIn("nameId", _api_ids(strings, _GRAPH_LAUNCHES)),))
    modules = _modules(source, strings)
    capture = _without_rows(source)
    items = (
        *kernel_items(kernels, _graph_mode(source, graphs, launches), launches),
        *range_items(capture, modules),
        *other_items(capture),
        *diagnostic_items(capture),
    )
    return Survey(
        capture=capture,
        kernels=kernels,
        graphs=graphs,
        copies=_count(source, catalogue.MEMCPY) + _count(source, catalogue.MEMSET),
        calls=calls,
        ranges=_count(source, catalogue.NVTX),
        synchronizations=_count(source, catalogue.SYNCHRONIZATION),
        modules=modules,
        items=items,
    )


def _count(source: Source, spec: TableSpec, where: tuple[Condition, ...] = ()) -> int:
    """Rows of a table that meet the conditions; 0 where there is no such table."""
    table = resolve(spec.name, source.columns)
    return source.count(table, where) if table is not None else 0


def _modules(source: Source, strings: Strings) -> int:
    """XlaModule ranges."""
    table = resolve(catalogue.NVTX.name, source.columns)
    if table is None or not {"text", "textId"} & set(source.columns[table]):
        return 0
    return source.count(table, tables.range_conditions(source.columns[table], strings, _MODULE_RANGES))


def _api_ids(strings: Strings, stems: tuple[str, ...]) -> tuple[int, ...]:
    """String ids of the API calls of these names, with whatever suffix."""
    texts = strings.fetch(strings.beginning_with(stems))
    return tuple(i for i, text in texts.items() if api_stem(text) in stems)


def _graph_mode(source: Source, graphs: int, launches: int) -> GraphMode:
    """How the work of CUDA graphs is recorded; `graphs` whole ones, of so many `launches`."""
    if graphs:
        return "graph"
    if not launches:
        return "none"
    table = resolve(catalogue.KERNEL.name, source.columns)
    if table is None or "graphNodeId" not in source.columns[table]:
        return "hidden"
    return "node" if source.has_rows(table, (IsIn("graphNodeId", (0,), negated=True),)) else "hidden"


def _without_rows(source: Source) -> Capture:
    activities, runtime = ACTIVITY.empty_table(), RUNTIME.empty_table()
    return Capture(
        path=source.path,
        info=read_info(source, activities, runtime, None),
        activities=activities,
        runtime=runtime,
        nvtx=NVTX.empty_table(),
        graph_nodes=GRAPH_NODES.empty_table(),
        synchronizations=SYNCHRONIZATIONS.empty_table(),
        overhead=OVERHEAD.empty_table(),
        memory_usage=tables.read_memory_usage(source),
        diagnostics=tables.read_diagnostics(source),
        tables=dict.fromkeys(source.columns, 0),
        omitted=Omitted(),
        ranges_read="xla",
    )
