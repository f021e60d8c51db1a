"""Replica groups in every form that XLA writes, and what a collective moves."""

from __future__ import annotations

import pytest

from hlo_mapping import module_collectives, parse_module
from hlo_mapping.replica_groups import replica_groups, source_target_groups

HEAD = """HloModule jit_f, is_scheduled=true, num_partitions=4

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

"""


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{}", ((0, 1, 2, 3),)),
        ("{{0,2},{1,3}}", ((0, 2), (1, 3))),
        ("[2,2]<=[4]", ((0, 1), (2, 3))),
        ("[2,2]<=[2,2]T(1,0)", ((0, 2), (1, 3))),
        ("[1,4]<=[4]", ((0, 1, 2, 3),)),
        ("mesh['x'=4] {'x'}", ((0, 1, 2, 3),)),
        ("mesh['x'=2,'y'=2] {'y'}", ((0, 1), (2, 3))),
        ("mesh['x'=2,'y'=2] {'x'}", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=2], device_ids=(3,2,1,0) {'y'}", ((3, 2), (1, 0))),
        ("mesh['x'=2,'y'=2], device_ids=([4]<=[2,2]T(1,0)) {'y'}", ((0, 2), (1, 3))),
        ("mesh['x'=4] {'x':(1)2}", ((0, 2), (1, 3))),
        ("mesh['x'=4] {'x':(2)2}", ((0, 1), (2, 3))),
        ("mesh['x'=2,'y'=2] {'x','y'}", ((0, 1, 2, 3),)),
        ("mesh['x'=2] {'z'}", None),
        ("[3,2]<=[4]", None),
        ("something else", None),
    ],
)
def test_groups_by_every_form(text: str, groups: object) -> None:
    assert replica_groups(text, 4) == groups


def test_pairs_tie_devices_together() -> None:
    assert source_target_groups("{{0,1},{1,0},{2,3}}") == ((0, 1), (2, 3))
    assert source_target_groups("{{0,1},{1,2},{2,3},{3,0}}") == ((0, 1, 2, 3),)
    assert source_target_groups("{}") is None


@pytest.mark.parametrize(
    ("line", "kind", "size"),
    [
        ("all-reduce(p), replica_groups={{0,1},{2,3}}, to_apply=sum", "all-reduce", 4096),
        ("all-gather(p), replica_groups={{0,1},{2,3}}, dimensions={0}", "all-gather", 8192),
        ("reduce-scatter(p), replica_groups=[1,4]<=[4], dimensions={0}, to_apply=sum", "reduce-scatter", 4096),
        ("collective-permute(p), source_target_pairs={{0,1},{1,0}}", "collective-permute", 4096),
    ],
)
def test_bytes_as_nccl_tests_counts_them(line: str, kind: str, size: int) -> None:
    shape = {"all-gather": "f32[2048]{0}", "reduce-scatter": "f32[256]{0}"}.get(kind, "f32[1024]{0}")
    (one,) = module_collectives(parse_module(f"{HEAD}ENTRY e {{\n  p = f32[1024]{{0}} parameter(0)\n  ROOT r = {shape} {line}\n}}\n"))
    assert (one.kind, one.bytes, one.operands) == (kind, size, 1)


def test_a_combined_collective_holds_several_arrays() -> None:
    body = """ENTRY e {
  p = f32[1024]{0} parameter(0)
  q = f32[] parameter(1)
  ROOT r = (f32[1024]{0}, f32[]) all-reduce(p, q), replica_groups={}, to_apply=sum
}
"""
    text = HEAD + body
    (one,) = module_collectives(parse_module(text))
    assert (one.bytes, one.operands, one.least_operand_bytes, one.group_size) == (4100, 2, 4, 4)
