"""What one execution of a program is expected to launch, in order: its thunks as a graph of steps.

A straight program is a chain. A loop of known trip count is unrolled; one whose condition is read back goes round through a
virtual step; the branches of a conditional part and meet again. Thunks that launch nothing are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hlo_mapping.dump.program import Program
from hlo_mapping.dump.thunks import Thunk
from hlo_mapping.ir import Module
from hlo_mapping.kernel_kinds import KINDS, kind_of_target
from hlo_mapping.matching.attribution import SLICE_KINDS, attributed_thunks
from hlo_mapping.matching.product_types import multiplied_types
from hlo_mapping.matching.scheduled_hlo import SLICE_FUSION, kernel_names, pseudo_thunks, sort_kernels

KERNEL, LIBRARY, COPY, MEMSET, READBACK, VIRTUAL = "kernel", "library", "copy", "memset", "readback", "virtual"

SKIP_COST = {COPY: 0.4, MEMSET: 0.4, READBACK: 0.05, VIRTUAL: 0.0}
"""What it costs to believe that a step launched nothing (a copy onto itself is elided). A library call's cost is its kind's."""

NO_LAUNCH = frozenset(
    {
        "kAsyncDone",
        "kWaitForStreams",
        "kCopyDone",
        "kGroupDone",
        "kSendDone",
        "kRecvDone",
        "kHostSendDone",
        "kHostRecvDone",
        "kHostExecuteDone",
    }
)
"""Thunks that only wait. Names ending in Done are treated alike."""

WRAPPERS = frozenset(
    {"kSequential", "kCommandBuffer", "kAsyncStart", "kDynamicSlice", "kDynamicSliceFusion", "kAddressComputation", "kGroupStart"}
)
"""Thunks that launch only what the thunks inside them launch."""

UNSEEN_BRANCH, UNSEEN_IN_GRAPH = 1.5, 0.1
"""What it costs to believe that a branch was taken without a trace. Within a CUDA graph the profiler may record nothing of a conditional
node but the kernel that sets its condition."""

UNROLL_LIMIT = 40_000
"""Most steps that an unrolled loop may make; beyond it the loop goes round and its count is not checked."""


@dataclass(frozen=True, slots=True)
class ExpectedLaunch:
    """One expected launch. `names` are the kernel names it may have; grid and block are None where the dump does not say."""

    kind: str
    instruction: str | None = None
    names: frozenset[str] = frozenset()
    grid: str | None = None
    block: str | None = None
    byte_count: int | None = None
    thunk_kind: str = ""
    call: str = ""
    """Of a library call its thunk kind and the target of its custom call."""
    types: frozenset[str] = frozenset()
    """Of a matrix product by a library the element types that it may multiply; empty where unknown."""
    skip: float = KINDS[-1].skip
    """Of a library call what it costs to believe that it launched nothing."""
    part: int = 0
    """0 for the first launch of its instruction, counting up while the same instruction goes on launching (the passes of a sort)."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The steps of one program and which may follow which.

    `follow[s + 1]` lists (step, cost) that may come next after step s, and follow[0] those that may come first; step
    `len(steps)` is the end. `own_names` are all kernel names that the program itself emits, so that a library call is not
    taken for one of them. `source` says what the steps were read from.
    """

    number: int
    name: str
    steps: tuple[ExpectedLaunch, ...]
    follow: tuple[tuple[tuple[int, float], ...], ...]
    own_names: frozenset[str]
    source: str
    has_readback: bool = False
    signature: tuple[object, ...] = field(default=(), repr=False)

    @property
    def end(self) -> int:
        return len(self.steps)

    @property
    def expected_kernels(self) -> int:
        return sum(s.kind == KERNEL for s in self.steps)


def build_schedule(program: Program) -> Schedule:
    """The schedule of a program, from its thunk sequence where there is one, else from its scheduled HLO."""
    if program.thunks and (program.has_thunk_metadata or program.module is None):
        thunks, source = program.thunks, "thunk_sequence"
    elif program.thunks and program.module is not None:
        thunks, source = attributed_thunks(program.thunks, program.module), "thunk_sequence+schedule"
    elif program.module is not None:
        thunks, source = pseudo_thunks(program.module), "scheduled_hlo"
    else:
        thunks, source = (), "none"
    return _Builder(program, source).build(thunks)


class _Builder:
    """Collects steps and edges while walking the thunk tree; `Schedule` is what comes out."""

    def __init__(self, program: Program, source: str) -> None:
        self.program = program
        self.module: Module | None = program.module
        self.alternatives = kernel_names(program.module) if source != "thunk_sequence" and program.module is not None else {}
        self.sorts = sort_kernels(program.module) if source != "thunk_sequence" and program.module is not None else {}
        self.source = source
        self.steps: list[ExpectedLaunch] = []
        self.follow: dict[int, list[tuple[int, float]]] = {}
        self.has_readback = False
        self.in_graph = 0

    def build(self, thunks: tuple[Thunk, ...]) -> Schedule:
        exits = self.sequence(thunks, [(-1, 0.0)], None)
        for state, cost in exits:
            self.follow.setdefault(state, []).append((len(self.steps), cost))
        follow = tuple(tuple(self.follow.get(s, ())) for s in range(-1, len(self.steps)))
        own = frozenset(n for s in self.steps for n in s.names)
        # identical programs, whatever their instructions are called, share a signature: they cannot be told apart by launches
        signature = (tuple((s.kind, s.names, s.grid, s.block, s.byte_count, s.call, s.types) for s in self.steps), follow)
        return Schedule(self.program.number, self.program.name, tuple(self.steps), follow, own, self.source, self.has_readback, signature)

    def add(self, step: ExpectedLaunch, before: list[tuple[int, float]]) -> list[tuple[int, float]]:
        at = len(self.steps)
        self.steps.append(step)
        for state, cost in before:
            self.follow.setdefault(state, []).append((at, cost))
        if step.kind == LIBRARY:
            self.follow.setdefault(at, []).append((at, 0.0))
        return [(at, 0.0)]

    def sequence(self, thunks: tuple[Thunk, ...], before: list[tuple[int, float]], owner: str | None) -> list[tuple[int, float]]:
        previous: str | None = None
        part = 0
        for thunk in thunks:
            first = len(self.steps)
            before = self.thunk(thunk, before, owner)
            if len(self.steps) != first + 1:
                previous = None
                continue
            step = self.steps[first]
            part = part + 1 if step.instruction is not None and step.instruction == previous else 0
            previous = step.instruction
            if part:
                self.steps[first] = replace(step, part=part)
        return before

    def thunk(self, thunk: Thunk, before: list[tuple[int, float]], owner: str | None) -> list[tuple[int, float]]:
        branches = dict(thunk.branches)
        if thunk.kind == "kWhile":
            return self.loop(thunk, branches, before)
        if thunk.kind == "kConditional":
            return self.conditional(thunk, before)
        if thunk.kind in WRAPPERS or (thunk.branches and thunk.kind not in NO_LAUNCH):
            inner = None if thunk.kind == "kCommandBuffer" else (thunk.instruction or owner)
            if not thunk.branches:
                return self.add(self.library(thunk.kind, inner), before) if thunk.kind != "kCommandBuffer" else before
            self.in_graph += thunk.kind == "kCommandBuffer"
            for _, inside in thunk.branches:
                if thunk.kind in SLICE_KINDS and inner is not None:
                    before = self.slices(inside, before, inner)
                else:
                    before = self.sequence(inside, before, inner)
            self.in_graph -= thunk.kind == "kCommandBuffer"
            return before
        if thunk.kind in NO_LAUNCH or thunk.kind.endswith("Done"):
            return before
        return self.add(self.leaf(thunk, owner), before)

    def slices(self, thunks: tuple[Thunk, ...], before: list[tuple[int, float]], fusion: str) -> list[tuple[int, float]]:
        """The launches of a fusion that reads or writes slices in place: they are the fusion's, but a library call keeps its own name."""
        hero = self.hero(fusion)
        for thunk in thunks:
            first = len(self.steps)
            before = self.thunk(thunk, before, fusion)
            for at in range(first, len(self.steps)):
                step = self.steps[at]
                if step.kind == LIBRARY and hero is not None:
                    self.steps[at] = self.library(step.thunk_kind, hero)
                else:
                    size = self.written_bytes(fusion) if step.kind == COPY else None
                    self.steps[at] = replace(step, instruction=fusion, byte_count=size or step.byte_count)
        return before

    def hero(self, fusion: str) -> str | None:
        """The custom call within a fusion, if it holds just one."""
        found = self.module.instruction(fusion) if self.module is not None else None
        body = self.module.by_name.get(found.called[0]) if self.module is not None and found is not None and found.called else None
        calls = [i.name for i in body.instructions if i.opcode == "custom-call"] if body is not None else []
        return calls[0] if len(calls) == 1 else None

    def written_bytes(self, fusion: str | None) -> int | None:
        """What a fusion that updates a slice in place writes: the update; None for other fusions."""
        found = self.module.instruction(fusion) if self.module is not None and fusion else None
        body = self.module.by_name.get(found.called[0]) if self.module is not None and found is not None and found.called else None
        if body is None:
            return None
        root = body.root
        while root.opcode in ("bitcast", "copy") and root.operands and root.operands[0].name in body.by_name:
            root = body.by_name[root.operands[0].name]
        if root.opcode != "dynamic-update-slice" or len(root.operands) < 2:
            return None
        update = body.by_name.get(root.operands[1].name)
        return update.shape.byte_size if update is not None and not update.shape.is_tuple else None

    def leaf(self, thunk: Thunk, owner: str | None) -> ExpectedLaunch:
        instruction = thunk.instruction or owner
        if thunk.kind in ("kCopy", "kDeviceToDeviceCopy", "kHostToDeviceCopy", "kDeviceToHostCopy"):
            return ExpectedLaunch(COPY, instruction, byte_count=self.result_bytes(instruction), thunk_kind=thunk.kind)
        if thunk.kind.startswith("kMem") or thunk.kind in ("kReplicaId", "kPartitionId"):
            return ExpectedLaunch(MEMSET, instruction, byte_count=self.result_bytes(instruction), thunk_kind=thunk.kind)
        if thunk.kernel is not None:
            grid = ",".join(map(str, thunk.grid)) if thunk.grid else None
            block = ",".join(map(str, thunk.block)) if thunk.block else None
            # a thunk made from the HLO has no launch dimensions, and may launch the kernel of any fusion with the same body
            names = frozenset({thunk.kernel}) if grid else self.alternatives.get(instruction or "", frozenset({thunk.kernel}))
            size = (self.written_bytes(instruction) or self.result_bytes(instruction)) if thunk.kind == SLICE_FUSION else None
            return ExpectedLaunch(KERNEL, instruction, names, grid, block, size, thunk_kind=thunk.kind)
        return self.library(thunk.kind, instruction)

    def library(self, kind: str, instruction: str | None) -> ExpectedLaunch:
        found = self.module.instruction(instruction) if self.module is not None and instruction else None
        if found is None or self.module is None:
            return ExpectedLaunch(LIBRARY, instruction, thunk_kind=kind, call=kind)
        if kind == "kSort":
            return ExpectedLaunch(LIBRARY, instruction, frozenset({self.sorts.get(found.name, "sort")}), thunk_kind=kind, call=kind)
        if found.opcode == "fusion" and (hero := self.hero(found.name)) is not None:
            return self.library(kind, hero)
        types = multiplied_types(found, self.module) if "cublas" in found.custom_call_target or found.opcode == "dot" else frozenset()
        skip = kind_of_target(found.custom_call_target).skip
        return ExpectedLaunch(LIBRARY, instruction, thunk_kind=kind, call=f"{kind} {found.custom_call_target}", types=types, skip=skip)

    def result_bytes(self, instruction: str | None) -> int | None:
        found = self.module.instruction(instruction) if self.module is not None and instruction else None
        return found.shape.byte_size if found is not None and not found.shape.is_tuple else None

    def loop(self, thunk: Thunk, branches: dict[str, tuple[Thunk, ...]], before: list[tuple[int, float]]) -> list[tuple[int, float]]:
        body, condition = branches.get("body", ()), branches.get("condition", ())
        found = self.module.instruction(thunk.instruction) if self.module is not None and thunk.instruction else None
        trips = found.trip_count if found is not None else None
        if trips is not None and trips * max(1, count_leaves(body)) <= UNROLL_LIMIT:
            entry = before
            for _ in range(trips):
                before = self.sequence(body, before, None)
            return before + self.loop_node(thunk.instruction, condition, body, entry)
        self.has_readback = True
        head = self.add(ExpectedLaunch(VIRTUAL, thunk.instruction), before)
        tested = self.sequence(condition, head, None)
        tested = self.add(ExpectedLaunch(READBACK, thunk.instruction, byte_count=1), tested)
        done = self.sequence(body, tested, None)
        for state, cost in done:
            if state != tested[0][0]:
                self.follow.setdefault(state, []).append((head[0][0], cost))
        return tested

    def loop_node(
        self, instruction: str | None, condition: tuple[Thunk, ...], body: tuple[Thunk, ...], before: list[tuple[int, float]]
    ) -> list[tuple[int, float]]:
        """The same loop as a node of a CUDA graph: condition, body and condition again, each recorded once whatever the count.

        Entering costs a little, so that launches one by one are counted where both would do.
        """
        head = self.add(ExpectedLaunch(VIRTUAL, instruction), [(s, c + 0.4) for s, c in before])
        gate = self.add(ExpectedLaunch(VIRTUAL, instruction), self.sequence(condition, head, None))
        tested = self.sequence(condition, self.sequence(body, gate, None), None)
        return self.add(ExpectedLaunch(VIRTUAL, instruction), tested)

    def conditional(self, thunk: Thunk, before: list[tuple[int, float]]) -> list[tuple[int, float]]:
        self.has_readback = True
        chosen = self.add(ExpectedLaunch(READBACK, thunk.instruction), before)
        exits: list[tuple[int, float]] = []
        for _, branch in thunk.branches:
            exits += [e for e in self.sequence(branch, chosen, None) if e not in exits]
        if self.in_graph:
            # where one launch goes round a loop, several branches may be taken, one an iteration
            for state, cost in exits:
                if state != chosen[0][0]:
                    self.follow.setdefault(state, []).append((chosen[0][0], cost + 0.5))
        unseen = UNSEEN_IN_GRAPH if self.in_graph else UNSEEN_BRANCH
        return exits if any(state == chosen[0][0] for state, _ in exits) else [*exits, (chosen[0][0], unseen)]


def count_leaves(thunks: tuple[Thunk, ...]) -> int:
    """Thunks in a sequence, nested ones counted and wrappers not."""
    return sum(count_leaves(tuple(t for _, inside in thunk.branches for t in inside)) if thunk.branches else 1 for thunk in thunks)
