"""Roles that people give, and what is said when they cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlo_mapping.classification.overrides import OverrideError, RoleOverrides, check_overrides, read_manifest, read_roles_file
from hlo_mapping.classification.roles import parameter_roles
from hlo_mapping.errors import HloError
from hlo_mapping.facts import module_facts
from tests.hlo_mapping.hlo_samples import captured, program


def roles_file(tmp_path: Path, content: str) -> RoleOverrides:
    path = tmp_path / "roles.toml"
    path.write_text(content)
    return read_roles_file(path)


def manifest(tmp_path: Path, content: object) -> RoleOverrides:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(content))
    return read_manifest(path)


def test_patterns_win_over_what_the_program_shows(tmp_path: Path) -> None:
    given = roles_file(tmp_path, '"params*" = "state"\n"28" = "kv_cache"\n"tokens*" = "weight"\n')
    found = {r.name: r for r in parameter_roles(program("encoder"), given)}
    assert {r.role for name, r in found.items() if name.startswith("params")} == {"state"}
    assert found["tokens.1"].role == "weight"
    assert found["tokens.1"].why == "given in roles.toml"
    assert found["mask.1"].role == "input"


def test_a_role_may_list_its_patterns_and_paths_are_matched_as_they_are_written(tmp_path: Path) -> None:
    given = roles_file(tmp_path, "[roles]\nkv_cache = [\"params['embed']\", \"pool[*]['k']\"]\nstate = 70\n")
    found = {r.number: r.role for r in parameter_roles(captured("decode", "jit_decode_step"), given)}
    assert (found[0], found[57], found[58], found[70]) == ("kv_cache", "kv_cache", "kv_cache", "state")
    assert found[1] == "weight"


def test_given_roles_change_classes_and_bytes(tmp_path: Path) -> None:
    given = roles_file(tmp_path, '"pool*" = "input"\n"params*" = "input"\n')
    found = module_facts(captured("decode", "jit_decode_step"), 1, given).to_pylist()
    assert sum(r["weight_bytes"] for r in found) == sum(r["kv_read_bytes"] + r["kv_write_bytes"] for r in found) == 0
    assert not {r["kernel_class"] for r in found} & {"weights", "kv_write", "kv_gather"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('"params*" = "wait"', "'wait' is no role"),
        ('weights = ["a"]', "'weights' has no role"),
        ("weight = [1.5]", "weight is not a list of patterns"),
        ('"params*" = 3', "'params*' has no role"),
        ("weight = [", "is not TOML"),
        ("", "gives no roles"),
    ],
)
def test_a_roles_file_that_says_nothing_usable(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(OverrideError) as error:
        roles_file(tmp_path, content)
    assert message in error.value.message
    assert isinstance(error.value, HloError)


def test_files_that_are_not_there() -> None:
    for read in (read_roles_file, read_manifest):
        with pytest.raises(OverrideError, match="there is no file"):
            read("/nowhere/at/all")


def test_a_pattern_that_matches_nothing_is_an_error(tmp_path: Path) -> None:
    given = roles_file(tmp_path, '"params*" = "weight"\n"pool*" = "kv_cache"\n')
    check_overrides(given, [program("encoder"), captured("decode", "jit_decode_step")])
    with pytest.raises(OverrideError) as error:
        check_overrides(given, [program("encoder")])
    assert error.value.message == "roles.toml: 'pool*' matches no parameter"
    assert "mask.1" in error.value.hint


def entry(*inputs: tuple[str, str, list[int]]) -> dict[str, object]:
    return {"inputs": [{"name": n, "role": r, "type": {"dims": d, "dtype": "bf16"}} for n, r, d in inputs]}


CROSS = (
    ("down", "WEIGHT", [2048, 512]),
    ("norm", "WEIGHT", [512]),
    ("o", "WEIGHT", [512, 512]),
    ("q", "WEIGHT", [512, 512]),
    ("up", "WEIGHT", [512, 2048]),
    ("keys", "KV_POOL", [4, 256, 8, 64]),
    ("values", "KV_POOL", [4, 256, 8, 64]),
    ("x", "STATE", [4, 1, 512]),
)


def test_a_manifest_gives_roles_in_the_order_of_its_inputs(tmp_path: Path) -> None:
    given = manifest(tmp_path, {"modules": [entry(("other", "WEIGHT", [3])), entry(*CROSS)]})
    found = parameter_roles(program("cross_attention"), given)
    assert [r.role for r in found] == ["weight"] * 5 + ["kv_cache"] * 2 + ["state"]
    assert found[7].why == "x in manifest.json"


def test_inputs_that_the_program_dropped_are_passed_over(tmp_path: Path) -> None:
    given = manifest(tmp_path, entry(("unused", "INPUT", [7]), *CROSS[:4], ("unused", "WEIGHT", [9, 9]), *CROSS[4:]))
    assert [r.role for r in parameter_roles(program("cross_attention"), given)] == ["weight"] * 5 + ["kv_cache"] * 2 + ["state"]


def test_a_manifest_of_another_program_changes_nothing_and_is_an_error(tmp_path: Path) -> None:
    given = manifest(tmp_path, [entry(*CROSS)])
    assert parameter_roles(program("encoder"), given) == parameter_roles(program("encoder"))
    with pytest.raises(OverrideError, match="no entry's inputs fit"):
        check_overrides(given, [program("encoder")])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "has no entry with inputs"),
        ([], "has no entry with inputs"),
        ({"inputs": [{"name": "x"}]}, "an input has no role"),
        ({"inputs": [{"name": "x", "role": "TENSOR"}]}, "'TENSOR' is no role"),
        ({"inputs": [{"name": "x", "role": "WEIGHT", "type": {"dims": "4x4"}}]}, "the dims of input 'x'"),
    ],
)
def test_a_manifest_that_says_nothing_usable(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(OverrideError) as error:
        manifest(tmp_path, content)
    assert message in error.value.message


def test_a_manifest_that_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text("{")
    with pytest.raises(OverrideError, match="is not JSON"):
        read_manifest(path)


def test_the_first_of_merged_overrides_wins(tmp_path: Path) -> None:
    mine = roles_file(tmp_path, '"params__embed*" = "state"')
    merged = mine.merged(RoleOverrides((("params*", "input"),), source="theirs"))
    found = {r.name: r.role for r in parameter_roles(program("encoder"), merged)}
    assert (found["params__embed__.1"], found["params__head__.1"]) == ("state", "input")
