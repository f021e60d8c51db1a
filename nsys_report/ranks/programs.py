"""The ranks of a run and the programs they have in common, with every collective of all ranks in one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from hlo_mapping import Collective
from nsys_report.ranks.summary import CaptureRuns, CollectiveRuns, DeviceRuns, Ints, ProgramRuns


@dataclass(frozen=True, slots=True, eq=False)
class Rank:
    """A rank of the run: one device of one capture."""

    number: int
    """Its place in the run's order, which reports show; the number in the captures' paths where they tell one for each."""
    capture: int
    """Index of its capture."""
    device: DeviceRuns


@dataclass(frozen=True, slots=True, eq=False)
class SharedProgram:
    """A program that ranks run together."""

    name: str
    collectives: tuple[Collective, ...]
    runs: tuple[ProgramRuns | None, ...]
    """By rank; None for ranks that do not run it."""

    @property
    def tied(self) -> Mapping[str, frozenset[str]]:
        """Of each collective the others that it needs or that need it, as its HLO says."""
        return next((run.tied for run in self.runs if run is not None and run.tied), {})

    @property
    def ranks(self) -> int:
        """How many ranks run it."""
        return sum(run is not None for run in self.runs)


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """Every collective's kernel of every rank, as columns; `program` and `collective` are indices into the shared programs and theirs."""

    rank: Ints
    capture: Ints
    program: Ints
    collective: Ints
    execution: Ints
    occurrence: Ints
    start: Ints
    end: Ints
    exposed: Ints
    since: Ints
    busy: Ints
    row: Ints
    """Its row in CollectiveRuns of its rank's program."""

    def __len__(self) -> int:
        return len(self.rank)

    def take(self, rows: Ints) -> Kernels:
        """Some of the rows."""
        return Kernels(*(getattr(self, f.name)[rows] for f in fields(self)))


def number_ranks(captures: Sequence[CaptureRuns]) -> tuple[Rank, ...]:
    """The devices of all captures in order; a capture's own number counts where each has one device and a number of its own."""
    devices = [(n, device) for n, capture in enumerate(captures) for device in capture.devices]
    labels = [captures[n].label for n, _ in devices]
    own = all(label.isdecimal() for label in labels) and len(set(labels)) == len(labels)
    return tuple(Rank(int(labels[n]) if own else n, capture, device) for n, (capture, device) in enumerate(devices))


def shared_programs(ranks: Sequence[Rank]) -> tuple[SharedProgram, ...]:
    """The programs by signature, those whose collectives take most time first; programs of one rank alone too.

    Programs of one name and of the same collectives count as one even where their signatures differ, unless a rank runs both.
    """
    groups: dict[str, dict[int, ProgramRuns]] = {}
    for n, rank in enumerate(ranks):
        for program in rank.device.programs:
            groups.setdefault(program.signature, {})[n] = program
    merged: dict[object, dict[int, ProgramRuns]] = {}
    for signature, members in groups.items():
        first = next(iter(members.values()))
        alike = (first.name, frozenset((c.instruction, c.kind, c.bytes) for c in first.collectives))
        key = alike if first.collectives and not members.keys() & merged.get(alike, {}).keys() else signature
        merged.setdefault(key, {}).update(members)
    programs = [_shared(members, len(ranks)) for members in merged.values()]
    return tuple(sorted(programs, key=_collective_time, reverse=True))


def _shared(members: dict[int, ProgramRuns], ranks: int) -> SharedProgram:
    known: dict[str, Collective] = {}
    for program in members.values():
        for collective in program.collectives:
            known.setdefault(collective.instruction, collective)
    return SharedProgram(next(iter(members.values())).name, tuple(known.values()), tuple(members.get(n) for n in range(ranks)))


def _collective_time(program: SharedProgram) -> int:
    return sum(int((run.runs.end - run.runs.start).sum()) for run in program.runs if run is not None)


def all_kernels(ranks: Sequence[Rank], programs: Sequence[SharedProgram]) -> Kernels:
    """The kernels of the collectives of all programs that more than one rank runs."""
    pieces = list(_pieces(ranks, programs))
    columns = (
        (np.concatenate(column) for column in zip(*pieces, strict=True)) if pieces else (np.empty(0, np.int64) for _ in fields(Kernels))
    )
    return Kernels(*columns)


def _pieces(ranks: Sequence[Rank], programs: Sequence[SharedProgram]) -> Iterator[tuple[Ints, ...]]:
    for p, program in enumerate(programs):
        index = {c.instruction: n for n, c in enumerate(program.collectives)}
        for r, run in enumerate(program.runs):
            if run is not None and program.ranks > 1 and len(run.runs):
                yield _piece(r, ranks[r].capture, p, np.array([index[c.instruction] for c in run.collectives]), run.runs)


def _piece(rank: int, capture: int, program: int, index: Ints, runs: CollectiveRuns) -> tuple[Ints, ...]:
    same = (np.full(len(runs), value, np.int64) for value in (rank, capture, program))
    return (
        *same,
        index[runs.collective],
        runs.execution,
        runs.occurrence,
        runs.start,
        runs.end,
        runs.exposed,
        runs.since,
        runs.busy,
        np.arange(len(runs), dtype=np.int64),
    )
