"""What a step would take if something were otherwise, from the budget's floors, with the assumptions said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hlo_mapping import ELEMENT_BITS, WORD, column
from nsys_report.analysis.arrays.schemas import MODULE_KEY
from nsys_report.analysis.arrays.tables import Column, table
from nsys_report.analysis.program_rows import of_program
from nsys_report.analysis.results import AnalysisResults
from nsys_report.errors import UsageError

STORAGE_BITS = {"f32": 32, "bf16": 16, "f16": 16, "int8": 8, "fp8": 8, "int4": 4, "fp4": 4}
"""Types that weights or a KV cache can be stored in, without what their scales take."""
SCENARIOS = ("weights=TYPE", "kv=TYPE", "no-host-gap", "kv_gather=fused")
HOST_CATEGORIES = frozenset({"launch", "host", "copies", "compile", "profiler"})
"""Budget categories that vanish without host gaps: the device's own pauses and other executions' kernels stay."""

WHAT_IF = pa.schema(
    [
        *MODULE_KEY,
        column("scenario", WORD, "what is assumed, or all of it together"),
        column("step_ns", pa.float64(), "the typical step as it is"),
        column("predicted_ns", pa.float64(), "the step then, by the floors: kernels keep their time above their floor"),
        column("best_ns", pa.float64(), "the step then, if its kernels keep the share of the ceiling that they have; null where alike"),
        column("saved_ns", pa.float64(), "step_ns less predicted_ns"),
        column("tokens_per_s", pa.float64(), "tokens a second of the predicted step; null where unknown"),
        column("assumptions", pa.string(), "what the prediction rests on"),
    ]
)
"""A row per program and scenario, then one for all scenarios together where there are several."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One assumption: its subject (weights, kv, no-host-gap, kv_gather) and value ("" for no-host-gap)."""

    subject: str
    value: str = ""

    @property
    def written(self) -> str:
        return f"{self.subject}={self.value}" if self.value else self.subject


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What was asked, and what is predicted."""

    scenarios: tuple[Scenario, ...]
    predictions: pa.Table
    """Schema WHAT_IF."""


@dataclass(frozen=True, slots=True)
class Saving:
    """Nanoseconds of the typical step that a scenario saves: by the floors, at the best, and why."""

    floor_ns: float
    best_ns: float
    assumptions: str


def parse_scenarios(texts: Iterable[str]) -> tuple[Scenario, ...]:
    """`weights=int8`, `kv=fp8`, `no-host-gap`, `kv_gather=fused`; UsageError for anything else, or for one subject twice."""
    found: list[Scenario] = []
    for text in texts:
        subject, _, value = (part.strip().lower() for part in text.partition("="))
        subject = subject.replace("-", "_") if subject != "no-host-gap" else subject
        good = (
            (subject in ("weights", "kv") and value in STORAGE_BITS)
            or (subject == "no-host-gap" and not value)
            or (subject == "kv_gather" and value == "fused")
        )
        if not good:
            types = ", ".join(STORAGE_BITS)
            raise UsageError(f"not a scenario: {text!r}", f"one of {', '.join(SCENARIOS)}; TYPE is one of {types}")
        if any(s.subject == subject for s in found):
            raise UsageError(f"{subject} is assumed twice", "give each subject one value")
        found.append(Scenario(subject, value))
    return tuple(found)


def what_if(results: AnalysisResults, scenarios: Sequence[Scenario]) -> pa.Table:
    """Schema WHAT_IF. A program has a row for each scenario that changes something of it."""
    rows: list[dict[str, Any]] = []
    for step in results.steps.to_pylist():
        program = _Program.of(results, step)
        found = [(s.written, saving) for s in scenarios if (saving := program.saving(s)) is not None]
        if len(found) > 1:
            found.append((" + ".join(words for words, _ in found), _together(program, [s for _, s in found], scenarios)))
        rows += [_row(step, words, saving) for words, saving in found]
    columns: dict[str, Column] = {name: [r[name] for r in rows] for name in WHAT_IF.names}
    return table(WHAT_IF, columns)


def predict(results: AnalysisResults, scenarios: Sequence[Scenario]) -> WhatIf | None:
    """The scenarios with what they predict; None where nothing is asked."""
    return WhatIf(tuple(scenarios), what_if(results, scenarios)) if scenarios else None


def _row(step: dict[str, Any], words: str, saving: Saving) -> dict[str, Any]:
    typical, tokens = step["typical_ns"], step["tokens_per_execution"]
    predicted, best = max(typical - saving.floor_ns, 0.0), max(typical - saving.best_ns, 0.0)
    return {
        "hlo_module": step["hlo_module"],
        "program_id": step["program_id"],
        "scenario": words,
        "step_ns": typical,
        "predicted_ns": predicted,
        "best_ns": best if best < predicted else None,
        "saved_ns": typical - predicted,
        "tokens_per_s": tokens * 1e9 / predicted if tokens is not None and predicted else None,
        "assumptions": saving.assumptions,
    }


def _together(program: _Program, savings: list[Saving], scenarios: Sequence[Scenario]) -> Saving:
    """The savings of several scenarios, less what two of them would save twice: a fused gather leaves no cache bytes of its own."""
    twice = 0.0
    kv = next((s for s in scenarios if s.subject == "kv"), None)
    if kv is not None and any(s.subject == "kv_gather" for s in scenarios):
        twice = program.kv_saving(kv.value, frozenset({"kv_gather"})).floor_ns
    return Saving(
        sum(s.floor_ns for s in savings) - twice,
        sum(s.best_ns for s in savings) - twice,
        "all of the above together; " + "; ".join(dict.fromkeys(s.assumptions for s in savings)),
    )


@dataclass(frozen=True, slots=True)
class _Program:
    """What is known of one program: rows of its tables, and the bandwidth ceiling in bytes a nanosecond."""

    budget: list[dict[str, Any]]
    classes: list[dict[str, Any]]
    instructions: list[dict[str, Any]]
    """Of class weights."""
    cache: str | None
    roof: float | None

    @classmethod
    def of(cls, results: AnalysisResults, step: dict[str, Any]) -> _Program:
        def mine(rows: pa.Table) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = of_program(rows, step).to_pylist()
            return found

        roof = results.ceilings.roof
        weights = [r for r in mine(results.instructions) if r["kernel_class"] == "weights"]
        return cls(mine(results.budget), mine(results.classes), weights, step["cache_type"], roof.value / 1e9 if roof else None)

    def saving(self, scenario: Scenario) -> Saving | None:
        """What a scenario saves of the typical step; None where it changes nothing, or floors are unknown."""
        if scenario.subject == "no-host-gap":
            saving = self._no_host_gap()
        elif scenario.subject == "kv_gather":
            saving = self._fused_gather()
        elif self.roof is None:
            return None
        elif scenario.subject == "weights":
            saving = self._weights(scenario.value)
        else:
            saving = self.kv_saving(scenario.value, frozenset())
        return saving if saving.floor_ns > 0 else None

    def _weights(self, value: str) -> Saving:
        bits, saved, at_rate, unknown = STORAGE_BITS[value], 0.0, 0.0, 0
        for row in self.instructions:
            stored, weight = ELEMENT_BITS.get(row["weight_type"] or "", 0), row["weight_bytes"] or 0
            unknown += bool(weight and not stored)
            if weight and stored > bits:
                less = weight * (1 - bits / stored)
                saved += less
                at_rate += less / row["bytes_per_s"] * 1e9 if row["bytes_per_s"] else 0.0
        assert self.roof is not None
        words = f"weights stored in {bits} bits and widened inside the product; scales and zero points not counted"
        if unknown:
            words += f"; {unknown} instructions whose storage type is unknown keep theirs"
        return Saving(saved / self.roof, max(at_rate, saved / self.roof), words)

    def kv_saving(self, value: str, only: frozenset[str]) -> Saving:
        """Cache entries stored in fewer bits: its reads and writes shrink alike. `only` restricts it to some classes."""
        assert self.roof is not None
        share = 1 - STORAGE_BITS[value] / ELEMENT_BITS.get(self.cache or "", 16)
        rows = [r for r in self.classes if not only or r["kernel_class"] in only]
        count = sum((r["kv_read_bytes"] or 0) + (r["kv_write_bytes"] or 0) for r in rows)
        floor = count * max(share, 0.0) / self.roof
        words = f"cache entries stored in {STORAGE_BITS[value]} bits instead of {ELEMENT_BITS.get(self.cache or '', 16)}"
        words += "; copies of it that kernels write out would shrink too, which is not counted; nor are scales"
        return Saving(floor, floor, words)

    def _no_host_gap(self) -> Saving:
        saved = sum(r["typical_ns"] for r in self.budget if r["category"] in HOST_CATEGORIES)
        return Saving(saved, saved, "the device never waits for the host: launches run ahead, copies hide behind kernels")

    def _fused_gather(self) -> Saving:
        rows = [r for r in self.classes if r["kernel_class"] == "kv_gather"]
        saved = sum(r["time_per_execution_ns"] or 0 for r in rows)
        words = "attention reads the cache's pages in place, as fast as it now reads the gathered copy; the gather's kernels go"
        return Saving(saved, saved, words)


__all__ = ["SCENARIOS", "WHAT_IF", "Scenario", "WhatIf", "parse_scenarios", "predict", "what_if"]
