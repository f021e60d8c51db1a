"""What no finding accounts for: how much of a step that is, where it lies, and what to capture to learn more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nsys_report.fact import Fact
from nsys_report.findings.ledger import OF_INSTRUCTIONS, Row
from nsys_report.findings.model import Finding, Source
from nsys_report.findings.parts import places
from nsys_report.findings.step import Record, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.units import duration, share

_TO_CAPTURE = {
    "kernels": "dump the program with --xla_dump_to in the same run, so that its bytes are known",
    "below_roof": "profile {name} with Nsight Compute: what its threads wait for is not in this capture",
    "traffic": "compare with the program as one kernel: which of these bytes have to move, this capture cannot tell",
    "other_executions": "capture the other programs' ranges too (-t cuda,nvtx)",
    "copies": "capture with memory operations and NVTX ranges (-t cuda,nvtx)",
    "launch": "capture once more with --cuda-graph-trace=graph, which leaves launches as short as they are",
}
_HOST = "sample the host as well (-t cuda,nvtx,osrt --sample=process-tree --python-sampling=true), or name its phases with NVTX ranges"


def unexplained(step: Step, left: Mapping[Source, float]) -> Iterator[Finding]:
    """The rest of a step, where it is more than a small part of what lies above the floor."""
    rows: dict[Row, float] = {}
    for source, account in step.accounts.items():
        rows[account.row] = rows.get(account.row, 0.0) + account.ns * left.get(source, 0.0)
    rest, whole = sum(rows.values()), sum(account.ns for account in step.accounts.values())
    if not whole or rest < threshold("programs", "least_rest_share") * whole:
        return
    largest = sorted(((row, ns) for row, ns in rows.items() if ns > 0), key=lambda r: -r[1])[:3]
    mine = _instructions(step, left)
    name = mine[0]["hlo_instruction"] if mine else step.name
    yield Finding(
        slug="unexplained",
        title=f"{duration(rest)} of each step, {share(rest / whole)} of what it takes above its floor, have no known cause",
        why=f"Most of it: {', '.join(f'{_words(row)} {duration(ns)}' for row, ns in largest)}. No rule finds a reason for that time.",
        remedy="Nothing can be advised before its cause is known.",
        confidence="possible",
        basis="The step less its floor, what was not recorded, and what the other findings account for",
        facts=(
            Fact("rest_ns", "without a cause", rest, "ns"),
            Fact("rest_share", "of what lies above the floor", rest / whole, "ratio"),
            *(Fact(f"row_{n}", _words(row), ns, "ns") for n, (row, ns) in enumerate(largest, 1)),
        ),
        places=places(step, mine),
        to_capture=_TO_CAPTURE.get(largest[0][0][0], _HOST).format(name=name),
    )


def _words(row: Row) -> str:
    return f"{row[0]}, {row[1]}".replace("_", " ")


def _instructions(step: Step, left: Mapping[Source, float]) -> list[Record]:
    """The instructions with most time that nobody accounts for."""

    def rest(record: Record) -> float:
        sources = [(category, str(record["instruction_id"])) for category in OF_INSTRUCTIONS]
        return sum(step.accounts[source].ns * left.get(source, 0.0) for source in sources if source in step.accounts)

    return sorted((record for record in step.instructions if rest(record) > 0), key=rest, reverse=True)[:5]
