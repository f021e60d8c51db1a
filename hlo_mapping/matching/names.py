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


XLA_EMITTED = re.compile(
    r"^((loop|input|wrapped|gemm_fusion|triton|copy)_\w+|fusion(_\d+)*|\w*_fusion(_\d+)*|sort_\d+(_\d+)*(__\d+)?)$"
)
"""Names that XLA gives the kernels it emits itself: a library's kernels are never called so."""

LIBRARY_NAMES = (
    (re.compile(r"cublas|gemm|matmul", re.I), re.compile(r"gemm|gemv|nvjet|cutlass|xmma|splitk|dot_kernel|reduce_1block|cublas|make_batch|Kernel2", re.I)),
    (re.compile(r"conv|cudnn|norm|fmha|fusedmha", re.I), re.compile(r"conv|cudnn|fprop|dgrad|wgrad|xmma|cutlass|nchw|nhwc|gemm|sdpa|flash|winograd|fft|Kernel2|im2col|tensor", re.I)),
    (re.compile(r"fft", re.I), re.compile(r"fft|transpose|dpRadix|spRadix", re.I)),
    (re.compile(r"cubsort|radixsort", re.I), re.compile(r"radix|cub|onesweep|histogram", re.I)),
    (re.compile(r"selectk|topk", re.I), re.compile(r"select_k|radix|topk|raft|warpsort", re.I)),
    (re.compile(r"collective|nccl|allreduce|allgather|reducescatter|alltoall|permute|send|recv|nvshmem", re.I), re.compile(r"nccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|permute|barrier|nvshmem|onesho|twosho", re.I)),
    (re.compile(r"cholesky|triangular", re.I), re.compile(r"potrf|chol|trsm|trsv|gemm|syrk|cusolver|kernel|batch", re.I)),
)  # fmt: skip
"""(thunk kind, kernel names that such thunks launch), both as patterns; kinds not listed launch anything."""


def kernel_name(instruction: str) -> str:
    """The symbol that XLA emits for an instruction: every character a symbol cannot hold becomes an underscore."""
    name = _NOT_IN_SYMBOLS.sub("_", instruction)
    return f"_{name}" if name[:1].isdigit() else name


def base_name(kernel: str) -> str:
    """A kernel name without the numbers that made it unique: what kind of fusion it came from."""
    return re.sub(r"(_+\d+)+$", "", kernel)
