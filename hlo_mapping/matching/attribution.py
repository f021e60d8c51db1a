"""Thunks tied to the instructions they were made for, where the dump has no metadata: by the order of the schedule and by kernel names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hlo_mapping.dump.thunks import Thunk
from hlo_mapping.ir import Module
from hlo_mapping.matching.names import base_name, kernel_name
from hlo_mapping.matching.scheduled_hlo import PASS_SUFFIX, SLICE_FUSION, kernel_names, pseudo_thunks, sort_kernels

_FAR = 1e6


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
