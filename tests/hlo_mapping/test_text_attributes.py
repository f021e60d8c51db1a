"""The meaning of raw attribute text."""

from __future__ import annotations

import pytest

from hlo_mapping import quoting
from hlo_mapping.ir import Alias, OpMetadata
from hlo_mapping.text import attributes
from hlo_mapping.text.tables import Frame, read_frames


def test_metadata_with_quotes_commas_and_equal_signs_in_names() -> None:
    raw = r"""{op_type="dot" op_name="params[\'a\']/bhd,bthd->bht=x \"q\"" source_file="/a b/c.py" source_line=12 source_column=3}"""
    assert attributes.op_metadata(raw) == OpMetadata("dot", """params['a']/bhd,bthd->bht=x "q\"""", "/a b/c.py", 12)


def test_metadata_of_2026() -> None:
    raw = '{op_name="f" scheduling_name="add.1" deduplicated_name="add" stack_frame_id=7 profile_type={1} preserve_layout=true}'
    assert attributes.op_metadata(raw) == OpMetadata(op_name="f", stack_frame_id=7, scheduling_name="add.1", deduplicated_name="add")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('{"a":{"n":"4"},"b":[1,2]}', {"a": {"n": "4"}, "b": [1, 2]}),
        (r'"{\"num_warps\":4}"', {"num_warps": 4}),
        ("{debug = false, grid_x = 1 : i32}", {}),
        ('"opaque text"', {}),
        ("", {}),
        ('{"cut":', {}),
    ],
)
def test_backend_config(raw: str, value: object) -> None:
    assert quoting.backend_config(raw) == value


def test_mlir_attributes() -> None:
    raw = r'{debug = false, grid_x = 16 : i32, ir = "ML\EFR,\22={\5C", list = [1, 2], name = "my, kernel", "odd key" = {a = 1 : i32}}'
    assert attributes.mlir_attributes(raw) == {
        "debug": "false", "grid_x": "16", "ir": 'ML\xefR,"={\\', "list": "[1, 2]", "name": "my, kernel", "odd key": "{a = 1 : i32}",
    }  # fmt: skip
    assert attributes.mlir_attributes('{"json":1}') == {}
    assert attributes.mlir_attributes("text") == {}


@pytest.mark.parametrize(
    ("text", "plain"),
    [(r"a\'b", "a'b"), (r"\n\t\"", '\n\t"'), (r"\012", "\n"), (r"\303\251\x41", "éA"), (r"\\012", "\\012"), ("plain", "plain")],
)
def test_escapes(text: str, plain: str) -> None:
    assert quoting.unescape(text) == plain


def test_lists_of_numbers() -> None:
    assert attributes.integers("{0,12}") == (0, 12)
    assert attributes.integers("{}") == ()
    assert attributes.slices("{[0:2], [3:9:2]}") == ((0, 2, 1), (3, 9, 2))


def test_aliases() -> None:
    found = attributes.aliases("{ {}: (0, {}, must-alias), {1, 2}: (3, {4}), {3}: (10, {}, may-alias) }")
    assert found == (Alias((), 0, (), "must-alias"), Alias((1, 2), 3, (4,), "may-alias"), Alias((3,), 10, (), "may-alias"))
    assert attributes.operand_aliases("{{0}: (2, {}), {1}: (0, {1})}") == (((0,), 2, ()), ((1,), 0, (1,)))


def test_called_computations() -> None:
    assert attributes.computations("while", (("body", "%b"), ("condition", "%c"))) == ("c", "b")
    assert attributes.computations("conditional", (("branch_computations", "{%x, /*index=1*/y.2}"),)) == ("x", "y.2")
    assert attributes.computations("custom-call", (("select", "GE"), ("called_computations", "{%f}"))) == ("f",)


def test_a_frame_prints_its_parent_plus_one() -> None:
    tables = """FileNames
1 "a \\"b\\".py"

FunctionNames
1 "main"
2 "f.<locals>.g"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=0 end_column=4}
2 {file_name_id=1 function_name_id=2 line=20 end_line=20 column=0 end_column=4}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}"""
    assert read_frames(tables) == {1: Frame('a "b".py', "main", 10, 0), 2: Frame('a "b".py', "f.<locals>.g", 20, 1)}
