"""The rows of kernel_kinds.py: targets, names of kernels, and what calls mean."""

from __future__ import annotations

import re

import pytest

from hlo_mapping.kernel_kinds import (
    KINDS,
    is_library_call,
    is_product_call,
    is_usual,
    kind_of_target,
    launches_several,
    tells,
    tells_otherwise,
)
from tests.hlo_mapping.hlo_samples import module, rows


@pytest.mark.parametrize(
    ("target", "name", "thunk", "product", "known"),
    [
        ("__cublas$lt$matmul$f8", "cuBLASLt product", "kCublasLtMatmul", "dot", True),
        ("__cublas$gemm", "cuBLAS product", "kGemm", "dot", True),
        ("__cublas$triangularSolve", "cuBLAS triangular solve", "kTriangularSolve", "", True),
        ("__cudnn$convBiasActivationForward", "cuDNN convolution", "kConvolution", "convolution", True),
        ("__cudnn$fmhaSoftmaxBackward", "cuDNN attention", "kCuDnn", "", True),
        ("__cudnn$norm", "cuDNN norm", "kCuDnn", "", True),
        ("__cub$DeviceRadixSort", "CUB sort or scan", "kCubSort", "", True),
        ("__gpu$TopK", "largest values", "kTopK", "", True),
        ("cusolver_potrf_ffi", "Cholesky factorization", "kCustomCall", "", True),
        ("cusolver_geqrf_ffi", "QR factorization", "kCustomCall", "", True),
        ("cu_threefry2x32_ffi", "random bits of JAX", "kCustomCall", "", False),
        ("__gpu$xla.gpu.triton", KINDS[-1].name, "kCustomCall", "", False),
        ("mosaic_gpu_v2", KINDS[-1].name, "kCustomCall", "", False),
    ],
)
def test_a_target_gives_its_row(target: str, name: str, thunk: str, product: str, known: bool) -> None:
    kind = kind_of_target(target)
    assert (kind.name, kind.thunk, kind.product, kind.bytes_known) == (name, thunk, product, known)
    assert (is_product_call(target), is_library_call(target)) == (bool(product), known)


@pytest.mark.parametrize(
    ("call", "kernel", "usual"),
    [
        ("kGemm __cublas$gemm", "nvjet_sm90_tst_128x64_64x8", True),
        ("kGemm __cublas$gemm", "void cub::DeviceRadixSortOnesweepKernel", False),
        ("kCubSort __cub$DeviceRadixSort", "void cub::DeviceRadixSortOnesweepKernel", True),
        ("kCuDnn __cudnn$fmhaSoftmax", "cudnn_generated_fort_native_sdpa_sm90_flash_fprop", True),
        ("kFft", "vector_fft_256", True),
        ("kCollective", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", True),
        ("kCollective", "nvjet_sm90_tst_128x64", False),
        ("kCustomCall my_library_call", "anything_at_all", True),
    ],
)
def test_names_of_kernels_are_usual_for_their_calls(call: str, kernel: str, usual: bool) -> None:
    assert is_usual(call, kernel) is usual


def test_a_routine_is_told_by_its_kernels() -> None:
    call = "kCustomCall cusolver_syevd_ffi"
    assert tells(call, "sytrd_lower_kernel")
    assert tells_otherwise("kCustomCall cusolver_geqrf_ffi", "ncclDevKernel_AllGather")
    assert not tells_otherwise(call, "sytrd_lower_kernel")
    assert not tells_otherwise(call, "a_kernel_of_no_routine")


def test_products_launch_one_kernel_and_others_several() -> None:
    assert not launches_several("kGemm __cublas$gemm")
    assert all(map(launches_several, ("kCustomCall anything", "kCubSort __cub$DeviceRadixSort", "kFft", "kCollective", "kSort")))


def test_every_pattern_can_be_read_and_every_target_is_reached() -> None:
    """No row stands behind another that takes all its targets."""
    for kind in KINDS:
        assert all(re.compile(p) for p in (kind.calls, kind.kernels, kind.routine, kind.tells, kind.several))
        assert bool(kind.routine) == bool(kind.tells)
        assert all(kind_of_target(target) is kind for target in kind.targets)
    assert len({k.name for k in KINDS}) == len(KINDS)


def test_a_call_that_the_library_makes_has_bytes_and_one_of_nobody_knows_none() -> None:
    found = rows(
        module(
            """
  %a = f32[64,64] parameter(0)
  %i = s32[64] parameter(1)
  %sorted = (f32[64,64], u8[128]) custom-call(%a), custom_call_target="__cub$DeviceRadixSort"
  %s = f32[64,64] get-tuple-element(%sorted), index=0
  ROOT %own = f32[64,64] custom-call(%s, %i), custom_call_target="mosaic_gpu_v2"
"""
        )
    )
    assert found["sorted"]["bytes_accessed"] == 2 * 64 * 64 * 4  # keys read and written; the workspace is left out
    assert (found["sorted"]["class_detail"], found["sorted"]["flops"]) == ("sort", 0)
    assert (found["own"]["bytes_accessed"], found["own"]["bytes_upper"]) == (None, 2 * 64 * 64 * 4 + 64 * 4)
