"""What a program launches, read from its scheduled HLO: for dumps without a thunk sequence, or without thunk metadata.

The kernel that a fusion launches may carry the name of any fusion with the same body, since XLA emits one kernel for all of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from hlo_mapping.dump.thunks import Thunk
from hlo_mapping.ir import Computation, Instruction, Module
from hlo_mapping.matching.names import kernel_name

NO_WORK = frozenset(
    {
        "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier", "domain", "add-dependency",
        "partition-id", "replica-id", "async-update",
    }
)  # fmt: skip
"""Opcodes that launch nothing on a GPU."""

LIBRARY_KINDS = {"custom-call": "kCustomCall", "convolution": "kConvolution", "fft": "kFft", "cholesky": "kCholesky", "triangular-solve": "kTriangularSolve", "dot": "kGemm", "sort": "kSort"}  # fmt: skip
"""Thunk kinds of instructions that a library, or several kernels of their own, carry out."""

COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast", "ragged-all-to-all", "send", "recv")

_SUFFIX = re.compile(r"__\d+$")


def pseudo_thunks(module: Module) -> tuple[Thunk, ...]:
    """The thunks that a scheduled module should have, one an instruction, loops and branches nested."""
    return _computation_thunks(module, module.entry)


def _computation_thunks(module: Module, computation: Computation) -> tuple[Thunk, ...]:
    return tuple(t for i in computation.instructions for t in _instruction_thunks(module, i))


def _instruction_thunks(module: Module, instruction: Instruction) -> Iterator[Thunk]:
    op, name = instruction.opcode, instruction.name
    if op in NO_WORK or op.endswith("-done"):
        return
    if op == "while":
        condition, body = (_named(module, c) for c in instruction.called[:2])
        yield _thunk("kWhile", name, branches=(("condition", condition), ("body", body)))
    elif op == "conditional":
        yield _thunk("kConditional", name, branches=tuple((f"branch_{n}", _named(module, c)) for n, c in enumerate(instruction.called)))
    elif op in ("call", "async-start") and instruction.called:
        yield _thunk("kSequential", None if op == "call" else name, branches=(("sequence", _named(module, instruction.called[0])),))
    elif op in ("copy", "copy-start"):
        yield _thunk("kCopy", name)
    elif op == "fusion":
        yield _fusion_thunk(module, instruction)
    elif op in LIBRARY_KINDS or op.startswith(COLLECTIVES):
        yield _thunk(LIBRARY_KINDS.get(op, "kCollective"), name)
    else:
        yield _thunk("kKernel", name, kernel=kernel_name(name))


def _named(module: Module, computation: str) -> tuple[Thunk, ...]:
    found = module.by_name.get(computation)
    return _computation_thunks(module, found) if found is not None else ()


def _fusion_thunk(module: Module, instruction: Instruction) -> Thunk:
    kind = (instruction.backend_config.get("fusion_backend_config") or {}).get("kind", "")
    if kind == "__dynamic_memcpy":
        return _thunk("kCopy", instruction.name)
    body = module.by_name.get(instruction.called[0]) if instruction.called else None
    sorts = body is not None and body.root.opcode == "sort"
    if sorts or kind in ("__cudnn$fusion", "__custom_fusion"):
        return _thunk("kSort" if sorts else "kCuDnn", instruction.name)
    return _thunk("kKernel", instruction.name, kernel=kernel_name(instruction.name))


def _thunk(kind: str, instruction: str | None, kernel: str | None = None, branches: tuple[tuple[str, tuple[Thunk, ...]], ...] = ()) -> Thunk:
    return Thunk(id=None, kind=kind, kernel=kernel, grid=None, block=None, shared_memory=None, instruction=instruction, stream_id=None, branches=branches)


def kernel_names(module: Module) -> dict[str, frozenset[str]]:
    """The kernel names that each fusion may launch under: its own and those of all fusions with the same body."""
    groups: dict[object, list[str]] = defaultdict(list)
    for computation in module.computations:
        for i in computation.instructions:
            if i.opcode == "fusion" and i.called:
                groups[fingerprint(module, i.called[0]), i.shape].append(i.name)
    return {name: frozenset(map(kernel_name, names)) for names in groups.values() for name in names}


def fingerprint(module: Module, computation: str, _depth: int = 0) -> object:
    """A value equal for computations that differ in names and metadata alone."""
    found = module.by_name.get(computation)
    if found is None or _depth > 8:
        return computation
    numbers = {i.name: n for n, i in enumerate(found.instructions)}
    return tuple(
        (
            i.opcode,
            i.shape,
            i.literal,
            tuple((numbers.get(o.name, -1), o.index) for o in i.operands),
            tuple(a for a in i.attributes if a[0] not in ("metadata", "backend_config", "calls", "to_apply", "frontend_attributes")),
            tuple(fingerprint(module, c, _depth + 1) for c in i.called),
        )
        for i in found.instructions
    )


def attributed_thunks(thunks: tuple[Thunk, ...], module: Module) -> tuple[Thunk, ...]:
    """The same thunks, each with the instruction it belongs to, found by the order of the schedule and by kernel names.

    A thunk that no instruction ahead of it fits keeps None.
    """
    return _Attribution(module).sequence(thunks)


class _Attribution:
    """Walks thunks and schedule side by side; one instruction may own several thunks (a sort: copies and many kernels)."""

    LOOK_AHEAD = 64

    def __init__(self, module: Module) -> None:
        self.module = module
        self.names = kernel_names(module)
        self.expected = list(_flat(pseudo_thunks(module)))
        self.at = 0

    def sequence(self, thunks: tuple[Thunk, ...]) -> tuple[Thunk, ...]:
        return tuple(self.thunk(t) for t in thunks)

    def thunk(self, thunk: Thunk) -> Thunk:
        if thunk.instruction is None and (not thunk.branches or thunk.kind in ("kWhile", "kConditional")):
            thunk = replace(thunk, instruction=self.find(thunk))
        if thunk.kind in ("kWhile", "kConditional") and not thunk.branches and thunk.instruction is not None:
            # up to mid-2025 dumps left some contents out; the HLO has them
            return replace(thunk, branches=self.contents(thunk.instruction))
        return replace(thunk, branches=tuple((label, self.sequence(inside)) for label, inside in thunk.branches)) if thunk.branches else thunk

    def contents(self, instruction: str) -> tuple[tuple[str, tuple[Thunk, ...]], ...]:
        """The branches that a while or conditional has in the HLO; what it holds is passed in the schedule."""
        found = self.module.instruction(instruction)
        thunk = next(iter(_instruction_thunks(self.module, found)), None) if found is not None else None
        if thunk is None:
            return ()
        self.at += sum(1 for _ in _flat(tuple(t for _, inside in thunk.branches for t in inside)))
        return thunk.branches

    def find(self, thunk: Thunk) -> str | None:
        if self.at and self.continues(thunk, self.expected[self.at - 1]):
            return self.expected[self.at - 1].instruction
        for n in range(self.at, min(len(self.expected), self.at + self.LOOK_AHEAD)):
            if self.fits(thunk, self.expected[n]):
                self.at = n + 1
                return self.expected[n].instruction
        return None

    def fits(self, thunk: Thunk, expected: Thunk) -> bool:
        if thunk.kind in ("kWhile", "kConditional", "kCopy") or expected.kind in ("kWhile", "kConditional"):
            return thunk.kind == expected.kind or (thunk.kind == "kCopy" and expected.kind == "kSort")
        if thunk.kernel is None:
            return expected.kernel is None and expected.kind not in ("kCopy", "kSequential")
        if expected.kernel is None:
            return expected.kind == "kSort" and thunk.kernel.startswith(("sort", kernel_name(expected.instruction or "")))
        base = _SUFFIX.sub("", thunk.kernel)
        return base in self.names.get(expected.instruction or "", frozenset({expected.kernel})) or thunk.kernel == expected.kernel

    def continues(self, thunk: Thunk, previous: Thunk) -> bool:
        """Whether a thunk is one more of the instruction before it: the next kernel of a sort, or a copy before it."""
        if thunk.kernel is None:
            return previous.kind == "kSort" and thunk.kind == "kCopy"
        suffixed = bool(_SUFFIX.search(thunk.kernel))
        return (previous.kind == "kSort" and thunk.kernel.startswith("sort")) or (suffixed and _SUFFIX.sub("", thunk.kernel) == previous.kernel)


def _flat(thunks: tuple[Thunk, ...]) -> Iterator[Thunk]:
    for thunk in thunks:
        if thunk.kind != "kSequential":
            yield thunk
        for _, inside in thunk.branches:
            yield from _flat(inside)
