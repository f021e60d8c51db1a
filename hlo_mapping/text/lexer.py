"""The patterns of HLO text, and the finding of matching brackets.

The patterns run over well-formed text in C. Where one does not match, the text is either of a rare form or wrong, and `closing`
walks it character by character to tell which.
"""

from __future__ import annotations

import re

NESTING = 12
"""Levels of brackets that a pattern follows by itself; deeper text is left to `closing`."""

STRING = r'"(?:[^"\\]++|\\.)*+"'
NAME = r"[\w.\-]+"


def _nested(opening: str, closing: str, levels: int = NESTING) -> str:
    """A pattern of text in brackets of one kind; brackets inside strings and of other kinds do not count."""
    o, c = re.escape(opening), re.escape(closing)
    inside = rf'[^{o}{c}"]++|{STRING}'
    pattern = rf"{o}(?:{inside})*+{c}"
    for _ in range(levels):
        pattern = rf"{o}(?:{inside}|{pattern})*+{c}"
    return pattern


BRACES = _nested("{", "}")
PARENS = _nested("(", ")")
SQUARES = _nested("[", "]", 3)

ARRAY_SHAPE = r"[a-z]\w*\[[^\[\]\n]*+\](?:\{[^{}\n]*+\})?"
TUPLE_SHAPE = _nested("(", ")", 8)
SHAPE = rf"(?:{ARRAY_SHAPE}|b?{TUPLE_SHAPE})"

VALUE = rf'(?:[^,\n"{{}}()\[\]]++|{STRING}|{BRACES}|{PARENS}|{SQUARES})*+'
"""An attribute's value: it ends at a comma outside brackets, or at the end of the line."""

INSTRUCTION = re.compile(
    rf"[ \t]*(?P<root>ROOT )?%?(?P<name>{NAME}) = (?P<shape>{SHAPE}) (?P<opcode>[a-zA-Z][\w\-]*)"
    rf'\((?P<arguments>(?:[^()"]++|{STRING}|{PARENS})*+)\)',
    re.DOTALL,
)
"""An instruction up to the parenthesis that closes its operands."""

ATTRIBUTE = re.compile(rf", ([\w.\-]+)=({VALUE})(?=[,\n]|\Z)", re.DOTALL)
"""One attribute with the comma before it."""

OPERAND = re.compile(rf"\s*(?:/\*.*?\*/\s*)?(?:{SHAPE} )?%?(?P<name>{NAME})(?P<index>(?:#\d+)*)(?=,|\s*\Z)", re.DOTALL)
"""One operand, with the shape that older text puts before its name."""

COMPUTATION = re.compile(rf"(?P<entry>ENTRY )?%?(?P<name>{NAME})(?P<rest>[^\n]*+)")
"""The line that opens a computation, where `rest` fits SIGNATURE."""
SIGNATURE = re.compile(r"[ \t]*(?:\([^\n>]*->.*)?(?<=[ \t])\{[ \t\r]*")
"""What follows the name: the shapes that the computation's parameters and root say again, and the brace that ends the line."""

CLOSER = re.compile(r"\}(?P<suffix>[^\n]*)")
CALLEE = re.compile(rf"%?({NAME})")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)

_PAIRS = {"(": ")", "[": "]", "{": "}"}


def string_end(text: str, start: int) -> int:
    """The offset after the string that opens at `start`; -1 where it never closes."""
    found = re.compile(STRING, re.DOTALL).match(text, start)
    return found.end() if found else -1


def closing(text: str, start: int, lines: bool = True) -> int:
    """The offset of the bracket that closes the one at `start`; -1 where none does.

    Only brackets of the same kind count, and none inside strings. With `lines` False it must stand on the same line
    (a string may hold newlines still).
    """
    opening, close = text[start], _PAIRS[text[start]]
    interesting = re.compile(rf'[{re.escape(opening + close)}"\n]')
    depth, at = 0, start
    while found := interesting.search(text, at):
        at, character = found.end(), found.group()
        if character == '"':
            at = string_end(text, found.start())
            if at < 0:
                return -1
        elif character == "\n":
            if not lines:
                return -1
        else:
            depth += 1 if character == opening else -1
            if depth == 0:
                return found.start()
    return -1
