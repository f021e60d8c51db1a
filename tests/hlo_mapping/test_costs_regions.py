"""What a part of a value needs of the values behind it, on paper: slices of windows, broadcasts, pads, and the same part twice."""

from __future__ import annotations

import pytest

from hlo_mapping.costs.regions import _reduced
from tests.hlo_mapping.hlo_samples import Row, module, rows


def fused(body: str, parameter: str, result: str) -> Row:
    """The facts of a fusion of one parameter that ends in a tuple or an array of this shape."""
    lines = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    before = f"%f {{\n  %p = {parameter} parameter(0)\n{lines}\n}}"
    return rows(module(f"%P = {parameter} parameter(0)\nROOT %k = {result} fusion(%P), kind=kLoop, calls=%f", before))["k"]


def window(parameter: str, whole: str, attribute: str, part: str, slices: str) -> Row:
    return fused(
        f"""%z = f32[] constant(0)
        %w = {whole} reduce-window(%p, %z), window={{{attribute}}}, to_apply=%add
        ROOT %s = {part} slice(%w), slice={{{slices}}}""",
        parameter,
        part,
    )


def test_the_last_of_each_row_of_running_sums_needs_the_whole_row() -> None:
    """A running sum over blocks of 16 whose last column is taken: all 12,500 x 16 values, not a sixteenth of them."""
    row = window("f32[12500,16]", "f32[12500,16]", "size=1x16 pad=0_0x15_0", "f32[12500,1]", "[0:12500], [15:16]")
    assert row["bytes_accessed"] == 12_500 * 16 * 4 + 12_500 * 4 == 850_000


def test_the_first_of_each_row_of_running_sums_needs_the_first_value_alone() -> None:
    row = window("f32[12500,16]", "f32[12500,16]", "size=1x16 pad=0_0x15_0", "f32[12500,1]", "[0:12500], [0:1]")
    assert row["bytes_accessed"] == 2 * 12_500 * 4


def test_windows_with_a_stride_above_their_size_leave_values_out() -> None:
    row = fused(
        """%z = f32[] constant(0)
        ROOT %w = f32[100] reduce-window(%p, %z), window={size=2 stride=10}, to_apply=%add""",
        "f32[1000]",
        "f32[100]",
    )
    assert row["bytes_accessed"] == 100 * 2 * 4 + 100 * 4


@pytest.mark.parametrize(
    ("slices", "part", "needed"),
    [("[0:64], [0:1]", "f32[64,1]", 64), ("[0:1], [0:768]", "f32[1,768]", 1), ("[3:5], [0:768]", "f32[2,768]", 2)],
)
def test_a_slice_of_a_broadcast_needs_what_was_spread_into_it(slices: str, part: str, needed: int) -> None:
    row = fused(
        f"""%b = f32[64,768] broadcast(%p), dimensions={{0}}
        ROOT %s = {part} slice(%b), slice={{{slices}}}""",
        "f32[64]",
        part,
    )
    written = {"f32[64,1]": 64, "f32[1,768]": 768, "f32[2,768]": 2 * 768}[part]
    assert row["bytes_accessed"] == (needed + written) * 4


@pytest.mark.parametrize(("start", "needed"), [(0, 0), (90, 10), (100, 20), (190, 10)])
def test_a_slice_of_a_pad_needs_what_is_not_padding(start: int, needed: int) -> None:
    row = fused(
        f"""%z = f32[] constant(0)
        %d = f32[300] pad(%p, %z), padding=100_100
        ROOT %s = f32[20] slice(%d), slice={{[{start}:{start + 20}]}}""",
        "f32[100]",
        "f32[20]",
    )
    assert row["bytes_accessed"] == (needed + 20) * 4


def two(first: str, second: str) -> Row:
    return fused(
        f"""%a = f32[20] slice(%p), slice={{[{first}]}}
        %b = f32[20] slice(%p), slice={{[{second}]}}
        %n = f32[20] negate(%a)
        %m = f32[20] multiply(%b, %b)
        ROOT %t = (f32[20], f32[20]) tuple(%n, %m)""",
        "f32[1000]",
        "(f32[20], f32[20])",
    )


@pytest.mark.parametrize(("second", "read"), [("0:20", 20), ("10:30", 30), ("500:520", 40)])
def test_two_slices_need_what_they_share_once(second: str, read: int) -> None:
    assert two("0:20", second)["bytes_accessed"] == (read + 2 * 20) * 4


def test_a_scatter_of_two_arrays_writes_its_updates_in_place() -> None:
    combine = """%c {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  %u = f32[] parameter(2)
  %v = f32[] parameter(3)
  %s = f32[] add(%a, %u)
  %t = f32[] add(%b, %v)
  ROOT %r = (f32[], f32[]) tuple(%s, %t)
}"""
    found = rows(
        module(
            """%x = f32[1000,8] parameter(0)
            %y = f32[1000,8] parameter(1)
            %i = s32[5,1] parameter(2)
            %u = f32[5,8] parameter(3)
            %v = f32[5,8] parameter(4)
            ROOT %k = (f32[1000,8], f32[1000,8]) scatter(%x, %y, %i, %u, %v), update_window_dims={1}, inserted_window_dims={0}, \
scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%c""",
            combine,
        )
    )
    each = 5 * 8 * 4  # for each array: what is there, what is added, what is written
    assert found["k"]["bytes_accessed"] == 2 * 3 * each + 5 * 4


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            "%x = f32[8,64] parameter(0)\nROOT %k = ((f32[8,64]), f32[2,64], u32[]) reduce-scatter-start(%x), to_apply=%add",
            (8 + 2) * 64 * 4,
        ),
        ("%x = f32[8,64] parameter(0)\nROOT %k = ((f32[8,64]), f32[2,64], u32[]) slice-start(%x), slice={[0:2], [0:64]}", 2 * 2 * 64 * 4),
    ],
)
def test_operations_printed_in_their_asynchronous_name_write_their_result_alone(entry: str, expected: int) -> None:
    assert rows(module(entry))["k"]["bytes_accessed"] == expected


def test_a_radix_sort_may_read_and_write_once_for_each_eight_bits() -> None:
    entry = """%x = bf16[4000] parameter(0)
    %y = s16[4000] parameter(1)
    ROOT %k = (bf16[4000], s16[4000], u8[100]) custom-call(%x, %y), custom_call_target="__cub$DeviceRadixSort\""""
    row = rows(module(entry))["k"]
    assert row["bytes_accessed"] == 4 * 4_000 * 2
    counting, second, scratch = 4_000 * 2, 2 * 2 * 4_000 * 2, 2 * 100
    assert row["bytes_upper"] == 4 * 4_000 * 2 + counting + second + scratch


def test_a_reduction_along_axes_that_are_not_there_may_need_anything() -> None:
    """As in a text of which a digit is another: f32[4,8] reduced along axis 7."""
    assert _reduced((7,), ((0, 4),), (4, 8)) is None
    assert _reduced((1,), ((1, 3),), (4, 8)) == ((1, 3), (0, 8))
