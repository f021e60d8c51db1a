"""Shapes: reading, writing, and the bytes they take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_mapping.errors import HloSyntaxError
from hlo_mapping.shape import ELEMENT_BITS, Layout, Shape
from hlo_mapping.text.shapes import parse_optional_shape, parse_shape

DIMENSIONS = st.lists(st.integers(0, 10_000), max_size=5).map(tuple)


@st.composite
def arrays(draw: st.DrawFn) -> Shape:
    dimensions = draw(DIMENSIONS)
    dynamic = draw(st.lists(st.booleans(), min_size=len(dimensions), max_size=len(dimensions)).map(tuple))
    order = draw(st.none() | st.permutations(range(len(dimensions))).map(tuple))
    annotations = draw(st.sampled_from(["", "T(8,128)(2,1)", "E(4)", "S(5)", "T(256)E(4)S(1)"]))
    layout = Layout(order, annotations) if order is not None else None
    return Shape(draw(st.sampled_from(sorted(ELEMENT_BITS))), dimensions, layout, (), dynamic if any(dynamic) else ())


LEAVES = arrays() | st.sampled_from([Shape("token"), Shape("opaque")])
SHAPES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=7).map(lambda e: Shape("tuple", elements=tuple(e))), max_leaves=12)


@given(SHAPES)
def test_reading_what_was_written_gives_the_same_shape(shape: Shape) -> None:
    assert parse_shape(shape.text()) == shape


@given(SHAPES)
def test_a_tuple_takes_the_bytes_of_its_leaves(shape: Shape) -> None:
    assert shape.byte_size == sum(leaf.byte_size for leaf in shape.leaves)


@pytest.mark.parametrize(
    ("text", "byte_size"),
    [
        ("f32[]", 4),
        ("bf16[4,512]{1,0}", 4096),
        ("pred[7]", 7),
        ("s4[3]{0:E(4)}", 2),  # 12 bits
        ("u4[64,64]", 2048),
        ("s2[5]{0:E(2)}", 2),  # 10 bits
        ("s1[9]", 2),
        ("f4e2m1fn[64,64]{1,0:E(4)}", 2048),
        ("f8e4m3fn[10]", 10),
        ("f8e8m0fnu[3]", 3),
        ("c64[2]", 16),
        ("f32[0,8]", 0),
        ("f32[<=8,2]", 64),
        ("token[]", 0),
        ("opaque[]", 0),
        ("()", 0),
        ("(bf16[256,512]{1,0}, s8[4194304]{0})", 2 * 256 * 512 + 4194304),
        ("((f32[2]), (s32[], /*index=1*/u8[3]))", 8 + 4 + 3),
        ("b(f32[8]{0})", 32),
    ],
)
def test_bytes(text: str, byte_size: int) -> None:
    shape = parse_shape(text)
    assert shape.byte_size == byte_size
    assert shape.has_known_size


@pytest.mark.parametrize("text", ["f32[?,8]", "f99x[8]", "(s32[], f6[4])"])
def test_a_size_that_is_not_known_says_so(text: str) -> None:
    assert not parse_shape(text).has_known_size


def test_layout_and_dynamic_dimensions() -> None:
    shape = parse_shape("s8[2,<=3,?]{2,0,1:T(8,128)(4,1)S(5)}")
    assert shape.dimensions == (2, 3, -1)
    assert shape.dynamic == (False, True, True)
    assert shape.layout == Layout((2, 0, 1), "T(8,128)(4,1)S(5)")
    assert shape.layout.memory_space == 5
    assert shape.text(layouts=False) == "s8[2,<=3,?]"


def test_a_part_of_a_nested_tuple() -> None:
    shape = parse_shape("(s32[], (f32[8]{0}, token[]))")
    assert shape.at((1, 0)) == parse_shape("f32[8]{0}")
    assert shape.at(()) is shape
    assert [leaf.element_type for leaf in shape.leaves] == ["s32", "f32", "token"]


def test_the_comments_that_number_elements_are_skipped() -> None:
    assert parse_shape("(s32[], /*index=1*/f32[2])") == parse_shape("(s32[],f32[2])")


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("f32", "expected a shape", 1),
        ("(f32[2], bf)", "expected a shape", 10),
        ("f32[2,x]", "expected sizes", 5),
        ("f32[2]{a}", "expected a layout", 8),
        ("(f32[2]", "expected ')' to close this tuple", 1),
        ("(f32[2] f32[2])", "expected ','", 9),
        ("f32[2] f32", "expected nothing after the shape", 7),
    ],
)
def test_wrong_shapes(text: str, message: str, column: int) -> None:
    with pytest.raises(HloSyntaxError) as raised:
        parse_shape(text, "s.txt")
    assert message in str(raised.value)
    assert raised.value.location == f"s.txt:1:{column}"
    assert parse_optional_shape(text) is None


def test_an_array_larger_than_any_memory_is_of_unknown_size() -> None:
    """As a damaged text says; below that, sizes count."""
    absurd, large = parse_shape("f32[9223372036854775807,4]"), parse_shape("f32[1048576,1048576]")
    assert (absurd.element_count, absurd.byte_size, absurd.has_known_size) == (0, 0, False)
    assert (large.element_count, large.byte_size, large.has_known_size) == (2**40, 2**42, True)
