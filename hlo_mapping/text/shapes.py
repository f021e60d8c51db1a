"""Shapes read from HLO text, as `bf16[4,512]{1,0:T(8,128)}` or `(s32[], /*index=1*/f32[<=8])`."""

from __future__ import annotations

import re

from hlo_mapping.errors import HloSyntaxError
from hlo_mapping.shape import Layout, Shape
from hlo_mapping.text.source import SourceText

_ARRAY = re.compile(r"([a-z]\w*)\[([^\[\]]*)\](?:\{([^{}]*)\})?")
_DIMENSION = re.compile(r"(<=)?(\d+)|\?")
_SKIPPED = re.compile(r"(?:\s++|/\*.*?\*/)*+", re.DOTALL)
_PLAIN = re.compile(r"\d++(?:\s*+,\s*+\d++)*+")


def parse_shape(text: str, source: str = "<shape>") -> Shape:
    """Read one shape; HloSyntaxError where `text` is not one, or holds more."""
    whole = SourceText(text, source)
    shape, end = read_shape(whole, 0)
    if text[end:].strip():
        raise whole.error("expected nothing after the shape", end, len(text))
    return shape


def read_shape(source: SourceText, start: int) -> tuple[Shape, int]:
    """Read the shape that stands at `start`; the offset after it comes with it."""
    text = source.text
    start = _skip(text, start)
    if text.startswith("(", start):
        return _read_tuple(source, start)
    if text.startswith("b(", start):
        inside, end = read_shape(source, start + 2)
        return Shape("buffer", elements=(inside,)), _expect(source, end, ")")
    found = _ARRAY.match(text, start)
    if found is None:
        raise source.error("expected a shape such as f32[8,128]{1,0} or (s32[], f32[8])", start)
    kind, sizes, layout = found.groups()
    dimensions, dynamic = _read_dimensions(source, sizes, found.start(2))
    return Shape(kind, dimensions, _read_layout(source, layout, found.start(3)), (), dynamic), found.end()


def _read_tuple(source: SourceText, start: int) -> tuple[Shape, int]:
    elements: list[Shape] = []
    at = _skip(source.text, start + 1)
    while not source.text.startswith(")", at):
        if elements:
            at = _expect(source, at, ",")
        element, at = read_shape(source, at)
        elements.append(element)
        at = _skip(source.text, at)
        if at >= len(source.text):
            raise source.error("expected ')' to close this tuple shape", start)
    return Shape("tuple", elements=tuple(elements)), at + 1


def _read_dimensions(source: SourceText, sizes: str, at: int) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    if not sizes:
        return (), ()
    if _PLAIN.fullmatch(sizes):
        return tuple(map(int, sizes.split(","))), ()
    found = [_DIMENSION.fullmatch(part.strip()) for part in sizes.split(",")]
    matches = [m for m in found if m is not None]
    if len(matches) < len(found):
        raise source.error("expected sizes such as 8,128, <=8 or ?", at, at + len(sizes))
    return tuple(int(m[2]) if m[2] else -1 for m in matches), tuple(m[1] is not None or m[2] is None for m in matches)


def _read_layout(source: SourceText, layout: str | None, at: int) -> Layout | None:
    if layout is None:
        return None
    order, _, annotations = layout.partition(":")
    if order and not _PLAIN.fullmatch(order):
        raise source.error("expected a layout such as {1,0} or {1,0:T(8,128)}", at, at + len(layout))
    return Layout(tuple(map(int, order.split(","))) if order else (), annotations)


def _skip(text: str, at: int) -> int:
    found = _SKIPPED.match(text, at)
    return found.end() if found else at


def _expect(source: SourceText, at: int, what: str) -> int:
    at = _skip(source.text, at)
    if not source.text.startswith(what, at):
        raise source.error(f"expected '{what}'", at)
    return at + len(what)


def parse_optional_shape(text: str) -> Shape | None:
    """The shape that `text` is, or None."""
    try:
        return parse_shape(text)
    except HloSyntaxError:
        return None
