"""What must be known of a run's captures before its figures are trusted."""

from __future__ import annotations

from collections.abc import Iterator

from nsys_report.ranks.run import Run
from nsys_report.reports.model import Notice
from nsys_report.units import count, things


def run_notices(run: Run) -> tuple[Notice, ...]:
    """What must be known before the figures of a run are trusted."""
    return (*_failures(run), *_missing(run), *_clock_notices(run), *_program_notices(run), *_begin_notices(run))


def _failures(run: Run) -> Iterator[Notice]:
    for failure in run.failures:
        yield Notice("rank-failed", f"{failure.name} is left out: {failure.message}", failure.hint, "error")


def _missing(run: Run) -> Iterator[Notice]:
    """Numbers that lack in a row of ranks, and groups that are wider than who came."""
    numbers = {rank.number for rank in run.ranks}
    failed = {int(f.label) for f in run.failures if f.label.isdecimal()}
    lacking = sorted(set(range(min(numbers), max(numbers) + 1)) - numbers - failed) if numbers else []
    if lacking:
        shown = ", ".join(map(str, lacking[:8])) + (" and more" if len(lacking) > 8 else "")
        yield Notice(
            "ranks-missing",
            f"{things(len(lacking), 'rank')} between the captures' numbers {'has' if len(lacking) == 1 else 'have'} no capture: {shown}",
        )
    wider = [one for one in run.collectives if not one.is_whole]
    widest = max((one.ranks or 0 for one in wider), default=0)
    if wider:
        yield Notice(
            "groups-incomplete",
            f"{things(len(wider), 'collective')} among {things(widest, 'rank')} cannot be seen whole, for some of those have no capture: "
            "what looks like moving may be waiting for them",
            "give the captures of all ranks",
        )


def _clock_notices(run: Run) -> Iterator[Notice]:
    method = run.alignment.method
    for kind, text in (
        ("session", "by when their sessions began: good to what the hosts' clocks are, which nobody knows"),
        ("none", "by nothing: they share no collective, and do not say when they began"),
    ):
        named = [capture.name for capture, m in zip(run.captures, method, strict=True) if m == kind]
        if named:
            yield Notice(f"clocks-{kind}", f"the clocks of {_few(named)} are aligned {text}")
    unsure = [run.captures[c].name for c in sorted(run.alignment.unsure)]
    if unsure:
        hint = "capture with a session start on every rank, or more steps"
        yield Notice("steps-unsure", f"the steps of {_few(unsure)} may be shifted by one or more: the steps are too even to tell", hint)


def _program_notices(run: Run) -> Iterator[Notice]:
    """Ranks that do not run the program in which the others meet."""
    if not run.grids:
        return
    program = run.programs[run.grids[0].program]
    without = [f"rank {rank.number}" for rank, runs in zip(run.ranks, program.runs, strict=True) if runs is None]
    if without:
        verb = "does" if len(without) == 1 else "do"
        yield Notice(
            "programs-differ", f"{_few(without)} {verb} not run the program in which the others meet, {program.name}", severity="info"
        )
    runs = [len(r.start) for r in program.runs if r is not None]
    if min(runs) != max(runs):
        yield Notice(
            "steps-differ",
            f"the ranks hold {count(min(runs))} to {count(max(runs))} executions of {program.name}: those that are one step are compared",
            severity="info",
        )


def _begin_notices(run: Run) -> Iterator[Notice]:
    left = int((~run.arrivals.counted[run.meetings.first]).sum()) if len(run.meetings) else 0
    if left:
        verb = "is" if left == 1 else "are"
        yield Notice(
            "capture-begins",
            f"{things(left, 'collective')} in which ranks waited for a capture to begin {verb} not counted as late",
            severity="info",
        )


def _few(names: list[str]) -> str:
    """A few names, and how many more."""
    shown = ", ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown} and {count(len(names) - 4)} more"
