"""Narrowing an analysis to some programs, executions or classes, before it is reported."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.analysis.whatif import predict
from nsys_report.errors import UsageError
from nsys_report.units import visible

if TYPE_CHECKING:
    from nsys_report.analysis.results import AnalysisResults
    from nsys_report.findings.model import Finding
    from nsys_report.joined import Joined
    from nsys_report.session import Session

Narrowed = TypeVar("Narrowed", bound="Session")


@dataclass(frozen=True, slots=True)
class Selection:
    """What to keep: programs by name, number or name#number, executions by id, classes by name; empty keeps all."""

    modules: tuple[str, ...] = ()
    executions: tuple[int, ...] = ()
    classes: tuple[str, ...] = ()

    def narrow(self, analysis: Narrowed) -> Narrowed:
        """The analysis of what is kept. Raises UsageError for a name or number that the capture does not hold."""
        if not (self.modules or self.executions or self.classes):
            return analysis
        joined, results, predictions = analysis.joined, analysis.results, analysis.predictions
        causes: tuple[Finding, ...] | None = None
        if self.modules or self.executions:
            chosen = self._executions(joined.executions)
            if self.executions:
                results, causes = _of_executions(analysis, chosen)
            kept = joined.executions.filter(pa.array(chosen))
            results = _with_modules(results, kept)
            predictions = predict(results, predictions.scenarios) if predictions is not None else None
            joined = replace(joined, executions=kept, activities=_activities_of(joined, kept))
        if self.classes:
            named = {name: _with_classes(getattr(results, name), self.classes) for name in ("classes", "details", "instructions", "work")}
            results = replace(results, **named)
        causes = self._findings(analysis, joined) if causes is None else causes
        numbers = tuple(sorted(self.executions))
        counters = analysis.counters.of(_programs(joined)) if analysis.counters is not None else None
        narrowed = replace(analysis, chosen=numbers, narrowed=self.description(), counters=counters)
        return replace(narrowed, joined=joined, results=results, predictions=predictions, causes=causes)

    def _findings(self, analysis: Session, joined: Joined) -> tuple[Finding, ...]:
        """The findings about the capture as a whole and about programs that are kept, over all of their executions."""
        from nsys_report.findings.rules.apply import find

        if not self.modules or not analysis.causes:
            return analysis.causes
        return find(analysis.joined, analysis.results, analysis.health, _programs(joined))

    def description(self) -> str:
        """The selection as a sentence part."""
        parts = (("program", self.modules), ("execution", self.executions), ("class", self.classes))
        return "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in parts if values)

    def _executions(self, table: pa.Table) -> np.ndarray:
        """Which rows of the executions table are chosen."""
        mask = np.ones(len(table), bool)
        if self.modules:
            mask &= _with_names(table, self.modules)
        if self.executions:
            ids = table["execution_id"].to_numpy()
            missing = sorted(set(self.executions) - set(ids.tolist()))
            if missing:
                there = (
                    f"they are numbered {ids.min()} to {ids.max()}" if len(ids) else "it holds none: without XLA there are no executions"
                )
                raise UsageError(f"no execution {missing[0]} in this capture", there)
            mask &= np.isin(ids, self.executions)
        if not mask.any() and len(table):
            asked, names = f"{_things('execution', self.executions)}", f"{_things('program', self.modules)}"
            raise UsageError(f"{asked} is not of {names}", "leave one of --execution and --module out")
        return mask


def _programs(joined: Joined) -> set[tuple[str | None, int | None]]:
    """The programs of a capture's executions, by module name and number."""
    return set(zip(joined.executions["hlo_module"].to_pylist(), joined.executions["program_id"].to_pylist(), strict=True))


def _things(name: str, values: Sequence[object]) -> str:
    return f"{name} {' or '.join(map(str, values))}"


def _with_names(table: pa.Table, wanted: Sequence[str]) -> np.ndarray:
    """Rows of the programs of those names, numbers or name#number. Raises UsageError for a name that is not there."""
    names, numbers = table["hlo_module"].to_pylist(), table["program_id"].to_pylist()
    programs = [(name, str(number), f"{name}#{number}") for name, number in zip(names, numbers, strict=True)]
    mask = np.zeros(len(table), bool)
    for text in wanted:
        hits = np.array([text in ways for ways in programs], bool)
        if not hits.any():
            known = {visible(n) for n in names if n is not None}
            raise UsageError(f"no program {text!r} ran in this capture", _nearest(text, known, {visible(full) for *_, full in programs}))
        mask |= hits
    return mask


def _nearest(text: str, names: Iterable[str], full: Iterable[str]) -> str:
    known = sorted(names)
    close = difflib.get_close_matches(text, sorted(full) if "#" in text else known, 3)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"there are {', '.join(known[:8])}{', …' if len(known) > 8 else ''}" if known else "it holds no execution of an XLA program"


def _of_executions(analysis: Session, chosen: np.ndarray) -> tuple[AnalysisResults, tuple[Finding, ...]]:
    """Figures over the chosen executions alone, cut off or not, and the causes of lost time within them.

    The others count as cut off, since figures are over complete executions. Their activities stay: what the GPU did before an execution
    decides whether it waited for the host.
    """
    from nsys_report.analysis.results import compute_results
    from nsys_report.findings.rules.apply import find

    joined, results = analysis.joined, analysis.results
    at = joined.executions.schema.get_field_index("is_complete")
    marked = replace(joined, executions=joined.executions.set_column(at, joined.executions.schema.field(at), pa.array(chosen)))
    found = compute_results(marked, results.ceilings)
    kept = replace(joined, executions=joined.executions.filter(pa.array(chosen)))
    causes = find(marked, found, analysis.health, _programs(kept)) if analysis.causes else ()
    modules = found.modules
    runs = modules.schema.get_field_index("executions")
    modules = modules.set_column(runs, modules.schema.field(runs), modules["complete_executions"])
    whole = {name: getattr(results, name) for name in ("joined_share", "coverage", "devices")}
    return replace(found, modules=modules, **whole), causes


def _with_modules(results: AnalysisResults, executions: pa.Table) -> AnalysisResults:
    """The tables' rows that are about the programs of those executions; of the coverage, the totals too."""
    keys = set(zip(executions["hlo_module"].to_pylist(), executions["program_id"].to_pylist(), strict=True))
    kept = {}
    for field in fields(results):
        table = getattr(results, field.name)
        if isinstance(table, pa.Table) and {"hlo_module", "program_id"} <= set(table.column_names):
            mine = [key in keys for key in zip(table["hlo_module"].to_pylist(), table["program_id"].to_pylist(), strict=True)]
            if field.name == "coverage":
                mine = [m or scope == "total" for m, scope in zip(mine, table["scope"].to_pylist(), strict=True)]
            kept[field.name] = table.filter(pa.array(mine, pa.bool_()))
    return replace(results, **kept)


def _activities_of(joined: Joined, executions: pa.Table) -> pa.Table:
    """The activities of those executions."""
    wanted = executions["execution_id"].combine_chunks()
    return joined.activities.filter(pc.is_in(joined.activities["execution_id"], value_set=wanted))


def _with_classes(table: Any, classes: tuple[str, ...]) -> Any:
    return table.filter(pc.is_in(table["kernel_class"].cast(pa.string()), value_set=pa.array(classes)))
