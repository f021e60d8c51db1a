"""Programs that take next to no time of the device and run once in each step of another: their steps are that program's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from nsys_report.fact import Fact
from nsys_report.findings.ledger import OF_INSTRUCTIONS, Row
from nsys_report.findings.model import Elsewhere, Finding
from nsys_report.findings.step import Context, Step
from nsys_report.units import duration, things

OTHERS: Row = ("other_executions", "kernels")


def with_helpers(context: Context, found: Iterable[Finding]) -> Iterator[Finding]:
    """Findings of the program that leads the helpers, told of the helpers too; and one that says what the helpers' steps consist of."""
    findings = list(found)
    leader = max(context.steps, key=lambda step: step.executions * step.kernel_ns, default=None)
    helpers = [step for step in context.helpers if leader is not None]
    if leader is None or not helpers:
        yield from findings
        return
    for finding in findings:
        about: tuple[Finding | Elsewhere, ...] = (finding, *finding.also)
        told = next((one for one in about if (one.hlo_module, one.program_id) == _key(leader)), None)
        explains = told.explains if told is not None else {}
        more = tuple(_elsewhere(step, leader, explains, OWN.get(finding.slug, "")) for step in helpers)
        yield replace(finding, also=(*finding.also, *(one for one in more if one.explained_ns > 0)))
    yield from _steps_of_another(helpers, leader)


def _key(step: Step) -> tuple[str | None, int | None]:
    return step.key.hlo_module, step.key.program_id


def _rows(step: Step) -> dict[Row, float]:
    """A step's budget by row, in and between executions."""
    rows: dict[Row, float] = {}
    for account in step.accounts.values():
        rows[account.row] = rows.get(account.row, 0.0) + account.ns
    return rows


OWN = {"compiled-inside": "compile", "profiler-overhead": "profiler"}
"""Findings that account for a whole category of any program's steps."""


def _elsewhere(step: Step, leader: Step, explains: Mapping[Row, float], own: str) -> Elsewhere:
    """What a cause of the leader's takes of a helper's step: of idle time and copies the share that it takes of the leader's, by row."""
    theirs, mine = _rows(leader), _rows(step)
    taken = {
        row: mine[row] * min(ns / theirs[row], 1.0)
        for row, ns in explains.items()
        if row[0] not in (*OF_INSTRUCTIONS, *OWN.values()) and row != OTHERS and row in mine and theirs.get(row)
    }
    taken |= {row: ns for row, ns in mine.items() if row[0] == own}
    return Elsewhere(step.key.hlo_module, step.key.program_id, sum(taken.values()), None, step.executions, explains=taken)


def _steps_of_another(helpers: list[Step], leader: Step) -> Iterator[Finding]:
    """Helpers, whose steps hold the work of the program that they run beside."""
    waits = {step.key: _rows(step).get(OTHERS, 0.0) for step in helpers}
    told = sorted((step for step in helpers if waits[step.key] > 0), key=lambda step: -waits[step.key])
    if not told:
        return
    first, *others = told
    yield Finding(
        slug="helper-programs",
        title=f"{things(len(told), 'program')} with next to no work of {'its' if len(told) == 1 else 'their'} own "
        f"{'runs' if len(told) == 1 else 'run'} between the executions of others",
        why=f"From one execution of {first.name} to the next, {duration(waits[first.key])} are kernels of other programs, above all of "
        f"{leader.name}; its own work is {duration(first.kernel_ns)}. Each call of such a program takes the host's time before the next "
        "large one can start.",
        remedy="Keep on the device what they put in place or convert (pass on arrays that the last call returned), or do their work inside "
        f"{leader.name}.",
        confidence="possible",
        basis="Kernels of other executions between two of theirs; what the host's time for them costs stands with the program that waits.",
        hlo_module=first.key.hlo_module,
        program_id=first.key.program_id,
        executions=first.executions,
        explained_ns=waits[first.key],
        explains={OTHERS: waits[first.key]},
        facts=(Fact("programs", "such programs", len(told), "count"), Fact("executions", "executions", first.executions, "count")),
        also=tuple(
            Elsewhere(step.key.hlo_module, step.key.program_id, ns, None, step.executions, explains={OTHERS: ns})
            for step in others
            for ns in [waits[step.key]]
        ),
    )
