"""Runs against their history as one table: every case with its steps, and every figure that is flagged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nsys_report.history.judging import CaseResult, is_step
from nsys_report.history.rule import Judged, kind_of
from nsys_report.reports.model import Column, Notice, Row, Section, Table
from nsys_report.units import duration, share, size, things

SHOWN = ("step_ns", "kernel_time_ns", "host_gap_ns")


def in_words(figure: str, value: float | None) -> str | None:
    """A figure in its unit."""
    if value is None:
        return None
    return {"time": duration, "bytes": size, "coverage": share}[kind_of(figure)](value)


def history_section(results: Sequence[CaseResult], in_full: bool = False) -> Section:
    """One table of all cases; in full with every figure, else with steps, kernel time, host gaps and what is flagged."""
    columns = (
        Column("case", "case", "name"),
        Column("figure", "figure", "name"),
        Column("value", "this run", "text", "", 1),
        Column("median", "median", "text", "of the last ten records on this GPU", 3),
        Column("limit", "limit", "text", "where flagging starts", 2),
        Column("records", "records", "count", "", 5),
        Column("verdict", "verdict", "text"),
    )
    rows = tuple(row for result in results for row in _rows(result, in_full))
    flagged = [r.case for r in results if r.flagged]
    line = f"{things(len(results), 'case')}, {len(flagged)} flagged" + (f": {', '.join(flagged)}." if flagged else ".")
    return Section(
        "history", "Against the history", (line,), tables=(Table("history", "Figures", columns, rows),), notices=tuple(_notices(results))
    )


def _notices(results: Sequence[CaseResult]) -> Iterator[Notice]:
    for r in results:
        if r.perturbed_ns is not None:
            yield Notice(
                "perturbed", f"{r.case}: a self-test; its steps are {duration(r.perturbed_ns)} longer than measured.", severity="info"
            )
        if r.judged and r.treatment == "measured" and not any(judged.records for _, judged in r.judged):
            yield Notice("nothing-compared", f"{r.case}: the history has no record to compare it with.", "nsys-report record adds one")
        if r.others:
            yield Notice(
                "not-comparable",
                f"{r.case}: {things(r.others, 'record')} of another GPU, another kind or contended left out.",
                severity="info",
            )
        if r.record is not None and r.record.contended:
            yield Notice("contended", f"{r.case}: others used the GPU during this run; nothing will be compared with it.")


def _rows(result: CaseResult, in_full: bool) -> Iterator[Row]:
    if result.treatment in ("skipped", "failed"):
        said = result.reason.splitlines()[0] if result.reason else ""
        yield Row((result.case, None, None, None, None, None, f"{result.treatment}: {said}"))
        return
    for name, judged in result.judged:
        if in_full or judged.flagged or name.rpartition(":")[2] in SHOWN:
            values = (in_words(name, v) for v in (judged.value, judged.median, judged.limit))
            yield Row((result.case, name, *values, judged.records, _verdict(result, name, judged)))


def _verdict(result: CaseResult, name: str, judged: Judged) -> str:
    if result.treatment == "once":
        return "run once" + (f": {result.reason}" if result.reason else "")
    if judged.median is None:
        return "first record"
    return ("regression" if is_step(name) or kind_of(name) != "coverage" else "coverage lost") if judged.flagged else "ok"
