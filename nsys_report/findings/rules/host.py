"""The device waits for the host: between steps, for state that crosses each step, for inputs, for results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from nsys_report.analysis.arrays.rows import HostPhaseRow
from nsys_report.analysis.times.attribution import windows
from nsys_report.analysis.times.modules import intervals_to_next
from nsys_report.fact import Fact
from nsys_report.findings.ledger import all_of, claimed_ns
from nsys_report.findings.model import Finding, Source
from nsys_report.findings.rules.offload import offloaded_arguments
from nsys_report.findings.step import Context, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.intervals import Ints
from nsys_report.words import count, duration, share, size, things

TAKING = (("copies", "waiting_for_result"), ("copies", "copies_out"), ("copies", "to_host"))
PREPARING = (("copies", "copies_in"), ("copies", "to_device"), ("copies", "copies_on_device"), ("copies", "pageable_copy"))
ELSEWHERE = (
    *(("host", part) for part in ("host_work", "before_fetch", "synchronising", "allocation")),
    ("copies", "between_copies"),
)
BETWEEN = (*TAKING, *PREPARING, *ELSEWHERE)
"""Parts of the budget in which the device waits for what the host does between two calls of a program."""


LEAST_WITHIN = 0.02
"""Share of the idle time that may lie within executions, and is still said to lie between two calls."""


def copied(context: Context, step: Step, kind: str) -> tuple[float, float]:
    """Copies of a kind between a program's executions: how many and how many bytes, for one step on average.

    Copies that belong to an execution, such as a loop's condition read back, are not among them.
    """
    view = context.view
    rows = view.copies_between
    chosen = rows[view.column("copy_kind").take(rows).isin(frozenset({kind}))]
    number, total = _in_steps(context, step, view.start[chosen], view.device[chosen], view.cost("bytes")[0][chosen])
    return number, total


def helper_executions(context: Context, step: Step) -> float:
    """Executions without a kernel in a step, on average: programs that only copy."""
    runs = context.view.executions
    empty = np.asarray(context.joined.executions["kernel_count"].fill_null(1).to_numpy(), np.int64) == 0
    return _in_steps(context, step, runs.start[empty], runs.device[empty], np.zeros(int(empty.sum()), np.int64))[0]


def _in_steps(context: Context, step: Step, starts: Ints, device: Ints, size_of: Ints) -> tuple[float, float]:
    """How many of these start in a program's steps, and their sizes, for one step on average."""
    runs, span = context.view.executions, windows(context.view)
    followed = intervals_to_next(context.view)[1]
    mine = (runs.module == step.number) & runs.complete
    mine = mine & followed if (mine & followed).any() else mine
    number = total = 0.0
    for one in np.unique(runs.device[mine]):
        here, order = mine & (runs.device == one), np.argsort(starts[device == one], kind="stable")
        times, sums = starts[device == one][order], np.concatenate(([0], np.cumsum(size_of[device == one][order])))
        first, last = np.searchsorted(times, span.start[here]), np.searchsorted(times, span.end[here])
        number += float((last - first).sum())
        total += float((sums[last] - sums[first]).sum())
    # On several devices, executions at a time are one step; in steps that overlap other programs', each gets its share.
    steps = int(mine.sum()) / len(np.unique(runs.device[mine])) / context.shared
    return number / steps, total / steps


def crossing_state(context: Context, step: Step) -> Iterator[Finding]:
    """Parameters, moments or caches that go to the device and come back in every step."""
    (_, up), (_, down) = copied(context, step, "HtoD"), copied(context, step, "DtoH")
    least = threshold("host", "least_state_bytes")
    parameters = _parameter_bytes(step)
    if min(up, down) < max(least, threshold("host", "least_state_share") * (parameters or 0)):
        return
    claims = all_of(step, *TAKING, *ELSEWHERE) | all_of(step, *PREPARING, share=min(down / up, 1.0))
    whole = f", all {size(parameters)} of its arguments" if parameters and up >= parameters else ""
    yield Finding(
        slug="state-crosses-host",
        title=f"The program's state crosses the host in every step: {size(up)} to the device and {size(down)} back",
        why=(
            f"Arguments come from host memory{whole} and results go back to it. The copies and what the host does between them take "
            f"{duration(claimed_ns(step, claims))} of each {duration(step.wall_ns)} step; the kernels take {duration(step.busy_ns)}."
        ),
        remedy=(
            "Keep the state on the device: pass the arrays that the last call returned straight into the next, donate them "
            "(donate_argnums), and fetch them only for a checkpoint. Only the batch has to be copied."
        ),
        confidence="sure",
        basis="Copies that no kernel hides, and the time between them; of what goes up, the share that comes back",
        claims=claims,
        gain_ns=claimed_ns(step, claims),
        facts=(
            Fact("up_bytes", "to the device", up, "bytes"),
            Fact("down_bytes", "to the host", down, "bytes"),
            Fact("argument_bytes", "arguments of the program", parameters, "bytes"),
            Fact("copies_ns", "copies that nothing hides", step.part(("copies", "to_device"), ("copies", "to_host")), "ns"),
            Fact("between_ns", "between copies", step.part(("copies", "between_copies")), "ns"),
            Fact("kernel_ns", "kernel time", step.kernel_ns, "ns"),
        ),
    )


def _parameter_bytes(step: Step) -> int | None:
    return sum(p.shape.byte_size for p in step.module.entry.parameters) if step.module is not None else None


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
        why=_why_waiting(step, phases, copies, helpers) + _told(rows),
        remedy=_REMEDIES[max(phases, key=phases.__getitem__)] if phases else _remedy(downs >= 0.5, ups, helpers, step.tokens),
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
    "call": "The program's own code between two calls, and JAX's handling of the arguments, hold up the GPU: call ahead without waiting, "
    "do several steps in one call (a scan), or pass fewer arguments.",
}


def _host_rows(context: Context, step: Step) -> list[HostPhaseRow]:
    """Rows of schema HOST_PHASES: one typical step of a program, in order."""
    key = (step.key.hlo_module, step.key.program_id)
    return [r for r in context.results.host_phases.to_pylist() if (r["hlo_module"], r["program_id"]) == key]


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


def uploaded_inputs(context: Context, step: Step) -> Iterator[Finding]:
    """Large inputs whose copy to the device nothing hides."""
    number, up = copied(context, step, "HtoD")
    share_of_inputs = 1.0
    if any(crossing_state(context, step)):
        _, down = copied(context, step, "DtoH")
        share_of_inputs, up = max(1 - down / up, 0.0), max(up - down, 0.0)
    staging = (("copies", "between_copies"),) if copied(context, step, "DtoH")[0] < 1.5 else ()
    # Between two copies in one direction the host stages arguments or takes results over: results that are one copy have no between.
    parts = (("copies", "to_device"), ("copies", "copies_in"), ("copies", "pageable_copy"), *staging)
    own = {source for finding in offloaded_arguments(context, step) for source in finding.claims}
    claims = {source: part for source, part in all_of(step, *parts, share=share_of_inputs).items() if source not in own}
    time = claimed_ns(step, claims)
    if up < threshold("host", "least_input_bytes") or not time:
        return
    yield Finding(
        slug="inputs-not-hidden",
        title=f"The device waits while {size(up)} of inputs are copied to it in each step",
        why=f"Copies to the device ({count(round(number, 1))} a step) and the calls that issue them take {duration(time)} in which no "
        "kernel runs.",
        remedy="Copy the next step's inputs while this one computes (jax.device_put ahead of time, a prefetching loader), or copy less: "
        "narrower types, and each array once.",
        confidence="sure",
        basis="Copies to the device that no kernel hides, and the calls that issue them",
        claims=claims,
        gain_ns=claimed_ns(step, claims),
        facts=(
            Fact("up_bytes", "inputs", up, "bytes"),
            Fact("copies", "copies", number, "count"),
            Fact("time_ns", "time that nothing hides", time, "ns"),
        ),
    )


def large_result(context: Context, step: Step) -> Iterator[Finding]:
    """A decoding program whose logits go to the host: a token is four bytes."""
    number, down = copied(context, step, "DtoH")
    claims = all_of(step, ("copies", "to_host"), ("copies", "copies_out"))
    if step.tokens is None or down < threshold("host", "least_output_bytes") or not claims:
        return
    yield Finding(
        slug="logits-to-host",
        title=f"{size(down)} of logits are copied to the host in each step, where a token is 4 bytes",
        why=f"The copy takes {duration(claimed_ns(step, claims))}; what the host then does with the logits is part of its own time.",
        remedy="Choose the token in the program (argmax, or sampling with a key) and return only that; return top-k logits where the "
        "caller needs some.",
        confidence="likely",
        basis="The copy and the call that issues it, as far as nothing hides them",
        claims=claims,
        gain_ns=claimed_ns(step, claims),
        facts=(
            Fact("down_bytes", "copied to the host", down, "bytes"),
            Fact("copies", "copies", number, "count"),
            Fact("time_ns", "time", claimed_ns(step, claims), "ns"),
        ),
    )
