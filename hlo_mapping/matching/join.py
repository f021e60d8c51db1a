"""Joins GPU activities to the executions and instructions that launched them, from annotations where there are any, else blind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from hlo_mapping.dump.index import DumpIndex
from hlo_mapping.dump.program import Program
from hlo_mapping.matching import confidence
from hlo_mapping.matching.agreement import same_module
from hlo_mapping.matching.align import align
from hlo_mapping.matching.alike import Pieces, alike
from hlo_mapping.matching.annotated_names import AnnotatedNames
from hlo_mapping.matching.beam import StreamCutter
from hlo_mapping.matching.calls import divide, neighboring_calls
from hlo_mapping.matching.candidates import Candidates, candidates
from hlo_mapping.matching.judgements import Judgements
from hlo_mapping.matching.names import AUTOTUNER
from hlo_mapping.matching.plans import DistinctSchedule, Plans, plan
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

    plan: DistinctSchedule
    codes: np.ndarray
    steps: np.ndarray
    quality: float | None
    readings: np.ndarray
    rows: list[np.ndarray] = field(default_factory=list)
    pauses: list[np.ndarray] = field(default_factory=list)


MOST_PAUSES = 64
"""Executions of a pattern whose pauses are looked at."""
TRIAL = -2
"""The label of launches of the autotuner's trial runs; -1 is that of launches without annotation."""


class _Join:
    """Gathers the answers stream by stream."""

    def __init__(self, rows: int, tokens: tuple[Token, ...], plans: Plans, annotations: Annotations) -> None:
        self.tokens, self.plans, self.annotations = tokens, plans, annotations
        self.cutter = StreamCutter([p.automaton for p in plans.plans])
        self.judged = Judgements(rows, plans)
        self.executions: list[JoinedExecution] = []
        self.of_annotated: dict[int, int] = {}
        self.cut_off: dict[object, tuple[bool, int]] = {}
        self.undivided: dict[object, _Undivided] = {}
        self.said = AnnotatedNames(annotations, plans, self.judged)
        self.autotuner = np.array([t.kind == "kernel" and bool(AUTOTUNER.search(t.name)) for t in tokens] + [False], bool)
        self.program_of = np.array(annotations.programs, np.int64)
        modules: dict[str, int] = {}
        self.module_of = np.array([modules.setdefault(m, len(modules)) for m in annotations.modules], np.int64)

    def run(self, streams: Iterable[LaunchStream]) -> LaunchJoin:
        repeats = []
        for stream in streams:
            self.stream(stream)
            repeats.append(stream.repeats)
        self.said.write()
        for key, pattern in self.undivided.items():
            self.divide(key, pattern)
        for pairs in repeats:
            self.judged.repeat(pairs[:, 0], pairs[:, 1])
        self.annotate_rest()
        found = self.judged
        return LaunchJoin(
            completed(self.executions), found.execution, found.instruction, tuple(found.codes), found.method, found.confidence,
            found.first_part, self.plans.programs, (),
        )  # fmt: skip

    def stream(self, stream: LaunchStream) -> None:
        """Splits a stream into runs under one annotation, of trial runs, and without annotation."""
        label = self.annotations.execution[stream.rows]
        trial = self.annotations.autotuning[stream.rows]
        if trial.any():
            label = np.where((label < 0) & trial, TRIAL, label)
        bounds = np.flatnonzero(np.diff(label, prepend=label[0] - 1 if len(label) else 0, append=TRIAL - 1))
        begin, end = bounds[:-1], bounds[1:]
        what = label[begin]
        for n in np.flatnonzero(what < 0).tolist():
            if what[n] == TRIAL:
                self.mark_autotuning(stream.rows[begin[n] : end[n]])
            else:
                self.blind(stream, int(begin[n]), int(end[n]))
        named = what >= 0
        if named.any():
            self.annotated(stream, Pieces(begin[named], (end - begin)[named]), what[named])

    def annotated(self, stream: LaunchStream, pieces: Pieces, what: np.ndarray) -> None:
        """The executions of a stream of which XLA's ranges tell: pieces of it, each of the annotated execution `what`."""
        which, pieces, rows, codes = _together(stream, pieces, what)
        number = self.program_of[which]
        pattern = alike(codes, pieces, number, self.module_of[which])
        said = self.annotations.instruction[rows] if self.annotations.instructions else None
        members = np.split(np.argsort(pattern, kind="stable"), np.cumsum(np.bincount(pattern))[:-1])
        found: list[JoinedExecution | None] = [None] * len(which)
        keys = []
        for same in members:
            first = pieces.first[same[0]]
            launched = codes[first : first + pieces.length[same[0]]]
            key, execution, program = self.alike(launched, stream.thread, int(which[same[0]]))
            keys.append(key)
            for one in same.tolist():
                found[one] = execution
                if program is not None:  # a dump's program that fits badly is the one all the same if it has what ranges name
                    part = slice(pieces.first[one], pieces.first[one] + pieces.length[one])
                    known = self.said.knows(program, said[part] if said is not None else np.empty(0, np.int64))
                    found[one] = replace(execution, program=program) if known else execution
        numbers = np.arange(len(which)) + len(self.executions)
        self.executions += [execution for execution in found if execution is not None]
        self.of_annotated.update(zip(which.tolist(), numbers.tolist(), strict=True))
        self.judged.write(rows, pieces, numbers, keys, pattern)
        if said is not None and (said >= 0).any():
            self.said.keep(rows, said, pieces, number)

    def alike(self, codes: np.ndarray, thread: int | None, annotated: int) -> tuple[object | None, JoinedExecution, Program | None]:
        """Of annotated executions that launched the same: the key of their judgement, None where there is none, and what they are.

        The third value is a program of the dump that has their name and number, and does not fit them.
        """
        module, number = self.annotations.modules[annotated], self.annotations.programs[annotated]
        program = self.plans.programs.get(number)
        if program is not None and program.name != module and not same_module(program.name, module):
            program = None
        at = self.plans.by_number.get(number) if program is not None else None
        named = number if number >= 0 else None
        if at is None:
            return None, JoinedExecution(module, named, program, "nvtx", 1.0, None, True, thread), None
        key = (number, codes.tobytes())
        if key not in self.judged.known:
            plan_ = self.plans.plans[at]
            found = align(plan_.automaton, codes)
            quality = self.quality(plan_, codes, found.steps, found.exact, found.extra, found.missing)
            # XLA's range is evidence of its own: where the launches cannot be judged they are the annotated program's
            readings = np.ones(plan_.schedule.end + 1, np.int64)
            self.judged.remember(key, plan_, codes, found.steps, 1.0 if quality is None else quality, readings)
            self.cut_off[key] = found.cut_start or found.cut_end, found.missing
        quality, (cut_off, missing) = self.judged.known[key].quality, self.cut_off[key]
        fits = quality is None or quality >= confidence.POOR_FIT
        execution = JoinedExecution(module, named, program if fits else None, "nvtx", 1.0, quality, not cut_off, thread, missing=missing)
        return key if fits else None, execution, None if fits else program

    def blind(self, stream: LaunchStream, a: int, b: int) -> None:
        inside = stream.inside[a:b].copy()
        inside[:1] = False
        cut = self.cutter.cut(stream.codes[a:b], inside, stream.fresh[a:b] if stream.fresh is not None else None)
        rows = stream.rows[a:b]
        left = cut.steps < 0
        keys: dict[object, int] = {}
        found: list[tuple[int, int, int]] = []
        before = len(self.executions)
        for segment in cut.segments:
            key = self.segment(stream, a, segment, cut.steps)
            if key is None:
                left[segment.start : segment.end] = True
            else:
                found.append((segment.start, segment.end - segment.start, keys.setdefault(key, len(keys))))
        if found:
            first, length, which = np.array(found, np.int64).T
            self.judged.write(rows, Pieces(first, length), np.arange(before, len(self.executions)), list(keys), which)
        self.leftovers(rows, stream.codes[a:b], left)

    def segment(self, stream: LaunchStream, offset: int, segment: Segment, steps: np.ndarray) -> object | None:
        """One more execution, unless it fits its program badly; the key of its judgement."""
        plan_ = self.plans.plans[segment.program]
        rows = stream.rows[offset + segment.start : offset + segment.end]
        codes = stream.codes[offset + segment.start : offset + segment.end]
        mine = steps[segment.start : segment.end]
        close = [self.plans.plans[r].program for r, dearer in segment.alternatives if dearer < 0.25]
        tied = (*plan_.identical, *((p.name, p.number) for p in close))
        # a kernel or two in the middle of something else are no execution
        weak = segment.seen is False and segment.exact < confidence.WEAK
        key = (plan_.program.number, codes.tobytes(), mine.tobytes(), tied, segment.missing, weak)
        if key not in self.judged.known:
            quality = None if weak else self.quality(plan_, codes, mine, segment.exact, segment.extra, segment.missing)
            readings = self.plans.readings(plan_, len(close))
            self.judged.remember(key, plan_, codes, mine, quality, readings)
            if neighboring_calls(plan_.automaton, mine):
                self.undivided[key] = _Undivided(plan_, codes, mine.copy(), quality, readings)
        quality = self.judged.known[key].quality
        if quality is not None and quality < confidence.POOR_FIT:
            return None
        if key in self.undivided:
            pattern = self.undivided[key]
            pattern.rows.append(rows)
            if len(pattern.pauses) < MOST_PAUSES:
                pattern.pauses.append(stream.pauses[offset + segment.start : offset + segment.end])
        names = len({plan_.program.name, *(name for name, _ in tied)})
        fits = quality is not None and quality >= confidence.GOOD_FIT
        sure = (confidence.CUT[segment.seen] if fits else confidence.NO_EVIDENCE) / names
        self.executions.append(
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
        return key

    def divide(self, key: object, pattern: _Undivided) -> None:
        """Settles which launches belong to which of several neighboring library calls, once all executions of a pattern are known."""
        if not pattern.rows:
            return
        steps = divide(pattern.plan.automaton, pattern.codes, pattern.steps, np.median(np.stack(pattern.pauses), axis=0))
        if (steps != pattern.steps).any():
            self.judged.remember(key, pattern.plan, pattern.codes, steps, pattern.quality, pattern.readings)
            self.judged.rewrite(np.concatenate(pattern.rows), key, len(pattern.rows))

    def leftovers(self, rows: np.ndarray, codes: np.ndarray, left: np.ndarray) -> None:
        """Launches of no execution: those of a run that holds the autotuner's own helper kernels are its trials."""
        if not left.any():
            return
        bounds = np.flatnonzero(np.diff(left.astype(np.int8), prepend=0, append=0))
        for a, b in zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True):
            if self.autotuner[codes[a:b]].any():
                self.mark_autotuning(rows[a:b])

    def mark_autotuning(self, rows: np.ndarray) -> None:
        self.judged.method[rows] = confidence.AUTOTUNING

    def quality(self, plan_: DistinctSchedule, codes: np.ndarray, steps: np.ndarray, exact: int, extra: int, missing: int) -> float | None:
        return confidence.fit(exact, extra, missing, len(codes), confidence.free_launches(plan_.automaton, codes, steps))

    def annotate_rest(self) -> None:
        """Activities that are no launches of a program, copies to and from the host, still belong to the range around them."""
        rest = (self.judged.execution < 0) & (self.annotations.execution >= 0)
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
        self.judged.execution[rest] = lookup[owner[rest]]


def _together(stream: LaunchStream, pieces: Pieces, what: np.ndarray) -> tuple[np.ndarray, Pieces, np.ndarray, np.ndarray]:
    """The distinct values of `what` in order of first appearance, the piece of each, and the rows and codes that the pieces lie in."""
    which, first, part = np.unique(what, return_index=True, return_inverse=True)
    order = np.argsort(first)
    if len(which) == len(what):
        return what, pieces, stream.rows, stream.codes
    rank = np.empty(len(which), np.int64)
    rank[order] = np.arange(len(which))
    sorting = np.argsort(rank[part], kind="stable")
    length = np.bincount(rank[part], pieces.length).astype(np.int64)
    at = np.concatenate([at for _, at in Pieces(pieces.first[sorting], pieces.length[sorting]).blocks()])
    return which[order], Pieces(np.cumsum(length) - length, length), stream.rows[at], stream.codes[at]
