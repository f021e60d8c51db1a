"""The tables of a run of many ranks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nsys_report.analysis.roofline.ceilings import Ceilings
from nsys_report.ranks.lateness import Lateness
from nsys_report.ranks.run import Run
from nsys_report.ranks.words import cause_of
from nsys_report.reports.model import Column, Mark, Row, Table
from nsys_report.units import Value, count, things

MOST_ARRIVALS = 200_000
"""Rows of the table of arrivals in documents: of larger runs the steps that cost most."""
METHODS = {
    "reference": "reference",
    "collectives": "collectives",
    "session": "session start",
    "none": "unknown",
}


def ranks_table(run: Run) -> Table:
    columns = (
        Column("rank", "rank", "number"),
        Column("capture", "capture", "name", "", 3),
        Column("device", "device", "number", "CUDA device ordinal in its process", 4),
        Column("process_id", "process", "number", "operating system process id", 7),
        Column("gpu", "GPU", "text", "", 6),
        Column("clock_offset_ns", "clock", "change_ns", "what its capture's clock reads more than the first capture's", 1),
        Column("clock_error_ns", "± clock", "ns", "95 % of its collectives end within that of the others', clocks aligned", 1),
        Column("clock_from", "clock from", "text", "what its clock was aligned by", 5),
        Column(
            "clock_drift", "drift", "change_ratio", "how much faster its clock runs than the first capture's; unknown where none shows", 7
        ),
        Column("session_offset_ns", "clock by session", "change_ns", "the same by the times at which the captures say they began", 7),
        Column("steps", "steps", "count", "of the program with most time in collectives"),
        Column(
            "busy_ns",
            "busy",
            "ns",
            "union of its executions' activities, collectives that wait for ranks included, without what they wait for a capture to begin",
        ),
        Column("waiting_ns", "waiting", "ns", "in collectives, until the last rank came"),
        Column("steps_late", "steps late", "count"),
        Column(
            "kernel_ratio", "kernels", "rate", "what its kernels take over the median of the other ranks, the median over instructions", 2
        ),
    )
    return Table("ranks", "Ranks", columns, tuple(_rank_row(run, n) for n in range(len(run.ranks))), lead=32)


def _rank_row(run: Run, n: int) -> Row:
    rank, clock = run.ranks[n], run.clocks
    c = rank.capture
    capture, first = run.captures[c], run.captures[0]
    method = run.alignment.method[c]
    session = first.realtime_ns - capture.realtime_ns if first.realtime_ns is not None and capture.realtime_ns is not None else None
    mine = run.meetings.kernels.rank == n
    waited = run.arrivals.waited[mine & run.arrivals.counted]
    begins = run.arrivals.waited[mine & ~run.arrivals.counted]
    ratio = float(run.kernel_ratio[n])
    late = next((one for one in run.late if one.rank == n), None)
    error = float(clock.error_ns[c])
    values: tuple[Value, ...] = (
        rank.number,
        capture.name,
        rank.device.device_id,
        rank.device.process_id if rank.device.process_id >= 0 else None,
        rank.device.gpu,
        round(float(clock.offset_ns[c])) if method != "none" else None,
        error if np.isfinite(error) else None,
        METHODS[method],
        float(clock.drift[c]) or None,
        session,
        _steps(run, n),
        int(sum(int(program.busy.sum()) for program in rank.device.programs)) - int(begins.sum()),
        int(waited.sum()),
        len(late.steps) if late else 0,
        ratio if np.isfinite(ratio) else None,
    )
    unsure = c in run.alignment.unsure
    return Row(values, (Mark("steps", "?", "another shift by whole steps would fit nearly as well"),) if unsure else ())


def _steps(run: Run, rank: int) -> int:
    """Its executions of the program in which ranks meet; where it has none, of that with most busy time."""
    mine = run.programs[run.grids[0].program].runs[rank] if run.grids else None
    if mine is None:
        mine = max(run.ranks[rank].device.programs, key=lambda program: int(program.busy.sum()), default=None)
    return len(mine.start) if mine is not None else 0


def late_table(run: Run) -> Table:
    columns = (
        Column("rank", "rank", "number"),
        Column("module", "program", "name", "", 4),
        Column("steps_late", "steps late", "count"),
        Column("steps", "of", "count", "steps of it that count"),
        Column("median_ns", "late", "ns", "in the median late step, beyond the median of the other ranks, its collectives summed"),
        Column("lost_ns", "cost", "ns", "over all steps, where it was the last to come"),
        Column("where", "where it lost the time", "text", "", 1),
        Column("cause", "cause", "text", "kernels, or a cause of idle time", 6),
        *(
            Column(f"{name}_ns", f"in {name}", "ns", "beyond the median of the others, in the median late step", 3)
            for name in ("host", "launch", "kernels")
        ),
        Column("collective", "before", "name", "the collective to which it comes late, most time first", 2),
        Column("late_steps", "steps", "text", "", 5),
    )
    return Table("late", "Late ranks", columns, tuple(_late_row(run, late) for late in run.late), lead=16)


def _late_row(run: Run, late: Lateness) -> Row:
    causes = dict(late.causes)
    cause = cause_of(late, float(run.kernel_ratio[late.rank]), bool(run.is_uniform[late.rank]))
    return Row(
        (
            run.ranks[late.rank].number,
            run.programs[late.program].name,
            len(late.steps),
            late.of,
            late.median_ns,
            late.lost_ns,
            cause or None,
            late.cause or None,
            *(causes.get(name, 0.0) for name in ("host", "launch", "kernels")),
            late.collectives[0] if late.collectives else None,
            ", ".join(map(str, late.steps)),
        )
    )


def steps_table(run: Run) -> Table:
    """A row a step: who came last, and what that cost."""
    columns = (
        Column("step", "step", "number"),
        Column("module", "program", "name", "", 4),
        Column("ranks", "ranks", "count", "that have it", 3),
        Column("last_rank", "latest rank", "number", "whose lateness cost most in it"),
        Column("late_ns", "late", "ns", "how much later than the others' median that rank came, its collectives summed"),
        Column("waited_ns", "others waited", "ns", "the mean over the other ranks"),
    )
    rows = []
    for grid in run.grids:
        for step in np.flatnonzero(np.isfinite(grid.late).any(axis=0)).tolist():
            lost = np.nan_to_num(grid.lost[:, step])
            worst = int(lost.argmax())
            known = lost[worst] > 0
            rows.append(
                Row(
                    (
                        step,
                        run.programs[grid.program].name,
                        int(np.isfinite(grid.late[:, step]).sum()),
                        run.ranks[worst].number if known else None,
                        float(grid.late[worst, step]) if known else None,
                        float(np.nanmean(np.delete(grid.waited[:, step], worst))),
                    )
                )
            )
    return Table("steps", "Steps", columns, tuple(rows), lead=16)


def collectives_table(run: Run, ceilings: Ceilings | None = None) -> Table:
    columns = (
        Column("collective", "collective", "name"),
        Column("module", "program", "name", "", 6),
        Column("kind", "kind", "text", "", 3),
        Column("group", "ranks", "count", "that meet in it"),
        Column(
            "bytes",
            "bytes",
            "bytes",
            "as nccl-tests counts them: an all-reduce's buffer, the whole array of an all-gather or reduce-scatter",
        ),
        Column("per_step", "a step", "count", "", 5),
        Column("time_ns", "time", "ns", "in a step of a rank"),
        Column("waiting_ns", "waiting", "ns", "part of that before the last rank came"),
        Column("exposed_ns", "exposed", "ns", "part of that with no other kernel on the device", 1),
        Column("hidden_ns", "hidden", "ns", "the rest of it", 4),
        Column("moving_ns", "moving", "ns", "what one takes that waits for nobody", 1),
        Column("algorithm_bytes_per_s", "algorithm", "bytes_per_s", "bytes over moving", 3),
        Column("bus_bytes_per_s", "bus", "bytes_per_s", "what a link carries: comparable with its peak whatever the number of ranks"),
        Column("link", "link", "text", "what its ranks are joined by: nvlink on one host, network across hosts", 4),
        Column(
            "share_of_link", "of link", "ratio", "bus bandwidth over the link's ceiling; switches that add up (NVLS, SHARP) can exceed it"
        ),
        Column("arrays", "arrays", "count", "that XLA combined into it", 5),
        Column("op_name", "operation", "name", "the framework's name of it", 8),
        Column("source", "source", "name", "the line that it came from", 8),
    )
    return Table("collectives", "Collectives", columns, tuple(_collective_rows(run, ceilings)), lead=12)


def _collective_rows(run: Run, ceilings: Ceilings | None) -> Iterator[Row]:
    for one in run.collectives:
        limit = ceilings.link(one.link) if ceilings is not None and one.link is not None else None
        missing = Mark("group", "?", "some of its ranks are not among the captures: it may wait for them, and move faster")
        values: tuple[Value, ...] = (
            one.instruction,
            one.program,
            one.kind,
            one.ranks,
            one.bytes,
            one.per_step,
            one.time_ns,
            one.waiting_ns,
            one.exposed_ns,
            one.time_ns - one.exposed_ns,
            one.moving_ns,
            one.algorithm_bytes_per_s,
            one.bus_bytes_per_s,
            one.link,
            one.bus_bytes_per_s / limit.value if limit is not None and one.bus_bytes_per_s else None,
            one.operands,
            one.op_name or None,
            one.source or None,
        )
        yield Row(values, () if one.is_whole else (missing,))


def arrivals_table(run: Run) -> Table:
    columns = (
        Column("step", "step", "number"),
        Column("rank", "rank", "number"),
        Column("module", "program", "name"),
        Column("collective", "collective", "name"),
        Column("occurrence", "time", "count", "how many of the same came before it in the step"),
        Column("arrives_ns", "arrives", "ns", "after the first rank to come"),
        Column("waited_ns", "waited", "ns", "until the last rank came"),
        Column("late_ns", "late", "ns", "beyond the median of the other ranks; 0 within the clocks' error"),
        Column("is_last", "last", "flag"),
        Column("counted", "counts", "flag", "no where a capture began only after the first rank had come"),
    )
    rows, notes = _chosen(run)
    kernels, come = run.meetings.kernels, run.arrivals
    names = [[c.instruction for c in program.collectives] for program in run.programs]
    picked = (
        run.meetings.step,
        kernels.rank,
        kernels.program,
        kernels.collective,
        kernels.occurrence,
        come.arrives,
        come.waited,
        come.late,
    )
    flags = (come.is_last, come.counted)
    found = zip(*(column[rows].tolist() for column in (*picked, *flags)), strict=True)
    made = tuple(
        Row((s, run.ranks[r].number, run.programs[p].name, names[p][c], o, arrives, waited, late, last, counts))
        for s, r, p, c, o, arrives, waited, late, last, counts in found
    )
    return Table("arrivals", "Arrivals at collectives", columns, made, notes, in_full=True)


def _chosen(run: Run) -> tuple[np.ndarray, tuple[str, ...]]:
    """The rows of arrivals by step, then rank; of too many those of the meetings that cost most."""
    met = run.meetings
    rows = np.arange(len(met.kernels))
    notes: tuple[str, ...] = ()
    if len(rows) > MOST_ARRIVALS:
        order = np.argsort(-run.arrivals.lost, kind="stable")
        kept = order[np.cumsum(met.came[order]) <= MOST_ARRIVALS]
        rows = rows[np.isin(met.of, kept)]
        notes = (f"{count(len(kept))} of {things(len(met), 'meeting')}: those that cost most.",)
    return rows[np.lexsort((met.kernels.start[rows], met.kernels.rank[rows], met.step[rows], met.kernels.program[rows]))], notes
