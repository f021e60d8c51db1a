"""What crosses between host and device in each step: state that comes and goes, inputs, large results."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nsys_report.analysis.times.attribution import windows
from nsys_report.analysis.times.modules import intervals_to_next
from nsys_report.fact import Fact
from nsys_report.findings.ledger import all_of, claimed_ns
from nsys_report.findings.model import Finding
from nsys_report.findings.rules.offload import offloaded_arguments
from nsys_report.findings.rules.remedies import state_on_device
from nsys_report.findings.step import Context, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.intervals import Ints
from nsys_report.words import count, duration, size

TAKING = (("copies", "waiting_for_result"), ("copies", "copies_out"), ("copies", "to_host"))
PREPARING = (("copies", "copies_in"), ("copies", "to_device"), ("copies", "copies_on_device"), ("copies", "pageable_copy"))
ELSEWHERE = (
    *(("host", part) for part in ("host_work", "before_fetch", "synchronising", "allocation")),
    ("copies", "between_copies"),
)
BETWEEN = (*TAKING, *PREPARING, *ELSEWHERE)
"""Parts of the budget in which the device waits for what the host does between two calls of a program."""


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
        remedy=state_on_device(step),
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
