"""Kernel names as XLA makes them from instruction names, and what library kernels are called."""

from __future__ import annotations

import re

_NOT_IN_SYMBOLS = re.compile(r"[^A-Za-z0-9_$]")

SECONDARY = re.compile(
    r"splitk|split_k|reduce_?kernel|reducekernel|reduce_1block|make_batch_pointers|batched_pointers|nhwctonchw|nchwtonhwc|addtensor|"
    r"_postprocess|scalepackedtensor|computeoffsets",
    re.IGNORECASE,
)
"""Library kernels that help another kernel of the same call (split-K sums, pointer arrays, layout changes) rather than begin a call."""

HELPER = re.compile(r"set_(while|case|if|if_else|for)_condition|Set(While|Case|If|For)ConditionKernel|^noop$", re.IGNORECASE)
"""Kernels that steer a CUDA graph and belong to no instruction (XLA's own names)."""

AUTOTUNER = re.compile(r"redzone|delay_kernel|DelayKernel|RepeatBufferKernel|xla_fp_comparison|xla_int_comparison|xla\.fp_comparison|buffer_comparator", re.IGNORECASE)
"""Kernels that only XLA's autotuner launches (guard zones around buffers, delays, comparison of results)."""


def kernel_name(instruction: str) -> str:
    """The symbol that XLA emits for an instruction: every character a symbol cannot hold becomes an underscore."""
    name = _NOT_IN_SYMBOLS.sub("_", instruction)
    return f"_{name}" if name[:1].isdigit() else name
