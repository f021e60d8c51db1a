"""Each kind of work that is not a kernel of XLA's own making: one row a kind, which names, costs, classes and the join read.

The targets are XLA's (xla/service/gpu/cublas_cudnn.cc, ir_emission_utils.cc) and jaxlib's (jaxlib/gpu), the kinds of thunk those of
xla/backends/gpu/runtime/thunk.h, the kernels' names those that libraries were seen to launch. How to add a kind: KERNEL_KINDS.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from hlo_mapping.kernel_classes import Detail

Flops: TypeAlias = Literal["product", "attention", "triangular solve", "cholesky", "none", "unknown"]

ANY = r""
_GEMM = r"gemm|gemv|nvjet|cutlass|xmma|splitk|dot_kernel|reduce_1block|cublas|make_batch|Kernel2"
_CUDNN = r"conv|cudnn|fprop|dgrad|wgrad|xmma|cutlass|nchw|nhwc|gemm|sdpa|flash|winograd|fft|Kernel2|im2col|tensor"
_RADIX = r"radix|cub|onesweep|histogram|merge|scan|segmented|sort"
_NCCL = r"nccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|permute|barrier|nvshmem|onesho|twosho"


@dataclass(frozen=True, slots=True)
class KernelKind:
    """One kind of library call or custom call."""

    name: str
    targets: tuple[str, ...] = ()
    """How its custom calls' targets begin; the first row that fits is a target's."""
    thunk: str = "kCustomCall"
    """The kind of thunk that XLA makes of such a call."""
    calls: str = ""
    """Pattern of "thunk kind, target" whose kernels `kernels` describes; the first row that fits counts. "" for none of its own."""
    kernels: str = ANY
    """Pattern of the names of its kernels, of those that prepare or finish too; one of another name is judged unusual."""
    routine: str = ""
    """Pattern of "thunk kind, target" of calls to the routine that the names in `tells` give away; "" for none."""
    tells: str = ""
    """Pattern of kernel names that only this routine has: such a kernel is no other call's."""
    several: str = ""
    """Pattern of "thunk kind, target" of calls that as a rule launch several kernels; other calls launch one, and perhaps a sum."""
    product: Literal["", "dot", "convolution"] = ""
    """The product that it is, of its first two operands; "" for none."""
    bytes_known: bool = False
    """Whether XLA chose the call, so that operands and results mean what XLA documents, with the workspace last."""
    flops: Flops = "unknown"
    detail: Detail = "custom call"
    """The finer kind within class `other`, where neither weights nor attention meet in it."""
    skip: float = 0.6
    """What it costs the join to believe that a call launched nothing: calls on empty data are left out (see tests/prices.py)."""


KINDS = (
    KernelKind(
        "cuBLASLt product", ("__cublas$lt$",), "kCublasLtMatmul", product="dot", bytes_known=True, flops="product",
    ),
    KernelKind(
        "cuBLAS triangular solve", ("__cublas$tri",), "kTriangularSolve",
        routine=r"(?i:triangular)", tells=r"trsm|trsv", bytes_known=True, flops="triangular solve", detail="solver",
    ),
    KernelKind("cuBLAS product", ("__cublas$gemm",), "kGemm", product="dot", bytes_known=True, flops="product"),
    KernelKind("cuBLAS, other", ("__cublas$",), "kGemm", bytes_known=True),
    KernelKind(
        "cuDNN convolution", ("__cudnn$conv",), "kConvolution", product="convolution", bytes_known=True, flops="product",
    ),
    KernelKind("cuDNN attention", ("__cudnn$fmha",), "kCuDnn", bytes_known=True, flops="attention"),
    KernelKind("cuDNN block-scaled product", ("__cudnn$blockScaledDot",), "kCuDnn", product="dot", bytes_known=True, flops="product"),
    KernelKind("cuDNN norm", ("__cudnn$norm",), "kCuDnn", bytes_known=True, detail="norm"),
    KernelKind("cuDNN, other", ("__cudnn$",), "kCuDnn", bytes_known=True),
    KernelKind(
        "CUB sort or scan", ("__cub$",), "kCubSort", calls=r"(?i:cub(?!las))", kernels=_RADIX,
        routine=r"(?i:cub(?!las)|sort)", tells=r"(?i:RadixSort|MergeSort|DeviceScan|onesweep)", several=r"(?i:cub(?!las)|kSort)",
        bytes_known=True, flops="none", detail="sort",
    ),
    KernelKind("QR factorization", ("cusolver_geqrf",), routine=r"geqrf", tells=r"geqr|geqrf", bytes_known=True, detail="solver"),
    KernelKind(
        "Q of a QR factorization", ("cusolver_orgqr", "cusolver_ungqr"),
        routine=r"orgqr|ungqr|ormqr|unmqr|householder", tells=r"orgqr|ungqr|ormqr|unmqr|larft", bytes_known=True, detail="solver",
    ),
    KernelKind(
        "singular values", ("cusolver_gesvd",), routine=r"gesvd|svd", tells=r"svd|FnrmA|offA|syevj|bdsqr|gebrd|lascl",
        bytes_known=True, detail="solver",
    ),
    KernelKind(
        "eigenvalues", ("cusolver_syev",), routine=r"syev|heev|eigh", tells=r"syev|heev|sytrd|stedc|steqr|offA|FnrmA|lascl|laed|tridiag",
        bytes_known=True, detail="solver",
    ),
    KernelKind(
        "LU factorization", ("cusolver_getrf",), routine=r"getrf|lu_decomposition", tells=r"getrf|ipiv|create_pivot|laswp|xxtrf",
        bytes_known=True, detail="solver",
    ),
    KernelKind(
        "Cholesky factorization", ("cusolver_potrf",), routine=r"(?i:potrf|cholesky)", tells=r"(?i:potrf|chol|xxtrf)",
        bytes_known=True, flops="cholesky", detail="solver",
    ),
    KernelKind(
        "cuSOLVER, other", ("cusolver_",), calls=r"(?i:cusolver|^kCholesky|^kTriangular|cublas\$triangular)", kernels=ANY,
        several=r"(?i:cholesky|solve)", bytes_known=True, detail="solver",
    ),
    KernelKind("cuSOLVER through an older name", ("cusolver",), detail="solver"),
    KernelKind("pivots to a permutation", routine=r"pivots_to_permutation", tells=r"Pivots"),
    KernelKind("matrix product", calls=r"(?i:cublas|gemm|matmul)", kernels=_GEMM),
    KernelKind(
        "convolution, attention, norm", calls=r"(?i:conv|cudnn|norm|fmha|fusedmha)", kernels=_CUDNN,
        routine=r"(?i:conv|cudnn)", tells=r"cudnn|fprop|dgrad|wgrad|sdpa|winograd", several=r"(?i:conv|cudnn)",
    ),
    KernelKind(
        "FFT", ("__cufft",), calls=r"(?i:fft)", kernels=r"fft|transpose|dpRadix|spRadix",
        routine=r"(?i:fft)", tells=r"fft|dpRadix|spRadix", several=r"(?i:fft)", bytes_known=True, detail="fft",
    ),
    KernelKind(
        "largest values", ("__gpu$TopK",), "kTopK", calls=r"(?i:selectk|topk)", kernels=r"select_k|radix|topk|raft|warpsort|^Run$",
        several=r"(?i:kTopK|kSelectK)", bytes_known=True, flops="none", detail="sampling",
    ),
    KernelKind(
        "collective", calls=r"(?i:collective|nccl|allreduce|allgather|reducescatter|alltoall|permute|send|recv|nvshmem)", kernels=_NCCL,
        routine=r"(?i:nccl|collective|all_?(reduce|gather|to_?all)|reduce_?scatter|permute|send|recv)", tells=r"^nccl",
        several=r"(?i:nccl|collective)",
    ),
    KernelKind("oneDNN", ("__onednn$",), bytes_known=True),
    KernelKind("random bits of JAX", ("cu_threefry",), detail="random"),
    KernelKind("any other custom call (FFI, Triton, Pallas, Mosaic)", several=r"(?i:kCustomCall)"),
)  # fmt: skip


@cache
def kind_of_target(target: str) -> KernelKind:
    """The row of a custom call's target; the last row for one that no other fits."""
    return next((k for k in KINDS if k.targets and target.startswith(k.targets)), KINDS[-1])


def is_product_call(target: str) -> bool:
    """Whether a custom call is a library's matrix product or convolution."""
    return bool(kind_of_target(target).product)


def is_library_call(target: str) -> bool:
    """Whether XLA itself chose the library call, so that its operands and results mean what XLA documents."""
    return kind_of_target(target).bytes_known


@cache
def is_usual(call: str, kernel: str) -> bool:
    """Whether kernels of such a call ("thunk kind, target") are called like this; so it is of calls that no row describes."""
    row = next((k for k in KINDS if k.calls and re.search(k.calls, call)), None)
    return row is None or bool(re.search(row.kernels, kernel, re.IGNORECASE))


@cache
def tells(call: str, kernel: str) -> bool:
    """Whether a kernel's name tells of the call's own library routine."""
    return any(re.search(k.routine, call) and re.search(k.tells, kernel) for k in KINDS if k.routine)


@cache
def tells_otherwise(call: str, kernel: str) -> bool:
    """Whether a kernel's name tells of another library routine than the call's."""
    told = [k for k in KINDS if k.routine and re.search(k.tells, kernel)]
    return bool(told) and not any(re.search(k.routine, call) for k in told)


@cache
def launches_several(call: str) -> bool:
    """Whether such a call as a rule launches several kernels."""
    return any(re.search(k.several, call) for k in KINDS if k.several)
