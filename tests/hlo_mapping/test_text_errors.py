"""Text that is not HLO: what the error says, and where it points."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_mapping.errors import HloSyntaxError
from hlo_mapping.text.parser import parse_module

GOOD = """HloModule m, is_scheduled=true

FileNames
1 "a.py"

StackFrames
1 {file_location_id=1 parent_frame_id=1}

%f (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %n = f32[8]{0} negate(%p), metadata={op_name="a" source_line=3}
}

ENTRY %e (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %y = f32[8]{0} fusion(%x), kind=kLoop, calls=%f
}
"""


def fail(text: str) -> HloSyntaxError:
    with pytest.raises(HloSyntaxError) as raised:
        parse_module(text, "t.txt")
    return raised.value


@pytest.mark.parametrize(
    ("old", "new", "message", "line", "column"),
    [
        ("negate(%p)", "negate(%q)", "there is no instruction named q in this computation", 11, 31),
        ("fusion(%x)", "fusion(%p)", "there is no instruction named p in this computation", 16, 31),
        ("calls=%f", "calls=%g", "there is no computation named g in this module", 16, 54),
        ("%n =", "%p =", "there is an instruction named p in this computation already", 11, 9),
        ("ENTRY %e", "ENTRY %f", "there is a computation named f already", 14, 8),
        ("negate(%p)", "negate(%p", "'(' is not closed: expected ')' before the line ends", 11, 29),
        ("negate(%p)", "negate(%p,)", "expected an operand", 11, 33),
        ("negate(%p)", "negate(%p %p)", "expected an operand", 11, 30),
        ("source_line=3}", "source_line=3", "'{' is not closed: expected '}' before the line ends", 11, 44),
        ('"a" source', '"a source', "'{' is not closed: expected '}' before the line ends", 11, 44),
        ("calls=%f", "calls=%f}", "'}' closes nothing", 16, 55),
        ("calls=%f", "calls", "expected an attribute such as ', dimensions={0}'", 16, 45),
        (", kind", " kind", "expected ', name=value' or the end of the line", 16, 33),
        ("f32[8]{0} negate", "f32[8,]{0} negate", "expected sizes such as 8,128, <=8 or ?", 11, 17),
        ("f32[8]{0} negate", "f32[8]{x} negate", "expected a layout such as", 11, 20),
        ("f32[8]{0} negate", "negate", "expected a shape such as", 11, 13),
        ("f32[8]{0} negate", "f32[8]{0}negate", "expected a space and an opcode after the shape", 11, 22),
        ("negate(%p)", "negate %p", "expected '(' after the opcode", 11, 29),
        ("%n = ", "%n ", "expected ' = ' after the instruction's name", 11, 10),
        ("  ROOT %n", "  ROOT !n", "expected an instruction such as", 11, 8),
        ("%p = f32[8]{0} parameter(0)", "%p = f32[8]{0} parameter(zero)", "expected a parameter number", 10, 28),
        ("%f (p: f32[8])", "%f p: f32[8])", "expected a computation such as", 9, 1),
        ("}\n\nENTRY", "}\n}\n\nENTRY", "'}' closes nothing: expected a computation", 13, 1),
        ("HloModule", "HloMod", "expected 'HloModule NAME' at the start of the text", 1, 1),
    ],
)
def test_errors_say_what_was_expected_and_where(old: str, new: str, message: str, line: int, column: int) -> None:
    assert old in GOOD
    error = fail(GOOD.replace(old, new))
    assert message in str(error)
    assert error.location == f"t.txt:{line}:{column}"


def test_the_line_is_shown_with_carets_below() -> None:
    error = fail(GOOD.replace("calls=%f", "calls=%gone"))
    line, carets = error.excerpt.splitlines()
    assert line == "  ROOT %y = f32[8]{0} fusion(%x), kind=kLoop, calls=%gone"
    assert carets.index("^") == line.index("gone")
    assert carets.count("^") == len("gone")


def test_long_lines_are_cut_around_the_place() -> None:
    error = fail(GOOD.replace("kind=kLoop", "kind=" + "k" * 5000).replace("calls=%f", "calls=%gone"))
    line, carets = error.excerpt.splitlines()
    assert len(line) < 130
    assert line[carets.index("^") :].startswith("gone")


def test_text_that_was_cut_off_says_so() -> None:
    """Wherever a file ends early (but inside the last brace's line), the error says that it ends, not that it is malformed."""
    for end in range(1, len(GOOD) - 2):
        error = fail(GOOD[:end])
        assert "cut off in mid-write" in str(error), GOOD[:end][-60:]
        assert "again" in error.hint


@pytest.mark.parametrize(
    ("end", "inside"),
    [
        ("negate(%p)", "computation f"),
        ("negate(", "instruction n"),
        ("op_name=", "attribute metadata"),
        ("ENTRY %e", "the line that opens a computation"),
        ("is_sched", "a list of attributes"),
        ("source_line=3}\n}\n", "module m, before its ENTRY computation"),
        ("HloMo", "the module's header"),
        ("1 {file_location", "the stack-frame tables"),
    ],
)
def test_what_was_cut_off(end: str, inside: str) -> None:
    assert f"the text ends inside {inside}" in str(fail(GOOD[: GOOD.index(end) + len(end)]))


def test_a_module_without_entry() -> None:
    assert "before its ENTRY computation" in str(fail(GOOD.replace("ENTRY ", "")))


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_an_empty_file(text: str) -> None:
    assert "the file is empty" in str(fail(text))


def test_an_empty_computation() -> None:
    error = fail("HloModule m\n\nENTRY e {\n}\n")
    assert "computation e holds no instructions" in str(error)
    assert error.location == "t.txt:4:1"


@given(st.integers(0, len(GOOD)), st.integers(0, 40), st.text(st.sampled_from('{}()[]",=% \n/*#\\a1é²'), max_size=6))
def test_damaged_text_gives_a_module_or_a_syntax_error(start: int, cut: int, put: str) -> None:
    with suppress(HloSyntaxError):
        parse_module(GOOD[:start] + put + GOOD[start + cut :])
