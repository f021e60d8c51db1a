"""Narrowing an analysis to some programs, executions or classes, before it is reported."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.errors import UsageError

if TYPE_CHECKING:
    from nsys_report.joined import Joined
    from nsys_report.notebook import Analysis


@dataclass(frozen=True, slots=True)
class Selection:
    """What to keep: programs by name or name#number, executions by id, classes by name; empty keeps all."""

    modules: tuple[str, ...] = ()
    executions: tuple[int, ...] = ()
    classes: tuple[str, ...] = ()

    def narrow(self, analysis: Analysis) -> Analysis:
        """The analysis of what is kept. Raises UsageError for a name or number that the capture does not hold."""
        if not (self.modules or self.executions or self.classes):
            return analysis
        from nsys_report.analysis.results import analyse

        chosen = self._executions(analysis.joined.executions)
        results = analysis.results
        if self.modules or self.executions:
            kept = keep_executions(analysis.joined, chosen, whole=bool(self.executions))
            results = replace(analyse(kept, results.ceilings), joined_share=results.joined_share, devices=results.devices)
            analysis = replace(analysis, joined=kept)
        if self.classes:
            kept_tables = {name: _with_classes(getattr(results, name), self.classes) for name in ("classes", "details", "instructions")}
            results = replace(results, **kept_tables)
        return replace(analysis, results=results, narrowed=self.words())

    def words(self) -> str:
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
        return mask


def _with_names(table: pa.Table, wanted: Sequence[str]) -> np.ndarray:
    """Rows of the programs of those names, or name#number. Raises UsageError for a name that is not there."""
    names, numbers = table["hlo_module"].to_pylist(), table["program_id"].to_pylist()
    full = [f"{name}#{number}" for name, number in zip(names, numbers, strict=True)]
    mask = np.zeros(len(table), bool)
    for text in wanted:
        hits = np.array([text in pair for pair in zip(names, full, strict=True)], bool)
        if not hits.any():
            raise UsageError(f"no program {text!r} ran in this capture", _nearest(text, {n for n in names if n is not None}))
        mask |= hits
    return mask


def _nearest(text: str, names: Iterable[str]) -> str:
    known = sorted(names)
    close = difflib.get_close_matches(text, known, 3)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"there are {', '.join(known[:8])}{', …' if len(known) > 8 else ''}" if known else "it holds no execution of an XLA program"


def keep_executions(joined: Joined, chosen: np.ndarray, whole: bool) -> Joined:
    """The joined capture with only those rows of the executions, and their activities.

    With `whole` they count as complete: who asks for one execution wants its figures, cut off or not.
    """
    executions = joined.executions.filter(pa.array(chosen))
    if whole:
        at = executions.schema.get_field_index("is_complete")
        executions = executions.set_column(at, executions.schema.field(at), pa.array(np.ones(len(executions), bool)))
    mine = pc.is_in(joined.activities["execution_id"], value_set=executions["execution_id"].combine_chunks())
    return replace(joined, activities=joined.activities.filter(mine), executions=executions)


def _with_classes(table: Any, classes: tuple[str, ...]) -> Any:
    return table.filter(pc.is_in(table["kernel_class"].cast(pa.string()), value_set=pa.array(classes)))
