"""Operations of products and library calls, on paper."""

from __future__ import annotations

import pytest

from tests.hlo_mapping.hlo_samples import module, rows


def flops(entry: str, before: str = "") -> int | None:
    found: int | None = rows(module(entry, before))["k"]["flops"]
    return found


def test_a_dot_has_two_operations_for_each_element_of_the_result_and_step_of_the_sum() -> None:
    assert (
        flops(
            """%x = bf16[4,16,64] parameter(0)
            %y = bf16[4,64,32] parameter(1)
            ROOT %k = f32[4,16,32] dot(%x, %y), lhs_batch_dims={0}, lhs_contracting_dims={2}, \
rhs_batch_dims={0}, rhs_contracting_dims={1}"""
        )
        == 2 * 4 * 16 * 32 * 64
    )


def test_elementwise_work_has_none() -> None:
    assert flops("%x = f32[8] parameter(0)\nROOT %k = f32[8] exponential(%x)") == 0


CONV = """%x = f32[2,16,16,8] parameter(0)
%w = f32[{K},8,4] parameter(1)
ROOT %k = f32[2,{O},4] convolution(%x, %w), window={{size={W}}}, dim_labels=b01f_01io->b01f"""


@pytest.mark.parametrize(
    ("kernel", "out", "window", "positions"),
    [
        ("3,3", "14,14", "3x3", (14 * 3) ** 2),
        ("3,3", "16,16", "3x3 pad=1_1x1_1", (16 * 3 - 2) ** 2),  # each edge misses one of the three
        ("3,3", "8,8", "3x3 stride=2x2 pad=0_1x0_1", (8 * 3 - 1) ** 2),
        ("3,3", "12,12", "3x3 rhs_dilate=2x2", (12 * 3) ** 2),
        ("1,1", "16,16", "1x1", 16 * 16),
    ],
)
def test_a_convolution_counts_the_positions_that_lie_on_its_input(kernel: str, out: str, window: str, positions: int) -> None:
    assert flops(CONV.format(K=kernel, O=out, W=window)) == 2 * positions * 2 * 8 * 4


def test_a_dilated_input_counts_its_elements_and_not_the_holes() -> None:
    line = """%x = f32[1,4,1] parameter(0)
    %w = f32[3,1,1] parameter(1)
    ROOT %k = f32[1,7,1] convolution(%x, %w), window={size=3 pad=1_1 lhs_dilate=2}, dim_labels=b0f_0io->b0f"""
    # 1.1.1.1 under a window of three at seven places: 1 2 1 2 1 2 1 elements
    assert flops(line) == 2 * 10


CUDNN = """%a = f32[8,56,56,{A}] parameter(0)
%b = {B} parameter(1)
%k = ({R}, u8[0]) custom-call(%a, %b), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$conv{T}"
ROOT %y = {R} negate(%k#0)"""


@pytest.mark.parametrize(
    ("target", "first", "second", "result"),
    [
        ("Forward", 64, "f32[128,3,3,64]", "f32[8,56,56,128]"),
        ("BackwardInput", 128, "f32[128,3,3,64]", "f32[8,56,56,64]"),
        ("BackwardFilter", 64, "f32[8,56,56,128]", "f32[128,3,3,64]"),
    ],
)
def test_a_convolution_and_its_two_gradients_cost_the_same(target: str, first: int, second: str, result: str) -> None:
    found = flops(CUDNN.format(A=first, B=second, R=result, T=target))
    assert found == 2 * (56 * 3 - 2) ** 2 * 8 * 64 * 128


def test_a_split_product_has_its_multiplications_in_one_launch_and_its_sums_in_the_other() -> None:
    found = rows(
        module(
            """%x = f32[64] parameter(0)
            %t = f32[64] exponential(%x)
            %w = f32[64,32] parameter(1)
            %mul = f32[64,32] fusion(%t, %w), kind=kLoop, calls=%f
            %zero = f32[] constant(0)
            ROOT %sum = f32[32] reduce(%mul, %zero), dimensions={0}, to_apply=%add""",
            """%f (p: f32[64], q: f32[64,32]) -> f32[64,32] {
  %p = f32[64] parameter(0)
  %q = f32[64,32] parameter(1)
  %b = f32[64,32] broadcast(%p), dimensions={0}
  ROOT %m = f32[64,32] multiply(%b, %q)
}""",
        )
    )
    assert (found["mul"]["flops"], found["sum"]["flops"]) == (64 * 32, 64 * 32)
    assert found["mul"]["dot_type"] == "f32,f32->f32"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%k = c64[32,1024] fft(%c), fft_type=FFT, fft_length={1024}", 5 * 32 * 1024 * 10),
        ("%k = c64[32,513] fft(%x), fft_type=RFFT, fft_length={1024}", 5 * 32 * 1024 * 10 // 2),
        ("%k = f32[64,64] cholesky(%m), lower=true", 64**3 // 3),
        ("%k = f32[64,16] triangular-solve(%m, %r), left_side=true, lower=true, transpose_a=NO_TRANSPOSE", 64 * 64 * 16),
    ],
)
def test_transforms_and_solvers(line: str, expected: int) -> None:
    entry = f"""%x = f32[32,1024] parameter(0)
    %c = c64[32,1024] parameter(1)
    %m = f32[64,64] parameter(2)
    %r = f32[64,16] parameter(3)
    ROOT {line}"""
    assert flops(entry) == expected


def test_fused_attention_of_the_library_is_two_products() -> None:
    numbers = (
        '{"lhs_batch_dimensions":["0","2"],"lhs_contracting_dimensions":["3"],"rhs_batch_dimensions":["0","2"],'
        '"rhs_contracting_dimensions":["3"]}'
    )
    entry = f"""%q = bf16[4,1,16,128] parameter(0)
    %keys = bf16[4,1024,16,128] parameter(1)
    %v = bf16[4,1024,16,128] parameter(2)
    %k = (bf16[4,1,16,128], u8[0]) custom-call(%q, %keys, %v), custom_call_target="__cudnn$fmhaSoftmax", backend_config=\
{{"cudnn_fmha_backend_config":{{"bmm1_dot_dimension_numbers":{numbers}}}}}
    ROOT %y = bf16[4,1,16,128] negate(%k#0)"""
    row = rows(module(entry))["k"]
    assert row["flops"] == 2 * (2 * 4 * 16 * 1 * 1024 * 128)
    assert row["kernel_class"] == "attention"


def test_a_complex_multiply_add_has_four_multiplications_and_four_additions() -> None:
    entry = "%x = c64[16,64] parameter(0)\n%y = c64[64,32] parameter(1)\nROOT %k = c64[16,32] dot(%x, %y), lhs_contracting_dims={1}, \
rhs_contracting_dims={0}"
    assert flops(entry) == 8 * 16 * 32 * 64


RAGGED = """%x = bf16[1024,64] parameter(0)
%y = bf16[{right}] parameter(1)
%g = s32[8] parameter(2)
ROOT %k = bf16[{result}] ragged-dot(%x, %y, %g), lhs_contracting_dims={{{summed}}}, rhs_contracting_dims={{{other}}}, \
lhs_ragged_dims={{0}}"""


@pytest.mark.parametrize(
    ("right", "result", "summed", "other"), [("8,64,256", "1024,256", 1, 1), ("1024,256", "8,64,256", 0, 0)], ids=["forward", "gradient"]
)
def test_each_row_of_a_ragged_product_belongs_to_one_group(right: str, result: str, summed: int, other: int) -> None:
    assert flops(RAGGED.format(right=right, result=result, summed=summed, other=other)) == 2 * 1024 * 64 * 256


def test_a_grouped_library_product_with_its_workspace() -> None:
    entry = """%x = bf16[1024,64] parameter(0)
    %y = bf16[8,64,256] parameter(1)
    %g = s32[8] parameter(2)
    ROOT %k = (bf16[1024,256], s8[4096]) custom-call(%x, %y, %g), custom_call_target="__cublas$lt$groupedMatmul", \
backend_config={"grouped_gemm_backend_config":{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}},\
"ragged_dot_dimension_numbers":{"lhs_ragged_dimensions":["0"]}}}"""
    assert flops(entry) == 2 * 1024 * 64 * 256


@pytest.mark.parametrize(
    ("shapes", "labels", "expected"),
    [
        ("s8[10,2,10,10,32] s8[2,64,3,3,32] s8[10,2,8,8,32]", "bf01?_io01?->bf01?", 2 * 10 * 64 * 8 * 8 * 9 * 64),
        ("s8[4,10,12,12,16] s8[4,3,3,16,192] s8[4,10,10,10,48]", "?b01f_?01io->?b01f", 2 * 10 * 192 * 10 * 10 * 9 * 64),
    ],
)
def test_a_part_of_the_features_that_cudnn_keeps_apart_is_a_part_of_the_features(shapes: str, labels: str, expected: int) -> None:
    image, kernel, out = shapes.split()
    entry = f"""%x = {image} parameter(0)
    %w = {kernel} parameter(1)
    ROOT %k = ({out}, u8[0]) custom-call(%x, %w), window={{size=3x3}}, dim_labels={labels}, custom_call_target="__cudnn$convForward\""""
    assert flops(entry) == expected


FORWARD = '"bmm1_dot_dimension_numbers":{"rhs_batch_dimensions":["0","1"],"rhs_contracting_dimensions":["3"]}'
BACKWARD = '"bmm1_grad_gemm2_dot_dimension_numbers":{"rhs_batch_dimensions":["0","1"],"rhs_contracting_dimensions":["2"]}'


def attention(target: str, numbers: str, mask: str) -> int | None:
    shape = "bf16[2,4,128,64]"
    entry = f"""%q = {shape} parameter(0)
    %x = {shape} parameter(1)
    %v = {shape} parameter(2)
    ROOT %k = ({shape}, {shape}, {shape}, u8[0]) custom-call(%q, %x, %v), custom_call_target="__cudnn$fmhaSoftmax{target}", \
backend_config={{"cudnn_fmha_backend_config":{{{numbers},{mask}}}}}"""
    return flops(entry)


@pytest.mark.parametrize(
    ("mask", "pairs"),
    [
        ('"mask_type":"NO_MASK"', 128 * 128),
        ('"mask_type":"CAUSAL"', 128 * 129 // 2),
        ('"mask_type":"CAUSAL","sliding_window_length":1', 128),
        ('"mask_type":"PADDING"', 128 * 128),
    ],
)
def test_the_librarys_attention_multiplies_queries_with_the_keys_that_they_see(mask: str, pairs: int) -> None:
    assert attention("", FORWARD, mask) == 2 * 2 * (2 * 4 * 64) * pairs
    assert attention("Backward", BACKWARD, mask) == 5 * 2 * (2 * 4 * 64) * pairs
