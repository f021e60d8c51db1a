"""Quoted text as HLO writes it, and the JSON of a backend_config: what both parsed values and the reading of texts need."""

from __future__ import annotations

import json
import re
from typing import Any

_ESCAPE = re.compile(r"((?:\\(?:[0-7]{3}|x[0-9a-fA-F]{2}))+)|\\(.)", re.DOTALL)
SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def unescape(text: str) -> str:
    """The text of a C-escaped string without its quotes: `\\'` is ', `\\n` a newline, `\\303\\251` the UTF-8 bytes of one letter."""
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(found: re.Match[str]) -> str:
    if found[1] is None:
        return SIMPLE_ESCAPES.get(found[2], found[2])
    codes = found[1].split("\\")[1:]
    return bytes(int(code[1:], 16) if code[0] == "x" else int(code, 8) & 0xFF for code in codes).decode(errors="backslashreplace")


def unquote(text: str) -> str:
    """The text between quotes, unescaped; other text as it is."""
    return unescape(text[1:-1]) if len(text) >= 2 and text[0] == text[-1] == '"' else text


def backend_config(raw: str) -> dict[str, Any]:
    """A backend_config read as JSON, quoted (older custom calls) or not; {} for none and for other notations."""
    text = unquote(raw)
    if not text.startswith("{"):
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # no JSON, a number of thousands of digits, thousands of brackets
        return {}
    return value if isinstance(value, dict) else {}
