"""What a program's step would take if something were otherwise: a row a scenario, and below it what each prediction rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from nsys_report.analysis.program_rows import of_program
from nsys_report.reports.model import Column, Row, Table
from nsys_report.reports.present import Record

if TYPE_CHECKING:
    from nsys_report.analysis.results import AnalysisResults
    from nsys_report.analysis.whatif import Scenario, WhatIf

COLUMNS = (
    Column("scenario", "what if", "text", "what is assumed"),
    Column("predicted_ns", "step", "ns", "the step then, by the floors: kernels keep their time above their floor"),
    Column("saved_ns", "saves", "ns", "the step as it is less the step then"),
    Column("share", "share", "ratio", "of the step as it is", drop_rank=1),
    Column("tokens_per_s", "tokens", "per_s", "tokens a second of the step then", drop_rank=1),
    Column("best_ns", "at its rate", "ns", "the step then, if its kernels keep the share of the ceiling that they have", drop_rank=3),
    Column("assumptions", "assumed", "text", "what the prediction rests on", drop_rank=9),
)
AS_IT_IS = "as it is"


def what_if_tables(results: AnalysisResults, asked: WhatIf | None, record: Record) -> Iterable[Table]:
    """One program's scenarios, where any are asked for and it has a step to predict."""
    steps = of_program(results.steps, record).to_pylist()
    if not steps or asked is None:
        return
    found = of_program(asked.predictions, record).to_pylist()
    rows = [Row((AS_IT_IS, steps[0]["typical_ns"], None, None, steps[0]["tokens_per_s"], None, None))]
    for p in found:
        share = p["saved_ns"] / p["step_ns"] if p["step_ns"] else None
        rows.append(Row((p["scenario"], p["predicted_ns"], p["saved_ns"], share, p["tokens_per_s"], p["best_ns"], p["assumptions"])))
    known = {p["scenario"]: p["assumptions"] for p in found}
    yield Table("what_if", "What if", COLUMNS, tuple(rows), tuple(_notes(results, known, asked.scenarios)))


def _notes(results: AnalysisResults, known: Mapping[str, str], scenarios: Sequence[Scenario]) -> Iterable[str]:
    """What each prediction rests on, and which scenarios predict nothing."""
    written = [scenario.written for scenario in scenarios]
    yield from (f"{one}: {known[one]}" for one in written if one in known)
    if set(known) - set(written):
        yield "together: what two of them would save twice is counted once"
    silent = ", ".join(one for one in written if one not in known)
    if silent and results.ceilings.roof is None:
        yield f"{silent}: not predicted without a bandwidth ceiling (--ceiling measured=GB/s)"
    elif silent:
        yield f"{silent}: would save nothing that is known of this program"
