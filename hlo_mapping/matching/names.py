"""Kernel names as XLA makes them from instruction names, and what library kernels are called."""

from __future__ import annotations

import re
from functools import cache

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

_LIBRARY_WORDS = (
    (r"cub(?!las)", r"radix|cub|onesweep|histogram|merge|scan|segmented|sort"),
    (r"cusolver|^kCholesky|^kTriangular|cublas\$triangular", r""),
    (r"cublas|gemm|matmul", r"gemm|gemv|nvjet|cutlass|xmma|splitk|dot_kernel|reduce_1block|cublas|make_batch|Kernel2"),
    (
        r"conv|cudnn|norm|fmha|fusedmha",
        r"conv|cudnn|fprop|dgrad|wgrad|xmma|cutlass|nchw|nhwc|gemm|sdpa|flash|winograd|fft|Kernel2|im2col|tensor",
    ),
    (r"fft", r"fft|transpose|dpRadix|spRadix"),
    (r"selectk|topk", r"select_k|radix|topk|raft|warpsort|^Run$"),
    (
        r"collective|nccl|allreduce|allgather|reducescatter|alltoall|permute|send|recv|nvshmem",
        r"nccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|permute|barrier|nvshmem|onesho|twosho",
    ),
)
LIBRARY_NAMES = tuple((re.compile(kind, re.IGNORECASE), re.compile(names, re.IGNORECASE)) for kind, names in _LIBRARY_WORDS)
"""(thunk kind and custom-call target, kernel names that such calls launch), both as patterns; calls not listed launch anything."""

ROUTINES = (
    (re.compile(r"geqrf"), re.compile(r"geqr|geqrf")),
    (re.compile(r"orgqr|ungqr|ormqr|unmqr|householder"), re.compile(r"orgqr|ungqr|ormqr|unmqr|larft")),
    (re.compile(r"gesvd|svd"), re.compile(r"svd|FnrmA|offA|syevj|bdsqr|gebrd|lascl")),
    (re.compile(r"syev|heev|eigh"), re.compile(r"syev|heev|sytrd|stedc|steqr|offA|FnrmA|lascl|laed|tridiag")),
    (re.compile(r"getrf|lu_decomposition"), re.compile(r"getrf|ipiv|create_pivot|laswp|xxtrf")),
    (re.compile(r"potrf|cholesky", re.I), re.compile(r"potrf|chol|xxtrf", re.I)),
    (re.compile(r"triangular", re.I), re.compile(r"trsm|trsv", re.I)),
    (re.compile(r"pivots_to_permutation"), re.compile(r"Pivots")),
    (re.compile(r"fft", re.I), re.compile(r"fft|dpRadix|spRadix")),
    (re.compile(r"cub(?!las)|sort", re.I), re.compile(r"RadixSort|MergeSort|DeviceScan|onesweep", re.I)),
    (re.compile(r"conv|cudnn", re.I), re.compile(r"cudnn|fprop|dgrad|wgrad|sdpa|winograd")),
    (re.compile(r"nccl|collective|all_?(reduce|gather|to_?all)|reduce_?scatter|permute|send|recv", re.I), re.compile(r"^nccl")),
)  # fmt: skip
"""(custom-call target, kernel names that tell of such a routine): a kernel that tells of another routine is not this call's."""

FREE_CALLS = re.compile(r"kCustomCall|cub(?!las)|fft|cholesky|solve|kTopK|kSelectK|kSort|conv|cudnn|nccl|collective", re.I)
"""Calls that as a rule launch several kernels; a matrix product launches one, and perhaps a sum."""


def tells(call: str, kernel: str) -> bool:
    """Whether a kernel's name tells of the call's own library routine."""
    return any(target.search(call) and names.search(kernel) for target, names in ROUTINES)


def tells_otherwise(call: str, kernel: str) -> bool:
    """Whether a kernel's name tells of another library routine than the call's."""
    told = [target for target, names in ROUTINES if names.search(kernel)]
    return bool(told) and not any(target.search(call) for target in told)


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
