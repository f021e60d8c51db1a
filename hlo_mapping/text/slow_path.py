"""The slow reading of one instruction, step by step: for forms too deep for a pattern, and for saying what is wrong with a line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hlo_mapping.errors import HloSyntaxError
from hlo_mapping.text.lexer import INSTRUCTION, NAME, closing, string_end
from hlo_mapping.text.shapes import read_shape
from hlo_mapping.text.source import SourceText

_NAME = re.compile(rf"%?({NAME})")
_OPCODE = re.compile(r"[a-zA-Z][\w\-]*")
_ATTRIBUTE_NAME = re.compile(r",\s*+([\w.\-]+)[ \t]*+=[ \t]*+")
_OPENING = re.compile(r"[ \t]*+\(")
_ARROW = re.compile(r"\s*+->\s*+")
_BRACE = re.compile(r"\s*+\{")
_EQUALS = re.compile(r"\s*+=\s*+")
_COMPUTATION_NEXT = re.compile(rf"[^\n]*+\s*+(?:(?:ENTRY )?%?{NAME}[ \t]*+[({{]|\Z)")
_BLANK = re.compile(r"\s++")


@dataclass(frozen=True, slots=True)
class Head:
    """An instruction up to the parenthesis that closes its operands; `end` is the offset after that."""

    is_root: bool
    name: str
    shape: str
    shape_at: int
    opcode: str
    arguments: str
    arguments_at: int
    end: int


def instruction_head(source: SourceText, at: int) -> Head:
    """Read an instruction's head, or raise what is wrong with it."""
    text = source.text
    at += len(text[at : at + 1000]) - len(text[at : at + 1000].lstrip(" \t"))
    is_root = text.startswith("ROOT ", at)
    at += 5 if is_root else 0
    name = _NAME.match(text, at)
    if name is None:
        raise _unexpected(source, at, "an instruction", "expected an instruction such as '%name = f32[8]{0} add(%a, %b)', or '}'")
    inside = f"instruction {name[1]}"
    equals = _EQUALS.match(text, name.end())
    if equals is None:
        raise _unexpected(source, name.end(), inside, "expected ' = ' after the instruction's name")
    shape_at = equals.end()
    shape_end = _shape_end(source, shape_at, inside)
    blank = _BLANK.match(text, shape_end)
    opcode = _OPCODE.match(text, blank.end()) if blank is not None else None
    if opcode is None:
        raise _unexpected(source, shape_end, inside, "expected a space and an opcode after the shape")
    if not text.startswith("(", opcode.end()):
        raise _unexpected(source, opcode.end(), inside, "expected '(' after the opcode")
    end = closing(text, opcode.end(), lines=opcode[0] == "constant")
    if end < 0:
        raise _unclosed(source, opcode.end(), ")", inside)
    return Head(is_root, name[1], text[shape_at:shape_end], shape_at, opcode[0], text[opcode.end() + 1 : end], opcode.end() + 1, end + 1)


def _shape_end(source: SourceText, at: int, inside: str) -> int:
    try:
        return read_shape(source, at)[1]
    except HloSyntaxError as error:
        raise _ended(source, at, inside) or error from None


def signature_end(source: SourceText, head_at: int, at: int) -> int:
    """The offset after the brace that opens a computation, whose signature at `at` may go over several lines."""
    text = source.text
    opening = _OPENING.match(text, at)
    end = closing(text, opening.end() - 1) if opening is not None else -1
    arrow = _ARROW.match(text, end + 1) if end >= 0 else None
    if arrow is None:
        raise computation_error(source, head_at)
    brace = _BRACE.match(text, _shape_end(source, arrow.end(), "a computation's signature"))
    if brace is None:
        raise computation_error(source, head_at)
    return brace.end()


def attribute(source: SourceText, at: int, is_header: bool = False) -> tuple[tuple[str, str], int]:
    """Read the `, name=value` at `at` and the offset after it, or raise what is wrong with it.

    Values in brackets may go over several lines, as XLA prints JSON that somebody wrote so and the tables of a module's header; but an
    instruction on one of those lines says that a bracket before it was never closed.
    """
    text = source.text
    name = _ATTRIBUTE_NAME.match(text, at)
    if name is None:
        raise _unexpected(source, at, "a list of attributes", "expected an attribute such as ', dimensions={0}'")
    end = name.end()
    while end < len(text) and text[end] not in ",\n":
        if text[end] == '"':
            after = string_end(text, end)
            if after < 0:
                raise _unclosed(source, end, '"', f"attribute {name[1]}")
        elif text[end] in "{[(":
            after = closing(text, end) + 1
            if after <= 0 or (not is_header and _goes_too_far(text, end, after)):
                raise _unclosed(source, end, {"{": "}", "[": "]", "(": ")"}[text[end]], f"attribute {name[1]}")
        elif text[end] in "}])":
            raise source.error(f"'{text[end]}' closes nothing", end)
        else:
            after = end + 1
        end = after
    return (name[1], text[name.end() : end]), end


def _goes_too_far(text: str, start: int, end: int) -> bool:
    """Whether a value at start..end holds the next instruction, or the brace that ends its computation."""
    at = text.find("\n", start, end)
    if at < 0:
        return False
    while at >= 0:
        if INSTRUCTION.match(text, at + 1):
            return True
        at = text.find("\n", at + 1, end)
    return _COMPUTATION_NEXT.match(text, end) is not None


def _unexpected(source: SourceText, at: int, inside: str, message: str) -> HloSyntaxError:
    return _ended(source, at, inside) or source.error(message, at)


def _ended(source: SourceText, at: int, inside: str) -> HloSyntaxError | None:
    """The error for text that ends on the line at `at`, without a newline; None where it goes on."""
    return source.truncated(inside) if source.text.find("\n", at) < 0 else None


def _unclosed(source: SourceText, at: int, close: str, inside: str) -> HloSyntaxError:
    return _ended(source, at, inside) or source.error(f"'{source.text[at]}' is not closed: expected '{close}' before the line ends", at)


def header_error(source: SourceText) -> HloSyntaxError:
    """The error for text that does not begin with a module's header."""
    text = source.text
    if not text.strip():
        return source.error("the file is empty; expected 'HloModule NAME'", 0, hint="The process may have died before writing the dump.")
    start = len(text) - len(text.lstrip())
    if "HloModule".startswith(text[start:].rstrip()[:9]):
        return source.truncated("the module's header")
    return source.error("expected 'HloModule NAME' at the start of the text", start)


def parameter_number(source: SourceText, head: Head) -> int:
    """The number in a parameter's parentheses."""
    if not head.arguments.isdecimal():
        raise source.error("expected a parameter number", head.arguments_at, head.arguments_at + len(head.arguments))
    return int(head.arguments)


def operand_error(source: SourceText, arguments: str, at: int, done: int) -> HloSyntaxError:
    """The error for the operand at `done` of a list that starts at `at` and that no pattern fits."""
    lead = len(arguments[done:]) - len(arguments[done:].lstrip())
    end = arguments.find(",", done + 1)
    stop = end if end >= 0 else len(arguments)
    return source.error("expected an operand such as '%name', '%tuple#1' or 'f32[8]{0} %name'", at + done + lead, at + stop)


def name_error(source: SourceText, line_at: int, name: str, message: str, after: str = "") -> HloSyntaxError:
    """An error about a name that stands in the instruction at `line_at`, past the first `after`."""
    start = source.text.find(after, line_at) if after else line_at
    found = re.compile(rf"(?<![\w.\-]){re.escape(name)}(?![\w.\-])").search(source.text, start)
    at = found.start() if found else line_at
    return source.error(message.format(name), at, at + len(name))


def computation_error(source: SourceText, at: int) -> HloSyntaxError:
    """The error for a line that opens no computation where one should stand."""
    if source.text.startswith("}", at):
        return source.error("'}' closes nothing: expected a computation such as '%name (p: f32[8]) -> f32[8] {'", at)
    return _ended(source, at, "the line that opens a computation") or source.error(
        "expected a computation such as 'ENTRY %name (p: f32[8]) -> f32[8] {'", at, at + len(source.line_at(at).rstrip())
    )


def line_error(source: SourceText, at: int) -> HloSyntaxError:
    """The error for text that follows a finished instruction or header."""
    return source.error("expected ', name=value' or the end of the line", at)
