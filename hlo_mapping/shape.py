"""Shapes of HLO values: element types, dimensions, layouts, tuples, and the bytes they take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

ELEMENT_BITS = {
    "pred": 8, "s1": 1, "u1": 1, "s2": 2, "u2": 2, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "s16": 16, "u16": 16, "s32": 32, "u32": 32,
    "s64": 64, "u64": 64, "bf16": 16, "f16": 16, "f32": 32, "f64": 64, "c64": 64, "c128": 128, "f8e5m2": 8, "f8e4m3": 8, "f8e4m3fn": 8,
    "f8e4m3b11fnuz": 8, "f8e5m2fnuz": 8, "f8e4m3fnuz": 8, "f8e3m4": 8, "f8e8m0fnu": 8, "f4e2m1fn": 4,
}  # fmt: skip
"""Bits of one element as XLA stores it on a GPU; types under 8 bits are packed."""
INDEX_TYPES = frozenset({"pred", "s16", "s32", "s64", "u16", "u32", "u64"})
"""Element types of tokens, positions, tables, keys and masks; weights packed into 32-bit words are told apart by their use."""
HOST_MEMORY = 5
"""The memory space, S(5) in a layout, of buffers in pinned host memory (xla/layout.h, Layout::kHostMemorySpace)."""
MOST_ELEMENTS = 2**60
"""No array has as many: a million terabytes at a byte each."""
DATALESS = frozenset({"token", "opaque"})
"""Element types that hold no data."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of dimensions in memory (`minor_to_major`) and whatever stood after the colon, as written."""

    minor_to_major: tuple[int, ...]
    annotations: str = ""

    @property
    def text(self) -> str:
        """The layout as HLO writes it, such as `{1,0:T(8,128)}`."""
        return f"{{{','.join(map(str, self.minor_to_major))}{':' if self.annotations else ''}{self.annotations}}}"

    @property
    def memory_space(self) -> int:
        """The number in S(n): 0 device memory, 1 collective memory, 5 host memory."""
        at = self.annotations.find("S(")
        return int(self.annotations[at + 2 : self.annotations.index(")", at)]) if at >= 0 else 0


@dataclass(frozen=True, slots=True)
class Shape:
    """An array, tuple, token or opaque value. `element_type` is "tuple" for tuples, whose parts are `elements`; a buffer, written
    `b(f32[8])`, is "buffer" and has its array as the only element.

    `dimensions` holds sizes (-1 for an unbounded dynamic one); `dynamic` tells which are upper bounds (written `<=N`).
    """

    element_type: str
    dimensions: tuple[int, ...] = ()
    layout: Layout | None = None
    elements: tuple[Shape, ...] = ()
    dynamic: tuple[bool, ...] = field(default=())

    @property
    def is_tuple(self) -> bool:
        return self.element_type == "tuple"

    @property
    def element_count(self) -> int:
        """Elements of an array (1 for a scalar; the bounds of dynamic dimensions count); 0 for tuples, tokens and opaque values, and for
        more than any memory holds, as a damaged text may say."""
        if self.element_type not in ELEMENT_BITS or -1 in self.dimensions:
            return 0
        count = math.prod(self.dimensions)
        return count if count < MOST_ELEMENTS else 0

    @property
    def byte_size(self) -> int:
        """Bytes of data, of all leaves for a tuple (not XLA's 8 bytes a pointer). Tokens and opaque values have none."""
        if self.elements:
            return sum(e.byte_size for e in self.elements)
        return -(-self.element_count * ELEMENT_BITS[self.element_type] // 8) if self.element_type in ELEMENT_BITS else 0

    @property
    def leaves(self) -> Iterator[Shape]:
        """The arrays, tokens and opaque values in it, in order."""
        if not self.is_tuple and not self.elements:
            yield self
            return
        for element in self.elements:
            yield from element.leaves

    def at(self, index: tuple[int, ...]) -> Shape:
        """The part at a tuple index; () is the shape itself."""
        shape = self
        for i in index:
            shape = shape.elements[i]
        return shape

    @property
    def has_known_size(self) -> bool:
        """Whether `byte_size` is the truth: every leaf has a known element type and bounded dimensions (or holds no data)."""
        sized = (
            leaf.element_type in ELEMENT_BITS and -1 not in leaf.dimensions and math.prod(leaf.dimensions) < MOST_ELEMENTS
            for leaf in self.leaves
        )
        return all(known or leaf.element_type in DATALESS for known, leaf in zip(sized, self.leaves, strict=True))

    def text(self, layouts: bool = True) -> str:
        """The shape as HLO writes it, such as `bf16[4,<=512]{1,0}`; without layouts if so asked."""
        if self.is_tuple or self.element_type == "buffer":
            return f"{'' if self.is_tuple else 'b'}({', '.join(e.text(layouts) for e in self.elements)})"
        bounds = self.dynamic or (False,) * len(self.dimensions)
        sizes = ("?" if size < 0 else f"<={size}" if bound else str(size) for size, bound in zip(self.dimensions, bounds, strict=True))
        return f"{self.element_type}[{','.join(sizes)}]" + (self.layout.text if self.layout is not None and layouts else "")

    def __str__(self) -> str:
        return self.text()
