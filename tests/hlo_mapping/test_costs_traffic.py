"""Bytes of single launches, worked out on paper. bf16 and s16 have 2 bytes an element, f32 and s32 4, s4 half a byte."""

from __future__ import annotations

import pytest

from hlo_mapping.ir import Module
from tests.hlo_mapping.hlo_samples import Row, module, rows


def fused(body: str, entry: str, extra: str = "", header: str = "") -> Row:
    """The facts of the instruction named `k` in an entry whose fusions call %f, made of these lines."""
    lines = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    return rows(module(entry, f"{extra}\n%f {{\n{lines}\n}}", header))["k"]


def alone(entry: str, extra: str = "", header: str = "") -> Row:
    """The facts of the instruction named `k`."""
    return rows(module(entry, extra, header))["k"]


# The thirteen cases where the sizes of operands and results mislead


def test_1_a_stacked_weight_read_through_a_slice_at_the_loops_counter_costs_its_slice() -> None:
    row = fused(
        """%w = bf16[6,64,32] parameter(0)
        %i = s32[] parameter(1)
        %zero = s32[] constant(0)
        ROOT %ds = bf16[1,64,32] dynamic-slice(%w, %i, %zero, %zero), dynamic_slice_sizes={1,64,32}""",
        """%W = bf16[6,64,32] parameter(0)
        %I = s32[] parameter(1)
        ROOT %k = bf16[1,64,32] fusion(%W, %I), kind=kLoop, calls=%f""",
    )
    assert row["bytes_accessed"] == 64 * 32 * 2 + 4 + 64 * 32 * 2
    assert row["cost_source"] == "slice"


IN_PLACE = """%cache = bf16[1024,8,128] parameter(0)
%new = bf16[1,8,128] parameter(1)
%at = s32[] parameter(2)
%zero = s32[] constant(0)
ROOT %dus = bf16[1024,8,128] dynamic-update-slice(%cache, %new, %at, %zero, %zero)"""
IN_PLACE_ENTRY = """%C = bf16[1024,8,128] parameter(0)
%N = bf16[1,8,128] parameter(1)
%A = s32[] parameter(2)
ROOT %k = bf16[1024,8,128] fusion(%C, %N, %A), kind=kLoop, calls=%f"""


def test_2_an_update_in_place_costs_its_update() -> None:
    row = fused(IN_PLACE, IN_PLACE_ENTRY)
    assert row["bytes_accessed"] == 2 * (8 * 128 * 2) + 4
    assert row["cost_source"] == "in_place"


def test_2_but_a_slice_of_the_cache_put_into_a_stack_costs_the_whole_slice() -> None:
    row = fused(
        """%stack = bf16[6,1024,128] parameter(0)
        %cache = bf16[6,1024,128] parameter(1)
        %new = bf16[1,128] parameter(2)
        %layer = s32[] parameter(3)
        %at = s32[] parameter(4)
        %zero = s32[] constant(0)
        %ds = bf16[1,1024,128] dynamic-slice(%cache, %layer, %zero, %zero), dynamic_slice_sizes={1,1024,128}
        %b = bf16[1024,128] bitcast(%ds)
        %inner = bf16[1024,128] dynamic-update-slice(%b, %new, %at, %zero)
        %c = bf16[1,1024,128] bitcast(%inner)
        ROOT %outer = bf16[6,1024,128] dynamic-update-slice(%stack, %c, %layer, %zero, %zero)""",
        """%S = bf16[6,1024,128] parameter(0)
        %C = bf16[6,1024,128] parameter(1)
        %N = bf16[1,128] parameter(2)
        %L = s32[] parameter(3)
        %A = s32[] parameter(4)
        ROOT %k = bf16[6,1024,128] fusion(%S, %C, %N, %L, %A), kind=kLoop, calls=%f""",
    )
    layer, entry = 1024 * 128 * 2, 128 * 2
    assert row["bytes_accessed"] == layer + entry + 4 + 4 + layer


def test_3_a_gather_costs_the_rows_it_takes_and_their_numbers() -> None:
    row = alone(
        """%table = bf16[32000,2048] parameter(0)
        %tokens = s32[4,1] parameter(1)
        ROOT %k = bf16[4,2048] gather(%table, %tokens), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, \
index_vector_dim=1, slice_sizes={1,2048}"""
    )
    assert row["bytes_accessed"] == 2 * (4 * 2048 * 2) + 4 * 4
    assert row["bytes_upper"] is None


def test_3_a_gather_of_more_rows_than_there_are_reads_the_table_once_or_more_often() -> None:
    row = alone(
        """%table = bf16[8,256] parameter(0)
        %tokens = s32[32,1] parameter(1)
        ROOT %k = bf16[32,256] gather(%table, %tokens), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, \
index_vector_dim=1, slice_sizes={1,256}"""
    )
    assert row["bytes_accessed"] == 8 * 256 * 2 + 32 * 4 + 32 * 256 * 2
    assert row["bytes_upper"] == row["bytes_accessed"] + 24 * 256 * 2
    assert row["bytes_note"] == "a gather may read entries again"


SCATTER = """%pages = bf16[1024,16,128] parameter(0)
%places = s32[8,2] parameter(1)
%new = bf16[8,128] parameter(2)
ROOT %k = bf16[1024,16,128] scatter(%pages, %places, %new), update_window_dims={1}, inserted_window_dims={0,1}, \
scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=%OF"""
REPLACE = """%replace (a: bf16[], b: bf16[]) -> bf16[] {
  %old = bf16[] parameter(0)
  ROOT %value = bf16[] parameter(1)
}"""


def test_3_a_scatter_costs_its_updates() -> None:
    row = alone(SCATTER.replace("%OF", "%replace"), REPLACE)
    assert row["bytes_accessed"] == 8 * 2 * 4 + 8 * 128 * 2 + 8 * 128 * 2


def test_3_a_scatter_that_adds_reads_what_it_adds_to_as_well() -> None:
    row = alone(SCATTER.replace("%OF", "%add"))
    assert row["bytes_accessed"] == 8 * 2 * 4 + 3 * (8 * 128 * 2)


def test_4_a_buffer_passed_twice_or_used_twice_is_read_once() -> None:
    row = fused(
        """%p = f32[1000] parameter(0)
        %q = f32[1000] parameter(1)
        %twice = f32[1000] add(%p, %p)
        ROOT %m = f32[1000] multiply(%twice, %q)""",
        """%X = f32[1000] parameter(0)
        %B = f32[1000] bitcast(%X)
        ROOT %k = f32[1000] fusion(%X, %B), kind=kLoop, calls=%f""",
    )
    assert row["bytes_accessed"] == 4000 + 4000


GEMM = """%x = bf16[64,512] parameter(0)
%w = bf16[512,1024] parameter(1)
%k = (bf16[64,1024], s8[33554432]) custom-call(%x, %w), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":\
{"alpha_real":1,"beta":0,"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"],\
"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}}}
ROOT %y = bf16[64,1024] negate(%k#0)"""


def test_5_a_librarys_workspace_is_no_result() -> None:
    row = alone(GEMM)
    assert row["bytes_accessed"] == 2 * (64 * 512 + 512 * 1024 + 64 * 1024)
    assert row["bytes_upper"] == row["bytes_accessed"] + 2 * 33554432
    assert row["bytes_note"] == "the library may use its workspace"
    assert row["cost_source"] == "library"
    assert row["flops"] == 2 * 64 * 512 * 1024


def test_5_every_array_of_a_tuple_is_written() -> None:
    row = fused(
        """%p = f32[100] parameter(0)
        %n = f32[100] negate(%p)
        %h = bf16[100] convert(%p)
        ROOT %t = (f32[100], bf16[100]) tuple(%n, %h)""",
        """%X = f32[100] parameter(0)
        ROOT %k = (f32[100], bf16[100]) fusion(%X), kind=kLoop, calls=%f""",
    )
    assert row["bytes_accessed"] == 400 + 400 + 200


def test_6_a_fill_reads_nothing_and_writes_everything() -> None:
    row = fused(
        """%c = bf16[] constant(0)
        ROOT %b = bf16[6,1024] broadcast(%c), dimensions={}""",
        "ROOT %k = bf16[6,1024] fusion(), kind=kLoop, calls=%f",
    )
    assert row["bytes_accessed"] == 6 * 1024 * 2


def test_7_bitcasts_are_looked_through() -> None:
    row = fused(
        """%p = bf16[8,768,2048] parameter(0)
        %s = bf16[1,768,2048] slice(%p), slice={[0:1], [0:768], [0:2048]}
        ROOT %n = bf16[1,768,2048] negate(%s)""",
        """%W = bf16[6144,2048] parameter(0)
        %B = bf16[8,768,2048] bitcast(%W)
        ROOT %k = bf16[1,768,2048] fusion(%B), kind=kLoop, calls=%f""",
    )
    assert row["bytes_accessed"] == 2 * (768 * 2048 * 2)


def test_8_partial_sums_are_written_and_read_again() -> None:
    found = rows(
        module(
            """%x = bf16[16,4,512] parameter(0)
            %w = bf16[4,512,128] parameter(1)
            %dot = f32[4,16,128] dot(%x, %w), lhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
            %zero = f32[] constant(0)
            ROOT %sum = f32[16,128] reduce(%dot, %zero), dimensions={0}, to_apply=%add"""
        )
    )
    assert found["dot"]["bytes_accessed"] == 2 * (16 * 4 * 512 + 4 * 512 * 128) + 4 * (4 * 16 * 128)
    assert found["sum"]["bytes_accessed"] == 4 * (4 * 16 * 128) + 4 + 4 * (16 * 128)
    assert found["sum"]["weight_bytes"] == 0


def test_9_aliased_outputs_add_nothing_and_a_copy_is_twice_its_size() -> None:
    header = ", input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }"
    found = rows(
        module(
            """%a = f32[1000] parameter(0)
            %b = f32[1000] parameter(1)
            %s = f32[1000] add(%a, %b)
            %k = f32[1000] copy(%a)
            ROOT %t = (f32[1000], f32[1000]) tuple(%s, %k)""",
            header=header,
        )
    )
    assert found["s"]["bytes_accessed"] == 3 * 4000
    assert found["k"]["bytes_accessed"] == 2 * 4000


def test_10_a_collective_reads_its_operand_and_writes_its_result() -> None:
    row = alone(
        """%x = bf16[64,4096] parameter(0)
        %k = bf16[64,4096] all-reduce-start(%x), replica_groups={{0,1}}, to_apply=%add
        ROOT %y = bf16[64,4096] all-reduce-done(%k)"""
    )
    assert row["bytes_accessed"] == 2 * (64 * 4096 * 2)
    gathered = alone(
        """%x = bf16[64,4096] parameter(0)
        ROOT %k = bf16[128,4096] all-gather(%x), replica_groups={{0,1}}, dimensions={0}"""
    )
    assert gathered["bytes_accessed"] == (64 + 128) * 4096 * 2


def test_11_a_spread_operand_counts_once() -> None:
    row = fused(
        """%g = f32[128] parameter(0)
        %x = f32[1000,128] parameter(1)
        %b = f32[1000,128] broadcast(%g), dimensions={1}
        ROOT %m = f32[1000,128] multiply(%x, %b)""",
        """%G = f32[128] parameter(0)
        %X = f32[1000,128] parameter(1)
        ROOT %k = f32[1000,128] fusion(%G, %X), kind=kLoop, calls=%f""",
    )
    assert row["bytes_accessed"] == 4 * (128 + 2 * 128000)


def test_12_a_weight_converted_as_it_is_read_costs_its_stored_type() -> None:
    body = """%q = {T}[512,256]{1,0{E}} parameter(0)
    %x = bf16[4,512] parameter(1)
    %w = bf16[512,256] convert(%q)
    ROOT %d = f32[4,256] dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
    entry = """%Q = {T}[512,256]{1,0{E}} parameter(0)
    %X = bf16[4,512] parameter(1)
    ROOT %k = f32[4,256] fusion(%Q, %X), kind=kCustom, calls=%f"""
    for kind, extra, size in (("s8", "", 512 * 256), ("s4", ":E(4)", 512 * 256 // 2), ("f8e4m3fn", "", 512 * 256)):
        row = fused(body.replace("{T}", kind).replace("{E}", extra), entry.replace("{T}", kind).replace("{E}", extra))
        assert row["bytes_accessed"] == size + 4 * 512 * 2 + 4 * 256 * 4
        assert row["weight_bytes"] == size
        assert row["dot_type"] == f"bf16,{kind}->f32"


def test_13_a_condition_is_a_row_of_its_own_that_costs_one_run() -> None:
    before = """%cond (c: (s32[], f32[8])) -> pred[] {
  %c = (s32[], f32[8]) parameter(0)
  %limit = s32[] constant(4)
  ROOT %k = pred[] compare(%c#0, %limit), direction=LT
}
%body (t: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t = (s32[], f32[8]) parameter(0)
  %one = s32[] constant(1)
  %next = s32[] add(%t#0, %one)
  %step = f32[8] negate(%t#1)
  ROOT %r = (s32[], f32[8]) tuple(%next, %step)
}"""
    entry = """%x = f32[8] parameter(0)
    %zero = s32[] constant(0)
    %start = (s32[], f32[8]) tuple(%zero, %x)
    ROOT %while = (s32[], f32[8]) while(%start), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"4"}}"""
    found = rows(module(entry, before))
    assert set(found) == {"k", "next", "step"}
    assert found["step"]["bytes_accessed"] == 64
    assert (found["k"]["bytes_accessed"], found["k"]["class_detail"]) == (4 + 4 + 1, "loop control")


# Opcodes, and fusions of them


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%k = f32[16,32] transpose(%x), dimensions={1,0}", 2 * 2048),
        ("%k = bf16[32,16] convert(%x)", 2048 + 1024),
        ("%k = f32[32] reduce(%x, %z), dimensions={1}, to_apply=%add", 2048 + 4 + 128),
        ("%k = f32[32,16] reverse(%x), dimensions={0}", 2 * 2048),
        ("%k = f32[4,16] slice(%x), slice={[0:4], [0:16]}", 2 * 256),
        ("%k = f32[34,16] pad(%x, %z), padding=1_1x0_0", 2048 + 4 + 2176),
        ("%k = f32[64,16] concatenate(%x, %y), dimensions={0}", 2 * 2048 + 4096),
        ("%k = f32[32,16,8] broadcast(%x), dimensions={0,1}", 2048 + 16384),
        ("%k = f32[32,16] select(%p, %x, %y)", 512 + 3 * 2048),
        ("%k = pred[32,16] compare(%x, %y), direction=GT", 2 * 2048 + 512),
        ("%k = f32[16,16] reduce-window(%x, %z), window={size=2x1 stride=2x1}, to_apply=%add", 2048 + 4 + 1024),
        ("%k = s32[32,16] iota(), iota_dimension=1", 2048),
        ("%k = c64[32,9] fft(%x), fft_type=RFFT, fft_length={16}", 2048 + 32 * 9 * 8),
        ("%k = f32[32,32] dot(%x, %y), lhs_contracting_dims={1}, rhs_contracting_dims={1}", 2 * 2048 + 4096),
        ("%k = (f32[32,16], f32[32,16]) sort(%x, %y), dimensions={0}, to_apply=%add", 4 * 2048),
        ("%k = f32[32,16] clamp(%z, %x, %z)", 4 + 2 * 2048),
    ],
)
def test_operations_read_their_operands_and_write_their_results(line: str, expected: int) -> None:
    row = alone(
        f"""%x = f32[32,16] parameter(0)
        %y = f32[32,16] parameter(1)
        %p = pred[32,16] parameter(2)
        %z = f32[] parameter(3)
        {line}
        ROOT %out = f32[] negate(%z)"""
    )
    assert row["bytes_accessed"] == expected


def test_two_halves_of_an_operand_are_the_operand() -> None:
    row = fused(
        """%p = f32[4,128] parameter(0)
        %a = f32[4,64] slice(%p), slice={[0:4], [0:64]}
        %b = f32[4,64] slice(%p), slice={[0:4], [64:128]}
        ROOT %c = f32[4,128] concatenate(%b, %a), dimensions={1}""",
        """%X = f32[4,128] parameter(0)
        ROOT %k = f32[4,128] fusion(%X), kind=kLoop, calls=%f""",
    )
    assert row["bytes_accessed"] == 2 * 2048


def test_a_slice_of_something_computed_needs_only_that_much_of_its_operands() -> None:
    row = fused(
        """%p = f32[100,128] parameter(0)
        %q = f32[100,128] parameter(1)
        %s = f32[100,128] add(%p, %q)
        %h = bf16[100,128] convert(%s)
        ROOT %r = bf16[1,128] slice(%h), slice={[99:100], [0:128]}""",
        """%X = f32[100,128] parameter(0)
        %Y = f32[100,128] parameter(1)
        ROOT %k = bf16[1,128] fusion(%X, %Y), kind=kLoop, calls=%f""",
    )
    assert row["bytes_accessed"] == 2 * 512 + 256


def test_a_sum_of_a_part_needs_that_part() -> None:
    row = fused(
        """%p = f32[8,64,128] parameter(0)
        %zero = f32[] constant(0)
        %r = f32[64,128] reduce(%p, %zero), dimensions={0}, to_apply=%add
        ROOT %s = f32[4,128] slice(%r), slice={[0:4], [0:128]}""",
        """%X = f32[8,64,128] parameter(0)
        ROOT %k = f32[4,128] fusion(%X), kind=kInput, calls=%f""",
    )
    assert row["bytes_accessed"] == 8 * 4 * 128 * 4 + 4 * 128 * 4


def test_an_update_of_something_made_in_the_launch_writes_everything() -> None:
    row = fused(
        """%new = f32[1,128] parameter(0)
        %c = f32[] constant(0)
        %fill = f32[64,128] broadcast(%c), dimensions={}
        %zero = s32[] constant(0)
        ROOT %d = f32[64,128] dynamic-update-slice(%fill, %new, %zero, %zero)""",
        """%N = f32[1,128] parameter(0)
        ROOT %k = f32[64,128] fusion(%N), kind=kLoop, calls=%f""",
    )
    assert row["bytes_accessed"] == 512 + 64 * 128 * 4


def test_an_update_that_is_not_the_result_reads_the_rest() -> None:
    row = fused(
        IN_PLACE.replace("ROOT ", "") + "\nROOT %n = bf16[1024,8,128] negate(%dus)",
        IN_PLACE_ENTRY,
    )
    cache, entry = 1024 * 8 * 128 * 2, 8 * 128 * 2
    assert row["bytes_accessed"] == cache + entry + 4 + cache


def test_large_constants_in_a_fusion_are_read_and_scalars_are_not() -> None:
    body = """%p = f32[4,1024] parameter(0)
    %c = f32[1024] constant({...})
    %two = f32[] constant(2)
    %bt = f32[4,1024] broadcast(%two), dimensions={}
    %b = f32[4,1024] broadcast(%c), dimensions={1}
    %m = f32[4,1024] multiply(%p, %b)
    ROOT %a = f32[4,1024] multiply(%m, %bt)"""
    row = fused(body, "%X = f32[4,1024] parameter(0)\nROOT %k = f32[4,1024] fusion(%X), kind=kLoop, calls=%f")
    assert row["bytes_accessed"] == 4096 * (4 + 1 + 4)


def test_host_memory_is_not_the_devices() -> None:
    row = alone(
        """%x = f32[1000]{0:S(5)} parameter(0)
        %k = (f32[1000]{0}, f32[1000]{0:S(5)}, u32[]) copy-start(%x)
        ROOT %y = f32[1000]{0} copy-done(%k)"""
    )
    assert row["bytes_accessed"] == 4000


def test_a_long_sort_may_pass_over_its_rows_often() -> None:
    row = alone(
        """%x = f32[1048576] parameter(0)
        ROOT %k = f32[1048576] sort(%x), dimensions={0}, to_apply=%add"""
    )
    assert row["bytes_accessed"] == 2 * 4194304
    assert row["bytes_upper"] == 2 * 4194304 * (20 * 21 // 2)


def call(operands: str, attributes: str = "") -> Module:
    return module(
        f"""%q = bf16[8,64,128] parameter(0)
        %cache = bf16[1024,16,128] parameter(1)
        %table = s32[8,4] parameter(2)
        ROOT %k = bf16[8,64,128] custom-call({operands}), custom_call_target="my_kernel"{attributes}"""
    )


def test_an_unknown_call_of_arrays_alone_reads_and_writes_them() -> None:
    row = rows(call("%q, %cache"))["k"]
    assert row["bytes_accessed"] == 2 * (8 * 64 * 128) * 2 + 1024 * 16 * 128 * 2


def test_an_unknown_call_that_takes_a_table_has_an_upper_bound_only() -> None:
    row = rows(call("%q, %cache, %table"))["k"]
    assert row["bytes_accessed"] is None
    assert row["weight_bytes"] is None
    assert row["bytes_upper"] == 2 * (8 * 64 * 128) * 2 + 1024 * 16 * 128 * 2 + 8 * 4 * 4
    assert row["flops"] is None
    assert row["cost_source"] == "unknown"


def test_an_unknown_call_that_updates_an_operand_has_an_upper_bound_only() -> None:
    row = rows(call("%q, %cache", ", output_to_operand_aliasing={{}: (0, {})}"))["k"]
    assert row["bytes_accessed"] is None


def test_grouped_products_need_no_more_matrices_than_rows() -> None:
    row = alone(
        """%x = bf16[2,512] parameter(0)
        %experts = bf16[8,512,1024] parameter(1)
        %sizes = s32[8] parameter(2)
        ROOT %k = bf16[2,1024] ragged-dot(%x, %experts, %sizes), lhs_contracting_dims={1}, rhs_contracting_dims={1}, \
lhs_ragged_dims={0}, rhs_group_dims={0}"""
    )
    assert row["bytes_accessed"] == 2 * 512 * 2 + 2 * 512 * 1024 * 2 + 8 * 4 + 2 * 1024 * 2
    assert row["flops"] == 2 * 2 * 512 * 1024


def test_tiles_may_read_operands_again() -> None:
    tiles = '{"fusion_backend_config":{"kind":"__triton","block_level_fusion_config":{"output_tiles":[{"sizes":["64","128"]}]}}}'
    row = fused(
        """%x = bf16[256,512] parameter(0)
        %w = bf16[512,1024] parameter(1)
        ROOT %d = bf16[256,1024] dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
        f"""%X = bf16[256,512] parameter(0)
        %W = bf16[512,1024] parameter(1)
        ROOT %k = bf16[256,1024] fusion(%X, %W), kind=kCustom, calls=%f, backend_config={tiles}""",
    )
    x, w, out = 256 * 512 * 2, 512 * 1024 * 2, 256 * 1024 * 2
    assert row["bytes_accessed"] == x + w + out
    # eight tiles beside each other read the rows of x, four above each other the columns of w
    assert row["bytes_upper"] == 8 * x + 4 * w + out
