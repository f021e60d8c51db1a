"""The device waits for what the host does between two calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nsys_report.analysis.arrays.rows import HostPhaseRow
from nsys_report.analysis.program_rows import rows_of_program
from nsys_report.fact import Fact
from nsys_report.findings.ledger import all_of, claimed_ns
from nsys_report.findings.model import Finding, Source
from nsys_report.findings.rules.offload import offloaded_arguments
from nsys_report.findings.rules.os_calls import os_call_facts, os_call_told
from nsys_report.findings.rules.remedies import fewer_calls
from nsys_report.findings.rules.transfers import (
    BETWEEN,
    ELSEWHERE,
    PREPARING,
    TAKING,
    copied,
    crossing_state,
    helper_executions,
    large_result,
    uploaded_inputs,
)
from nsys_report.findings.step import Context, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.words import count, duration, share, size, things

LEAST_WITHIN = 0.02
"""Share of the idle time that may lie within executions, and is still said to lie between two calls."""


def waiting_for_host(context: Context, step: Step) -> Iterator[Finding]:
    """Idle time of which the host's work between two calls is the reason."""
    named = {
        source
        for rule in (offloaded_arguments, uploaded_inputs, large_result)
        for finding in rule(context, step)
        for source in finding.claims
    }
    claims = {source: part for source, part in all_of(step, *BETWEEN).items() if source not in named}
    claims |= {source: outside for source in claims if (outside := _outside(step, source)) < 1.0}
    idle = claimed_ns(step, claims)
    if any(crossing_state(context, step)) or idle < threshold("host", "least_idle_share") * step.wall_ns:
        return
    (ups, up), (downs, down) = copied(context, step, "HtoD"), copied(context, step, "DtoH")
    helpers, within = helper_executions(context, step), _within(step, claims)
    phases, rows = _phases(context, step), _host_rows(context, step) if step.is_steady else []
    ranges = _named_ranges(rows)
    copies = (ups, up, downs, down)
    yield Finding(
        slug="waiting-for-host",
        title=f"The GPU stands idle {duration(idle)} of each {duration(step.wall_ns)} step{_where(idle, within)}"
        + _longest_words(phases)
        + (f", in {next(iter(ranges))!r}" if 2 * max(ranges.values(), default=0.0) >= idle else ""),
        why=_why_waiting(step, phases, copies, helpers) + _told(rows) + os_call_told(rows),
        remedy=_phase_remedy(step, max(phases, key=phases.__getitem__)) if phases else _remedy(downs >= 0.5, ups, helpers, step.tokens),
        confidence="likely",
        basis="Idle time by cause, from API calls and copies; whether the next call needs the result on the host, a capture cannot show",
        claims=claims,
        gain_ns=claimed_ns(step, claims),
        facts=(
            Fact("idle_ns", "idle for the host", idle, "ns"),
            Fact("within_ns", "of that within executions", within, "ns"),
            Fact("idle_share", "share of the step", idle / step.wall_ns, "ratio"),
            Fact("result_ns", "waiting for the result and its copy", step.part(*TAKING), "ns"),
            Fact("host_ns", "waiting for the host elsewhere", step.part(*ELSEWHERE), "ns"),
            Fact("arguments_ns", "copying arguments in", step.part(*PREPARING), "ns"),
            Fact("copies_in", "copies to the device", ups, "count"),
            Fact("bytes_in", "bytes to the device", up, "bytes"),
            Fact("copies_out", "copies to the host", downs, "count"),
            Fact("bytes_out", "bytes to the host", down, "bytes"),
            Fact("helper_executions", "executions of programs without kernels", helpers, "count"),
            *(Fact(f"range_{n}", name, ns, "ns") for n, (name, ns) in enumerate(ranges.items(), 1)),
            *os_call_facts(rows),
            *(Fact(f"phase_{key}_ns", f"in one typical step: {_PHASES[key]}", time, "ns") for key, time in phases.items()),
        ),
    )


def _outside(step: Step, source: Source) -> float:
    """The share of an account that may lie between two calls: copies of loop conditions to the host are a loop's."""
    row = step.accounts[source].row
    if row != ("copies", "to_host") or not step.typical.get(row):
        return 1.0
    return max(1.0 - step.idle_inside.get(row, 0.0) / step.typical[row], 0.0)


def _within(step: Step, claims: Mapping[Source, float]) -> float:
    """How much of what is claimed lies within executions, and not between two calls, ns."""
    rows = [row for source in claims if (row := step.accounts[source].row) != ("copies", "to_host")]
    return float(sum(min(step.idle_inside.get(row, 0.0), step.typical.get(row, 0.0)) for row in rows))


def _where(idle: float, within: float) -> str:
    """Where that idle time lies: between two calls, or within executions too."""
    if within <= LEAST_WITHIN * idle:
        return " between two calls"
    return f" for the host, {duration(within)} of it within an execution and {duration(idle - within)} between two calls"


_GROUPS = {
    "result": ("before_fetch", "fetch"),
    "after_result": ("after_result",),
    "arguments": ("upload", "program", "between_arguments"),
    "call": ("before_call", "between_calls"),
}
"""Phases of the host (nsys_report.analysis.idle.host_phases) that one remedy shortens; dispatch and launch have rules of their own."""
_PHASES = {
    "result": "until the result is on the host",
    "after_result": "with the result on the host, before anything is given to the device again",
    "arguments": "for arguments: their copies, small programs, and what lies between",
    "call": "before XLA takes the next call",
}
_REMEDIES = {
    "result": "Do not wait for a result at once: start the next call first and read one step late, or read only what is needed, every so "
    "many steps.",
    "after_result": "What the host does with a result before it prepares the next call (checks, logging, choosing what comes next) holds "
    "up the GPU: start the next call before reading this one's result, or compute on the device what the next call needs.",
    "arguments": "Keep what changes little on the device, and pass on what the last call returned, instead of converting host arrays in "
    "every step: each conversion is a copy or a small program of its own; put several small arguments into one array, or make them in the "
    "program.",
}


def _phase_remedy(step: Step, phase: str) -> str:
    """What shortens a phase."""
    return _REMEDIES[phase] if phase in _REMEDIES else fewer_calls(step)


def _host_rows(context: Context, step: Step) -> list[HostPhaseRow]:
    """Rows of schema HOST_PHASES: one typical step of a program, in order."""
    rows: list[HostPhaseRow] = rows_of_program(context.results.host_phases, step.key.hlo_module, step.key.program_id).to_pylist()
    return rows


def _named_ranges(rows: list[HostPhaseRow]) -> dict[str, float]:
    """The time of phases between two calls under ranges that people opened themselves, ns, longest first."""
    found: dict[str, float] = {}
    for row in rows:
        if row["user_range"] and row["phase"] not in ("dispatch", "launch"):
            found[row["user_range"]] = found.get(row["user_range"], 0.0) + row["duration_ns"]
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _told(rows: list[HostPhaseRow]) -> str:
    """What people's own ranges and the threads' names say of the host's time."""
    ranges = _named_ranges(rows)
    said = f" Of that {', '.join(f'{duration(ns)} in {name!r}' for name, ns in list(ranges.items())[:3])}." if ranges else ""
    threads = dict.fromkeys(str(r["thread_name"] or r["thread"]) for r in rows if r["thread"] is not None)
    return said + (f" Threads {' and '.join(threads)} take turns." if len(threads) > 1 else "")


def _phases(context: Context, step: Step) -> dict[str, float]:
    """The phases of one typical step between two calls, ns, in the order of the step; empty where none is known."""
    rows = _host_rows(context, step)
    found = {key: float(sum(r["duration_ns"] for r in rows if r["phase"] in names)) for key, names in _GROUPS.items()}
    return {key: time for key, time in found.items() if time} if step.is_steady else {}


def _longest_words(phases: dict[str, float]) -> str:
    if not phases:
        return " for what the host does"
    longest = max(phases, key=phases.__getitem__)
    return f", mostly {_PHASES[longest].partition(':')[0]}"


def _why_waiting(step: Step, phases: dict[str, float], copies: tuple[float, float, float, float], helpers: float) -> str:
    ups, up, downs, down = copies
    parts = []
    if downs >= 0.5:
        copies_out = "1 copy" if round(downs) <= 1 else f"{count(round(downs))} copies"
        parts.append(f"the result comes back ({copies_out}, {size(down) if down else 'of unknown size'})")
    if ups >= 0.5:
        goes = "1 argument goes" if round(ups) <= 1 else f"{count(round(ups))} arguments go"
        parts.append(f"{goes} up ({size(up) if up else 'of unknown size'})")
    if helpers >= 0.5:
        parts.append(f"{things(max(round(helpers), 1), 'program')} without a kernel put them in place")
    said = f"In each step {', '.join(parts)}; its" if parts else "Its"
    said += f" kernels run for {share(step.busy_ns / step.wall_ns)} of it."
    if not phases:
        return f"{said} The host itself takes {duration(step.part(*ELSEWHERE))}."
    listed = ", ".join(f"{duration(time)} {_PHASES[key].partition(':')[0]}" for key, time in phases.items())
    return f"{said} One typical step, from the device's end to XLA's taking the next call: {listed}."


def _remedy(read_back: bool, ups: float, helpers: float, tokens: float | None) -> str:
    parts = []
    if read_back:
        needed = "take the token there" if tokens is not None else "keep the loss as an array"
        parts.append(f"Start the next call before reading this one's result, or compute on the device what the next call needs ({needed})")
    if ups >= 0.5:
        parts.append("keep arguments on the device and pass on what the last call returned, instead of converting host arrays in every step"
                     + (" (each conversion runs a program of its own)" if helpers >= 0.5 else ""))  # fmt: skip
    parts.append("do several steps in one call")
    text = "; ".join(parts)
    return text[:1].upper() + text[1:] + "."
