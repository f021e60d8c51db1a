"""What a reader must know of the cut and the join before trusting them: ties, dumps that do not fit, ranges whose work is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hlo_mapping import AUTOTUNING, GOOD_FIT, POOR_FIT, DumpIndex, JoinedExecution, LaunchJoin
from nsys_report.words import share, things

MOST_NAMED = 5
"""Programs that a sentence names."""
MOST_ALIKE = 4
"""Sentences of one kind, before the rest is counted."""


LONGEST_NAME = 40
"""Letters of a kernel's name that a sentence gives."""
WORTH_SAYING = 0.01
"""Share of the kernel time in no execution from which that is said."""


def join_notes(
    join: LaunchJoin, dump: DumpIndex | None, without_work: Mapping[str, int], activities: pa.Table | None = None
) -> tuple[str, ...]:
    """Sentences for the report, most important first; of each kind a few, however many programs ran."""
    strays = _strays(join, dump, activities) if activities is not None else []
    notes = [*_misfits(join, dump), *strays, *_bounds(join.executions), *_ties(join.executions)]
    for module, count in sorted(without_work.items()):
        found = f"{things(count, 'annotated execution')} of {module} without an activity in the capture"
        notes.append(f"{found}: GPU records are missing, or do not name their calls")
    ran = {id(e.program) for e in join.executions}
    unread = [p for p in join.programs.values() if p.problems and id(p) in ran]
    notes += [f"program {p.name} ({p.number}): {'; '.join(p.problems)}" for p in unread[:MOST_ALIKE]]
    if len(unread) > MOST_ALIKE:
        notes.append(f"{things(len(unread) - MOST_ALIKE, 'more program')} of the dump cannot be read whole either")
    return tuple(notes)


def _misfits(join: LaunchJoin, dump: DumpIndex | None) -> list[str]:
    if dump is None:
        return []
    absent = Counter((e.module, e.number) for e in join.executions if e.program is None)
    unknown = {key: count for key, count in absent.items() if key[1] is None or key[1] not in dump.numbers}
    notes = [f"{_listed(unknown)}: the dump holds no module of {_its(unknown)}; another run's dump?"] if unknown else []
    others = []
    for (module, number), count in absent.items():
        if number is None or (module, number) in unknown:
            continue
        if (name := dump.name(number)) != module and not module.startswith(name):
            others.append(f"{_listed({(module, number): count})}: the dump's module {number} is {name}; another run's dump?")
        else:
            fit = min(e.fit or 0.0 for e in join.executions if (e.module, e.number) == (module, number))
            others.append(
                f"{_listed({(module, number): count})}: not as the dump's module of that name and number, which agrees with "
                f"{share(fit)} of the launches; the dump is of another compilation, or the range's end was lost"
            )
    notes += others[:MOST_ALIKE]
    if len(others) > MOST_ALIKE:
        notes.append(f"{things(len(others) - MOST_ALIKE, 'more program')} ran that the dump's modules do not agree with")
    parts = Counter(
        (e.module, e.number) for e in join.executions if e.program is not None and e.fit is not None and POOR_FIT <= e.fit < GOOD_FIT
    )
    if parts:
        notes.append(f"{_listed(parts)}: the dump fits only in part (under {share(GOOD_FIT)} of launches); their join is doubtful")
    return notes


def _strays(join: LaunchJoin, dump: DumpIndex | None, activities: pa.Table) -> list[str]:
    """What kernels are in no execution although there is a dump: how much of the time, and which take most of it."""
    if dump is None:
        return []
    kernels = pc.equal(activities["activity"], "kernel").to_numpy()
    time = np.where(kernels, activities["end_ns"].to_numpy() - activities["start_ns"].to_numpy(), 0)
    stray = kernels & (join.execution < 0) & (join.method != AUTOTUNING)
    part = float(time[stray].sum() / time.sum()) if time.sum() else 0.0
    if part < WORTH_SAYING:
        return []
    rows = activities.select(["name"]).filter(pa.array(stray)).append_column("time", pa.array(time[stray]))
    longest = rows.group_by("name").aggregate([("time", "sum")]).sort_by([("time_sum", "descending")])["name"].to_pylist()[:3]
    named = ", ".join(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…" for name in map(str, longest))
    return [
        f"{share(part)} of the kernel time ({things(int(stray.sum()), 'kernel')}, such as {named}) is in no execution: "
        "no program of the dump launches it so; the dump is of another run or compilation, or the work is not XLA's"
    ]


def _bounds(executions: tuple[JoinedExecution, ...]) -> list[str]:
    """Where the launches and the host's own signs do not agree on where executions begin and end."""
    told = [e for e in executions if e.seen is not None]
    odd = sum(not e.seen for e in told)
    if not odd:
        return []
    return [
        f"{things(odd, 'execution')} of the {len(told):,} found by their launches alone {'begins or ends' if odd == 1 else 'begin or end'} "
        f"where the host saw none end: {'its' if odd == 1 else 'their'} bounds are less sure"
    ]


def _listed(counts: Mapping[tuple[str, int | None], int]) -> str:
    """How many executions of which programs: the most frequent by name, the rest counted."""
    executions = things(sum(counts.values()), "execution")
    ordered = sorted(counts, key=lambda key: -counts[key])
    named = [f"{module} (program {number})" if number is not None else module for module, number in ordered]
    if len(named) == 1:
        return f"{executions} of {named[0]}"
    rest = f" and {len(named) - MOST_NAMED:,} more" if len(named) > MOST_NAMED else ""
    return f"{executions} of {len(named):,} programs, {', '.join(named[:MOST_NAMED])}{rest}"


def _its(programs: Mapping[tuple[str, int | None], int]) -> str:
    return "that number" if len(programs) == 1 else "those numbers"


def _ties(executions: tuple[JoinedExecution, ...]) -> list[str]:
    ties = Counter((e.module, e.number, e.tied) for e in executions if e.tied)
    notes = []
    for (module, number, tied), count in ties.most_common(8):
        others = ", ".join(f"{name} ({n})" for name, n in tied[:4]) + (f" and {len(tied) - 4} more" if len(tied) > 4 else "")
        notes.append(f"{things(count, 'execution')} named {module} ({number}) could as well be of {others}: they launch the same sequence")
    return notes
