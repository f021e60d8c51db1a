"""Opcodes grouped by how they touch their operands."""

from __future__ import annotations

_ELEMENTWISE = """
    abs acos acosh add and asin asinh atan2 atanh bitcast bitcast-convert cbrt ceil clamp compare complex convert copy cosh cosine
    count-leading-zeros divide erf exponential exponential-minus-one floor imag is-finite log log-plus-one logistic map maximum minimum
    multiply negate not or popcnt power real reduce-precision remainder reshape reverse rng-get-and-update-state round-nearest-afz
    round-nearest-even rsqrt select shift-left shift-right-arithmetic shift-right-logical sign sine sinh sqrt stochastic-convert
    subtract tan tanh transpose xor
"""
ELEMENTWISE = frozenset(_ELEMENTWISE.split())
"""Each element of the result needs one element of every operand."""

INDEX_TYPES = frozenset({"pred", "s16", "s32", "s64", "u16", "u32", "u64"})
"""Element types of tokens, positions, tables, keys and masks; weights packed into 32-bit words are told apart by their use."""

COLLECTIVES = frozenset(
    {
        "all-reduce",
        "all-gather",
        "all-to-all",
        "collective-permute",
        "collective-broadcast",
        "reduce-scatter",
        "ragged-all-to-all",
        "send",
        "recv",
    }
)
"""Work between devices."""

PRODUCTS = frozenset({"dot", "convolution", "ragged-dot", "scaled-dot"})
"""Products that sum over a dimension."""

WHOLE = frozenset({"dot", "convolution", "ragged-dot", "scaled-dot", "sort", "fft", "custom-call", "cholesky", "triangular-solve", "topk"})
"""They need all of every operand, whatever part of the result is used."""


def is_product_call(target: str) -> bool:
    """Whether a custom call is a library's matrix product or convolution (XLA's names for them)."""
    return target.startswith(("__cublas$gemm", "__cublas$lt$", "__cudnn$conv", "__cudnn$blockScaledDot"))


def is_library_call(target: str) -> bool:
    """Whether XLA itself chose the library call, so that its operands and results mean what XLA documents."""
    return target.startswith(("__cublas$", "__cudnn$", "__cub$", "__gpu$TopK", "__cufft$", "__onednn$")) or target.startswith("cusolver_")
