"""Kernel names as XLA makes them from instruction names, and what library kernels are called."""

from __future__ import annotations

import re
from functools import cache

from hlo_mapping.kernel_kinds import KINDS

_NOT_IN_SYMBOLS = re.compile(r"[^A-Za-z0-9_$]")

COPY_KERNEL = re.compile(r"^mem(cpy|set)\d*(_\w+)?$", re.IGNORECASE)
"""Kernels that the driver runs for copy and memset nodes inside the bodies of conditional graph nodes."""

SECONDARY = re.compile(
    r"splitk_?reduce|split_k_reduce|reduce_?kernel|reducekernel|reduce_1block|nhwctonchw|addtensor|_postprocess|scal_kernel|convert_dq",
    re.IGNORECASE,
)
"""Library kernels that finish what another kernel of the same call began (split-K sums, scalings, layouts changed back)."""

LEADING = re.compile(r"make_?batch_?pointers|batched_pointers|nchwtonhwc|computeoffsets|scalepackedtensor|compute_dot_do_o", re.IGNORECASE)
"""Library kernels that prepare for another kernel of the same call (pointer arrays, layout changes)."""

HELPER = re.compile(r"set_(while|case|if|if_else|for)_condition|Set(While|Case|If|For)ConditionKernel|^noop$", re.IGNORECASE)
"""Kernels that steer a CUDA graph and belong to no instruction (XLA's own names)."""

AUTOTUNER = re.compile(
    r"redzone|delay_kernel|DelayKernel|RepeatBufferKernel|xla_fp_comparison|xla_int_comparison|xla\.fp_comparison|buffer_comparator",
    re.IGNORECASE,
)
"""Kernels that only XLA's autotuner launches (guard zones around buffers, delays, comparison of results)."""


XLA_EMITTED = re.compile(
    r"^((loop|input|wrapped|gemm_fusion|triton|copy_fusion)_\w+|copy(_fusion|_\d+)*|fusion(_\d+)*|\w*_fusion(_\d+)*|sort_\d+(_\d+)*(__\d+)?)$"
)
"""Names that XLA gives the kernels it emits itself: a library's kernels are never called so."""

_NVJET = re.compile(r"^nvjet_(?:sm\w+?_)?([a-z])[a-z]*_")
_NVJET_TYPES = {"t": "bf16", "h": "f16", "s": "f32", "q": "f8", "d": "f64"}
_TYPES = (
    ("tf32", re.compile(r"tf32|s1688|_s16816gemm(?!_\w*(bf|f)16)")),
    ("bf16", re.compile(r"gemm_bf16|bf16_s?16816|_bf16_|bf16bf16")),
    ("f16", re.compile(r"gemm_f16|(?<!b)f16_s?16816|(?<!b)f16f16|hgemm|h884|fp16")),
    ("f8", re.compile(r"e4m3|e5m2|fp8")),
    ("f64", re.compile(r"dgemm|d884|gemm_f64|f64f64")),
    ("s8", re.compile(r"gemm_i8|i8i8|imma|igemm|s8_")),
    ("f32", re.compile(r"sgemm|gemm_f32f32_f32f32|ffma")),
)

_KNOWN = (
    AUTOTUNER,
    COPY_KERNEL,
    HELPER,
    LEADING,
    SECONDARY,
    XLA_EMITTED,
    *(re.compile(k.kernels, re.IGNORECASE) for k in KINDS if k.kernels),
)


def is_known_kernel(kernel: str) -> bool:
    """Whether XLA or a library that it calls gives kernels such names: no name of the user's."""
    return any(pattern.search(kernel) for pattern in _KNOWN)


@cache
def product_type(kernel: str) -> str | None:
    """The element type that a library's matrix product multiplies (tf32 for f32 rounded to it), as its name tells; None if it does not."""
    jet = _NVJET.match(kernel)
    if jet:
        return _NVJET_TYPES.get(jet.group(1))
    return next((kind for kind, pattern in _TYPES if pattern.search(kernel)), None)


def kernel_name(instruction: str) -> str:
    """The symbol that XLA emits for an instruction: every character a symbol cannot hold becomes an underscore."""
    name = _NOT_IN_SYMBOLS.sub("_", instruction)
    return f"_{name}" if name[:1].isdigit() else name


def base_name(kernel: str) -> str:
    """A kernel name without the numbers that made it unique: what kind of fusion it came from."""
    return re.sub(r"(_+\d+)+$", "", kernel)
