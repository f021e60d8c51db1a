"""HLO text without the names that people gave: parameters become Arg_N, and metadata, source tables and frontend attributes are gone."""

from __future__ import annotations

import re

_CUT = re.compile(r",? ?(?:metadata|frontend_attributes|sharding)=\{")
_TABLES = re.compile(r"\n(?:FileNames|FunctionNames|FileLocations|StackFrames)\n.*?(?=\n\n|\Z)", re.DOTALL)
_HEADER = re.compile(r"(HloModule )([^\s,]+)")
_HEADER_NAMES = re.compile(r", (?:debug_attributes|origin_recovery_table)=\{")
_PARAMETER = re.compile(r"^ +(?:ROOT )?%?([\w.\-]+) = [^\n]*? parameter\((\d+)\)", re.MULTILINE)


def without_names(text: str, module: str | None = None) -> str:
    """An HLO module without people's names; `module` is its new name, None to leave it. Shapes, dataflow, aliases and instructions stay."""
    text = _without_braces(_without_braces(text, _CUT), _HEADER_NAMES)
    text = _TABLES.sub("", text)
    if module is not None:
        text = _HEADER.sub(lambda match: match[1] + module, text, count=1)
    return renamed(text, parameter_names(text))


def parameter_names(text: str) -> dict[str, str]:
    """The new name of each parameter of the entry computation, by the old one."""
    entry = text[text.index("\nENTRY ") :].split("\n}")[0] if "\nENTRY " in text else ""
    return {name: f"Arg_{number}" for name, number in _PARAMETER.findall(entry)}


def renamed(text: str, names: dict[str, str]) -> str:
    """A text in which whole names are replaced."""
    if not names:
        return text
    word = re.compile(r"(?<![\w.\-])(" + "|".join(sorted(map(re.escape, names), key=len, reverse=True)) + r")(?![\w.\-])")
    return word.sub(lambda match: names[match[1]], text)


def _without_braces(text: str, begins: re.Pattern[str]) -> str:
    """A text without what a pattern begins, up to the brace that closes it; braces within quotes do not count."""
    pieces, at = [], 0
    for match in begins.finditer(text):
        if match.start() < at:
            continue
        pieces.append(text[at : match.start()])
        at = _closing(text, match.end())
    return "".join(pieces) + text[at:]


_BRACE = re.compile(r'"(?:\\.|[^"\\])*"|[{}]', re.DOTALL)


def _closing(text: str, at: int) -> int:
    """The place behind the brace that closes the one before `at`; the end of the text where none does."""
    depth = 1
    for found in _BRACE.finditer(text, at):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            return found.end()
    return len(text)
