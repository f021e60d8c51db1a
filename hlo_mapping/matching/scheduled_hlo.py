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
from hlo_mapping.matching.names import base_name, kernel_name

NO_WORK = frozenset(
    {
        "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier", "domain", "add-dependency",
        "partition-id", "replica-id", "async-update",
    }
)  # fmt: skip
"""Opcodes that launch nothing on a GPU."""

TARGET_KINDS = (
    ("__cublas$lt", "kCublasLtMatmul"),
    ("__cublas$tri", "kTriangularSolve"),
    ("__cublas$", "kGemm"),
    ("__cudnn$conv", "kConvolution"),
    ("__cudnn$", "kCuDnn"),
    ("__cub$", "kCubSort"),
    ("__gpu$TopK", "kTopK"),
)
"""Thunk kinds of custom calls, by how their target begins."""

SLICE_FUSION = "kSliceFusion"
"""Our name for a fusion that only reads or writes a slice of a buffer: it runs as a kernel or as a copy, as XLA sees fit."""

SLICING = ("slice", "dynamic-slice", "dynamic-update-slice")

LIBRARY_KINDS = {
    "convolution": "kConvolution",
    "fft": "kFft",
    "cholesky": "kCholesky",
    "triangular-solve": "kTriangularSolve",
    "dot": "kGemm",
    "sort": "kSort",
}
"""Thunk kinds of instructions that a library, or several kernels of their own, carry out."""

COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "ragged-all-to-all",
    "send",
    "recv",
)

_FAR = 1e6

PASS_SUFFIX = re.compile(r"__\d+$")
"""What XLA appends to the names of further kernels of one instruction."""


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
    elif op == "call" and instruction.called and instruction.called[0].startswith("command_buffer"):
        yield _thunk("kCommandBuffer", None, branches=(("sequence", _named(module, instruction.called[0])),))
    elif op in ("call", "async-start") and instruction.called:
        yield _thunk("kSequential", None if op == "call" else name, branches=(("sequence", _named(module, instruction.called[0])),))
    elif op in ("copy", "copy-start"):
        yield _thunk("kCopy", name)
    elif op == "fusion":
        yield _fusion_thunk(module, instruction)
    elif op == "custom-call":
        target = instruction.custom_call_target
        yield _thunk(next((kind for start, kind in TARGET_KINDS if target.startswith(start)), "kCustomCall"), name)
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
    if body is not None and sum(i.opcode == "custom-call" for i in body.instructions) == 1:
        return _thunk("kCustomCall", instruction.name)
    sorts = body is not None and body.root.opcode == "sort"
    if sorts or kind in ("__cudnn$fusion", "__custom_fusion"):
        return _thunk("kSort" if sorts else "kCuDnn", instruction.name)
    if body is not None and body.root.opcode.startswith(COLLECTIVES):
        return _thunk("kCollective", instruction.name)
    # scalars in it only say where the slice is
    slices = body is not None and all(i.opcode in NO_WORK or i.opcode in SLICING or not i.shape.dimensions for i in body.instructions)
    return _thunk(SLICE_FUSION if slices else "kKernel", instruction.name, kernel=kernel_name(instruction.name))


def _thunk(
    kind: str, instruction: str | None, kernel: str | None = None, branches: tuple[tuple[str, tuple[Thunk, ...]], ...] = ()
) -> Thunk:
    return Thunk(
        id=None,
        kind=kind,
        kernel=kernel,
        grid=None,
        block=None,
        shared_memory=None,
        instruction=instruction,
        stream_id=None,
        branches=branches,
    )


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
    """Walks thunks and schedule side by side; one instruction may own several thunks (a sort: copies and many kernels).

    The cheapest alignment of the two sequences is taken, within a band around the diagonal.
    """

    BAND = 96

    def __init__(self, module: Module) -> None:
        self.module = module
        self.names = kernel_names(module)
        self.sorts = sort_kernels(module)
        self.expected: list[Thunk] = []
        self.places: dict[int, int] = {}
        """Position of each placed thunk in the schedule, by the thunk's position in the flat sequence."""

    def sequence(self, thunks: tuple[Thunk, ...]) -> tuple[Thunk, ...]:
        flat = list(_flat(thunks, into_slices=False))
        # kinds of thunks whose contents the dump leaves out stand for all that they hold in the HLO too
        closed = {t.kind for t in flat if t.kind in CONTROL and not t.branches}
        self.expected = list(_flat(pseudo_thunks(self.module), closed=frozenset(closed)))
        self.place(flat)
        return self.rebuilt(thunks, iter(range(len(flat))))

    def place(self, flat: list[Thunk]) -> None:
        """Fills `places` by dynamic programming over (thunks placed, instructions passed)."""
        width = len(self.expected)
        slope = width / max(1, len(flat))
        row = {m: 0.5 * m for m in range(min(width, self.BAND) + 1)}
        came: list[dict[int, str]] = [dict.fromkeys(row, "skip")]
        for n, thunk in enumerate(flat, 1):
            middle = int(n * slope)
            new: dict[int, float] = {}
            how: dict[int, str] = {}
            for m in range(max(0, middle - self.BAND), min(width, middle + self.BAND) + 1):
                options = [(row.get(m, _FAR) + 3.0, "extra")]
                if m:
                    expected = self.expected[m - 1]
                    options.append((row.get(m - 1, _FAR) + self.price(thunk, expected), "match"))
                    options.append((row.get(m, _FAR) + (0.2 if self.continues(thunk, expected) else _FAR), "again"))
                    options.append((new.get(m - 1, _FAR) + (2.0 if expected.kernel else 0.5), "skip"))
                new[m], how[m] = min(options)
            row = new
            came.append(how)
        m = min(row, key=lambda k: row[k] + 0.5 * (width - k))
        n = len(flat)
        while n > 0:
            step = came[n].get(m, "extra")
            if step in ("match", "again"):
                self.places[n - 1] = m - 1
            n, m = n - (step != "skip"), m - (step in ("match", "skip"))

    def price(self, thunk: Thunk, expected: Thunk) -> float:
        """What it costs to take a thunk for this instruction's."""
        if self.fits(thunk, expected):
            return 0.0 if expected.kind != "kSort" or thunk.kernel is None or self.is_pass(thunk, expected) else 0.15
        both = thunk.kernel is not None and expected.kernel is not None
        return 1.2 if both and base_name(thunk.kernel or "") == base_name(expected.kernel or "") else _FAR

    def rebuilt(self, thunks: tuple[Thunk, ...], numbers: Iterator[int]) -> tuple[Thunk, ...]:
        out = []
        for thunk in thunks:
            if not _counted(thunk):
                contents = tuple((label, self.rebuilt(inside, numbers)) for label, inside in thunk.branches)
                if thunk.kind == "kSequential":
                    contents = tuple((label, _copies_named(inside)) for label, inside in contents)
                out.append(replace(thunk, branches=contents))
                continue
            if thunk.kind in WAITS or thunk.kind.endswith("Done"):
                out.append(thunk)
                continue
            place = self.places.get(next(numbers))
            if thunk.instruction is None and place is not None:
                thunk = replace(thunk, instruction=self.expected[place].instruction)
            if thunk.kind in CONTROL:
                # up to mid-2025 dumps left some contents out; the HLO has them
                inside = thunk.branches or (self.expected[place].branches if place is not None else ())
                contents = inside if not thunk.branches else tuple((label, self.rebuilt(inner, numbers)) for label, inner in inside)
                thunk = replace(thunk, branches=contents)
            out.append(thunk)
        return tuple(out)

    def fits(self, thunk: Thunk, expected: Thunk) -> bool:
        if thunk.kind in CONTROL or expected.kind in CONTROL:
            return thunk.kind == expected.kind
        if thunk.kind == "kCopy" or thunk.kind in SLICE_KINDS:
            return expected.kind in ("kCopy", SLICE_FUSION, "kSort" if thunk.kind == "kCopy" else "kCustomCall")
        if thunk.kernel is None:
            return expected.kernel is None and expected.kind != "kCopy" and _same_sort(thunk.kind, expected.kind)
        if expected.kernel is None and expected.kind in ("kCustomCall", "kTopK", "kCuDnn"):
            return True  # a custom call that brings its own kernel
        if expected.kernel is None:
            return expected.kind == "kSort" and thunk.kernel.startswith(("sort", kernel_name(expected.instruction or "")))
        base = PASS_SUFFIX.sub("", thunk.kernel)
        return base in self.names.get(expected.instruction or "", frozenset({expected.kernel})) or thunk.kernel == expected.kernel

    def is_pass(self, thunk: Thunk, sort: Thunk) -> bool:
        """Whether a kernel is called after this sort: the passes of a sort that a fusion holds go by the name of the inner one."""
        return PASS_SUFFIX.sub("", thunk.kernel or "") == self.sorts.get(sort.instruction or "")

    def continues(self, thunk: Thunk, previous: Thunk) -> bool:
        """Whether a thunk is one more kernel of the instruction before it."""
        suffixed = thunk.kernel is not None and bool(PASS_SUFFIX.search(thunk.kernel))
        if thunk.kernel is None:
            return previous.kind == "kSort" and thunk.kind == "kCopy"
        if previous.kind == "kSort" and thunk.kernel.startswith("sort"):
            return self.is_pass(thunk, previous) or not any(PASS_SUFFIX.sub("", thunk.kernel) == k for k in self.sorts.values())
        if not suffixed:
            return False
        return PASS_SUFFIX.sub("", thunk.kernel) == previous.kernel


def _copies_named(thunks: tuple[Thunk, ...]) -> tuple[Thunk, ...]:
    """Copies without an instruction are the next thunk's: a solver copies its operand before it overwrites it."""
    out = list(thunks)
    for at in range(len(out) - 2, -1, -1):
        if out[at].kind == "kCopy" and out[at].instruction is None:
            out[at] = replace(out[at], instruction=out[at + 1].instruction)
    return tuple(out)


def sort_kernels(module: Module) -> dict[str, str]:
    """What the first kernel of each sort is called: after the sort itself, or the one within a fusion."""
    found = {}
    for computation in module.computations:
        for i in computation.instructions:
            body = module.by_name.get(i.called[0]) if i.opcode == "fusion" and i.called else None
            if i.opcode == "sort" or (body is not None and body.root.opcode == "sort"):
                found[i.name] = kernel_name(body.root.name if body is not None else i.name)
    return found


CONTROL = frozenset({"kWhile", "kConditional", "kCommandBuffer"})
SLICE_KINDS = frozenset({"kDynamicSlice", "kDynamicSliceFusion", "kAddressComputation"})


def _same_sort(kind: str, expected: str) -> bool:
    """Whether a thunk without a kernel name can be a library call of the expected kind; the names changed over the years."""
    exact = {"kGemm", "kCublasLtMatmul", "kConvolution", "kCuDnn", "kCubSort", "kFft", "kCholesky", "kTriangularSolve"}
    return kind == expected or not (kind in exact and expected in exact)


def _counted(thunk: Thunk) -> bool:
    """Whether a thunk stands for an instruction of its own; command buffers, async starts and sequences only hold others."""
    return not thunk.branches or thunk.kind in CONTROL or thunk.kind in SLICE_KINDS


def _flat(thunks: tuple[Thunk, ...], into_slices: bool = True, closed: frozenset[str] = frozenset()) -> Iterator[Thunk]:
    """Thunks in order, nested ones after what holds them; not what stands inside thunks of the `closed` kinds."""
    for thunk in thunks:
        if thunk.kind in WAITS or thunk.kind.endswith("Done"):
            continue
        if _counted(thunk):
            yield thunk
        if thunk.kind not in closed and (into_slices or thunk.kind not in SLICE_KINDS):
            for _, inside in thunk.branches:
                yield from _flat(inside, into_slices, closed)


WAITS = frozenset({"kWaitForStreams"})
