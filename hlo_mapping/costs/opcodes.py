"""Opcodes grouped by how they touch their operands."""

from __future__ import annotations

ELEMENTWISE = frozenset(
    "abs add and atan2 bitcast-convert cbrt ceil clamp compare complex convert copy cosine count-leading-zeros divide erf exponential "
    "exponential-minus-one floor imag is-finite log log-plus-one logistic maximum minimum multiply negate not or popcnt power real "
    "reduce-precision remainder round-nearest-afz round-nearest-even rsqrt select shift-left shift-right-arithmetic "
    "shift-right-logical sign sine sqrt stochastic-convert subtract tan tanh xor acos acosh asin asinh atanh cosh sinh "
    "bitcast reshape transpose reverse map rng-get-and-update-state".split()
)
"""Each element of the result needs one element of every operand."""

COLLECTIVES = frozenset(
    {"all-reduce", "all-gather", "all-to-all", "collective-permute", "collective-broadcast", "reduce-scatter", "ragged-all-to-all", "send", "recv"}
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
