"""Joins GPU activities to the executions and instructions that launched them, from annotations where there are any, else blind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from hlo_mapping.dump.index import DumpIndex
from hlo_mapping.dump.program import Program
from hlo_mapping.matching import confidence
from hlo_mapping.matching.agreement import holds, same_module
from hlo_mapping.matching.align import align
from hlo_mapping.matching.beam import Cutter
from hlo_mapping.matching.calls import divide, neighbouring_calls
from hlo_mapping.matching.candidates import Candidates, candidates
from hlo_mapping.matching.names import AUTOTUNER
from hlo_mapping.matching.plans import Plan, Plans, plan
from hlo_mapping.matching.result import NONE, Annotations, JoinedExecution, LaunchJoin, completed
from hlo_mapping.matching.segments import Segment
from hlo_mapping.matching.tokens import LaunchStream, Token, launch_streams


def join(activities: pa.Table, dump: DumpIndex | None, annotations: Annotations, host_functions: np.ndarray | None = None) -> LaunchJoin:
    """Finds execution and instruction of every activity (ACTIVITIES and LAUNCHES columns, in time order).

    `host_functions` counts, for each activity, the host functions that its thread had put on streams before launching it: XLA's runtime
    does so at the end of every execution.

    Annotated launches keep their annotated execution; within a CUDA graph, where annotations end, the schedule settles the instruction.
    Launches without annotation are cut blind. A dump that does not fit is noticed, never forced.
    """
    tokens, streams = launch_streams(activities, host_functions)
    named = [p for p in annotations.programs if p >= 0]
    chosen = candidates(dump, tokens, named) if dump is not None else Candidates(())
    programs = [dump.load(n) for n in chosen.numbers] if dump is not None else []
    duplicates = {n: [(dump.name(e), e) for e in same] for n, same in chosen.duplicates.items()} if dump is not None else {}
    return _Join(len(activities), tokens, plan(programs, tokens, duplicates), annotations).run(streams)


@dataclass(slots=True)
class _Undivided:
    """Executions of one pattern in which library calls follow each other: their rows, and the host's pauses in some of them."""

    plan: Plan
    codes: np.ndarray
    steps: np.ndarray
    quality: float | None
    readings: np.ndarray
    rows: list[np.ndarray] = field(default_factory=list)
    pauses: list[np.ndarray] = field(default_factory=list)


MOST_PAUSES = 64
"""Executions of a pattern whose pauses are looked at."""


class _Join:
    """Gathers the answers stream by stream."""

    def __init__(self, rows: int, tokens: tuple[Token, ...], plans: Plans, annotations: Annotations) -> None:
        self.tokens, self.plans, self.annotations = tokens, plans, annotations
        self.cutter = Cutter([p.automaton for p in plans.plans])
        self.execution = np.full(rows, NONE, np.int64)
        self.instruction = np.full(rows, NONE, np.int64)
        self.method = np.full(rows, NONE, np.int8)
        self.confidence = np.full(rows, np.nan)
        self.first_part = np.ones(rows, bool)
        self.executions: list[JoinedExecution] = []
        self.codes: dict[tuple[int, str], int] = {}
        self.of_annotated: dict[int, int] = {}
        self.cut_off: dict[object, tuple[bool, int]] = {}
        self.judged: dict[object, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float | None]] = {}
        self.undivided: dict[object, _Undivided] = {}
        self.unwritten: dict[object, list[np.ndarray]] = {}
        self.placed: list[np.ndarray] = []
        self.named: dict[int, list[np.ndarray]] = {}
        self.autotuner = np.array([t.kind == "kernel" and bool(AUTOTUNER.search(t.name)) for t in tokens] + [False], bool)

    def run(self, streams: Iterable[LaunchStream]) -> LaunchJoin:
        repeats = []
        for stream in streams:
            self.stream(stream)
            repeats.append(stream.repeats)
        self.settle()
        for key, pattern in self.undivided.items():
            self.divide(key, pattern)
        for pairs in repeats:
            for values in (self.execution, self.instruction, self.method, self.confidence):
                values[pairs[:, 0]] = values[pairs[:, 1]]
        self.annotate_rest()
        return LaunchJoin(
            completed(self.executions), self.execution, self.instruction, tuple(self.codes), self.method, self.confidence, self.first_part,
            self.plans.programs, (),
        )  # fmt: skip

    def stream(self, stream: LaunchStream) -> None:
        """Splits a stream into runs under one annotation, of trial runs, and without annotation."""
        known = self.annotations.execution[stream.rows]
        trial = self.annotations.autotuning[stream.rows]
        label = np.where(known >= 0, known, np.where(trial, -3, -2))
        bounds = np.flatnonzero(np.diff(label, prepend=label[0] - 1 if len(label) else 0, append=-9))
        runs: dict[int, list[slice]] = {}
        for a, b, what in zip(bounds[:-1].tolist(), bounds[1:].tolist(), label[bounds[:-1]].tolist(), strict=True):
            if what >= 0:
                runs.setdefault(what, []).append(slice(a, b))
            elif what == -3:
                self.mark_autotuning(stream.rows[a:b])
            else:
                self.blind(stream, a, b)
        said = self.annotations.instruction[stream.rows]
        says = bool((said >= 0).any())
        for execution, places in runs.items():
            rows, codes = (_together(column, places) for column in (stream.rows, stream.codes))
            self.annotated(rows, codes, stream.thread, execution)
            if says and ((names := _together(said, places)) >= 0).any():
                self.named.setdefault(self.annotations.programs[execution], []).append(rows[names >= 0])

    def annotated(self, rows: np.ndarray, codes: np.ndarray, thread: int | None, execution: int) -> None:
        module, number = self.annotations.modules[execution], self.annotations.programs[execution]
        program = self.plans.programs.get(number)
        if program is not None and program.name != module and not same_module(program.name, module):
            program = None
        at = self.plans.by_number.get(number) if program is not None else None
        quality: float | None = None
        cut_off, missing = False, 0
        if at is not None:
            key = (number, codes.tobytes())
            if key not in self.judged:
                plan_ = self.plans.plans[at]
                found = align(plan_.automaton, codes)
                quality = self.quality(plan_, codes, found.steps, found.exact, found.extra, found.missing)
                # XLA's range is evidence of its own: where the launches cannot be judged they are the annotated program's
                sure = np.ones(plan_.schedule.end + 1, np.int64)
                self.remember(key, plan_, codes, found.steps, 1.0 if quality is None else quality, sure, number)
                self.cut_off[key] = found.cut_start or found.cut_end, found.missing
            quality, (cut_off, missing) = self.judged[key][4], self.cut_off[key]
            if quality is None or quality >= confidence.POOR_FIT:
                self.unwritten.setdefault(key, []).append(rows)
            elif not self.knows(program, self.annotations.instruction[rows]):
                program = None
        self.of_annotated[execution] = len(self.executions)
        named = number if number >= 0 else None
        self.found(rows, JoinedExecution(module, named, program, "nvtx", 1.0, quality, not cut_off, thread, missing=missing))

    def found(self, rows: np.ndarray, execution: JoinedExecution) -> None:
        """One more execution, and its rows."""
        self.placed.append(rows)
        self.executions.append(execution)

    def knows(self, program: Program | None, said: np.ndarray) -> bool:
        """Whether a program has the instructions that annotations name: then it is the one, however badly its schedule fits."""
        names = [self.annotations.instructions[c] for c in np.unique(said[said >= 0]).tolist()]
        if program is None or program.module is None or not names:
            return False
        return sum(program.module.instruction(n) is not None for n in names) >= confidence.GOOD_FIT * len(names)

    def settle(self) -> None:
        """Writes what was found of the rows: of executions alike all at once, and where a range names the instruction, that one."""
        if self.placed:
            numbers = np.repeat(np.arange(len(self.placed)), [len(rows) for rows in self.placed])
            self.execution[np.concatenate(self.placed)] = numbers
        for key, parts in self.unwritten.items():
            self.write(np.concatenate(parts), key, len(parts))
        for number, parts in self.named.items():
            self.name(number, np.concatenate(parts))

    def name(self, number: int, rows: np.ndarray) -> None:
        """Gives rows the instruction that a range names; but where the inner range was lost and the schedule knows better, that one."""
        program = self.plans.programs.get(number)
        known = list(self.codes)
        pairs = self.annotations.instruction[rows] * (len(known) + 1) + self.instruction[rows] + 1
        distinct, of_row = np.unique(pairs, return_inverse=True)
        codes = []
        for said, after in (divmod(pair, len(known) + 1) for pair in distinct.tolist()):
            name = self.annotations.instructions[said]
            inner = known[after - 1][1] if after > 0 else None
            within = program is not None and program.module is not None and inner is not None and holds(program.module, name, inner)
            codes.append(NONE if within else self.code(number, name))
        named = np.array(codes, np.int64)[of_row]
        chosen = rows[named >= 0]
        self.instruction[chosen] = named[named >= 0]
        self.method[chosen] = confidence.NVTX
        self.confidence[chosen] = confidence.SURE[confidence.NVTX]

    def blind(self, stream: LaunchStream, a: int, b: int) -> None:
        inside = stream.inside[a:b].copy()
        inside[:1] = False
        cut = self.cutter.cut(stream.codes[a:b], inside, stream.fresh[a:b] if stream.fresh is not None else None)
        rows = stream.rows[a:b]
        left = cut.steps < 0
        for segment in cut.segments:
            if not self.segment(stream, a, segment, cut.steps):
                left[segment.start : segment.end] = True
        self.leftovers(rows, stream.codes[a:b], left)

    def segment(self, stream: LaunchStream, offset: int, segment: Segment, steps: np.ndarray) -> bool:
        plan_ = self.plans.plans[segment.program]
        rows = stream.rows[offset + segment.start : offset + segment.end]
        codes = stream.codes[offset + segment.start : offset + segment.end]
        mine = steps[segment.start : segment.end]
        close = [self.plans.plans[r].program for r, dearer in segment.alternatives if dearer < 0.25]
        tied = (*plan_.identical, *((p.name, p.number) for p in close))
        # a kernel or two in the middle of something else are no execution
        weak = segment.seen is False and segment.exact < confidence.WEAK
        key = (plan_.program.number, codes.tobytes(), mine.tobytes(), tied, segment.missing, weak)
        if key not in self.judged:
            quality = None if weak else self.quality(plan_, codes, mine, segment.exact, segment.extra, segment.missing)
            readings = self.plans.readings(plan_, len(close))
            self.remember(key, plan_, codes, mine, quality, readings, plan_.program.number)
            if neighbouring_calls(plan_.automaton, mine):
                self.undivided[key] = _Undivided(plan_, codes, mine.copy(), quality, readings)
        quality = self.judged[key][4]
        if quality is not None and quality < confidence.POOR_FIT:
            return False
        self.unwritten.setdefault(key, []).append(rows)
        if key in self.undivided and stream.pauses is not None:
            pattern = self.undivided[key]
            pattern.rows.append(rows)
            if len(pattern.pauses) < MOST_PAUSES:
                pattern.pauses.append(stream.pauses[offset + segment.start : offset + segment.end])
        names = len({plan_.program.name, *(name for name, _ in tied)})
        fits = quality is not None and quality >= confidence.GOOD_FIT
        sure = (confidence.CUT[segment.seen] if fits else confidence.NO_EVIDENCE) / names
        self.found(
            rows,
            JoinedExecution(
                plan_.program.name,
                plan_.program.number,
                plan_.program,
                "sequence",
                sure,
                quality,
                not (segment.cut_start or segment.cut_end),
                stream.thread,
                tied,
                segment.missing,
                segment.seen,
            ),
        )
        return True

    def divide(self, key: object, pattern: _Undivided) -> None:
        """Settles which launches belong to which of several neighbouring library calls, once all executions of a pattern are known."""
        if not pattern.rows:
            return
        steps = divide(pattern.plan.automaton, pattern.codes, pattern.steps, np.median(np.stack(pattern.pauses), axis=0))
        if (steps != pattern.steps).any():
            self.remember(key, pattern.plan, pattern.codes, steps, pattern.quality, pattern.readings, pattern.plan.program.number)
            self.write(np.concatenate(pattern.rows), key, len(pattern.rows))

    def leftovers(self, rows: np.ndarray, codes: np.ndarray, left: np.ndarray) -> None:
        """Launches of no execution: those of a run that holds the autotuner's own helper kernels are its trials."""
        if not left.any():
            return
        bounds = np.flatnonzero(np.diff(left.astype(np.int8), prepend=0, append=0))
        for a, b in zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True):
            if self.autotuner[codes[a:b]].any():
                self.mark_autotuning(rows[a:b])

    def mark_autotuning(self, rows: np.ndarray) -> None:
        self.method[rows] = confidence.AUTOTUNING

    def quality(self, plan_: Plan, codes: np.ndarray, steps: np.ndarray, exact: int, extra: int, missing: int) -> float | None:
        return confidence.fit(exact, extra, missing, len(codes), confidence.free_launches(plan_.automaton, codes, steps))

    def remember(
        self, key: object, plan_: Plan, codes: np.ndarray, steps: np.ndarray, quality: float | None, readings: np.ndarray, number: int
    ) -> None:
        names = self.plans.instructions[number]
        coded = np.array([self.code(number, n) if n is not None else NONE for n in names] + [NONE])
        method, sure = confidence.judge(plan_.automaton, codes, steps, quality, readings)
        instruction = coded[steps]
        method = np.where(instruction < 0, NONE, method)
        first = np.array([s.part == 0 for s in plan_.schedule.steps] + [True], bool)[steps]
        first[1:] &= (steps[1:] != steps[:-1]) | (steps[1:] < 0)
        self.judged[key] = (instruction, method.astype(np.int8), np.where(instruction < 0, np.nan, sure), first, quality)

    def write(self, rows: np.ndarray, key: object, times: int) -> None:
        """Writes a judgement over the rows of so many executions, one after another."""
        instruction, method, sure, first, _ = self.judged[key]
        for values, judged in ((self.instruction, instruction), (self.method, method), (self.confidence, sure), (self.first_part, first)):
            values[rows] = np.tile(judged, times)

    def code(self, number: int, name: str) -> int:
        return self.codes.setdefault((number, name), len(self.codes))

    def annotate_rest(self) -> None:
        """Activities that are no launches of a program, copies to and from the host, still belong to the range around them."""
        rest = (self.execution < 0) & (self.annotations.execution >= 0)
        if not rest.any():
            return
        owner = self.annotations.execution
        for annotated in np.unique(owner[rest]).tolist():
            if annotated not in self.of_annotated:
                self.of_annotated[annotated] = len(self.executions)
                module, number = self.annotations.modules[annotated], self.annotations.programs[annotated]
                program = self.plans.programs.get(number)
                self.executions.append(JoinedExecution(module, number if number >= 0 else None, program, "nvtx", 1.0, None, True, None))
        lookup = np.full(max(self.of_annotated) + 1, NONE)
        lookup[list(self.of_annotated)] = list(self.of_annotated.values())
        self.execution[rest] = lookup[owner[rest]]


def _together(column: np.ndarray, places: list[slice]) -> np.ndarray:
    """The parts of a column in some places, one after another."""
    return column[places[0]] if len(places) == 1 else np.concatenate([column[place] for place in places])
