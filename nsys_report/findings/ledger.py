"""The ledger of a step: what its time above the floor consists of, and which finding accounts for which part of it.

A step's time above its floor, as the budget has it, stands in **accounts** that add up to it exactly. What the device did for the program
itself (budget categories `traffic`, `below_roof`, `kernels`) is shared out over the instructions that did it: `(category, instruction id)`.
Every other row of the budget (idle time by cause, copies, other executions) is one account: `("part", category, part)`. Of a program that
is called at no steady pace, what of such a row lies outside its executions is an account of its own: `("outside", category, part)`.

A rule **claims** shares, 0 to 1, of the accounts in which its cause shows (`Finding.claims`): `all_of(step, ("host", "host_work"))` a row
of the budget, `work_of(step, records)` all that instructions take above their floor. `settle` goes through the findings in the order of the
rules and gives each what is left: no nanosecond is accounted for twice, and all together never more than the step less its floor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from nsys_report.analysis.arrays.rows import RoofRow
from nsys_report.findings.model import Finding, Record, Source

Row = tuple[str, str]
"""Category and part of a row of the budget."""

FLOOR = "floor"
"""The category that no cause can explain: what the step must take."""
NOT_RECORDED = "not_recorded"
"""The category of work that the capture holds no record of: neither explained nor to be explained."""
WHOLE_GRAPHS: Row = ("kernels", "graphs")
"""The row of graphs that were recorded whole: no kernel in them was."""
OF_INSTRUCTIONS = ("traffic", "below_roof", "kernels")
"""Categories of time that instructions take, which they share."""


@dataclass(frozen=True, slots=True)
class Account:
    """A part of a step that causes can claim."""

    row: Row
    """The row of the budget that it belongs to."""
    ns: float
    """In the typical step."""
    most_ns: float
    """In the typical or the mean step, whichever is more: what happens in few steps has no place in the typical one."""


class Accounted(Protocol):
    """Anything that has accounts: a step (findings.step.Step)."""

    @property
    def accounts(self) -> Mapping[Source, Account]: ...


def make_accounts(
    typical: Mapping[Row, float], mean: Mapping[Row, float], outside: Mapping[Row, float], shares: Mapping[Row, Mapping[Source, float]]
) -> dict[Source, Account]:
    """The accounts of a step from its budget; `shares` are the weights by which instructions share rows of OF_INSTRUCTIONS."""
    accounts: dict[Source, Account] = {("outside", *row): Account(row, ns, ns) for row, ns in outside.items() if ns > 0}
    for row in dict.fromkeys((*typical, *mean)):
        if row[0] in (FLOOR, NOT_RECORDED) or row == WHOLE_GRAPHS:
            continue
        ns, average = typical.get(row, 0.0), mean.get(row, 0.0)
        weights: Mapping[Source, float] | None = shares.get(row)
        if not weights:
            whole: Source = ("part", *row)
            accounts[whole] = Account(row, ns, max(ns, average))
            continue
        total = sum(weights.values())
        for source, weight in weights.items():
            part = weight / total if total else 1 / len(weights)
            accounts[source] = Account(row, ns * part, max(ns, average) * part)
    return accounts


def instruction_shares(
    records: Sequence[Record], spent: Mapping[int, float], roofs: Mapping[int, RoofRow], rows: Iterable[Row]
) -> dict[Row, dict[Source, float]]:
    """How instructions share rows of the budget: bytes that are not needed as bytes, time above the roof as time, unknown work as time.

    `spent` is their time in a step and `roofs` the roofline's rows, by instruction id.
    """
    found: dict[Row, dict[Source, float]] = {}
    for row in rows:
        category, part = row
        if category not in OF_INSTRUCTIONS:
            continue
        name, _, detail = part.partition(": ")
        mine = [r for r in records if (r["kernel_class"] or "unclassified") == name and (category != "traffic" or _detail(r) == detail)]
        weights = {int(r["instruction_id"]): _weight(category, r, spent, roofs) for r in mine}
        if not any(weights.values()):
            weights = {number: spent[number] for number in weights}
        shares: dict[Source, float] = {(category, str(number)): weight for number, weight in weights.items() if weight > 0}
        if shares:
            found[row] = shares
    return found


def _detail(record: Record) -> str:
    return record["class_detail"] or ""


def _weight(category: str, record: Record, spent: Mapping[int, float], roofs: Mapping[int, RoofRow]) -> float:
    number = record["instruction_id"]
    if category == "traffic":
        needed = sum(record[name] or 0 for name in ("weight_bytes", "kv_read_bytes", "kv_write_bytes"))
        return float(max((record["bytes_accessed"] or 0) - needed, 0))
    if category == "kernels":
        return spent[number] if record["bytes_accessed"] is None else 0.0
    roof = roofs.get(number)
    return max(spent[number] - (roof["roof_time_ns"] if roof is not None else 0.0), 0.0)


def all_of(step: Accounted, *rows: Row, share: float = 1.0) -> dict[Source, float]:
    """Claims on whole rows of the budget, or a share of each; rows that the step does not have claim nothing."""
    return {source: share for row in rows if (source := ("part", *row)) in step.accounts}


def work_of(step: Accounted, records: Iterable[Record], *categories: str) -> dict[Source, float]:
    """Claims on all that instructions take above their floor, or on some categories of it (OF_INSTRUCTIONS)."""
    sources = ((category, str(record["instruction_id"])) for record in records for category in categories or OF_INSTRUCTIONS)
    return {source: 1.0 for source in sources if source in step.accounts}


def claimed_ns(step: Accounted, claims: Mapping[Source, float]) -> float:
    """What claims come to in the typical step, ns."""
    return sum(step.accounts[source].ns * share for source, share in claims.items() if source in step.accounts)


def settle(
    accounts: Mapping[Source, Account], findings: Iterable[Finding], left: Mapping[Source, float] | None = None
) -> tuple[list[Finding], dict[Source, float]]:
    """Findings with what they account for: each claim cut to what those before left, and the gain cut in proportion; and what is left.

    `left` are the shares of accounts that nobody has claimed yet, all of them where it is None. `explained_ns` is then the time of the
    cause in the typical step, disjoint from the others'; `explains` the same by row of the budget.
    """
    rest = dict.fromkeys(accounts, 1.0) if left is None else dict(left)
    settled = []
    for finding in findings:
        taken: dict[Source, float] = {}
        for source, wanted in finding.claims.items():
            share = min(wanted, rest.get(source, 0.0))
            if share > 0:
                taken[source], rest[source] = share, rest[source] - share
        settled.append(_with_claims(finding, taken, accounts))
    return settled, rest


def unclaimed(step: Accounted, records: Iterable[Record], left: Mapping[Source, float]) -> list[Record]:
    """The instructions of which at least half of what they take above their floor is accounted for by nobody yet."""

    def is_left(record: Record) -> bool:
        sources = [source for source in work_of(step, [record]) if step.accounts[source].ns > 0]
        whole = sum(step.accounts[source].ns for source in sources)
        return bool(sources) and sum(step.accounts[source].ns * left.get(source, 0.0) for source in sources) >= 0.5 * whole

    return [record for record in records if is_left(record)]


def _with_claims(finding: Finding, taken: Mapping[Source, float], accounts: Mapping[Source, Account]) -> Finding:
    wanted = sum(accounts[source].most_ns * share for source, share in finding.claims.items() if source in accounts)
    got = sum(accounts[source].most_ns * share for source, share in taken.items())
    rows: dict[Row, float] = {}
    for source, share in taken.items():
        row = accounts[source].row
        rows[row] = rows.get(row, 0.0) + accounts[source].ns * share
    gain = finding.gain_ns
    if gain is not None:
        gain *= got / wanted if wanted else 0.0
    return replace(finding, claims=taken, gain_ns=gain, explained_ns=sum(rows.values()), explains=rows)
