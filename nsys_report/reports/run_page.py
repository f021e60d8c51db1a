"""What the report says of the run that made its capture: how it was recorded, what stood beside, and the budget of two passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nsys_report.fact import Fact
from nsys_report.profiling.gpu import Idleness
from nsys_report.profiling.passes import PassPair
from nsys_report.reports.budget_page import CATEGORIES
from nsys_report.reports.model import Column, Notice, Part, Report, Row, Section, Table
from nsys_report.units import duration

BUDGET_COLUMNS = (
    Column("category", "where a step goes", "text"),
    Column("part", "part", "name"),
    Column("origin", "pass", "text", "the pass that the time is known from"),
    Column("typical_ns", "time", "ns"),
    Column("share", "share", "ratio"),
)


def contended_notices(idleness: Idleness) -> list[Notice]:
    """Where others used the GPU."""
    again = "capture again when it is idle"
    return [Notice("contended", f"Others used the GPU: {idleness.summary}", again)] if idleness.contended else []


def with_run(report: Report, shown: Sequence[tuple[str, str]], notices: Iterable[Notice], passes: Sequence[PassPair] = ()) -> Report:
    """The report with a section on the run at its end, and the budgets of two passes before all else."""
    facts = tuple(Fact(slug_of(label), label, value) for label, value in shown)
    last = Section("run", "The run", facts=facts)
    parts = tuple(_extended(part, tuple(notices), tuple(map(passes_section, passes)), last) for part in report.parts)
    return replace(report, parts=parts)


def _extended(part: Part, notices: tuple[Notice, ...], first: tuple[Section, ...], last: Section) -> Part:
    return replace(part, notices=(*notices, *part.notices), sections=(*first, *part.sections, last))


def slug_of(label: str) -> str:
    """The key of a row of the run."""
    return label.lower().replace(" ", "_")


def passes_section(pair: PassPair) -> Section:
    """A program's step as the graph pass took it, its graphs told apart by the node pass."""
    name = pair.name if pair.program_id is None else f"{pair.name}#{pair.program_id}"
    lines = (
        f"{pair.pairs} executions of each pass pair in order" + (f"; {pair.unpaired} have none to pair with." if pair.unpaired else "."),
        f"A step takes {duration(pair.graph_step_ns)} where graphs are traced whole, {duration(pair.node_step_ns)} where each node is; "
        f"the GPU is busy for {duration(pair.graph_busy_ns)} and {duration(pair.node_busy_ns)} of it.",
        f"The step is the first one's; what lies inside its graphs is the second's, times {pair.scale:.3f} above the floor.",
    )
    rows = tuple(Row((CATEGORIES.get(r.category, r.category), r.part, r.origin, r.typical_ns, r.share)) for r in pair.rows)
    total = Row(("a typical step", None, None, sum(r.typical_ns for r in pair.rows), 1.0), is_total=True)
    table = Table("passes_budget", "Budget of the two passes", BUDGET_COLUMNS, (*rows, total))
    return Section("passes", f"Two passes of {name}", lines, tables=(table,), module=name)
